/* Lists jobs for people: by number, by priority, or by turn. Sorting 100,000 jobs takes too
 * long for one turn of the daemon's loop, so it is done in steps. The queue may change between
 * steps: a job that came after the beginning may be missing, and one that has left may still
 * be listed. Used by the daemon's selection.c and method_explain.c. */
#ifndef CORE_PLAN_LINEUP_H
#define CORE_PLAN_LINEUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ledger;
struct planner;
struct queue;

enum lineup_order {
    /* Active jobs first, then waiting ones by priority and submission, then ended ones. */
    LINEUP_BY_PRIORITY,
    LINEUP_BY_ID,
    /* Active and ended jobs; then jobs in line, as a pass made now would try them if there
     * were room for all: by priority, their user's recent use, the order of the settings and
     * submission (`balanced`: plan_order.c); then jobs that wait for a time or for other jobs;
     * then held jobs. */
    LINEUP_IN_TURN,
    /* The same, then sorted by number, with how many jobs wait ahead of each. */
    LINEUP_PLACES,
};

struct lineup;

/* planner and l are for turns and places; else NULL. q, planner and l are borrowed until the
 * lineup is finished. */
struct lineup *lineup_begin(struct planner *planner, const struct queue *q,
                            const struct ledger *l, int64_t now_us, enum lineup_order order);
void lineup_free(struct lineup *x); /* NULL is fine */

/* One step: some thousand jobs, less than a ms. False: it is finished. */
bool lineup_step(struct lineup *x);

/* The ids, once finished. The caller frees them. */
uint32_t *lineup_ids(const struct lineup *x, size_t *n);

/* For LINEUP_PLACES, once finished: the number of waiting jobs (an array counts as all tasks
 * not yet split off), and how many of them are ahead of this job. False: it does not wait, or
 * is held. */
int64_t lineup_waiting(const struct lineup *x);
bool lineup_place(const struct lineup *x, uint32_t id, int64_t *before);

#endif
