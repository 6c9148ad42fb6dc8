/* The distribution of values: sum, extremes, and quantiles to within 3 %, in memory
 * proportional to the number of distinct sizes, not of values: about a hundred counters for a
 * million waits. */
#ifndef CORE_LEARN_SPREAD_H
#define CORE_LEARN_SPREAD_H

#include <stddef.h>
#include <stdint.h>

struct spread_count {
    uint32_t bucket;
    uint32_t n;
};

struct spread {             /* zero-initialised: empty */
    struct spread_count *v; /* owned; sorted by bucket */
    size_t n_buckets, cap;
    int64_t n, sum, min, max;
};

void spread_free(struct spread *s);
void spread_add(struct spread *s, int64_t value); /* below 0 counts as 0 */
/* The smallest value that is at least this many permille of all values (nearest rank), rounded
 * up by at most 1/32 but not above the maximum; -1: empty. */
int64_t spread_quantile(const struct spread *s, int permille);
int64_t spread_mean(const struct spread *s); /* rounded; -1: empty */

#endif
