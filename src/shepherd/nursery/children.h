/* The processes that a nursery has forked, and what falls to it when one of them dies. */
#ifndef SHEPHERD_NURSERY_CHILDREN_H
#define SHEPHERD_NURSERY_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/nursery_packets.h"

struct child {
    pid_t pid;
    dev_t dev; /* of the lock file that it was given: says whose it is */
    ino_t ino;
    int link; /* to it, a supervisor that may take another attempt (again.h); -1: none */
};

struct children {
    struct child *v; /* owned */
    size_t n, cap;
    bool reaps_on;   /* more may have ended than were waited for */
    bool orphaned;   /* one died out of turn: what it had started may be ours now */
    unsigned passes; /* over such processes, since then */
    int64_t due_us;  /* boot clock: when the next pass is due */
};

/* Makes this process the one to which orphans of its children fall. */
void children_init(struct children *b);
void children_free(struct children *b); /* what it owns; not b */

/* One more was forked, with this lock file. Takes link; -1: none. */
void children_add(struct children *b, pid_t pid, int lock_fd, int link);

/* Whether one more supervisor may be given a link. */
bool children_have_room(const struct children *b);

/* Hands the attempt, a packet of kind NURSERY_AHEAD, to a supervisor that has none; false:
 * there is none. */
bool children_hand_over(struct children *b, const int fds[NURSERY_FDS]);

/* Lets those that have no attempt exit, and the others when theirs has ended. */
void children_release(struct children *b);

/* Whether a child that was given the file open as lock_fd has not been waited for. */
bool children_has(const struct children *b, int lock_fd);

/* Waits for those that have ended, at most 256: then reaps_on says that more may have. */
void children_reap(struct children *b);

/* KILLs what children that died out of turn have left, one pass over it when that is due. How
 * many milliseconds to wait until the next one is; -1 when nothing is left. */
int children_end_orphans(struct children *b);

/* Whether something is left that has not yet withstood so many passes that it is no longer
 * waited for: a driver can hold a process where KILL does not reach it. */
bool children_are_ending(const struct children *b);

#endif
