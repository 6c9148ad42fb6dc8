/* A histogram of durations. Cumulative buckets, as Prometheus wants them, are computed when it
 * is read. Pure; a plain value that can be copied. */
#ifndef CORE_LEARN_HISTOGRAM_H
#define CORE_LEARN_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BOUNDS_MAX 16

struct histogram {
    const int64_t *bounds_us; /* ascending; borrowed, usually static */
    int n;                    /* number of bounds; a longer duration is only in the count */
    uint64_t counts[HISTOGRAM_BOUNDS_MAX + 1]; /* by smallest sufficient bound; last: above */
    int64_t sum_us;
};

void histogram_init(struct histogram *h, const int64_t *bounds_us, int n);
void histogram_add(struct histogram *h, int64_t us); /* below 0 counts as 0 */
uint64_t histogram_count(const struct histogram *h);
uint64_t histogram_at_most(const struct histogram *h, int bound); /* cumulative */

#endif
