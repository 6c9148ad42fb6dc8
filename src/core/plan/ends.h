/* Expected ends: a binary heap, earliest first, ties by number. lookahead.c and both engines
 * of the simulator (sim/textbook/textbook_sim.c, sim/live_sim.c) keep their running jobs in
 * one. */
#ifndef CORE_PLAN_ENDS_H
#define CORE_PLAN_ENDS_H

#include <stddef.h>
#include <stdint.h>

struct end {
    int64_t at;       /* unit and origin are the owner's */
    uint32_t who;     /* a job; 0: no longer counts */
    uint32_t attempt; /* sim/live_sim.c: ends of the job's earlier attempts are ignored */
};

struct ends {
    struct end *heap; /* owned */
    size_t n, cap;
};

void ends_free(struct ends *e); /* frees the contents */
void ends_push(struct ends *e, struct end end);
struct end ends_pop(struct ends *e); /* must not be empty */
/* INT64_MAX: the heap is empty. */
int64_t ends_next(const struct ends *e);
/* The job no longer runs: its end no longer counts. O(n). */
void ends_forget(struct ends *e, uint32_t who);

#endif
