/* Whether a request could ever start on this machine when idle, and if not, the nearest
 * request that could. Called at submission, and by plan.c when the machine has changed. A card
 * that is lost, sick or paused, or whose compute mode admits no process, counts as present: it
 * may come back. Guards are ignored: what they measure is temporary. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "core/ledger/cards.h"
#include "core/place/place_priv.h"

#define SAY(why, ...)                                                                          \
    do {                                                                                       \
        if (why)                                                                               \
            buf_addf(why, __VA_ARGS__);                                                        \
    } while (0)

static void
say_gpus(uint64_t set, struct buf *why)
{
    if (why)
        gpu_set_text(set, why);
}

/* Names the existing GPUs. */
static void
say_range(int n, struct buf *why)
{
    if (n == 0)
        SAY(why, "this machine has no GPU");
    else if (n == 1)
        SAY(why, "there is only 0");
    else
        SAY(why, "there are 0-%d", n - 1);
}

/* The highest possible request, so rounded down, in the units of the text before it. */
static void
say_at_most(const char *what, int64_t mib, struct buf *why)
{
    if (mib < 1024)
        SAY(why, "; request %sat most %lld MiB", what, (long long)mib);
    else
        SAY(why, "; request %sat most %lld.%lld GiB", what, (long long)(mib / 1024),
            (long long)(mib % 1024 * 10 / 1024));
}

static bool
share_makes_sense(const struct demand *d, struct buf *why)
{
    int want = demand_n_gpus(d);
    if (d->share_permille == 0 || want == 1)
        return true;
    SAY(why, "a share is a fraction of one GPU, but ");
    if (want == 0)
        SAY(why, "no GPU is requested; request one, or omit the share");
    else
        SAY(why, "%d are requested; request one, or whole GPUs", want);
    return false;
}

/* Whether a card named by the job exists and can be used with n-1 others. */
static bool
is_there(const struct card *c, int n, struct buf *why)
{
    if (c->gone)
        SAY(why, "gpu %d is gone: %s", c->info.index,
            c->info.mig_gpu[0] ? "its MIG instance was removed" : "it was divided by MIG");
    else if (n > 1 && c->info.mig_gpu[0])
        SAY(why,
            "gpu %d is a MIG instance, beside which a CUDA program can use no other GPU; "
            "request it alone",
            c->info.index);
    return !c->gone && (n == 1 || !c->info.mig_gpu[0]);
}

static bool
ids_exist(const struct demand *d, const struct ledger *l, struct buf *why)
{
    uint64_t seen = 0;
    int n = ledger_n_cards(l);
    for (int i = 0; i < d->n_ids; i++) {
        int id = d->ids[i];
        if (id >= n) {
            SAY(why, "gpu %d does not exist here; ", id);
            say_range(n, why);
            return false;
        }
        if (seen >> id & 1) {
            SAY(why, "gpu %d is named twice", id);
            return false;
        }
        if (!is_there(ledger_card(l, id), d->n_ids, why))
            return false;
        seen |= UINT64_C(1) << id;
    }
    return true;
}

/* Cards selected by ids or devices, whatever their properties. */
static uint64_t
named_cards(const struct demand *d, const struct ledger *l)
{
    struct demand any;
    demand_init(&any);
    any.devices = d->devices;
    any.n_ids = d->n_ids;
    memcpy(any.ids, d->ids, sizeof any.ids);
    return place_cards_of(&any, l);
}

/* "NVIDIA A100-SXM4-40GB (gpus 0-3) and Tesla T4 (gpu 4)": the cards of the set by name. */
static void
say_names(const struct ledger *l, uint64_t set, struct buf *why)
{
    for (uint64_t rest = set, same; rest; rest &= ~same) {
        const char *name = ledger_card(l, __builtin_ctzll(rest))->info.name;
        same = 0;
        for (uint64_t more = rest; more; more &= more - 1) {
            int card = __builtin_ctzll(more);
            if (strcmp(ledger_card(l, card)->info.name, name) == 0)
                same |= UINT64_C(1) << card;
        }
        bool first = rest == set, last = (rest & ~same) == 0;
        SAY(why, "%s%s (",
            first  ? ""
            : last ? " and "
                   : ", ",
            name[0] ? name : "one without a name");
        say_gpus(same, why);
        SAY(why, ")");
    }
}

