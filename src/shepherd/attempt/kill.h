/* Ending processes for good, whatever they do against it. */
#ifndef SHEPHERD_ATTEMPT_KILL_H
#define SHEPHERD_ATTEMPT_KILL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct procs;

/* Fills out (cleared by it) with the living processes that are meant. 0, or -1 when that
 * cannot be read. */
typedef int (*kill_find)(void *ctx, struct procs *out);

/* Which of this process's descendants are meant. */
struct kill_own {
    pid_t spared;      /* not this one (a screen session) and what it has; 0: none */
    bool in_container; /* those in a container alone, once there are any: not podman itself */
};
/* The descendants of this process; ctx: a struct kill_own, or NULL for all. */
int kill_find_own(void *ctx, struct procs *out);

/* What processes of this one have left that ended out of turn, where it is a subreaper:
 * children that it does not know, and all below them. ctx: a struct kill_known. */
struct kill_known {
    bool (*is_known)(const void *whose, pid_t pid);
    const void *whose;
};
int kill_find_orphans(void *ctx, struct procs *out);

/* Sends sig to each once, and CONT after it so that stopped ones get it too. How many. */
size_t kill_signal_all(kill_find find, void *ctx, int sig);

/* Sends sig once to each process of the running command. A notice (USR1, USR2, the real-time
 * signals) passes over the command's own process where it has others and does not catch it: a
 * shell that only waits for the rest would end of what they are meant to hear. */
void kill_notify(pid_t command, int sig, const struct kill_own *own);

/* Sends it to the command's own process alone. */
void kill_command(pid_t command, int sig, const struct kill_own *own);

/* One pass of KILL; returns how many were found, 0 when none is left. `pass` counts from 0:
 * once the first few have not been enough, everything is stopped before it is killed, because
 * what is stopped cannot fork. */
size_t kill_pass(kill_find find, void *ctx, unsigned pass);

#endif
