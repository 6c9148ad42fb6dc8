/* Jobs in an order, for people: by number, by priority, or as their turns come. Sorting
 * 100,000 of them takes too long for one turn, so it is done in pieces, between which the
 * queue may change: a job that came after the beginning may be missing, and one that has left
 * may still be listed. Used by the daemon's selection.c and method_explain.c. */
#ifndef CORE_PLAN_LINEUP_H
#define CORE_PLAN_LINEUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ledger;
struct planner;
struct queue;

enum lineup_order {
    /* Active ones in front, ended ones behind, between them by priority and submission. */
    LINEUP_BY_PRIORITY,
    LINEUP_BY_ID,
    /* Active and ended ones; those that wait in line as a pass made now would try them, were
     * there room for all, by priority, what their user has used, the order of the settings and
     * submission (`balanced`: plan_order.c); those that wait for a time or for others; those
     * that are held. */
    LINEUP_IN_TURN,
    /* The same, and then by number: how many wait in front of each. */
    LINEUP_PLACES,
};

struct lineup;

/* planner and l: for turns and places; else NULL. All three stay while it is made. */
struct lineup *lineup_begin(struct planner *planner, const struct queue *q,
                            const struct ledger *l, int64_t now_us, enum lineup_order order);
void lineup_free(struct lineup *x); /* NULL is fine */

/* A piece: some thousand jobs, less than a ms. False: there is no more to do. */
bool lineup_step(struct lineup *x);

/* Once that is so: the ids, for the caller to free. */
uint32_t *lineup_ids(const struct lineup *x, size_t *n);

/* PLACES, once it is made: how many wait, an array as all its tasks that have not left it; and
 * how many of them in front of this job. False: it does not wait, or is held. */
int64_t lineup_waiting(const struct lineup *x);
bool lineup_place(const struct lineup *x, uint32_t id, int64_t *before);

#endif
