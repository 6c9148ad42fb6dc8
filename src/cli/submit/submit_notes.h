/* Warnings about likely mistakes in a submission; see submit_notes.c. */
#ifndef CLI_SUBMIT_SUBMIT_NOTES_H
#define CLI_SUBMIT_SUBMIT_NOTES_H

#include <stdbool.h>

struct request;
struct submit_script;

/* Warns about options after the command, and shell syntax in a command that no shell reads.
 * is_explicit: `--` preceded it. */
void submit_note_words(char *const *words, int n, bool is_explicit, bool is_script);

/* Warns about commands in a Slurm script that cannot work here: srun on several nodes,
 * module. */
void submit_note_script(const struct submit_script *s, const struct request *r);

/* Checks that the program exists, as otherwise the job would fail, perhaps only tomorrow.
 * Returns 2 with an error if nothing can still provide it; else 0, perhaps with a warning.
 * elsewhere: the job runs in another folder or with another PATH than ours. */
int submit_check_program(const struct request *r, bool elsewhere);

#endif
