/* Set-up in the shell that then runs the command: --conda and --env-setup. */
#ifndef SHEPHERD_BEGIN_SETUP_H
#define SHEPHERD_BEGIN_SETUP_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct spec;

bool setup_is_wanted(const struct spec *spec);

/* A memory file with the set-up's text, in which the shell also marks its progress. It stays
 * open across the exec, at a number that no script uses. -1 with words. */
int setup_open(const struct spec *spec, struct err *e);

/* The command line to execute instead of argv (the spec's, or an equivalent one): a fixed
 * script for bash with everything from the user as arguments. bash runs as a login shell if
 * the job wants a login environment, because the set-up may use what the profiles define. The
 * caller frees the list, the strings are borrowed; `number` receives fd in decimal. */
char **setup_argv(const struct spec *spec, char *const *argv, int fd, char number[12]);

/* True if the set-up completed, so that the command was started; else text says, on one line,
 * at which step it stopped. */
bool setup_was_done(const struct spec *spec, int fd, char *text, size_t size);

#endif
