/* Lines of entries, numbered by shape, and the tree over them. treap.c handles a single
 * line. */
#include "sim/textbook/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sim/textbook/treap.h"

#define CMP(a, b) (((a) > (b)) - ((a) < (b)))

/* The tree over the lines: the node of [begin, end) is followed by all nodes of its left
 * half, then by those of its right half. */

static uint32_t
middle(uint32_t begin, uint32_t end)
{
    return begin + (end - begin) / 2;
}

static uint32_t
right_child(uint32_t node, uint32_t begin, uint32_t end)
{
    return node + 2 * (middle(begin, end) - begin);
}

/* Under ORDER_RATIO the order changes with time; but the earliest arrival and the shortest run
 * bound the ratios of all entries below. */
static bool
sums_up_before(const struct lines *l, uint32_t a, uint32_t b)
{
    return l->order == ORDER_RATIO ? a < b : lines_precedes(l, a, b);
}

static void
sum_up(const struct lines *l, uint32_t node, uint32_t begin, uint32_t end, uint32_t line)
{
    struct summary *s = &l->tree[node];
    if (end - begin == 1) {
        s->first = l->all[line].first;
        s->min_run = l->entries[l->all[line].root].min_run;
        return;
    }
    uint32_t mid = middle(begin, end), right = right_child(node, begin, end);
    if (line < mid)
        sum_up(l, node + 1, begin, mid, line);
    else
        sum_up(l, right, mid, end, line);
    const struct summary *a = &l->tree[node + 1], *b = &l->tree[right];
    bool is_b = !a->first || (b->first && sums_up_before(l, b->first, a->first));
    s->first = is_b ? b->first : a->first;
    s->min_run = a->min_run < b->min_run ? a->min_run : b->min_run;
}

/* Whether any entry below the node may precede this one. */
static bool
may_precede(const struct lines *l, const struct summary *s, uint32_t who)
{
    if (l->order != ORDER_RATIO)
        return lines_precedes(l, s->first, who);
    struct entry bound = {.arrival = l->entries[s->first].arrival, .run = s->min_run};
    return treap_compare_ratio(l, &bound, &l->entries[who]) <= 0;
}

struct search {
    uint32_t begin, end; /* of lines */
    uint32_t after;
    int64_t max_run;
    uint32_t best;
};

static void
search_line(const struct lines *l, const struct line *line, struct search *s)
{
    uint32_t who = line->first;
    if (s->after || s->max_run < INT64_MAX)
        who = treap_next(l, line->root, s->after, s->max_run);
    if (who && (!s->best || lines_precedes(l, who, s->best)))
        s->best = who;
}

static void
search(const struct lines *l, uint32_t node, uint32_t begin, uint32_t end, struct search *s)
{
    const struct summary *sum = &l->tree[node];
    if (end <= s->begin || begin >= s->end || !sum->first || sum->min_run > s->max_run)
        return;
    if (s->best && !may_precede(l, sum, s->best))
        return;
    if (end - begin == 1) {
        search_line(l, &l->all[begin], s);
        return;
    }
    search(l, node + 1, begin, middle(begin, end), s);
    search(l, right_child(node, begin, end), middle(begin, end), end, s);
}

uint32_t
lines_best(const struct lines *l, uint32_t begin, uint32_t end, uint32_t after, int64_t max_run,
           uint32_t best)
{
    struct search s = {begin, end, after, max_run, best};
    if (begin < end)
        search(l, 0, 0, l->n_lines, &s);
    return s.best;
}

