/* The pass. First the head: whoever the policy serves before all others, as long as they
 * fit. The first that does not may stop everyone, or is promised a time. Then the others, in
 * the policy's order, as far as they are not in the way of that promise.
 *
 * "The others" are found line by line. A shape that fits nowhere has no say for the rest of
 * the pass, since room only shrinks. Of a shape that fits, the cards are known before it is
 * known whose they are; so it is asked once whether anyone of that shape may have them for as
 * long as he likes, and if not, for the first who is over before the promised time. Each
 * start changes the answer, so the lines are asked again: a pass costs lines x starts. */
#include "core/pass.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

void
pass_init(struct pass *p, const struct policy *policy, struct node *node, struct entry *entries,
          size_t n, const struct shape *shapes, pass_on_start on_start, void *arg)
{
    *p = (struct pass){.policy = policy, .node = node, .on_start = on_start, .arg = arg};
    node->rule = policy->fit;
    node->whole = policy->whole;
    lines_init(&p->lines, entries, n, shapes, policy->order);
}

void
pass_free(struct pass *p)
{
    lines_free(&p->lines);
    free(p->running);
}

static const struct shape *
shape_of(const struct pass *p, uint32_t who)
{
    return &p->lines.shapes[p->lines.entries[who].shape];
}

/* The running, by expected end. */

static size_t
running_find(const struct pass *p, int64_t expected_end, uint32_t who)
{
    size_t low = 0, high = p->n_running;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct running *r = &p->running[mid];
        if (r->expected_end < expected_end || (r->expected_end == expected_end && r->who < who))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void
running_add(struct pass *p, uint32_t who, uint64_t cards, int64_t now)
{
    if (p->n_running == p->cap_running) {
        p->cap_running = p->cap_running ? p->cap_running * 2 : 64;
        p->running = xrealloc(p->running, p->cap_running * sizeof *p->running);
    }
    int64_t end = now + p->lines.entries[who].run;
    size_t at = running_find(p, end, who);
    memmove(p->running + at + 1, p->running + at, (p->n_running - at) * sizeof *p->running);
    p->running[at] = (struct running){.expected_end = end, .cards = cards, .who = who};
    p->n_running++;
}

static void
running_remove(struct pass *p, uint32_t who, int64_t started)
{
    size_t at = running_find(p, started + p->lines.entries[who].run, who);
    if (at == p->n_running || p->running[at].who != who)
        err_abort("entry %u does not run", who);
    p->n_running--;
    memmove(p->running + at, p->running + at + 1, (p->n_running - at) * sizeof *p->running);
}

static bool
reserves(const struct pass *p)
{
    return p->policy->blocked == BLOCKED_RESERVE;
}

static void
start(struct pass *p, uint32_t who, uint64_t cards, int64_t now)
{
    node_take(p->node, shape_of(p, who), cards);
    lines_remove(&p->lines, who);
    if (reserves(p))
        running_add(p, who, cards, now);
    p->on_start(p->arg, who, cards);
}

/* The promise. */

/* One leaves: how many more cards would do. */
static int
release(struct reservation *r, const struct pass *p, const struct running *run)
{
    const struct shape *head = shape_of(p, r->who), *leaver = shape_of(p, run->who);
    int more = 0;
    for (uint64_t cards = run->cards; cards; cards &= cards - 1) {
        int card = __builtin_ctzll(cards);
        bool did = node_card_does(p->node, head, card, r->free_mib[card], r->n_jobs[card]);
        r->n_jobs[card]--;
        r->free_mib[card] =
            leaver->alone ? p->node->total_mib[card] : r->free_mib[card] + leaver->vram_mib;
        more += node_card_does(p->node, head, card, r->free_mib[card], r->n_jobs[card]) - did;
    }
    return more;
}

/* When the head fits, and how the cards will stand then. Who is overdue is expected to end
 * in a second. */
static void
reserve(struct pass *p, uint32_t who, int64_t now)
{
    struct reservation *r = &p->promise;
    const struct shape *head = shape_of(p, who);
    size_t size = (size_t)p->node->n;
    r->who = who;
    r->n_cards = 0;
    memcpy(r->free_mib, p->node->free_mib, size * sizeof *r->free_mib);
    memcpy(r->n_jobs, p->node->n_jobs, size * sizeof *r->n_jobs);
    for (int i = 0; i < p->node->n; i++)
        r->n_cards += node_card_does(p->node, head, i, r->free_mib[i], r->n_jobs[i]);
    for (size_t i = 0; i < p->n_running;) {
        int64_t end = p->running[i].expected_end;
        r->at = end > now ? end : now + 1;
        for (; i < p->n_running && p->running[i].expected_end <= r->at; i++)
            r->n_cards += release(r, p, &p->running[i]);
        if (r->n_cards >= head->n)
            return;
    }
    err_abort("entry %u fits on no empty node", who);
}

/* Whether the promise would still hold with one more of this shape on these cards. */
static bool
keeps(const struct pass *p, const struct shape *s, uint64_t cards)
{
    const struct reservation *r = &p->promise;
    const struct shape *head = shape_of(p, r->who);
    int n = r->n_cards;
    for (; cards; cards &= cards - 1) {
        int card = __builtin_ctzll(cards);
        if (!node_card_does(p->node, head, card, r->free_mib[card], r->n_jobs[card]))
            continue;
        n -= !node_card_does(p->node, head, card, node_free_after(s, r->free_mib[card]),
                             r->n_jobs[card] + 1);
    }
    return n >= head->n;
}

/* It will still run at the promised time. */
static void
add_beside(struct pass *p, const struct shape *s, uint64_t cards)
{
    struct reservation *r = &p->promise;
    const struct shape *head = shape_of(p, r->who);
    for (; cards; cards &= cards - 1) {
        int card = __builtin_ctzll(cards);
        r->n_cards -= node_card_does(p->node, head, card, r->free_mib[card], r->n_jobs[card]);
        r->free_mib[card] = node_free_after(s, r->free_mib[card]);
        r->n_jobs[card]++;
        r->n_cards += node_card_does(p->node, head, card, r->free_mib[card], r->n_jobs[card]);
    }
}

/* The heads. */

static uint32_t
first_of_all(const struct pass *p)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < p->lines.n_live; i++) {
        uint32_t who = lines_live(&p->lines, i)->first;
        if (!first || lines_precedes(&p->lines, who, first))
            first = who;
    }
    return first;
}

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
        who = first_of_all(p);
        break;
    }
    return who;
}

