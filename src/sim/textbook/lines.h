/* Waiting jobs as compact entries, in lines: one line for each shape (under ORDER_RATIO, for
 * each shape and run time), so that within a line the order never changes, and if one cannot
 * start, none behind it can.
 *
 * A line is a treap threaded through the entries that knows the shortest run below each of
 * them: "the next one behind X that is over in time" is found in O(log n). The lines
 * themselves are numbered so that those which differ in VRAM alone, a family, are neighbours,
 * and are the leaves of a tree that knows the best and the shortest below each node: "the best
 * of those that fit" is a search in a range. So neither many jobs nor many shapes cost much.
 *
 * Entries are numbered from 1 in the order (arrival, id), all known from the start, and arrive
 * in that order. */
#ifndef SIM_TEXTBOOK_LINES_H
#define SIM_TEXTBOOK_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/textbook/policy.h"
#include "sim/workload/node.h"

/* One job. 0 in place of an entry's number is none. */
struct entry {
    int64_t arrival;
    int64_t run; /* how long it runs, as the policy knows it */
    uint32_t shape;
    /* lines.c's: */
    uint32_t line;
    uint32_t left, right;
    int64_t min_run; /* of itself and all below */
    bool waits;
};

struct line {
    const struct shape *shape;
    int32_t vram_mib; /* the shape's */
    uint32_t root;
    uint32_t first;
};

/* Lines begin .. end - 1, ascending by VRAM; their shapes differ in nothing else. */
struct family {
    uint32_t begin, end;
    uint32_t n_waiting;
};

/* A node of the tree over the lines. Its children are those of the halves of its range. */
struct summary {
    uint32_t first; /* the first below; under ORDER_RATIO: the first to arrive; 0: none */
    int64_t min_run;
};

struct lines {
    struct entry *entries; /* borrowed; n of them, and [0] */
    size_t n;
    const struct shape *shapes; /* borrowed */
    size_t n_shapes;
    enum policy_order order;
    int64_t now; /* ORDER_RATIO depends on it */
    size_t n_waiting;
    uint32_t last_added;
    uint32_t oldest; /* lines_oldest's cursor */
    struct line *all;
    uint32_t n_lines;
    struct family *families;
    uint32_t n_families;
    struct summary *tree;
};

/* entries[1..n] bear arrival, run and shape. Both arrays stay the caller's. */
void lines_init(struct lines *l, struct entry *entries, size_t n, const struct shape *shapes,
                size_t n_shapes, enum policy_order order);
void lines_free(struct lines *l);

void lines_add(struct lines *l, uint32_t who); /* in ascending order */
void lines_remove(struct lines *l, uint32_t who);

uint32_t lines_oldest(struct lines *l); /* the first that came and waits; 0 */

/* Whether a is tried before b, at l->now. */
bool lines_precedes(const struct lines *l, uint32_t a, uint32_t b);

/* The first line of the family that asks for more than this on a card; its end: none. */
uint32_t lines_above(const struct lines *l, const struct family *f, int64_t vram_mib);

/* The entry that is tried first among the waiting in lines begin .. end - 1 that come after
 * that entry (0: any) and run for max_run at most; best (0: none) if it precedes them all. */
uint32_t lines_best(const struct lines *l, uint32_t begin, uint32_t end, uint32_t after,
                    int64_t max_run, uint32_t best);

#endif
