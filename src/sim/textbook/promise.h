/* The promise to the first blocked job, and what other jobs may do without breaking it. Part
 * of the pass; called by pass.c. */
#ifndef SIM_TEXTBOOK_PROMISE_H
#define SIM_TEXTBOOK_PROMISE_H

#include "sim/textbook/pass.h"

static inline const struct shape *
pass_shape(const struct pass *p, uint32_t who)
{
    return &p->lines.shapes[p->lines.entries[who].shape];
}

void promise_add_running(struct pass *p, uint32_t who, uint64_t cards, int64_t now);
void promise_remove_running(struct pass *p, uint32_t who, int64_t started);

/* Computes when the blocked job fits if the running jobs end as expected, and the state of the
 * cards then. An overdue job is expected to end in a second. */
void promise_make(struct pass *p, uint32_t who, int64_t now);

/* How much VRAM a job of this shape may take on each of these cards so that the promise holds
 * whenever that job ends; -1: none; INT64_MAX: any amount. */
int64_t promise_harmless_mib(const struct pass *p, const struct shape *s, const uint8_t *cards);

/* Records the start there of an entry that will still run at the promised time. */
void promise_add_beside(struct pass *p, const struct shape *s, uint64_t cards);

#endif
