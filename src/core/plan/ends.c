/* The heap of ends; see ends.h. */
#include "core/plan/ends.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"

void
ends_free(struct ends *e)
{
    free(e->heap);
    *e = (struct ends){.n = 0};
}

static bool
is_before(const struct end *a, const struct end *b)
{
    return a->at != b->at ? a->at < b->at : a->who < b->who;
}

void
ends_push(struct ends *e, struct end end)
{
    e->heap = xgrow(e->heap, e->n, &e->cap, sizeof *e->heap);
    size_t at = e->n++;
    for (; at > 0 && is_before(&end, &e->heap[(at - 1) / 2]); at = (at - 1) / 2)
        e->heap[at] = e->heap[(at - 1) / 2];
    e->heap[at] = end;
}

struct end
ends_pop(struct ends *e)
{
    struct end top = e->heap[0], last = e->heap[--e->n];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < e->n; at = child) {
        if (child + 1 < e->n && is_before(&e->heap[child + 1], &e->heap[child]))
            child++;
        if (!is_before(&e->heap[child], &last))
            break;
        e->heap[at] = e->heap[child];
    }
    e->heap[at] = last;
    return top;
}

int64_t
ends_next(const struct ends *e)
{
    return e->n ? e->heap[0].at : INT64_MAX;
}

void
ends_forget(struct ends *e, uint32_t who)
{
    for (size_t i = 0; i < e->n; i++)
        if (e->heap[i].who == who)
            e->heap[i].who = 0;
}
