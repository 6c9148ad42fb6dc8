/* Being at an interactive job: waiting for its start, its output here, what is typed there,
 * until it has ended or one detaches. For submit, shell and attach. */
#ifndef CLI_INTERACTIVE_INTERACTIVE_H
#define CLI_INTERACTIVE_INTERACTIVE_H

#include <stdbool.h>
#include <stdint.h>

struct cli;
struct client;
struct daemon_args;

struct interactive {
    const struct cli *cli;
    const struct daemon_args *args; /* for a daemon that has to be started again; NULL: none */
    int64_t job;
    int64_t tail;   /* bytes before the end of its output to begin at; -1: its beginning */
    bool read_only; /* only watch */
    bool *left;     /* is set when the user detaches, and the job goes on; or NULL */
    bool ends;      /* a signal, or output that nobody reads, cancels it */
};

/* client is the caller's, and replaced when the daemon comes back. Returns the exit status:
 * the job's, 0 after a detach by key, 128+N for a signal N. */
int interactive_follow(const struct interactive *what, struct client **client);

/* The size of the terminal that standard input is; false when it is none. */
bool interactive_window(uint16_t *rows, uint16_t *columns);

#endif
