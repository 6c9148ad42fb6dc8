/* Lines of entries. See lines.h for what they are. A treap's shape depends on its members
 * only (their priorities are hashes of their numbers), so nothing here is random. */
#include "core/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define BUCKETS_FIRST 64

void
lines_init(struct lines *l, struct entry *entries, size_t n, const struct shape *shapes,
           enum policy_order order)
{
    *l = (struct lines){.entries = entries, .n = n, .shapes = shapes, .order = order};
    l->oldest = 1;
    l->n_buckets = BUCKETS_FIRST;
    l->buckets = xcalloc(l->n_buckets, sizeof *l->buckets);
    entries[0] = (struct entry){.min_run = INT64_MAX};
    /* Number 0 is no line. */
    l->cap_all = 16;
    l->all = xcalloc(l->cap_all, sizeof *l->all);
    l->live = xcalloc(l->cap_all, sizeof *l->live);
    l->n_all = 1;
}

void
lines_free(struct lines *l)
{
    free(l->all);
    free(l->live);
    free(l->buckets);
}

/* The order of jobs. */

static int64_t
reckoned_run(const struct entry *e)
{
    return e->run > RATIO_RUN_MIN_S ? e->run : RATIO_RUN_MIN_S;
}

/* (waited + run) / run is larger where waited / run is: compared by products, exactly. */
static int
compare_ratio(const struct lines *l, const struct entry *a, const struct entry *b)
{
    __int128 x = (__int128)(l->now - a->arrival) * reckoned_run(b);
    __int128 y = (__int128)(l->now - b->arrival) * reckoned_run(a);
    return x == y ? 0 : x > y ? -1 : 1;
}

static int
compare_numbers(int64_t a, int64_t b)
{
    return a == b ? 0 : a < b ? -1 : 1;
}

static int
compare_longest(const struct lines *l, const struct entry *a, const struct entry *b)
{
    const struct shape *x = &l->shapes[a->shape], *y = &l->shapes[b->shape];
    if (a->run != b->run)
        return compare_numbers(b->run, a->run);
    if (x->n != y->n)
        return compare_numbers(y->n, x->n);
    return compare_numbers(y->vram_mib, x->vram_mib);
}

bool
lines_precedes(const struct lines *l, uint32_t a, uint32_t b)
{
    const struct entry *x = &l->entries[a], *y = &l->entries[b];
    int order = 0;
    switch (l->order) {
    case ORDER_ARRIVAL:
        break;
    case ORDER_SHORTEST:
        order = compare_numbers(x->run, y->run);
        break;
    case ORDER_LONGEST:
        order = compare_longest(l, x, y);
        break;
    case ORDER_RATIO:
        order = compare_ratio(l, x, y);
        break;
    }
    return order ? order < 0 : a < b;
}

/* Treaps. */

static uint32_t
priority(uint32_t who)
{
    uint32_t h = who * UINT32_C(0x9e3779b1);
    h = (h ^ h >> 15) * UINT32_C(0x85ebca77);
    return h ^ h >> 13;
}

static bool
is_above(uint32_t a, uint32_t b)
{
    uint32_t x = priority(a), y = priority(b);
    return x != y ? x > y : a > b;
}

static void
update(struct entry *e, uint32_t at)
{
    int64_t min = e[at].run;
    if (e[e[at].left].min_run < min)
        min = e[e[at].left].min_run;
    if (e[e[at].right].min_run < min)
        min = e[e[at].right].min_run;
    e[at].min_run = min;
}

/* Cuts root in two: what precedes who, and the rest. */
static void
split(const struct lines *l, uint32_t root, uint32_t who, uint32_t *before, uint32_t *behind)
{
    struct entry *e = l->entries;
    if (!root) {
        *before = *behind = 0;
        return;
    }
    if (lines_precedes(l, root, who)) {
        *before = root;
        split(l, e[root].right, who, &e[root].right, behind);
    } else {
        *behind = root;
        split(l, e[root].left, who, before, &e[root].left);
    }
    update(e, root);
}

/* Everyone in a precedes everyone in b. */
static uint32_t
merge(struct entry *e, uint32_t a, uint32_t b)
{
    if (!a || !b)
        return a ? a : b;
    if (is_above(a, b)) {
        e[a].right = merge(e, e[a].right, b);
        update(e, a);
        return a;
    }
    e[b].left = merge(e, a, e[b].left);
    update(e, b);
    return b;
}

static uint32_t
insert(const struct lines *l, uint32_t root, uint32_t who)
{
    struct entry *e = l->entries;
    if (!root || is_above(who, root)) {
        split(l, root, who, &e[who].left, &e[who].right);
        root = who;
    } else if (lines_precedes(l, who, root)) {
        e[root].left = insert(l, e[root].left, who);
    } else {
        e[root].right = insert(l, e[root].right, who);
    }
    update(e, root);
    return root;
}

