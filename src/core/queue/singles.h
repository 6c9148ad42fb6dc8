/* Jobs that run one at a time: of the jobs of one user with one name, a singleton waits while
 * any runs, and while one that was submitted earlier waits. It is parked (PARK_SINGLETON) until
 * then. queue.c keeps it; a job without a name has nothing to do with it. Tasks of an array
 * stand where their array does. */
#ifndef CORE_QUEUE_SINGLES_H
#define CORE_QUEUE_SINGLES_H

#include <stdbool.h>

struct job;
struct single_group;

struct singles {
    struct single_group *groups; /* owned; a table by user and name */
};

/* The groups; the jobs in them are the caller's. */
void singles_free(struct singles *s);

#define SINGLES_MOVED 4
/* The job's state, name, user or request may have changed, or it is gone from the queue. Its
 * own PARK_SINGLETON is right then. Of how many others that has changed, which are in moved:
 * the caller files them anew. */
int singles_settle(struct singles *s, struct job *job, bool gone,
                   struct job *moved[SINGLES_MOVED]);

/* The job that a parked one waits for, or the first of several. NULL: none. Borrowed. */
const struct job *singles_before(const struct job *job);

/* The next singleton behind this one that waits, of the same name: it waits for this one too.
 * NULL: none, or this one does not wait itself. */
const struct job *singles_next(const struct job *job);
/* Whether the job is one, and waits for that other, which waits itself. */
bool singles_is_behind(const struct job *job, const struct job *other);

/* NULL when this job stands as its state says, else what is wrong. */
const char *singles_check(const struct job *job);

#endif
