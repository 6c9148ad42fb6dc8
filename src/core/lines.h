/* Waiting jobs as compact entries, in lines: one line for each shape (under ORDER_RATIO, for
 * each shape and run time), so that within a line the order never changes and whoever cannot
 * start speaks for all behind it. The pass looks at lines, not at jobs.
 *
 * A line is a treap threaded through the entries that knows the shortest run below each of
 * them: "the next one behind X that is over in time" is found in O(log n). Entries are
 * numbered from 1 in the order (arrival, id), and arrive in that order. */
#ifndef CORE_LINES_H
#define CORE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/node.h"
#include "core/policy.h"

/* One job. 0 in place of an entry's number is nobody. */
struct entry {
    int64_t arrival;
    int64_t run; /* how long it runs, as the policy knows it */
    uint32_t shape;
    /* lines.c's: */
    uint32_t line; /* where it waits; meaningful while it does */
    uint32_t left, right;
    int64_t min_run; /* of itself and all below */
    bool waits;
};

struct line {
    const struct shape *shape;
    uint32_t shape_no;
    uint32_t root;
    uint32_t first;
    uint32_t live_at;  /* place among the live lines */
    int64_t run_class; /* ORDER_RATIO: the run that all here are reckoned with; else 0 */
    uint32_t hash_next;
};

struct lines {
    struct entry *entries; /* borrowed; n of them, and [0] */
    size_t n;
    const struct shape *shapes; /* borrowed */
    enum policy_order order;
    int64_t now; /* ORDER_RATIO depends on it */
    size_t n_waiting;
    uint32_t last_added;
    uint32_t oldest; /* lines_oldest's cursor */
    struct line *all;
    uint32_t n_all, cap_all;
    uint32_t *live; /* numbers of the lines with someone in them, in no order */
    uint32_t n_live;
    uint32_t *buckets;
    uint32_t n_buckets;
};

/* entries[1..n] bear arrival, run and shape. Both arrays stay the caller's. */
void lines_init(struct lines *l, struct entry *entries, size_t n, const struct shape *shapes,
                enum policy_order order);
void lines_free(struct lines *l);

void lines_add(struct lines *l, uint32_t who); /* in ascending order */
void lines_remove(struct lines *l, uint32_t who);

uint32_t lines_oldest(struct lines *l); /* the first that came and waits; 0 */

static inline struct line *
lines_live(const struct lines *l, uint32_t i) /* 0 .. n_live - 1 */
{
    return &l->all[l->live[i]];
}

/* Whether a is tried before b, at l->now. */
bool lines_precedes(const struct lines *l, uint32_t a, uint32_t b);

/* The first in this line that comes after this entry (0: any), waiting here or not, and runs
 * for max_run at most; 0: nobody. */
uint32_t lines_next(const struct lines *l, const struct line *line, uint32_t after,
                    int64_t max_run);

#endif
