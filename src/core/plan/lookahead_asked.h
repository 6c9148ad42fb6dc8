/* Jobs that a user asks about before submitting them: what a forecast that has them in its
 * queue (forecast_run_add) finds out. Part of lookahead.c's struct forecast_run. */
#ifndef CORE_PLAN_LOOKAHEAD_ASKED_H
#define CORE_PLAN_LOOKAHEAD_ASKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/plan/plan.h"

struct queue;

struct asked {
    struct asked_start *v; /* owned; by job, once the first step has been made */
    size_t n, cap, n_answered;
    bool sorted;
    bool explained; /* the first instant is over */
    size_t explained_n, settled_n;
};

void asked_add(struct asked *a, uint32_t job);
/* The first start of it counts. Others than those that were asked about are ignored. */
void asked_starts(struct asked *a, uint32_t job, int64_t at_us, const struct placement *where);
/* After the first instant: why those that it did not start wait, of so many in a call. False:
 * all are explained. Does nothing after later ones. */
bool asked_explain(struct asked *a, const struct queue *q, size_t most);
/* Those that still wait do so for ever; in the same way. */
bool asked_settle(struct asked *a, const struct queue *q, size_t most);
/* Whether nothing is left to find out; false when nothing was asked. */
bool asked_is_answered(const struct asked *a);
struct asked_start *asked_find(struct asked *a, uint32_t job);
void asked_free(struct asked *a); /* what it owns */

#endif
