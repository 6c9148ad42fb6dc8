/* When running jobs are expected to end, the first end first: a heap for forecast.c. */
#ifndef CORE_FORECAST_ENDS_H
#define CORE_FORECAST_ENDS_H

#include <stddef.h>
#include <stdint.h>

struct end {
    int64_t at_us;
    uint32_t job; /* 0: forgotten */
};

struct ends {
    struct end *v; /* owned */
    size_t n, cap;
};

void ends_push(struct ends *h, struct end e);
struct end ends_pop(struct ends *h); /* there must be one */
/* INT64_MAX: there is none. */
int64_t ends_next_us(const struct ends *h);
/* The job runs no longer: its end counts as nobody's. */
void ends_forget(struct ends *h, uint32_t job);
void ends_free(struct ends *h); /* what it owns */

#endif
