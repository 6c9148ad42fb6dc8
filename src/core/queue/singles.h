/* Jobs that run one at a time: a singleton waits while any job of the same user and name runs,
 * and while an earlier submitted one waits. Until then it is parked (PARK_SINGLETON). Kept by
 * queue.c; jobs without a name are not affected. Tasks of an array have their array's
 * place. */
#ifndef CORE_QUEUE_SINGLES_H
#define CORE_QUEUE_SINGLES_H

#include <stdbool.h>

struct job;
struct single_group;

struct singles {
    struct single_group *groups; /* owned; a hash table by user and name */
};

/* Frees the groups; the jobs in them are the caller's. */
void singles_free(struct singles *s);

#define SINGLES_MOVED 4
/* The job's state, name, user or request may have changed, or it left the queue. Updates its
 * PARK_SINGLETON. Returns the number of other jobs whose PARK_SINGLETON changed, listed in
 * moved: the caller refiles them. */
int singles_settle(struct singles *s, struct job *job, bool gone,
                   struct job *moved[SINGLES_MOVED]);

/* The job that a parked one waits for, or the first of several. NULL: none. Borrowed. */
const struct job *singles_before(const struct job *job);

/* The next waiting singleton of the same name after this one: it waits for this one too. NULL:
 * none, or this one does not wait itself. */
const struct job *singles_next(const struct job *job);
/* Whether the job is a singleton and waits for the other, which waits itself. */
bool singles_is_behind(const struct job *job, const struct job *other);

/* NULL if this job is filed as its state requires, else what is wrong. */
const char *singles_check(const struct job *job);

#endif
