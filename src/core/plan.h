/* One pass over the queue: which pending jobs start now and where, and why the others wait.
 * The ledger is booked for each start, from the moment of the decision; the queue and its
 * jobs are left as they are (but for the reasons kept with each kind), so a look ahead is a
 * plan over ledger_clone, thrown away. Whoever takes the plan applies each decision with
 * job_apply and queue_refile, or gives the booking back with ledger_release. */
#ifndef CORE_PLAN_H
#define CORE_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "core/place.h"

struct buf;
struct job;
struct ledger;
struct queue;

enum decision_type {
    PLAN_START,
    PLAN_INFEASIBLE, /* it can never start on this machine; text says why */
};

struct decision {
    enum decision_type type;
    uint32_t job;
    struct placement where; /* START */
    char *text;             /* INFEASIBLE; owned by the plan */
};

struct plan {
    struct decision *decisions; /* in the order they were made */
    size_t n, cap;
    int64_t wake_us; /* look again then at the latest; INT64_MAX: when something happens */
};

#define PLAN_INIT                                                                              \
    {                                                                                          \
        NULL, 0, 0, INT64_MAX                                                                  \
    }
#define auto_plan __attribute__((cleanup(plan_free)))

void plan_free(struct plan *p); /* what it owns; it is empty after */

/* Decides. *p is emptied first. now_us is wall time, as begin_us is. */
void plan_make(struct queue *q, struct ledger *l, int64_t now_us, struct plan *p);

/* Why this job waits, as of the last plan: its own state, or what its line waits for. A job
 * that does not wait gets REASON_NONE. */
void plan_explain(const struct job *job, struct blocked *out);
/* The same as a sentence, appended; nothing for a job that does not wait. */
void plan_explain_text(const struct job *job, struct buf *out);

#endif