/* "no GPU here", "none of gpus 0-3" */
static void
say_none_of(const struct demand *d, uint64_t named, struct buf *why)
{
    if (!d->devices) {
        SAY(why, "no GPU here");
        return;
    }
    SAY(why, "none of ");
    say_gpus(named, why);
}

/* Whether the property, which the cards in `fit` have, leaves enough of the named cards: any
 * if the job gives a choice, all if it gives exact ids. */
static bool
is_left(const struct demand *d, uint64_t named, uint64_t fit)
{
    return !named || (d->n_ids ? fit == named : fit != 0);
}

/* Whether the sentence must be about a single card. */
static bool
is_about_one(const struct demand *d, uint64_t cards)
{
    return d->n_ids || (cards & (cards - 1)) == 0;
}

static bool
type_exists(const struct demand *d, const struct ledger *l, uint64_t named, struct buf *why)
{
    struct demand type = *d;
    type.min_vram_mib = 0;
    type.min_cc = 0;
    uint64_t fit = place_cards_of(&type, l);
    if (!d->gpu_type[0] || is_left(d, named, fit))
        return true;
    if (is_about_one(d, named)) {
        int card = __builtin_ctzll(named & ~fit);
        const char *name = ledger_card(l, card)->info.name;
        SAY(why, "gpu %d is '%s', not '%s'", card, name, d->gpu_type);
        return false;
    }
    say_none_of(d, named, why);
    SAY(why, " is called '%s'; there are ", d->gpu_type);
    say_names(l, named, why);
    return false;
}

/* The card with the highest compute capability in the set. */
static const struct card *
newest_card(const struct ledger *l, uint64_t set)
{
    const struct card *newest = ledger_card(l, __builtin_ctzll(set));
    for (; set; set &= set - 1) {
        const struct card *c = ledger_card(l, __builtin_ctzll(set));
        if (c->info.cc > newest->info.cc)
            newest = c;
    }
    return newest;
}

static bool
cc_exists(const struct demand *d, const struct ledger *l, uint64_t named, struct buf *why)
{
    struct demand any = *d, only = *d;
    any.min_vram_mib = only.min_vram_mib = 0;
    any.min_cc = 0;
    uint64_t cards = place_cards_of(&any, l), fit = place_cards_of(&only, l);
    if (d->min_cc == 0 || is_left(d, cards, fit))
        return true;
    const struct gpu_info *newest = &newest_card(l, cards & ~fit)->info;
    double need = d->min_cc / 10.0, has = newest->cc / 10.0;
    if (is_about_one(d, cards) && newest->cc > 0) {
        SAY(why, "gpu %d has compute capability %.1f, not %.1f", newest->index, has, need);
        return false;
    }
    if (is_about_one(d, cards)) {
        SAY(why, "gpu %d reports no compute capability, which only NVIDIA's GPUs have",
            newest->index);
        return false;
    }
    say_none_of(d, named, why);
    if (d->gpu_type[0])
        SAY(why, " called '%s'", d->gpu_type);
    if (newest->cc > 0)
        SAY(why, " has compute capability %.1f; the highest, of gpu %d, is %.1f", need,
            newest->index, has);
    else
        SAY(why, " reports a compute capability, which only NVIDIA's GPUs have");
    return false;
}

static int
largest_card(const struct ledger *l, uint64_t set)
{
    int largest = __builtin_ctzll(set);
    for (; set; set &= set - 1) {
        if (place_card_size(l, __builtin_ctzll(set)) > place_card_size(l, largest))
            largest = __builtin_ctzll(set);
    }
    return largest;
}

