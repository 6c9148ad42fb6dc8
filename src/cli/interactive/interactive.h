/* Attaches to an interactive job: waits for its start and passes output and input until it
 * ends or the user detaches. For submit, shell and attach. */
#ifndef CLI_INTERACTIVE_INTERACTIVE_H
#define CLI_INTERACTIVE_INTERACTIVE_H

#include <stdbool.h>
#include <stdint.h>

struct cli;
struct client;
struct daemon_args;

struct interactive {
    const struct cli *cli;
    const struct daemon_args *args; /* for a daemon that has to be restarted; NULL: none */
    int64_t job;
    int64_t tail;   /* bytes before the end of its output to start at; -1: all of it */
    bool read_only; /* show output only */
    bool *left;     /* set if the user detaches and the job continues; may be NULL */
    bool ends;      /* a signal, or a closed output, cancels the job */
};

/* *client is the caller's, and is replaced when the daemon comes back. Returns the exit
 * status: the job's, 0 after a detach by key, 128+N for a signal N. */
int interactive_follow(const struct interactive *what, struct client **client);

/* The size of the terminal on standard input; false if it is not a terminal. */
bool interactive_window(uint16_t *rows, uint16_t *columns);

#endif
