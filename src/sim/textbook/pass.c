/* The pass. First come the heads: the jobs that the policy serves before all others, as long
 * as they fit. The first head that does not fit either stops all others or is promised a time.
 * Then come the others, in the policy's order, unless they conflict with that promise.
 *
 * The others are searched by shape, not one by one. Of the shapes that differ only in VRAM,
 * those up to some size fit. Under a promise, there are ranges of sizes that would get the
 * same cards, and in each range a size up to which the promise holds whichever job takes the
 * cards, for however long; a larger job must end before the promised time. Each start changes
 * the answers, so the families are searched again: a pass costs starts x families x cards,
 * times the logarithm of the number of shapes. */
#include "sim/textbook/pass.h"

#include <stdlib.h>

#include "sim/textbook/promise.h"

void
pass_init(struct pass *p, const struct policy *policy, struct node *node, struct entry *entries,
          size_t n, const struct shape *shapes, size_t n_shapes, pass_on_start on_start,
          void *arg)
{
    *p = (struct pass){.policy = policy, .node = node, .on_start = on_start, .arg = arg};
    node->rule = policy->fit;
    node->whole = policy->whole;
    lines_init(&p->lines, entries, n, shapes, n_shapes, policy->order);
}

void
pass_free(struct pass *p)
{
    lines_free(&p->lines);
    free(p->running);
}

static bool
reserves(const struct pass *p)
{
    return p->policy->blocked == BLOCKED_RESERVE;
}

static void
pass_start(struct pass *p, uint32_t who, uint64_t cards, int64_t now)
{
    node_take(p->node, pass_shape(p, who), cards);
    lines_remove(&p->lines, who);
    if (reserves(p))
        promise_add_running(p, who, cards, now);
    p->on_start(p->arg, who, cards);
}

/* The heads. */

static uint32_t
find_head(struct pass *p, int64_t now)
{
    uint32_t who = 0;
    switch (p->policy->head) {
    case HEAD_NONE:
        break;
    case HEAD_OLDEST:
        who = lines_oldest(&p->lines);
        if (who && now - p->lines.entries[who].arrival < p->policy->head_age_s)
            who = 0;
        break;
    case HEAD_FIRST:
        who = lines_best(&p->lines, 0, p->lines.n_lines, 0, INT64_MAX, 0);
        break;
    }
    return who;
}

/* Starts heads while they fit; returns the first that does not, or 0. */
static uint32_t
run_heads(struct pass *p, int64_t now)
{
    uint32_t who;
    while ((who = find_head(p, now)) != 0) {
        uint64_t cards = node_place(p->node, pass_shape(p, who));
        if (!cards)
            return who;
        pass_start(p, who, cards, now);
    }
    return 0;
}

/* The others. */

/* The best candidate to start next, in the search so far. */
struct choice {
    uint32_t who;
    uint64_t cards;  /* set only under a promise */
    uint32_t after;  /* candidates come after this entry */
    int64_t in_time; /* time left until the promised time */
};

static uint64_t
set_of(const uint8_t *cards, int n)
{
    uint64_t set = 0;
    for (int i = 0; i < n; i++)
        set |= UINT64_C(1) << cards[i];
    return set;
}

/* Searches lines begin .. end - 1, which would all get these cards. */
static void
choose_in_stretch(const struct pass *p, const struct family *f, uint32_t begin, uint32_t end,
                  const uint8_t *cards, struct choice *c)
{
    const struct shape *s = p->lines.all[begin].shape;
    uint32_t mid = lines_above(&p->lines, f, promise_harmless_mib(p, s, cards));
    if (mid > end)
        mid = end;
    if (mid < begin)
        mid = begin;
    uint32_t who = lines_best(&p->lines, begin, mid, c->after, INT64_MAX, c->who);
    who = lines_best(&p->lines, mid, end, c->after, c->in_time, who);
    if (who == c->who)
        return;
    c->who = who;
    c->cards = set_of(cards, s->n);
}

/* For shapes whose cards do not follow from their VRAM: one by one. */
static void
choose_singly(const struct pass *p, const struct family *f, struct choice *c)
{
    for (uint32_t i = f->begin, next; i < f->end; i = next) {
        uint8_t cards[GPU_MAX];
        int n = 0;
        next = lines_above(&p->lines, f, p->lines.all[i].shape->vram_mib);
        for (uint64_t set = node_place(p->node, p->lines.all[i].shape); set; set &= set - 1)
            cards[n++] = (uint8_t)__builtin_ctzll(set);
        if (n > 0)
            choose_in_stretch(p, f, i, next, cards, c);
    }
}

static void
choose_beside_promise(const struct pass *p, const struct family *f, struct choice *c)
{
    const struct shape *s = p->lines.all[f->begin].shape;
    uint8_t cards[GPU_MAX];
    if (!node_packs(p->node, s)) {
        choose_singly(p, f, c);
        return;
    }
    int n = node_candidates(p->node, s, cards);
    uint32_t begin = f->begin;
    for (int i = 0; i + s->n <= n && begin < f->end; i++) {
        int64_t room = node_room(p->node, s, p->node->free_mib[cards[i]]);
        if (room < p->lines.all[begin].vram_mib)
            continue;
        uint32_t end = lines_above(&p->lines, f, room);
        choose_in_stretch(p, f, begin, end, &cards[i], c);
        begin = end;
    }
}

/* Without a promise any job that fits may start, and all that precede the best one have
 * started. */
static void
choose_what_fits(const struct pass *p, const struct family *f, struct choice *c)
{
    const struct shape *s = p->lines.all[f->begin].shape;
    uint8_t cards[GPU_MAX];
    int n = node_candidates(p->node, s, cards);
    if (n < s->n)
        return;
    int64_t room = node_room(p->node, s, p->node->free_mib[cards[n - s->n]]);
    c->who =
        lines_best(&p->lines, f->begin, lines_above(&p->lines, f, room), 0, INT64_MAX, c->who);
}

static struct choice
choose(const struct pass *p, uint32_t after, int64_t now)
{
    struct choice c = {.after = after, .in_time = p->promise.at - now};
    for (uint32_t i = 0; i < p->lines.n_families; i++) {
        const struct family *f = &p->lines.families[i];
        if (f->n_waiting == 0)
            continue;
        if (p->promise.who)
            choose_beside_promise(p, f, &c);
        else
            choose_what_fits(p, f, &c);
    }
    if (c.who && !p->promise.who)
        c.cards = node_place(p->node, pass_shape(p, c.who));
    return c;
}

static void
run_others(struct pass *p, int64_t now)
{
    uint32_t last = 0;
    for (;;) {
        struct choice c = choose(p, last, now);
        if (!c.who)
            return;
        if (p->promise.who && p->lines.entries[c.who].run > c.in_time)
            promise_add_beside(p, pass_shape(p, c.who), c.cards);
        pass_start(p, c.who, c.cards, now);
        last = c.who;
    }
}

void
pass_arrive(struct pass *p, uint32_t who)
{
    lines_add(&p->lines, who);
}

void
pass_end(struct pass *p, uint32_t who, uint64_t cards, int64_t started)
{
    node_give(p->node, pass_shape(p, who), cards);
    if (reserves(p))
        promise_remove_running(p, who, started);
}

void
pass_run(struct pass *p, int64_t now)
{
    p->lines.now = now;
    p->promise.who = 0;
    uint32_t blocked = run_heads(p, now);
    if (blocked && p->policy->blocked == BLOCKED_STOP)
        return;
    if (blocked && reserves(p) && p->lines.n_waiting > 1)
        promise_make(p, blocked, now);
    run_others(p, now);
}
