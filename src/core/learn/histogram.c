/* See histogram.h. */
#include "core/learn/histogram.h"

#include "base/err.h"

void
histogram_init(struct histogram *h, const int64_t *bounds_us, int n)
{
    if (n > HISTOGRAM_BOUNDS_MAX)
        err_abort("a histogram of %d bounds", n);
    *h = (struct histogram){.bounds_us = bounds_us, .n = n};
}

void
histogram_add(struct histogram *h, int64_t us)
{
    int i = 0;
    if (us < 0)
        us = 0;
    while (i < h->n && us > h->bounds_us[i])
        i++;
    h->counts[i]++;
    h->sum_us += us;
}

uint64_t
histogram_at_most(const struct histogram *h, int bound)
{
    uint64_t n = 0;
    for (int i = 0; i <= bound; i++)
        n += h->counts[i];
    return n;
}

uint64_t
histogram_count(const struct histogram *h)
{
    return histogram_at_most(h, h->n);
}