static bool
size_exists(const struct demand *d, const struct ledger *l, uint64_t named, struct buf *why)
{
    struct demand any_size = *d;
    any_size.min_vram_mib = 0;
    uint64_t cards = place_cards_of(&any_size, l), fit = place_cards_of(d, l);
    if (d->min_vram_mib == 0 || is_left(d, cards, fit))
        return true;
    char need[24], has[24];
    int largest = largest_card(l, cards & ~fit);
    format_mib(d->min_vram_mib, need);
    format_mib(place_card_size(l, largest), has);
    if (is_about_one(d, cards)) {
        SAY(why, "gpu %d has %s, not %s", largest, has, need);
        return false;
    }
    say_none_of(d, named, why);
    if (d->gpu_type[0])
        SAY(why, " called '%s'", d->gpu_type);
    SAY(why, " has %s; the largest, gpu %d, has %s", need, largest, has);
    return false;
}

/* "no GPU here can enforce a job's VRAM (gpu 0: the driver is older than 615)" */
static bool
cap_exists(const struct demand *d, const struct ledger *l, uint64_t named, struct buf *why)
{
    struct demand any = *d;
    any.exclusive = 1; /* so that it needs no cap */
    uint64_t cards = place_cards_of(&any, l), fit = place_cards_of(d, l);
    if (ledger_cap_mode(l, d) != VRAM_CAP_REQUIRE || is_left(d, cards, fit))
        return true;
    const struct card *c = ledger_card(l, __builtin_ctzll(cards & ~fit));
    if (is_about_one(d, cards)) {
        SAY(why, "gpu %d cannot enforce a job's VRAM", c->info.index);
    } else {
        say_none_of(d, named, why);
        SAY(why, " can enforce a job's VRAM");
    }
    if (ledger_can_cap(l, c) && ledger_lacks_size(c, d)) {
        SAY(why, ": the size of its memory is not known, so a share of it is not; use --vram");
        return false;
    }
    if (c->info.cap != GPU_CAP_NONE || !c->info.cap_why[0])
        SAY(why, ": the settings have vram_cap: off");
    else
        SAY(why, ": %s", c->info.cap_why);
    if (d->vram_cap == VRAM_CAP_REQUIRE)
        SAY(why, "; --vram-cap auto starts it without");
    else
        SAY(why,
            "; the settings have vram_cap: require, so only jobs that share no GPU can run");
    return false;
}

static void
say_kind(const struct demand *d, struct buf *why)
{
    char size[24];
    if (d->gpu_type[0])
        SAY(why, " called '%s'", d->gpu_type);
    if (d->min_vram_mib > 0)
        SAY(why, " with %s", format_mib(d->min_vram_mib, size));
    if (d->min_cc > 0)
        SAY(why, " of compute capability %.1f or more", d->min_cc / 10.0);
    if (d->devices)
        SAY(why, " among the requested devices");
}

static bool
has_several_vendors(const struct ledger *l)
{
    for (int i = 1; i < ledger_n_cards(l); i++)
        if (ledger_card(l, i)->info.vendor != ledger_card(l, 0)->info.vendor)
            return true;
    return false;
}

static bool
count_fits(const struct demand *d, const struct ledger *l, int want, int usable,
           struct buf *why)
{
    if (want <= usable)
        return true;
    SAY(why, "needs %d GPU%s, but ", want, want == 1 ? "" : "s");
    if (usable == 0 && d->devices && __builtin_ctzll(d->devices) >= ledger_n_cards(l)) {
        say_gpus(d->devices, why);
        SAY(why, " %s not exist here; ", d->devices & (d->devices - 1) ? "do" : "does");
        say_range(ledger_n_cards(l), why);
    } else if (usable == 0 && d->devices) {
        SAY(why, "none of the requested devices is usable");
    } else if (usable == 0) {
        SAY(why, "this machine has no usable GPU; gpus=0 requests none");
    } else {
        SAY(why, "only %d%s", usable, has_several_vendors(l) ? " of one vendor" : "");
        say_kind(d, why);
        SAY(why, " %s usable; request at most %d", usable == 1 ? "is" : "are", usable);
    }
    return false;
}

static uint64_t
instances_of(const struct ledger *l, uint64_t cards)
{
    uint64_t found = 0;
    for (; cards; cards &= cards - 1)
        if (ledger_card(l, __builtin_ctzll(cards))->info.mig_gpu[0])
            found |= cards & -cards;
    return found;
}

