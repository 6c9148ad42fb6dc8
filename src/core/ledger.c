/* The ledger's cards and holds. Fed by the daemon (or the simulator) with cards, states and
 * decisions; samples come in through ledger_sample.c. Read by place.c.
 *
 * What is derived for a card (external, held, headroom, countable, taken) is recomputed
 * from that card's own facts whenever one of them changes: a card has few holds and few
 * strangers, so this is cheap, and there is no delta that could drift. */
#include "core/ledger.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/ledger_priv.h"

void
ledger_policy_init(struct ledger_policy *p)
{
    *p = (struct ledger_policy){
        .margin_mib = 512, .idle_mib = 1024, .clear_mib = 256, .spike_permille = 100};
}

struct ledger *
ledger_new(const struct ledger_policy *p)
{
    struct ledger *l = xcalloc(1, sizeof *l);
    if (p)
        l->policy = *p;
    else
        ledger_policy_init(&l->policy);
    l->generation = 1;
    l->n_buckets = HOLDINGS_FIRST;
    l->buckets = xcalloc(l->n_buckets, sizeof *l->buckets);
    return l;
}

static void *
copy_array(const void *from, int32_t n, size_t size)
{
    if (n == 0)
        return NULL;
    void *to = xmalloc((size_t)n * size);
    memcpy(to, from, (size_t)n * size);
    return to;
}

static void
clone_lists(struct card *c)
{
    c->holds = copy_array(c->holds, c->n_holds, sizeof *c->holds);
    c->cap_holds = c->n_holds;
    c->strangers = copy_array(c->strangers, c->n_strangers, sizeof *c->strangers);
    c->cap_strangers = c->n_strangers;
}

struct ledger *
ledger_clone(const struct ledger *l)
{
    struct ledger *to = xmalloc(sizeof *to);
    *to = *l;
    for (int i = 0; i < to->n_cards; i++)
        clone_lists(&to->cards[i]);
    to->buckets = xcalloc(to->n_buckets, sizeof *to->buckets);
    for (size_t b = 0; b < l->n_buckets; b++) {
        for (const struct holding *h = l->buckets[b]; h; h = h->next) {
            struct holding *copy = xmalloc(sizeof *copy);
            *copy = *h;
            copy->next = to->buckets[b];
            to->buckets[b] = copy;
        }
    }
    return to;
}

void
ledger_free(struct ledger *l)
{
    if (!l)
        return;
    for (int i = 0; i < l->n_cards; i++) {
        free(l->cards[i].holds);
        free(l->cards[i].strangers);
    }
    for (size_t b = 0; b < l->n_buckets; b++) {
        for (struct holding *h = l->buckets[b], *next; h; h = next) {
            next = h->next;
            free(h);
        }
    }
    free(l->buckets);
    free(l);
}

const struct ledger_policy *
ledger_policy(const struct ledger *l)
{
    return &l->policy;
}

/* The machine. */

static struct card *
card_at(struct ledger *l, int card)
{
    if (card < 0 || card >= l->n_cards)
        err_abort("card %d of %d", card, l->n_cards);
    return &l->cards[card];
}

static void
set_info(struct ledger *l, struct card *c, const struct gpu_info *info)
{
    c->info = *info;
    for (size_t i = 0; i < sizeof c->type; i++)
        c->type[i] = (char)tolower((unsigned char)info->name[i]);
    for (int i = 0; i < c->n_holds; i++) {
        struct hold *h = &c->holds[i];
        if (h->by_share)
            h->demand_mib = (int32_t)(info->total_mib * h->share_permille / 1000);
    }
    l->generation++;
    card_derive(l, c);
}

int
ledger_add_card(struct ledger *l, const struct gpu_info *info)
{
    if (l->n_cards == GPU_MAX || info->index != l->n_cards)
        err_abort("card %d added as number %d", info->index, l->n_cards);
    struct card *c = &l->cards[l->n_cards++];
    c->health = GPU_UNKNOWN;
    c->used_mib = -1;
    c->util = -1;
    c->temperature_c = -1;
    set_info(l, c, info);
    return info->index;
}

void
ledger_set_info(struct ledger *l, int card, const struct gpu_info *info)
{
    struct card *c = card_at(l, card);
    if (info->index != card)
        err_abort("card %d described as %d", card, info->index);
    set_info(l, c, info);
}

void
ledger_link(struct ledger *l, int a, int b)
{
    if (a == b)
        return;
    card_at(l, a)->links |= UINT64_C(1) << b;
    card_at(l, b)->links |= UINT64_C(1) << a;
}

void
ledger_set_known(struct ledger *l)
{
    if (!l->known)
        l->generation++;
    l->known = true;
}

