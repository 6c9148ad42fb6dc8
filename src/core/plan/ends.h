/* Ends that are due: a binary heap, the earliest on top, ties by number. lookahead.c and both
 * engines of the simulator (sim/textbook/textbook_sim.c, sim/live_sim.c) keep what runs in
 * one. */
#ifndef CORE_PLAN_ENDS_H
#define CORE_PLAN_ENDS_H

#include <stddef.h>
#include <stdint.h>

struct end {
    int64_t at;       /* in the unit and from the origin that its owner counts with */
    uint32_t who;     /* a job; 0: forgotten */
    uint32_t attempt; /* sim/live_sim.c: an end of an earlier run of the same job is no end */
};

struct ends {
    struct end *heap; /* owned */
    size_t n, cap;
};

void ends_free(struct ends *e); /* what it owns */
void ends_push(struct ends *e, struct end end);
struct end ends_pop(struct ends *e); /* there is one */
/* When the earliest is due; INT64_MAX: there is none. */
int64_t ends_next(const struct ends *e);
/* The job runs no longer: its end no longer counts. O(n). */
void ends_forget(struct ends *e, uint32_t who);

#endif
