/* How values lie: their sum, extremes, and quantiles to within 3 %, in memory that follows the
 * number of different sizes and not that of the values. Of a million waits that is some
 * hundred counters. */
#ifndef CORE_LEARN_SPREAD_H
#define CORE_LEARN_SPREAD_H

#include <stddef.h>
#include <stdint.h>

struct spread_count {
    uint32_t bucket;
    uint32_t n;
};

struct spread {             /* zero-initialised: empty */
    struct spread_count *v; /* owned; by bucket, ascending */
    size_t n_buckets, cap;
    int64_t n, sum, min, max;
};

void spread_free(struct spread *s);
void spread_add(struct spread *s, int64_t value); /* below 0 counts as 0 */
/* The smallest value that this many thousandths of all do not exceed (nearest rank), rounded
 * up by at most 1/32 and never above the largest; -1: there is none. */
int64_t spread_quantile(const struct spread *s, int permille);
int64_t spread_mean(const struct spread *s); /* rounded; -1: there is none */

#endif