static uint32_t
erase(const struct lines *l, uint32_t root, uint32_t who)
{
    struct entry *e = l->entries;
    if (root == who)
        return merge(e, e[who].left, e[who].right);
    if (!root)
        err_abort("entry %u is not in its line", who);
    if (lines_precedes(l, who, root))
        e[root].left = erase(l, e[root].left, who);
    else
        e[root].right = erase(l, e[root].right, who);
    update(e, root);
    return root;
}

static uint32_t
leftmost(const struct entry *e, uint32_t root)
{
    while (root && e[root].left)
        root = e[root].left;
    return root;
}

static uint32_t
next_in(const struct lines *l, uint32_t root, uint32_t after, int64_t max_run)
{
    const struct entry *e = l->entries;
    while (root && e[root].min_run <= max_run) {
        if (after && !lines_precedes(l, after, root)) {
            root = e[root].right;
            continue;
        }
        uint32_t found = next_in(l, e[root].left, after, max_run);
        if (found)
            return found;
        if (e[root].run <= max_run)
            return root;
        /* All on the right come after it as well. */
        after = 0;
        root = e[root].right;
    }
    return 0;
}

uint32_t
lines_next(const struct lines *l, const struct line *line, uint32_t after, int64_t max_run)
{
    return next_in(l, line->root, after, max_run);
}

/* Finding an entry's line. */

static uint32_t
bucket_of(const struct lines *l, uint32_t shape, int64_t run_class)
{
    uint64_t h = ((uint64_t)shape << 40 ^ (uint64_t)run_class) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(h >> 32) & (l->n_buckets - 1);
}

static void
grow(struct lines *l)
{
    if (l->n_all == l->cap_all) {
        l->cap_all *= 2;
        l->all = xrealloc(l->all, l->cap_all * sizeof *l->all);
        l->live = xrealloc(l->live, l->cap_all * sizeof *l->live);
    }
    if (l->n_all < l->n_buckets)
        return;
    free(l->buckets);
    l->n_buckets *= 4;
    l->buckets = xcalloc(l->n_buckets, sizeof *l->buckets);
    for (uint32_t i = 1; i < l->n_all; i++) {
        uint32_t *bucket = &l->buckets[bucket_of(l, l->all[i].shape_no, l->all[i].run_class)];
        l->all[i].hash_next = *bucket;
        *bucket = i;
    }
}

static uint32_t
find_line(struct lines *l, uint32_t shape, int64_t run_class)
{
    uint32_t i = l->buckets[bucket_of(l, shape, run_class)];
    for (; i; i = l->all[i].hash_next) {
        if (l->all[i].shape_no == shape && l->all[i].run_class == run_class)
            return i;
    }
    grow(l);
    uint32_t *bucket = &l->buckets[bucket_of(l, shape, run_class)];
    i = l->n_all++;
    l->all[i] = (struct line){.shape = &l->shapes[shape],
                              .shape_no = shape,
                              .run_class = run_class,
                              .hash_next = *bucket};
    *bucket = i;
    return i;
}

void
lines_add(struct lines *l, uint32_t who)
{
    struct entry *e = &l->entries[who];
    if (who <= l->last_added || who > l->n)
        err_abort("entry %u arrives after %u", who, l->last_added);
    l->last_added = who;
    e->line = find_line(l, e->shape, l->order == ORDER_RATIO ? reckoned_run(e) : 0);
    e->left = e->right = 0;
    e->waits = true;
    struct line *line = &l->all[e->line];
    if (!line->root) {
        line->live_at = l->n_live;
        l->live[l->n_live++] = e->line;
    }
    if (!line->first || lines_precedes(l, who, line->first))
        line->first = who;
    line->root = insert(l, line->root, who);
    l->n_waiting++;
}

void
lines_remove(struct lines *l, uint32_t who)
{
    struct entry *e = &l->entries[who];
    struct line *line = &l->all[e->line];
    if (!e->waits)
        err_abort("entry %u does not wait", who);
    line->root = erase(l, line->root, who);
    if (line->first == who)
        line->first = leftmost(l->entries, line->root);
    e->waits = false;
    l->n_waiting--;
    if (line->root)
        return;
    uint32_t last = l->live[--l->n_live];
    l->live[line->live_at] = last;
    l->all[last].live_at = line->live_at;
}

uint32_t
lines_oldest(struct lines *l)
{
    while (l->oldest <= l->last_added && !l->entries[l->oldest].waits)
        l->oldest++;
    return l->oldest <= l->last_added ? l->oldest : 0;
}
