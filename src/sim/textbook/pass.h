/* One scheduling pass over compact entries: which waiting jobs start now, and on which cards,
 * by a policy of policy.h. Pure: the simulator reports arrivals and ends, and gets the starts.
 *
 * These are the reference simulator's policies, as fast as possible, to compare with the
 * daemon's planner, plan.c. Both share the placement rule (fit.h). Where both can do the same,
 * their schedules are identical to the byte: plan.c in queue order is easy-e
 * (tests/sim/test_policies.c). */
#ifndef SIM_TEXTBOOK_PASS_H
#define SIM_TEXTBOOK_PASS_H

#include <stddef.h>
#include <stdint.h>

#include "sim/textbook/lines.h"
#include "sim/textbook/policy.h"
#include "sim/workload/node.h"

/* A running job, as the policy sees it. */
struct running {
    int64_t expected_end;
    uint64_t cards;
    uint32_t who;
};

/* The promise to the first blocked job of this pass. */
struct promise {
    uint32_t who; /* 0: no promise */
    int64_t at;   /* the first time at which it fits, if expected ends hold */
    int n_cards;  /* cards with room at that time */
    int64_t free_mib[GPU_MAX];
    int32_t n_jobs[GPU_MAX];
};

typedef void (*pass_on_start)(void *arg, uint32_t who, uint64_t cards);

struct pass {
    const struct policy *policy;
    struct node *node; /* borrowed */
    struct lines lines;
    struct promise promise;  /* the last one, for tests and explanations */
    struct running *running; /* by (expected end, number); only if the policy reserves */
    size_t n_running, cap_running;
    pass_on_start on_start;
    void *arg;
};

/* Arguments as for lines_init. Sets the node to the policy's rule. */
void pass_init(struct pass *p, const struct policy *policy, struct node *node,
               struct entry *entries, size_t n, const struct shape *shapes, size_t n_shapes,
               pass_on_start on_start, void *arg);
void pass_free(struct pass *p);

/* Order within an instant: all ends, then all arrivals, then pass_run. */
void pass_end(struct pass *p, uint32_t who, uint64_t cards, int64_t started);
void pass_arrive(struct pass *p, uint32_t who);
void pass_run(struct pass *p, int64_t now); /* calls on_start for each start, in order */

#endif
