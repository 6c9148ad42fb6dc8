/* `berth submit SCRIPT`: detects that the command is a script with options in it. */
#ifndef CLI_SUBMIT_SUBMIT_SCRIPT_H
#define CLI_SUBMIT_SUBMIT_SCRIPT_H

#include <stdbool.h>

#include "base/buf.h"
#include "spec/script.h"

#define SUBMIT_HEAD_BYTES (64 * 1024) /* bound of the leading comments */

struct err;
struct request;
struct submit_words;

struct submit_script {
    char *path;        /* owned; absolute */
    const char *shown; /* borrowed; as given, for messages */
    struct buf head;   /* the beginning of the file */
    char *interpreter; /* owned; NULL: none */
    bool can_run;      /* it has a #! line and is executable */
};

#define auto_script __attribute__((cleanup(submit_script_free)))
void submit_script_free(struct submit_script *s);

/* True if word is a readable file with #BERTH or #SBATCH lines, or one that begins with #! but
 * cannot be run by this name: not in PATH, or not executable. */
bool submit_find_script(const char *word, struct submit_script *out);

/* The file of that name in a folder of PATH for which access(2) allows mode. The caller frees
 * it; NULL: none. */
char *submit_find_in_path(const char *word, int mode);

/* True if word names a program here, by the rules of execvp(3). */
bool submit_is_program(const char *word);

/* Applies the script's options to *req and *words. Prints every error, and every line that
 * cannot be honoured unless ignore is set. over: the command line's request, which the caller
 * applies afterwards. 0, or the exit status. */
int submit_apply_script(struct submit_script *s, bool ignore, const struct request *over,
                        struct request *req, struct submit_words *words);

/* Applies what the script says about its job's environment. */
int submit_take_words(const struct script *s, struct submit_words *words, struct err *e);

/* Sets the command: the script, run directly or by its interpreter, with the words after it;
 * also sets the job's name if it has none. words[0] is the script. 0, or the exit status. */
int submit_script_command(const struct submit_script *s, struct request *req, char **words,
                          int n);

#endif
