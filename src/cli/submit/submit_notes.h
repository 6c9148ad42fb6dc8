/* What a submission seems to mean and does not; see submit_notes.c. */
#ifndef CLI_SUBMIT_SUBMIT_NOTES_H
#define CLI_SUBMIT_SUBMIT_NOTES_H

#include <stdbool.h>

struct request;
struct submit_script;

/* Of options behind the command, and of shell in a command that no shell reads. is_explicit:
 * `--` stood before it. */
void submit_note_words(char *const *words, int n, bool is_explicit, bool is_script);

/* Of commands in a script for Slurm that cannot work here: srun on several nodes, module. */
void submit_note_script(const struct submit_script *s, const struct request *r);

/* A program that is not there would make a job that fails, perhaps tomorrow. 2 with words when
 * nothing could still bring it; else 0, perhaps with words. elsewhere: it runs in another
 * folder or with another PATH than we have. */
int submit_check_program(const struct request *r, bool elsewhere);

#endif
