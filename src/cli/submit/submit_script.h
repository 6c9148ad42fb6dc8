/* `berth submit SCRIPT`: finding out that the command is a script with options in it. */
#ifndef CLI_SUBMIT_SUBMIT_SCRIPT_H
#define CLI_SUBMIT_SUBMIT_SCRIPT_H

#include <stdbool.h>

#include "base/buf.h"
#include "spec/script.h"

#define SUBMIT_HEAD_BYTES (64 * 1024) /* the leading comments are to lie within */

struct err;
struct request;
struct submit_words;

struct submit_script {
    char *path;        /* owned; absolute */
    const char *shown; /* borrowed; as said, for messages */
    struct buf head;   /* its beginning */
    char *interpreter; /* owned; NULL: none */
    bool can_run;      /* it has a #! and may be executed */
};

#define auto_script __attribute__((cleanup(submit_script_free)))
void submit_script_free(struct submit_script *s);

/* Whether word is a readable file with #BERTH or #SBATCH lines, or one that begins with #! and
 * is no program by this name: not in PATH, or not to be executed. */
bool submit_find_script(const char *word, struct submit_script *out);

/* The file of that name in a folder of PATH for which access(2) allows mode. The caller frees;
 * NULL: there is none. */
char *submit_find_in_path(const char *word, int mode);

/* Whether the word names a program here, as execvp(3) looks for one. */
bool submit_is_program(const char *word);

/* Lays its options over *req and *words. Every error is said, and every line that cannot be
 * honoured; these are none when ignore is set. over: what the command line says, which the
 * caller lays over it. 0, or the exit status. */
int submit_apply_script(struct submit_script *s, bool ignore, const struct request *over,
                        struct request *req, struct submit_words *words);

/* What a script says about the environment of its job. */
int submit_take_words(const struct script *s, struct submit_words *words, struct err *e);

/* The command: the script with the words behind it, run by itself or by its interpreter; its
 * name, when the job has none. words[0] is the script. 0, or the exit status. */
int submit_script_command(const struct submit_script *s, struct request *req, char **words,
                          int n);

#endif