/* Starts heads while they fit; the first that does not, or 0. */
static uint32_t
run_heads(struct pass *p, int64_t now)
{
    uint32_t who;
    while ((who = find_head(p, now)) != 0) {
        uint64_t cards = node_place(p->node, shape_of(p, who));
        if (!cards)
            return who;
        start(p, who, cards, now);
    }
    return 0;
}

/* The others. */

/* Who of this line may start next, behind after. His cards go to *cards if that mattered. */
static uint32_t
next_of_line(const struct pass *p, const struct line *line, uint32_t after, int64_t now,
             uint64_t *cards)
{
    if (!node_fits(p->node, line->shape))
        return 0;
    /* Whoever stood before the first of a line that fits has started, unless he was in the
     * way of a promise. */
    if (!p->promise.who)
        return line->first;
    *cards = node_place(p->node, line->shape);
    bool is_harmless = keeps(p, line->shape, *cards);
    return lines_next(&p->lines, line, after, is_harmless ? INT64_MAX : p->promise.at - now);
}

static void
run_others(struct pass *p, int64_t now)
{
    uint32_t last = 0;
    for (;;) {
        uint32_t best = 0;
        uint64_t best_cards = 0, cards = 0;
        for (uint32_t i = 0; i < p->lines.n_live; i++) {
            uint32_t who = next_of_line(p, lines_live(&p->lines, i), last, now, &cards);
            if (!who || (best && !lines_precedes(&p->lines, who, best)))
                continue;
            best = who;
            best_cards = cards;
        }
        if (!best)
            return;
        const struct shape *s = shape_of(p, best);
        if (!p->promise.who)
            best_cards = node_place(p->node, s);
        else if (p->lines.entries[best].run > p->promise.at - now)
            add_beside(p, s, best_cards);
        start(p, best, best_cards, now);
        last = best;
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
    node_give(p->node, shape_of(p, who), cards);
    if (reserves(p))
        running_remove(p, who, started);
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
        reserve(p, blocked, now);
    run_others(p, now);
}