bool
ledger_is_known(const struct ledger *l)
{
    return l->known;
}

void
ledger_set_host(struct ledger *l, int32_t cpus, int64_t mem_mib)
{
    l->cpus = cpus;
    l->mem_mib = mem_mib;
    l->generation++;
}

int
ledger_n_cards(const struct ledger *l)
{
    return l->n_cards;
}

const struct card *
ledger_card(const struct ledger *l, int card)
{
    if (card < 0 || card >= l->n_cards)
        err_abort("card %d of %d", card, l->n_cards);
    return &l->cards[card];
}

const struct card *
ledger_cards(const struct ledger *l)
{
    return l->cards;
}

int
ledger_find_uuid(const struct ledger *l, const char *uuid)
{
    for (int i = 0; i < l->n_cards; i++) {
        if (strcmp(l->cards[i].info.uuid, uuid) == 0)
            return i;
    }
    return -1;
}

uint64_t
ledger_generation(const struct ledger *l)
{
    return l->generation;
}

int32_t
ledger_cpus(const struct ledger *l)
{
    return l->cpus;
}

int64_t
ledger_mem_mib(const struct ledger *l)
{
    return l->mem_mib;
}

int64_t
ledger_cpus_held(const struct ledger *l)
{
    return l->cpus_held;
}

int64_t
ledger_mem_held(const struct ledger *l)
{
    return l->mem_held_mib;
}

/* States. */

enum gpu_state
card_state(const struct card *c)
{
    return c->health != GPU_UP ? c->health : c->admin;
}

void
ledger_set_admin(struct ledger *l, int card, enum gpu_state s, int64_t now_us)
{
    struct card *c = card_at(l, card);
    if (s != GPU_UP && s != GPU_PAUSED && s != GPU_DRAINING)
        err_abort("a person sets card %d to %s", card, gpu_state_name(s));
    if (c->admin != s)
        c->state_since_us = now_us;
    c->admin = s;
}

void
ledger_set_health(struct ledger *l, int card, enum gpu_state s, int64_t now_us)
{
    struct card *c = card_at(l, card);
    if (s == GPU_PAUSED || s == GPU_DRAINING)
        err_abort("the machine sets card %d to %s", card, gpu_state_name(s));
    if (c->health != s)
        c->state_since_us = now_us;
    c->health = s;
    if (s == GPU_UP) {
        c->xid = 0;
        c->health_text[0] = '\0';
    }
}

void
ledger_set_sick(struct ledger *l, int card, int32_t xid, const char *text, int64_t now_us)
{
    struct card *c = card_at(l, card);
    ledger_set_health(l, card, GPU_SICK, now_us);
    c->xid = xid;
    snprintf(c->health_text, sizeof c->health_text, "%s", text);
}

void
ledger_set_wall_offset(struct ledger *l, int64_t offset_us)
{
    l->has_wall = true;
    l->wall_offset_us = offset_us;
}

int64_t
ledger_state_since_wall_us(const struct ledger *l, const struct card *c)
{
    if (!l->has_wall || c->state_since_us == 0)
        return 0;
    return c->state_since_us + l->wall_offset_us;
}

/* Holds. */

static struct holding **
holding_slot(const struct ledger *l, uint32_t job)
{
    struct holding **p = &l->buckets[job & (l->n_buckets - 1)];
    while (*p && (*p)->job != job)
        p = &(*p)->next;
    return p;
}

static void
holdings_grow(struct ledger *l)
{
    size_t n = l->n_buckets;
    struct holding **old = l->buckets;
    l->n_buckets = n * 2;
    l->buckets = xcalloc(l->n_buckets, sizeof *l->buckets);
    for (size_t b = 0; b < n; b++) {
        for (struct holding *h = old[b], *next; h; h = next) {
            next = h->next;
            struct holding **to = &l->buckets[h->job & (l->n_buckets - 1)];
            h->next = *to;
            *to = h;
        }
    }
    free(old);
}

int32_t
demand_cpus(const struct demand *d)
{
    return d->cpus == 0 && d->gpus == 0 ? 1 : d->cpus;
}

int32_t
demand_vram_mib(const struct demand *d, int64_t total_mib)
{
    if (d->vram_mib > 0 || d->share_permille == 0)
        return d->vram_mib;
    return (int32_t)(total_mib * d->share_permille / 1000);
}

