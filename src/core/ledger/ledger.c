/* The ledger's cards and their states, as the daemon or the simulator reports them. Holds are
 * in ledger_hold.c, samples come in through ledger_sample.c. Read by place.c.
 *
 * What is derived for a card (external, held, headroom, countable, taken) is recomputed from
 * that card's own facts whenever one of them changes: a card has few holds and few other
 * processes, so this is cheap, and there is no delta that could drift. */
#include "core/ledger/ledger.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/ledger/ledger_priv.h"

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
    l->cap_mode = VRAM_CAP_AUTO;
    l->bind_mode = CPU_BIND_AUTO;
    l->generation = 1;
    l->cards = xcalloc(GPU_MAX, sizeof *l->cards); /* here they never move */
    l->cap_cards = GPU_MAX;
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
    to->cards = copy_array(l->cards, l->n_cards, sizeof *l->cards);
    to->cap_cards = (size_t)l->n_cards;
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
    free(l->cards);
    free(l->buckets);
    free(l);
}

const struct ledger_policy *
ledger_policy(const struct ledger *l)
{
    return &l->policy;
}

/* The machine. */

struct card *
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
    c->gone = false;
    c->cap_refused[0] = '\0';
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

static void
init_card(struct ledger *l, struct card *c, const struct gpu_info *info)
{
    *c = (struct card){.n_holds = 0};
    c->health = GPU_UNKNOWN;
    c->used_mib = -1;
    c->before_mib = -1;
    c->util = -1;
    c->temperature_c = -1;
    set_info(l, c, info);
}

int
ledger_add_card(struct ledger *l, const struct gpu_info *info)
{
    if (l->n_cards == GPU_MAX || info->index != l->n_cards)
        err_abort("card %d added as number %d", info->index, l->n_cards);
    l->cards = xgrow(l->cards, (size_t)l->n_cards, &l->cap_cards, sizeof *l->cards);
    init_card(l, &l->cards[l->n_cards++], info);
    return info->index;
}

void
ledger_set_gone(struct ledger *l, int card)
{
    struct card *c = card_at(l, card);
    if (c->n_holds > 0)
        err_abort("card %d goes with %d jobs on it", card, c->n_holds);
    if (!c->gone)
        l->generation++;
    c->gone = true;
}

void
ledger_replace_card(struct ledger *l, const struct gpu_info *info)
{
    struct card *c = card_at(l, info->index);
    if (c->n_holds > 0)
        err_abort("card %d is replaced with %d jobs on it", info->index, c->n_holds);
    for (int i = 0; i < l->n_cards; i++)
        l->cards[i].links &= ~(UINT64_C(1) << info->index);
    free(c->holds);
    free(c->strangers);
    init_card(l, c, info);
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

void
ledger_set_slurm_room(struct ledger *l, int32_t n)
{
    l->slurm_room = n;
}

int32_t
ledger_slurm_room(const struct ledger *l)
{
    return l->slurm_room;
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

static bool
has_room_as(const struct card *a, const struct card *b)
{
    return a->admin == b->admin && a->health == b->health && a->used_mib == b->used_mib &&
           a->util == b->util && a->external_mib == b->external_mib &&
           a->held_mib == b->held_mib && a->headroom_mib == b->headroom_mib &&
           a->countable == b->countable && a->taken == b->taken &&
           a->share_held == b->share_held;
}

bool
ledger_has_room_as(const struct ledger *l, const struct ledger *other)
{
    bool is_same = l->generation == other->generation && l->known == other->known &&
                   l->n_cards == other->n_cards && l->cpus_held == other->cpus_held &&
                   l->mem_held_mib == other->mem_held_mib &&
                   memcmp(l->node_held, other->node_held, sizeof l->node_held) == 0;
    for (int i = 0; is_same && i < l->n_cards; i++)
        is_same = has_room_as(&l->cards[i], &other->cards[i]);
    return is_same;
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
