/* Ends that are due in virtual time: a binary heap, the earliest on top, ties by number. Both
 * engines (sim.c, live.c) keep what runs in one. */
#ifndef SIM_ENDS_H
#define SIM_ENDS_H

#include <stddef.h>
#include <stdint.h>

struct end {
    int64_t at;
    uint32_t who;
    uint32_t attempt; /* live.c: an end of an earlier run of the same job is no end */
};

struct ends {
    struct end *heap; /* owned */
    size_t n, cap;
};

void ends_free(struct ends *e); /* what it owns */
void ends_push(struct ends *e, struct end end);
struct end ends_pop(struct ends *e); /* there is one */

#endif
