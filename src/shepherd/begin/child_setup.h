/* The last steps of a child of the supervisor before the exec. */
#ifndef SHEPHERD_BEGIN_CHILD_SETUP_H
#define SHEPHERD_BEGIN_CHILD_SETUP_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

struct identity;
struct rlimits;

/* Borrowed. */
struct last_steps {
    const struct identity *identity; /* NULL: keep the identity */
    const struct rlimits *rlimits;   /* NULL: keep the limits */
    const cpu_set_t *cpus;           /* CPUs to run on; NULL: those of the parent */
    const int *v1_fds;               /* groups to join */
    bool v1_must_hold;               /* fail if the memory group cannot be joined */
    int lock_fd;                     /* gets the started mark; -1: not the job's command */
    bool pty;                        /* descriptor 0 is its controlling terminal */
    pid_t shepherd;
    int death_signal; /* sent when the supervisor dies; a change of user clears it */
};

/* For struct spawn's before_exec, ctx a struct last_steps. May share the parent's memory, so
 * system calls only. 0 or an errno value; negative: a group could not be joined. */
int last_steps_take(void *ctx);

#endif
