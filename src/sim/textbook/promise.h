/* What the first blocked job is promised, and what others may do without breaking it. Parts of
 * the pass; called by pass.c. */
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

/* When the blocked one fits if those that run leave as expected, and how the cards will stand
 * then. An overdue one is expected to end in a second. */
void promise_make(struct pass *p, uint32_t who, int64_t now);

/* How much VRAM one of this shape may take of each of these cards so that the promise still
 * holds whenever that job ends; -1: it does not; INT64_MAX: it always does. */
int64_t promise_harmless_mib(const struct pass *p, const struct shape *s, const uint8_t *cards);

/* An entry starts there that will still run at the promised time. */
void promise_add_beside(struct pass *p, const struct shape *s, uint64_t cards);

#endif