static void
card_add_hold(struct ledger *l, struct card *c, uint32_t job, const struct demand *d)
{
    if (c->n_holds == c->cap_holds) {
        c->cap_holds = c->cap_holds ? c->cap_holds * 2 : 4;
        c->holds = xrealloc(c->holds, (size_t)c->cap_holds * sizeof *c->holds);
    }
    c->holds[c->n_holds++] = (struct hold){
        .job = job,
        .demand_mib = demand_vram_mib(d, c->info.total_mib),
        .share_permille = d->share_permille,
        .by_share = d->vram_mib == 0 && d->share_permille > 0,
        .exclusive = d->exclusive || demand_is_whole(d),
        .now_mib = -1,
        .peak_mib = -1,
        .rest_mib = card_rest(c),
        .used_mib = c->used_mib,
    };
    card_derive(l, c);
}

static void
card_drop_hold(struct ledger *l, struct card *c, uint32_t job)
{
    for (int i = 0; i < c->n_holds; i++) {
        if (c->holds[i].job == job) {
            c->n_holds--;
            memmove(&c->holds[i], &c->holds[i + 1],
                    (size_t)(c->n_holds - i) * sizeof *c->holds);
            break;
        }
    }
    card_derive(l, c);
}

void
ledger_hold(struct ledger *l, uint32_t job, const struct demand *d, const uint8_t *gpus, int n)
{
    if (job == 0 || n > GPU_MAX || *holding_slot(l, job))
        err_abort("job %u books %d cards, and holds some already", job, n);
    if (l->n_holdings >= l->n_buckets)
        holdings_grow(l);
    struct holding *h = xcalloc(1, sizeof *h);
    h->job = job;
    h->n = (uint8_t)n;
    h->cpus = demand_cpus(d);
    h->mem_mib = d->mem_mib;
    *holding_slot(l, job) = h;
    l->n_holdings++;
    l->cpus_held += h->cpus;
    l->mem_held_mib += h->mem_mib;
    for (int i = 0; i < n; i++) {
        h->gpus[i] = gpus[i];
        card_add_hold(l, card_at(l, gpus[i]), job, d);
    }
}

void
ledger_release(struct ledger *l, uint32_t job)
{
    struct holding **slot = holding_slot(l, job);
    struct holding *h = *slot;
    if (!h)
        return;
    *slot = h->next;
    l->n_holdings--;
    l->cpus_held -= h->cpus;
    l->mem_held_mib -= h->mem_mib;
    for (int i = 0; i < h->n; i++)
        card_drop_hold(l, card_at(l, h->gpus[i]), job);
    free(h);
}

/* How much of the card's used memory goes with the hold: what was measured of it, and of what
 * nobody reports as much as can be its own. */
static int64_t
hold_used_mib(const struct ledger *l, const struct card *c, const struct hold *h)
{
    int64_t known = h->now_mib > 0 ? h->now_mib : 0, silent = 0;
    if (c->listed && h->unreported)
        silent = card_rest(c);
    else if (!c->listed && h->now_mib < 0 && h->used_mib >= 0)
        silent = c->used_mib - h->used_mib;
    int64_t room = card_budget(l, c, h) - known;
    silent = silent < room ? silent : room;
    return silent > 0 ? known + silent : known;
}

static void
card_take_back(const struct ledger *l, struct card *c, const struct hold *h)
{
    int64_t known = h->now_mib > 0 ? h->now_mib : 0;
    int64_t mine = hold_used_mib(l, c, h);
    if (c->used_mib >= 0)
        c->used_mib = c->used_mib > mine ? c->used_mib - mine : 0;
    c->listed_mib = c->listed_mib > known ? c->listed_mib - known : 0;
    c->util = -1;
}

void
ledger_release_ahead(struct ledger *l, uint32_t job)
{
    const struct holding *h = *holding_slot(l, job);
    for (int i = 0; h && i < h->n; i++) {
        struct card *c = card_at(l, h->gpus[i]);
        card_take_back(l, c, card_hold(c, job));
    }
    ledger_release(l, job);
}

bool
ledger_holds(const struct ledger *l, uint32_t job)
{
    return *holding_slot(l, job) != NULL;
}

const struct hold *
ledger_find_hold(const struct ledger *l, int card, uint32_t job)
{
    return card_hold(ledger_card(l, card), job);
}

int
ledger_cards_of(const struct ledger *l, uint32_t job, uint8_t *out)
{
    const struct holding *h = *holding_slot(l, job);
    if (!h)
        return 0;
    memcpy(out, h->gpus, h->n);
    return h->n;
}

void
ledger_restore_peak(struct ledger *l, int card, uint32_t job, int32_t peak_mib)
{
    struct card *c = card_at(l, card);
    struct hold *h = card_hold(c, job);
    if (!h || peak_mib <= h->peak_mib)
        return;
    h->peak_mib = peak_mib;
    card_derive(l, c);
}
