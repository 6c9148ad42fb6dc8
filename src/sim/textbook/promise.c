/* Reservations as in EASY backfilling. Running jobs are sorted by expected end; the promised
 * time is the first of these ends after which the head fits. */
#include "sim/textbook/promise.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/search.h"

static size_t
running_find(const struct pass *p, int64_t expected_end, uint32_t who)
{
    return search_first(
        at, p->n_running,
        p->running[at].expected_end < expected_end ||
            (p->running[at].expected_end == expected_end && p->running[at].who < who));
}

void
promise_add_running(struct pass *p, uint32_t who, uint64_t cards, int64_t now)
{
    p->running = xgrow(p->running, p->n_running, &p->cap_running, sizeof *p->running);
    int64_t end = now + p->lines.entries[who].run;
    size_t at = running_find(p, end, who);
    memmove(p->running + at + 1, p->running + at, (p->n_running - at) * sizeof *p->running);
    p->running[at] = (struct running){.expected_end = end, .cards = cards, .who = who};
    p->n_running++;
}

void
promise_remove_running(struct pass *p, uint32_t who, int64_t started)
{
    size_t at = running_find(p, started + p->lines.entries[who].run, who);
    if (at == p->n_running || p->running[at].who != who)
        err_abort("entry %u does not run", who);
    p->n_running--;
    memmove(p->running + at, p->running + at + 1, (p->n_running - at) * sizeof *p->running);
}

/* Lets a job leave; returns how many more cards have room for the head. */
static int
release(struct promise *r, const struct pass *p, const struct running *run)
{
    const struct shape *head = pass_shape(p, r->who), *leaver = pass_shape(p, run->who);
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

void
promise_make(struct pass *p, uint32_t who, int64_t now)
{
    const struct shape *head = pass_shape(p, who);
    const struct running *runs = p->running;
    struct promise *r = &p->promise;
    size_t size = (size_t)p->node->n;
    r->who = who;
    r->n_cards = 0;
    memcpy(r->free_mib, p->node->free_mib, size * sizeof *r->free_mib);
    memcpy(r->n_jobs, p->node->n_jobs, size * sizeof *r->n_jobs);
    for (int i = 0; i < p->node->n; i++)
        r->n_cards += node_card_does(p->node, head, i, r->free_mib[i], r->n_jobs[i]);
    for (size_t i = 0; i < p->n_running;) {
        r->at = runs[i].expected_end > now ? runs[i].expected_end : now + 1;
        for (; i < p->n_running && runs[i].expected_end <= r->at; i++)
            r->n_cards += release(r, p, &runs[i]);
        if (r->n_cards >= head->n)
            return;
    }
    err_abort("entry %u fits on no empty node", r->who);
}

/* The head can spare `spare` of the cards. Sorts what it can lose on each of these cards; the
 * first one too many is the limit. */
int64_t
promise_harmless_mib(const struct pass *p, const struct shape *s, const uint8_t *cards)
{
    const struct promise *r = &p->promise;
    const struct shape *head = pass_shape(p, r->who);
    int spare = r->n_cards - head->n, n = 0;
    int64_t limits[GPU_MAX];
    for (int i = 0; i < s->n; i++) {
        int card = cards[i];
        if (!node_card_does(p->node, head, card, r->free_mib[card], r->n_jobs[card]))
            continue;
        bool is_lost = s->alone || head->alone || p->node->whole;
        int64_t limit =
            is_lost ? -1 : node_room(p->node, head, r->free_mib[card]) - head->vram_mib;
        int at = n++;
        for (; at > 0 && limit < limits[at - 1]; at--)
            limits[at] = limits[at - 1];
        limits[at] = limit;
    }
    return n <= spare ? INT64_MAX : limits[spare];
}

void
promise_add_beside(struct pass *p, const struct shape *s, uint64_t cards)
{
    struct promise *r = &p->promise;
    const struct shape *head = pass_shape(p, r->who);
    for (; cards; cards &= cards - 1) {
        int card = __builtin_ctzll(cards);
        r->n_cards -= node_card_does(p->node, head, card, r->free_mib[card], r->n_jobs[card]);
        r->free_mib[card] = node_free_after(s, r->free_mib[card]);
        r->n_jobs[card]++;
        r->n_cards += node_card_does(p->node, head, card, r->free_mib[card], r->n_jobs[card]);
    }
}
