/* Durations counted by how long they were: cumulative buckets are made when it is read, as
 * Prometheus wants them. Pure and plain: a histogram can be copied. */
#ifndef CORE_LEARN_HISTOGRAM_H
#define CORE_LEARN_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BOUNDS_MAX 16

struct histogram {
    const int64_t *bounds_us; /* ascending; borrowed, usually static */
    int n;                    /* bounds; a duration above the last one is only in count */
    uint64_t counts[HISTOGRAM_BOUNDS_MAX + 1]; /* at most the bound; the last: above all */
    int64_t sum_us;
};

void histogram_init(struct histogram *h, const int64_t *bounds_us, int n);
void histogram_add(struct histogram *h, int64_t us); /* below 0 counts as 0 */
uint64_t histogram_count(const struct histogram *h);
uint64_t histogram_at_most(const struct histogram *h, int bound); /* cumulative */

#endif
