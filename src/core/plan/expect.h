/* Expected run time of a job, from its user's estimate and from ended jobs: the estimate times
 * the ratio of actual to declared run time of ended jobs with similar estimates, to which the
 * ratio of all ended jobs is added with the weight of four jobs. Before any job has ended: a
 * quarter of the estimate. In seconds, between 1 and the estimate. */
#ifndef CORE_PLAN_EXPECT_H
#define CORE_PLAN_EXPECT_H

#include <stdint.h>

#define EXPECT_CLASSES 256
#define EXPECT_CACHE   1024

struct expect {
    int64_t all_run, all_declared;
    int64_t run[EXPECT_CLASSES], declared[EXPECT_CLASSES];
    /* A cache by estimate: the same estimates are asked for again and again. */
    struct expect_answer {
        int64_t declared, answer;
        uint64_t learned;
    } cache[EXPECT_CACHE];
    uint64_t learned;
};

void expect_init(struct expect *x);
void expect_learn(struct expect *x, int64_t declared, int64_t run); /* a job has ended */
int64_t expect_run(struct expect *x, int64_t declared);
/* The same for a job that has run for `elapsed`: doubled until above that, at most the
 * estimate. */
int64_t expect_length(struct expect *x, int64_t declared, int64_t elapsed);

#endif
