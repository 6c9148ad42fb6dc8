/* Jobs that a user asks about before submitting them: the results of a forecast that has them
 * in its queue (forecast_run_add). Part of lookahead.c's struct forecast_run. */
#ifndef CORE_PLAN_LOOKAHEAD_ASKED_H
#define CORE_PLAN_LOOKAHEAD_ASKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/plan/plan.h"

struct queue;

struct asked {
    struct asked_start *v; /* owned; sorted by job once the first step has been made */
    size_t n, cap, n_answered;
    bool sorted;
    bool explained; /* the first instant is finished */
    size_t explained_n, settled_n;
};

void asked_add(struct asked *a, uint32_t job);
/* Records the job's first start; later ones and other jobs are ignored. */
void asked_starts(struct asked *a, uint32_t job, int64_t at_us, const struct placement *where);
/* After the first instant: records why the jobs that it did not start wait, for at most `most`
 * jobs per call. False: all are done. No-op after later instants. */
bool asked_explain(struct asked *a, const struct queue *q, size_t most);
/* The same at the end: the jobs that still wait do so forever. */
bool asked_settle(struct asked *a, const struct queue *q, size_t most);
/* Whether all are answered; false if no job was asked about. */
bool asked_is_answered(const struct asked *a);
struct asked_start *asked_find(struct asked *a, uint32_t job);
void asked_free(struct asked *a); /* frees the contents */

#endif
