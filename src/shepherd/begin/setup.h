/* What is set up in the shell that then runs the command: --conda and --env-setup. */
#ifndef SHEPHERD_BEGIN_SETUP_H
#define SHEPHERD_BEGIN_SETUP_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct spec;

bool setup_is_wanted(const struct spec *spec);

/* A file in memory, in which the shell finds the set-up's text and marks how far it has come.
 * It stays open in what is executed, at a number that no script uses. -1 with words. */
int setup_open(const struct spec *spec, struct err *e);

/* What is executed in the place of argv (the spec's, or one that means the same): a fixed text
 * for bash (as a login shell, for a job that is to have a login's environment: the set-up may
 * use what the profiles define), with all that is the user's behind it as arguments. The list
 * is the caller's, the strings are borrowed; number becomes fd. */
char **setup_argv(const struct spec *spec, char *const *argv, int fd, char number[12]);

/* Whether the set-up came to its end, so that the command was begun; else what it was about
 * when it stopped, on one line, cut to size. */
bool setup_was_done(const struct spec *spec, int fd, char *text, size_t size);

#endif