/* Several GPUs are wanted: whether enough GPUs are not MIG instances. */
static bool
is_enough_undivided(const struct demand *d, const struct ledger *l, int want, struct buf *why)
{
    struct demand one = *d;
    one.gpus = 1;
    int usable = __builtin_popcountll(place_cards_of(d, l));
    if (want < 2 || d->n_ids || usable >= want || !instances_of(l, place_cards_of(&one, l)))
        return true;
    SAY(why,
        "needs %d GPUs, but only %d %s no MIG instance, and a CUDA program can use only one "
        "MIG instance; request ",
        want, usable, usable == 1 ? "is" : "are");
    if (usable > 1)
        SAY(why, "at most %d", usable);
    else
        SAY(why, "one");
    return false;
}

static int
compare_descending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* A share without VRAM scales with the card, so only its margin may not fit. */
static bool
part_fits(const struct demand *d, int64_t total, int64_t margin_mib, struct buf *why)
{
    char margin[24], has[24];
    if (total == INT64_MAX || total >= demand_vram_mib(d, total) + margin_mib)
        return true;
    SAY(why, "needs %s free beside its share of a GPU, but the largest has %s",
        format_mib(margin_mib, margin), format_mib(total, has));
    int64_t most = total - demand_vram_mib(d, total);
    say_at_most("a margin of ", most, why);
    return false;
}

/* The want'th largest of the cards must suffice. */
static bool
memory_fits(const struct placing *p, uint64_t cards, struct buf *why)
{
    char need[24], margin[24], has[24];
    const struct demand *d = p->d;
    int64_t sizes[GPU_MAX], margin_mib = p->margin_mib;
    int want = p->want;
    int n = 0;
    for (; cards; cards &= cards - 1)
        sizes[n++] = place_card_size(p->l, __builtin_ctzll(cards));
    qsort(sizes, (size_t)n, sizeof *sizes, compare_descending);
    int64_t total = sizes[want - 1];
    if (p->whole || (d->vram_mib > 0 && total >= d->vram_mib + margin_mib))
        return true;
    if (d->vram_mib == 0)
        return part_fits(d, total, margin_mib, why);
    SAY(why, "needs %s + %s margin on ", format_mib(d->vram_mib, need),
        format_mib(margin_mib, margin));
    if (want == 1)
        SAY(why, "one GPU, but the largest has %s", format_mib(total, has));
    else
        SAY(why, "each of %d GPUs, but the %d largest have %s or less", want, want,
            format_mib(total, has));
    if (total > margin_mib)
        say_at_most("", total - margin_mib, why);
    return false;
}

static bool
host_fits(const struct demand *d, const struct ledger *l, struct buf *why)
{
    char need[24], has[24];
    if (ledger_cpus(l) > 0 && demand_cpus(d) > ledger_cpus(l)) {
        SAY(why, "needs %d cores, but this machine has %d", demand_cpus(d), ledger_cpus(l));
        return false;
    }
    if (ledger_mem_mib(l) > 0 && d->mem_mib > ledger_mem_mib(l)) {
        SAY(why, "needs %s of host memory, but this machine has %s",
            format_mib(d->mem_mib, need), format_mib(ledger_mem_mib(l), has));
        return false;
    }
    return true;
}

bool
place_feasible(const struct demand *d, const struct ledger *l, struct buf *why)
{
    int want = demand_n_gpus(d);
    if (d->engine == ENGINE_SLURM)
        return true; /* sbatch checks it */
    if (!share_makes_sense(d, why) || !host_fits(d, l, why))
        return false;
    if (want <= 0 || !ledger_is_known(l))
        return true;
    if (!ids_exist(d, l, why))
        return false;
    if (!is_enough_undivided(d, l, want, why))
        return false;
    uint64_t named = named_cards(d, l), cards = place_cards_of(d, l);
    if (!type_exists(d, l, named, why) || !cc_exists(d, l, named, why) ||
        !size_exists(d, l, named, why) || !cap_exists(d, l, named, why))
        return false;
    struct placing p;
    place_begin(&p, d, l);
    return count_fits(d, l, want, __builtin_popcountll(cards), why) &&
           memory_fits(&p, cards, why);
}
