/* Runs a program and captures its output: a child process with a pipe, and bounds on its
 * output and its time. */
#ifndef BASE_CHILD_OUTPUT_H
#define BASE_CHILD_OUTPUT_H

#include <stdbool.h>

struct buf;
struct err;

struct child {
    const char *const *argv; /* argv[0] is looked up in PATH; no shell is involved */
    int patience_ms;         /* 0: no deadline */
    bool with_errors;        /* capture standard error too; else it is discarded */
};

/* Puts the standard output into *out (cleared first). *status (may be NULL) is the exit
 * status, 128 + N for signal N. -1 with e if the program cannot be run, writes more than 4
 * MiB, or has not closed its output in time (ERR_TIMED_OUT; it is killed, and *out has the
 * output so far). */
int child_output(const struct child *c, struct buf *out, int *status, struct err *e);

#endif
