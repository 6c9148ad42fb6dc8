/* A heap of expected ends; see forecast_ends.h. Ends at the same moment come in the order of
 * their jobs, so that a forecast does not depend on how they were entered. */
#include "core/forecast_ends.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"

static bool
is_sooner(const struct end *a, const struct end *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->job < b->job;
}

void
ends_push(struct ends *h, struct end e)
{
    if (h->n == h->cap) {
        h->cap = h->cap ? h->cap * 2 : 64;
        h->v = xrealloc(h->v, h->cap * sizeof *h->v);
    }
    size_t at = h->n++;
    for (; at > 0 && is_sooner(&e, &h->v[(at - 1) / 2]); at = (at - 1) / 2)
        h->v[at] = h->v[(at - 1) / 2];
    h->v[at] = e;
}

struct end
ends_pop(struct ends *h)
{
    struct end first = h->v[0], last = h->v[--h->n];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= h->n)
            break;
        if (child + 1 < h->n && is_sooner(&h->v[child + 1], &h->v[child]))
            child++;
        if (!is_sooner(&h->v[child], &last))
            break;
        h->v[at] = h->v[child];
        at = child;
    }
    h->v[at] = last;
    return first;
}

int64_t
ends_next_us(const struct ends *h)
{
    return h->n ? h->v[0].at_us : INT64_MAX;
}

void
ends_forget(struct ends *h, uint32_t job)
{
    for (size_t i = 0; i < h->n; i++)
        if (h->v[i].job == job)
            h->v[i].job = 0;
}

void
ends_free(struct ends *h)
{
    free(h->v);
    *h = (struct ends){0};
}
