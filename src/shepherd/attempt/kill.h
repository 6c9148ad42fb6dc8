/* Ends processes for good, even if they resist. */
#ifndef SHEPHERD_ATTEMPT_KILL_H
#define SHEPHERD_ATTEMPT_KILL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct procs;

/* Fills out (clearing it first) with the living target processes. 0, or -1 if they cannot be
 * listed. */
typedef int (*kill_find)(void *ctx, struct procs *out);

/* Selects among this process's descendants. */
struct kill_own {
    pid_t spared;      /* excludes it (a screen session) and its descendants; 0: none */
    bool in_container; /* only processes in containers, if any: not podman itself */
};
/* Finds this process's descendants; ctx: a struct kill_own, or NULL for all. */
int kill_find_own(void *ctx, struct procs *out);

/* For a subreaper: finds the orphans of its children that died unexpectedly, that is, children
 * that it did not fork and all their descendants. ctx: a struct kill_known. */
struct kill_known {
    bool (*is_known)(const void *whose, pid_t pid);
    const void *whose;
};
int kill_find_orphans(void *ctx, struct procs *out);

/* Sends sig once to each process, then CONT, so that stopped ones get it too. Returns how
 * many. */
size_t kill_signal_all(kill_find find, void *ctx, int sig);

/* Sends sig once to each process of the running command. A notice (USR1, USR2, real-time
 * signals) skips the command's own process if it has others and does not catch the signal: it
 * would kill a shell that merely waits for the processes meant. */
void kill_notify(pid_t command, int sig, const struct kill_own *own);

/* Sends sig only to the command's own process. */
void kill_command(pid_t command, int sig, const struct kill_own *own);

/* One pass of KILL; returns how many were found, 0 if none is left. `pass` counts from 0:
 * after the first few, everything is stopped before it is killed, because a stopped process
 * cannot fork. */
size_t kill_pass(kill_find find, void *ctx, unsigned pass);

#endif
