/* What a program prints: a child process with a pipe, and bounds on its words and on its
 * time. */
#ifndef BASE_CHILD_OUTPUT_H
#define BASE_CHILD_OUTPUT_H

#include <stdbool.h>

struct buf;
struct err;

struct child {
    const char *const *argv; /* argv[0] is looked up in PATH; no shell reads it */
    int patience_ms;         /* 0: any time */
    bool with_errors;        /* standard error is read too; else it goes nowhere */
};

/* Puts the standard output into *out (cleared first). *status (may be NULL) is the exit status,
 * 128 + N for signal N. -1 with e when it cannot be run, says more than 4 MiB, or has not
 * closed its output in time (ERR_TIMED_OUT; it is killed, and *out has what came). */
int child_output(const struct child *c, struct buf *out, int *status, struct err *e);

#endif
