/* Command lines that need no shell: a program and its arguments, nothing that a shell would
 * expand, redirect or carry out itself. Executing the program directly spares the time that a
 * shell takes to start, a fifth of all that a short job costs. */
#ifndef SHEPHERD_BEGIN_PLAIN_COMMAND_H
#define SHEPHERD_BEGIN_PLAIN_COMMAND_H

#include <stdbool.h>

/* The words of the line in one allocation, up to NULL; NULL: a shell has to read it. env: may
 * define functions of a shell's. The caller frees. */
char **plain_command_words(const char *line, char *const *env);

/* The environment with PWD=folder, as a shell would set it, unless PWD names that folder
 * already: then NULL. One allocation; the other strings are borrowed. The caller frees.
 * may_look: PWD may name it in another way, by a link; false where the path is another user's,
 * whose file server may not answer. */
char **plain_command_env(char *const *env, const char *folder, bool may_look);

#endif
