/* Command lines that need no shell: a program and its arguments, with nothing for a shell to
 * expand, redirect or run itself. Executing the program directly saves the start of a shell, a
 * fifth of the cost of a short job. */
#ifndef SHEPHERD_BEGIN_PLAIN_COMMAND_H
#define SHEPHERD_BEGIN_PLAIN_COMMAND_H

#include <stdbool.h>

/* The words of the line in one allocation, NULL-terminated; NULL: it needs a shell. env:
 * searched for exported shell functions. The caller frees. */
char **plain_command_words(const char *line, char *const *env);

/* The environment with PWD=folder, as a shell would set it; NULL if PWD already names that
 * folder. One allocation with borrowed strings; the caller frees. may_look: PWD may name the
 * folder by a symbolic link, which is then checked; false if the path is another user's, whose
 * file server may not answer. */
char **plain_command_env(char *const *env, const char *folder, bool may_look);

#endif
