/* How long a job will run, from its user's estimate and from what became of earlier ones: the
 * estimate times true over declared run time of the ended jobs whose estimates were about as
 * large, in which the ratio of all ended jobs counts for four. Before anything has ended: a
 * quarter. Seconds; between 1 and the estimate. */
#ifndef CORE_PLAN_EXPECT_H
#define CORE_PLAN_EXPECT_H

#include <stdint.h>

#define EXPECT_CLASSES 256
#define EXPECT_CACHE   1024

struct expect {
    int64_t all_run, all_declared;
    int64_t run[EXPECT_CLASSES], declared[EXPECT_CLASSES];
    /* Answers since the last thing learned, by estimate: they are asked for again and again. */
    struct expect_answer {
        int64_t declared, answer;
        uint64_t learned;
    } cache[EXPECT_CACHE];
    uint64_t learned;
};

void expect_init(struct expect *x);
void expect_learn(struct expect *x, int64_t declared, int64_t run); /* one has ended */
int64_t expect_run(struct expect *x, int64_t declared);
/* Of one that has run for so long: doubled until it is above that, at most the estimate. */
int64_t expect_length(struct expect *x, int64_t declared, int64_t elapsed);

#endif
