/* What a child of the shepherd still does before its program is executed. */
#ifndef SHEPHERD_BEGIN_CHILD_SETUP_H
#define SHEPHERD_BEGIN_CHILD_SETUP_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

struct identity;
struct rlimits;

/* Borrowed. */
struct last_steps {
    const struct identity *identity; /* NULL: it keeps its identity */
    const struct rlimits *rlimits;   /* NULL: they stay as they are */
    const cpu_set_t *cpus;           /* it runs on these only; NULL: where its parent does */
    const int *v1_fds;               /* groups to join */
    bool v1_must_hold;               /* it is not executed outside that of memory */
    int lock_fd;                     /* gets the started mark; -1: it is not the command */
    bool pty;                        /* descriptor 0 is its terminal */
    pid_t shepherd;
    int death_signal; /* what it gets when the shepherd dies; a change of user clears it */
};

/* For struct spawn's before_exec, ctx a struct last_steps: perhaps with the memory of its
 * parent, so system calls only. 0 or an errno value; less than 0: no group could be joined. */
int last_steps_take(void *ctx);

#endif
