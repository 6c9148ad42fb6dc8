/* The processes that the nursery has forked, and the orphans it inherits when one of them
 * dies. */
#ifndef SHEPHERD_NURSERY_CHILDREN_H
#define SHEPHERD_NURSERY_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/nursery_packets.h"

struct child {
    pid_t pid;
    dev_t dev; /* identify the lock file it was given, and so its attempt */
    ino_t ino;
    int link; /* socket to a reusable supervisor (again.h); -1: none */
};

struct children {
    struct child *v; /* owned */
    size_t n, cap;
    bool reaps_on;   /* more may have ended than were reaped */
    bool orphaned;   /* one died unexpectedly: its children may be ours now */
    unsigned passes; /* of killing orphans since then */
    int64_t due_us;  /* boot clock: when the next pass is due */
};

/* Makes this process a subreaper, to inherit orphans of its children. */
void children_init(struct children *b);
void children_free(struct children *b); /* frees what b owns, not b */

/* Adds a forked child with this lock file. Takes ownership of link; -1: none. */
void children_add(struct children *b, pid_t pid, int lock_fd, int link);

/* True if another supervisor may be given a link. */
bool children_have_room(const struct children *b);

/* Hands the attempt, a NURSERY_AHEAD packet, to an idle supervisor; false: there is none. */
bool children_hand_over(struct children *b, const int fds[NURSERY_FDS]);

/* Lets idle supervisors exit, and the others once their attempt has ended. */
void children_release(struct children *b);

/* True if a child that was given this lock file has not been reaped yet. */
bool children_has(const struct children *b, int lock_fd);

/* Reaps at most 256 ended children; reaps_on says if there may be more. */
void children_reap(struct children *b);

/* Makes one pass of KILL over the orphans of children that died unexpectedly, if it is due.
 * Returns the milliseconds until the next pass; -1: nothing is left. */
int children_end_orphans(struct children *b);

/* True while orphans are left and worth waiting for. After many passes they are not: a driver
 * can hold a process where KILL does not reach it. */
bool children_are_ending(const struct children *b);

#endif
