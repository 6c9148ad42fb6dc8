/* The ledger's cards and their states, as the daemon or the simulator reports them. Holds are
 * in ledger_hold.c; samples come in through ledger_sample.c. Read by place.c.
 *
 * A card's derived values (external, held, headroom, countable, taken) are recomputed from
 * that card's own facts whenever one of them changes. A card has few holds and few other
 * processes, so this is cheap, and there are no deltas that could drift. */
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
    l->generation = l->changes = 1;
    l->cards = xcalloc(GPU_MAX, sizeof *l->cards); /* at full size, so that none moves */
    l->cap_cards = GPU_MAX;
    l->n_buckets = HOLDINGS_FIRST;
    l->buckets = xcalloc(l->n_buckets, sizeof *l->buckets);
    return l;
}

/* A clone and all its copies are in one block, because each pass makes several. Anything added
 * later is allocated separately. */

static bool
is_own(const struct ledger *l, const void *p)
{
    return (const char *)p < l->block || (const char *)p >= l->block_end;
}

void
ledger_free_part(const struct ledger *l, void *p)
{
    if (is_own(l, p))
        free(p);
}

void *
ledger_grow(const struct ledger *l, void *list, size_t n, size_t *cap, size_t size)
{
    if (is_own(l, list) || n < *cap)
        return xgrow(list, n, cap, size);
    *cap = 2 * n + 1;
    void *own = xmalloc(*cap * size);
    memcpy(own, list, n * size);
    return own;
}

static size_t
rounded(size_t bytes)
{
    return (bytes + 15) & ~(size_t)15;
}

static size_t
size_of_clone(const struct ledger *l)
{
    size_t size = rounded(sizeof *l) + rounded((size_t)l->n_cards * sizeof *l->cards) +
                  rounded(l->n_buckets * sizeof *l->buckets) +
                  l->n_holdings * rounded(sizeof(struct holding));
    for (int i = 0; i < l->n_cards; i++)
        size += rounded((size_t)l->cards[i].n_holds * sizeof *l->cards[i].holds);
    return size;
}

static void *
copy_to(char **at, const void *from, size_t bytes)
{
    void *to = *at;
    if (bytes == 0)
        return NULL;
    memcpy(to, from, bytes);
    *at += rounded(bytes);
    return to;
}

static void
clone_lists(struct card *c, char **at)
{
    c->holds = copy_to(at, c->holds, (size_t)c->n_holds * sizeof *c->holds);
    c->cap_holds = (size_t)c->n_holds;
    if (c->n_strangers > 0) { /* rare */
        struct stranger *strangers = xcalloc((size_t)c->n_strangers, sizeof *strangers);
        memcpy(strangers, c->strangers, (size_t)c->n_strangers * sizeof *strangers);
        c->strangers = strangers;
    } else {
        c->strangers = NULL;
    }
    c->cap_strangers = (size_t)c->n_strangers;
}

struct ledger *
ledger_clone(const struct ledger *l)
{
    size_t size = size_of_clone(l);
    char *block = xmalloc(size), *at = block;
    struct ledger *to = copy_to(&at, l, sizeof *l);
    to->changes = 0;
    to->block = block;
    to->block_end = block + size;
    to->cards = copy_to(&at, l->cards, (size_t)l->n_cards * sizeof *l->cards);
    to->cap_cards = (size_t)l->n_cards;
    for (int i = 0; i < to->n_cards; i++)
        clone_lists(&to->cards[i], &at);
    to->buckets = copy_to(&at, l->buckets, l->n_buckets * sizeof *l->buckets);
    for (size_t b = 0; b < to->n_buckets; b++) {
        for (struct holding **h = &to->buckets[b]; *h; h = &(*h)->next)
            *h = copy_to(&at, *h, sizeof **h);
    }
    return to;
}

void
ledger_free(struct ledger *l)
{
    if (!l)
        return;
    for (int i = 0; i < l->n_cards; i++) {
        ledger_free_part(l, l->cards[i].holds);
        free(l->cards[i].strangers);
        if (!l->block)
            free(l->cards[i].mps_refusals);
    }
    for (size_t b = 0; b < l->n_buckets; b++) {
        for (struct holding *h = l->buckets[b], *next; h; h = next) {
            next = h->next;
            ledger_free_part(l, h);
        }
    }
    ledger_free_part(l, l->cards);
    ledger_free_part(l, l->buckets);
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
    ledger_changed(l);
    return &l->cards[card];
}

void
ledger_changed(struct ledger *l)
{
    if (l->changes)
        l->changes++;
}

static void
note_sets(struct ledger *l)
{
    l->sets = (struct ledger_sets){.present = 0};
    for (int i = 0; i < l->n_cards; i++) {
        const struct card *c = &l->cards[i];
        l->sets.present |= (uint64_t)!c->gone << i;
        l->sets.instances |= (uint64_t)(c->info.mig_gpu[0] != 0) << i;
        l->sets.vendors[c->info.vendor] |= UINT64_C(1) << i;
    }
}

static void
set_info(struct ledger *l, struct card *c, const struct gpu_info *info)
{
    c->info = *info;
    c->gone = false;
    c->cap_refused[0] = '\0';
    if (c->mps_refusals)
        memset(c->mps_refusals, 0, MPS_REFUSALS * sizeof *c->mps_refusals);
    for (size_t i = 0; i < sizeof c->type; i++)
        c->type[i] = (char)tolower((unsigned char)info->name[i]);
    for (int i = 0; i < c->n_holds; i++) {
        struct hold *h = &c->holds[i];
        if (h->by_share)
            h->demand_mib = (int32_t)(info->total_mib * h->share_permille / 1000);
    }
    l->generation++;
    note_sets(l);
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
    l->cards = ledger_grow(l, l->cards, (size_t)l->n_cards, &l->cap_cards, sizeof *l->cards);
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
    note_sets(l);
}

void
ledger_replace_card(struct ledger *l, const struct gpu_info *info)
{
    struct card *c = card_at(l, info->index);
    if (c->n_holds > 0)
        err_abort("card %d is replaced with %d jobs on it", info->index, c->n_holds);
    for (int i = 0; i < l->n_cards; i++)
        l->cards[i].links &= ~(UINT64_C(1) << info->index);
    ledger_free_part(l, c->holds);
    free(c->strangers);
    if (!l->block)
        free(c->mps_refusals);
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
    ledger_changed(l);
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

uint64_t
ledger_changes(const struct ledger *l)
{
    return l->changes;
}

const struct ledger_sets *
ledger_sets(const struct ledger *l)
{
    return &l->sets;
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
