/* Expected run times. Only sums are kept, so ends may be counted in any order. */
#include "core/plan/expect.h"

#include <string.h>

#define PRIOR 4 /* weight of the ratio of all jobs, in ended jobs */
/* The ratio before any job has ended: a quarter, with little weight. */
#define FIRST_RUN      3600
#define FIRST_DECLARED 14400

void
expect_init(struct expect *x)
{
    memset(x, 0, sizeof *x);
    x->learned = 1;
}

/* Estimates of one class differ by less than a quarter: the class is the highest bit and the
 * next two. */
static int
class_of(int64_t declared)
{
    int top = 63 - __builtin_clzll((uint64_t)declared | 4);
    return (top * 4 + (int)(declared >> (top - 2) & 3)) % EXPECT_CLASSES;
}

void
expect_learn(struct expect *x, int64_t declared, int64_t run)
{
    int class = class_of(declared);
    x->all_run += run;
    x->all_declared += declared;
    x->run[class] += run;
    x->declared[class] += declared;
    x->learned++;
}

static int64_t
reckon(const struct expect *x, int64_t declared)
{
    int class = class_of(declared);
    if (declared < 1)
        return 1;
    __int128 all =
        (__int128)declared * (x->all_run + FIRST_RUN) / (x->all_declared + FIRST_DECLARED);
    __int128 run =
        declared * (x->run[class] + PRIOR * all) / (x->declared[class] + PRIOR * declared);
    return run < 1 ? 1 : run > declared ? declared : (int64_t)run;
}

int64_t
expect_run(struct expect *x, int64_t declared)
{
    struct expect_answer *a = &x->cache[(uint64_t)declared % EXPECT_CACHE];
    if (a->learned != x->learned || a->declared != declared)
        *a = (struct expect_answer){declared, reckon(x, declared), x->learned};
    return a->answer;
}

int64_t
expect_length(struct expect *x, int64_t declared, int64_t elapsed)
{
    int64_t run = expect_run(x, declared);
    while (run <= elapsed && run < declared)
        run *= 2;
    return run < declared ? run : declared;
}
