/* The order in which waiting jobs are tried, and a line in that order: a treap through its
 * entries. Its shape depends only on its members (their heap priorities are hashes of their
 * numbers), so nothing is random. */
#include "sim/textbook/treap.h"

#include "base/err.h"

/* The order of jobs. */

int64_t
treap_reckoned_run(const struct entry *e)
{
    return e->run > RATIO_RUN_MIN_S ? e->run : RATIO_RUN_MIN_S;
}

/* (waited + run) / run is larger where waited / run is: compared by products, exactly. */
int
treap_compare_ratio(const struct lines *l, const struct entry *a, const struct entry *b)
{
    __int128 x = (__int128)(l->now - a->arrival) * treap_reckoned_run(b);
    __int128 y = (__int128)(l->now - b->arrival) * treap_reckoned_run(a);
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
        order = treap_compare_ratio(l, x, y);
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

/* Splits the tree into what precedes the entry, and the rest. */
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

/* All of a must precede all of b. */
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

uint32_t
treap_insert(const struct lines *l, uint32_t root, uint32_t who)
{
    struct entry *e = l->entries;
    if (!root || is_above(who, root)) {
        split(l, root, who, &e[who].left, &e[who].right);
        root = who;
    } else if (lines_precedes(l, who, root)) {
        e[root].left = treap_insert(l, e[root].left, who);
    } else {
        e[root].right = treap_insert(l, e[root].right, who);
    }
    update(e, root);
    return root;
}

uint32_t
treap_erase(const struct lines *l, uint32_t root, uint32_t who)
{
    struct entry *e = l->entries;
    if (root == who)
        return merge(e, e[who].left, e[who].right);
    if (!root)
        err_abort("entry %u is not in its line", who);
    if (lines_precedes(l, who, root))
        e[root].left = treap_erase(l, e[root].left, who);
    else
        e[root].right = treap_erase(l, e[root].right, who);
    update(e, root);
    return root;
}

uint32_t
treap_first(const struct entry *e, uint32_t root)
{
    while (root && e[root].left)
        root = e[root].left;
    return root;
}

uint32_t
treap_next(const struct lines *l, uint32_t root, uint32_t after, int64_t max_run)
{
    const struct entry *e = l->entries;
    while (root && e[root].min_run <= max_run) {
        if (after && !lines_precedes(l, after, root)) {
            root = e[root].right;
            continue;
        }
        uint32_t found = treap_next(l, e[root].left, after, max_run);
        if (found)
            return found;
        if (e[root].run <= max_run)
            return root;
        /* All entries on the right come after it as well. */
        after = 0;
        root = e[root].right;
    }
    return 0;
}