uint32_t
lines_above(const struct lines *l, const struct family *f, int64_t vram_mib)
{
    uint32_t low = f->begin, high = f->end;
    if (l->all[high - 1].vram_mib <= vram_mib)
        return high;
    while (low < high) {
        uint32_t mid = middle(low, high);
        if (l->all[mid].vram_mib > vram_mib)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* Coming and going. */

static void
refresh(struct lines *l, uint32_t line, int change)
{
    struct family *f = l->families;
    for (uint32_t n = l->n_families; n > 1;) {
        uint32_t half = n / 2;
        if (f[half].begin <= line) {
            f += half;
            n -= half;
        } else {
            n = half;
        }
    }
    f->n_waiting += (uint32_t)change;
    l->n_waiting += (size_t)change;
    sum_up(l, 0, 0, l->n_lines, line);
}

void
lines_add(struct lines *l, uint32_t who)
{
    struct entry *e = &l->entries[who];
    struct line *line = &l->all[e->line];
    if (who <= l->last_added || who > l->n)
        err_abort("entry %u arrives after %u", who, l->last_added);
    l->last_added = who;
    e->left = e->right = 0;
    e->waits = true;
    if (!line->first || lines_precedes(l, who, line->first))
        line->first = who;
    line->root = treap_insert(l, line->root, who);
    refresh(l, e->line, 1);
}

void
lines_remove(struct lines *l, uint32_t who)
{
    struct entry *e = &l->entries[who];
    struct line *line = &l->all[e->line];
    if (!e->waits)
        err_abort("entry %u does not wait", who);
    line->root = treap_erase(l, line->root, who);
    if (line->first == who)
        line->first = treap_first(l->entries, line->root);
    e->waits = false;
    refresh(l, e->line, -1);
}

uint32_t
lines_oldest(struct lines *l)
{
    while (l->oldest <= l->last_added && !l->entries[l->oldest].waits)
        l->oldest++;
    return l->oldest <= l->last_added ? l->oldest : 0;
}

/* Making the lines. */

/* The line of an entry, before lines are numbered. */
struct place {
    const struct shape *shape;
    int64_t run_class; /* ORDER_RATIO: the run time that ratios in the line use */
    uint32_t who;
};

/* Whole cards are a family of their own: they are assigned by number. */
static int
compare_families(const struct shape *a, const struct shape *b)
{
    bool whole_a = a->alone && a->vram_mib == 0, whole_b = b->alone && b->vram_mib == 0;
    if (a->n != b->n)
        return CMP(a->n, b->n);
    if (a->alone != b->alone)
        return CMP(a->alone, b->alone);
    if (whole_a != whole_b)
        return CMP(whole_a, whole_b);
    return CMP(a->allowed, b->allowed);
}

static int
compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int order = compare_families(x->shape, y->shape);
    if (!order)
        order = CMP(x->shape->vram_mib, y->shape->vram_mib);
    return order ? order : CMP(x->run_class, y->run_class);
}

/* Makes the lines out of the sorted places, and sets the line of each place's entry. */
static void
make_lines(struct lines *l, const struct place *places, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool is_new = i == 0 || compare_places(&places[i - 1], &places[i]) != 0;
        bool is_family = i == 0 || compare_families(places[i - 1].shape, places[i].shape) != 0;
        if (is_family)
            l->families[l->n_families++].begin = l->n_lines;
        if (is_new)
            l->all[l->n_lines++] =
                (struct line){.shape = places[i].shape, .vram_mib = places[i].shape->vram_mib};
        l->families[l->n_families - 1].end = l->n_lines;
        l->entries[places[i].who].line = l->n_lines - 1;
    }
}

/* Entries need places of their own only if lines differ by run time; otherwise the entries of
 * a shape get the line of its first one. */
static void
number_lines(struct lines *l, size_t n_shapes)
{
    bool by_run = l->order == ORDER_RATIO;
    struct place *places = xmalloc(((by_run ? l->n : n_shapes) + 1) * sizeof *places);
    uint32_t *firsts = xcalloc(n_shapes + 1, sizeof *firsts);
    size_t n = 0;
    for (uint32_t i = 1; i <= l->n; i++) {
        const struct entry *e = &l->entries[i];
        if (!by_run && firsts[e->shape])
            continue;
        firsts[e->shape] = i;
        places[n++] =
            (struct place){&l->shapes[e->shape], by_run ? treap_reckoned_run(e) : 0, i};
    }
    qsort(places, n, sizeof *places, compare_places);
    l->all = xcalloc(n + 1, sizeof *l->all);
    l->families = xcalloc(n_shapes + 1, sizeof *l->families);
    make_lines(l, places, n);
    for (uint32_t i = 1; i <= l->n && !by_run; i++)
        l->entries[i].line = l->entries[firsts[l->entries[i].shape]].line;
    free(places);
    free(firsts);
}

void
lines_init(struct lines *l, struct entry *entries, size_t n, const struct shape *shapes,
           size_t n_shapes, enum policy_order order)
{
    *l = (struct lines){
        .entries = entries, .n = n, .shapes = shapes, .n_shapes = n_shapes, .order = order};
    l->oldest = 1;
    entries[0] = (struct entry){.min_run = INT64_MAX};
    number_lines(l, n_shapes);
    l->tree = xmalloc((2 * (size_t)l->n_lines + 1) * sizeof *l->tree);
    for (size_t i = 0; i < 2 * (size_t)l->n_lines + 1; i++)
        l->tree[i] = (struct summary){.first = 0, .min_run = INT64_MAX};
}

void
lines_free(struct lines *l)
{
    free(l->all);
    free(l->families);
    free(l->tree);
}
