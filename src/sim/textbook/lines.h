/* Waiting jobs as compact entries, in lines: one for each shape (under ORDER_RATIO, for each
 * shape and run time). So the order within a line never changes, and if an entry cannot start,
 * none behind it can.
 *
 * A line is a treap threaded through its entries that stores the shortest run below each: "the
 * next entry after X that ends in time" takes O(log n). Lines are numbered so that those which
 * differ only in VRAM, a family, are neighbours. They are the leaves of a tree that stores the
 * first entry and the shortest run below each node: "the first entry that fits" is a search in
 * a range. So neither many jobs nor many shapes cost much.
 *
 * Entries are numbered from 1 in the order (arrival, id). All are given at the start, and they
 * arrive in that order. */
#ifndef SIM_TEXTBOOK_LINES_H
#define SIM_TEXTBOOK_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/textbook/policy.h"
#include "sim/workload/node.h"

/* One job. Entry number 0 means none. */
struct entry {
    int64_t arrival;
    int64_t run; /* run time, as the policy knows it */
    uint32_t shape;
    /* For lines.c: */
    uint32_t line;
    uint32_t left, right;
    int64_t min_run; /* minimum over itself and all below */
    bool waits;
};

struct line {
    const struct shape *shape;
    int32_t vram_mib; /* the shape's */
    uint32_t root;
    uint32_t first;
};

/* Lines begin .. end - 1, by ascending VRAM; their shapes differ in nothing else. */
struct family {
    uint32_t begin, end;
    uint32_t n_waiting;
};

/* A node of the tree over the lines. Its children cover the halves of its range. */
struct summary {
    uint32_t first; /* first in order below; under ORDER_RATIO, first to arrive; 0: none */
    int64_t min_run;
};

struct lines {
    struct entry *entries; /* borrowed; n of them from [1] on, and [0] */
    size_t n;
    const struct shape *shapes; /* borrowed */
    size_t n_shapes;
    enum policy_order order;
    int64_t now; /* ORDER_RATIO depends on it */
    size_t n_waiting;
    uint32_t last_added;
    uint32_t oldest; /* cursor of lines_oldest */
    struct line *all;
    uint32_t n_lines;
    struct family *families;
    uint32_t n_families;
    struct summary *tree;
};

/* entries[1..n] must have arrival, run and shape set. Both arrays remain the caller's. */
void lines_init(struct lines *l, struct entry *entries, size_t n, const struct shape *shapes,
                size_t n_shapes, enum policy_order order);
void lines_free(struct lines *l);

void lines_add(struct lines *l, uint32_t who); /* in ascending order */
void lines_remove(struct lines *l, uint32_t who);

uint32_t lines_oldest(struct lines *l); /* the first to arrive of those waiting; 0 */

/* Whether a is tried before b, at l->now. */
bool lines_precedes(const struct lines *l, uint32_t a, uint32_t b);

/* The first line of the family with more VRAM per card than this; f->end: none. */
uint32_t lines_above(const struct lines *l, const struct family *f, int64_t vram_mib);

/* The first in order of the waiting entries in lines begin .. end - 1 that come after `after`
 * (0: any) and run for at most max_run; best (0: none) if that precedes them all. */
uint32_t lines_best(const struct lines *l, uint32_t begin, uint32_t end, uint32_t after,
                    int64_t max_run, uint32_t best);

#endif
