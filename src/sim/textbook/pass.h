/* One scheduling pass over compact entries: which of the waiting start now, and on which
 * cards, by a policy of policy.h. Pure: the simulator reports arrivals and ends, and is given
 * the starts.
 *
 * These are the policies of the reference simulator, as fast as can be, to compare with the
 * daemon's. The daemon's own planner is plan.c; both share the placing rule (fit.h). Where
 * both can do the same they give the same schedules, to the byte: plan.c in the order of the
 * queue is easy-e (tests/sim/test_policies.c). */
#ifndef SIM_TEXTBOOK_PASS_H
#define SIM_TEXTBOOK_PASS_H

#include <stddef.h>
#include <stdint.h>

#include "sim/textbook/lines.h"
#include "sim/textbook/policy.h"
#include "sim/workload/node.h"

/* One that runs, as the policy sees it. */
struct running {
    int64_t expected_end;
    uint64_t cards;
    uint32_t who;
};

/* What the first blocked one was promised in this pass. */
struct promise {
    uint32_t who; /* 0: nothing was promised */
    int64_t at;   /* the first time at which it fits, if the expected ends hold */
    int n_cards;  /* cards that will do then */
    int64_t free_mib[GPU_MAX];
    int32_t n_jobs[GPU_MAX];
};

typedef void (*pass_on_start)(void *arg, uint32_t who, uint64_t cards);

struct pass {
    const struct policy *policy;
    struct node *node; /* borrowed */
    struct lines lines;
    struct promise promise;  /* the last one made, for tests and explanations */
    struct running *running; /* by (expected end, number); only if reservations need it */
    size_t n_running, cap_running;
    pass_on_start on_start;
    void *arg;
};

/* As lines_init. The node is set to the policy's rule. */
void pass_init(struct pass *p, const struct policy *policy, struct node *node,
               struct entry *entries, size_t n, const struct shape *shapes, size_t n_shapes,
               pass_on_start on_start, void *arg);
void pass_free(struct pass *p);

/* At one instant: every end, then every arrival, then pass_run. */
void pass_end(struct pass *p, uint32_t who, uint64_t cards, int64_t started);
void pass_arrive(struct pass *p, uint32_t who);
void pass_run(struct pass *p, int64_t now); /* calls on_start for each start, in order */

#endif
