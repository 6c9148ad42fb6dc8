/* Reads one card's sample into the ledger: what our jobs use, which other processes there are,
 * and whether an ended job's memory is free again. Called for every sample of every card.
 *
 * After a sample without a process list, the last list stays in force. Growth since then
 * counts as external use. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/ledger/ledger_priv.h"

#define CAP_AGAIN_US (600 * INT64_C(1000000)) /* after a refused cap */

static int32_t
add_mib(int32_t sum, int32_t mib)
{
    if (mib < 0)
        return sum;
    int64_t total = (int64_t)(sum > 0 ? sum : 0) + mib;
    return total > INT32_MAX ? INT32_MAX : (int32_t)total;
}

static bool
is_same_process(const struct stranger *s, const struct gpu_proc *p)
{
    return s->pid == p->pid && (!s->start || !p->start || s->start == p->start);
}

static struct stranger *
stranger_find(struct card *c, const struct gpu_proc *p)
{
    for (int i = 0; i < c->n_strangers; i++) {
        if (is_same_process(&c->strangers[i], p))
            return &c->strangers[i];
    }
    return NULL;
}

static struct stranger *
stranger_add(struct card *c, const struct gpu_proc *p, int64_t now_us)
{
    c->strangers = xgrow(c->strangers, c->n_strangers, &c->cap_strangers, sizeof *c->strangers);
    struct stranger *s = &c->strangers[c->n_strangers++];
    *s = (struct stranger){.pid = p->pid,
                           .mib = -1,
                           .peak_mib = -1,
                           .start = p->start,
                           .since_us = now_us,
                           .uid = p->uid};
    return s;
}

/* A process may be listed several times (compute and graphics, instances): its parts add
 * up. */
static void
read_stranger(struct card *c, const struct gpu_proc *p, int64_t now_us)
{
    struct stranger *s = stranger_find(c, p);
    if (!s)
        s = stranger_add(c, p, now_us);
    s->mib = s->seen ? add_mib(s->mib, p->mib) : p->mib;
    s->only_draws = p->only_draws && (s->only_draws || !s->seen);
    s->seen = true;
}

static void
settle_strangers(struct card *c)
{
    int kept = 0;
    for (int i = 0; i < c->n_strangers; i++) {
        struct stranger *s = &c->strangers[i];
        if (!s->seen)
            continue;
        if (s->mib > s->peak_mib)
            s->peak_mib = s->mib;
        c->strangers[kept++] = *s;
    }
    c->n_strangers = kept;
}

static void
read_own(struct hold *h, const struct gpu_proc *p)
{
    if (p->mib < 0)
        h->unreported = true;
    else
        h->now_mib = add_mib(h->now_mib, p->mib);
}

static void
read_list(struct card *c, const struct gpu_sample *s, int64_t now_us)
{
    for (int i = 0; i < c->n_holds; i++) {
        c->holds[i].now_mib = -1;
        c->holds[i].unreported = false;
    }
    for (int i = 0; i < c->n_strangers; i++)
        c->strangers[i].seen = false;
    c->listed_mib = 0;
    for (int i = 0; i < s->n_procs; i++) {
        const struct gpu_proc *p = &s->procs[i];
        struct hold *h = p->job ? card_hold(c, p->job) : NULL;
        if (p->mib > 0)
            c->listed_mib += p->mib;
        if (h)
            read_own(h, p);
        else
            read_stranger(c, p, now_us);
    }
    settle_strangers(c);
}

/* A whole group's use is exact, and includes processes that came and went between two lists.
 * If the list shows more (memory not charged to the group), the list counts. */
static void
read_groups(struct card *c, const struct gpu_sample *s)
{
    for (int i = 0; i < s->n_groups; i++) {
        const struct gpu_group *g = &s->groups[i];
        struct hold *h = card_hold(c, g->job);
        if (!h || g->mib < 0)
            continue;
        h->unreported = false;
        if (g->mib > h->now_mib) {
            c->listed_mib += g->mib - (h->now_mib > 0 ? h->now_mib : 0);
            h->now_mib = g->mib;
        }
        if (g->peak_mib > h->peak_mib)
            h->peak_mib = g->peak_mib;
    }
}

static void
settle_holds(struct card *c)
{
    for (int i = 0; i < c->n_holds; i++) {
        struct hold *h = &c->holds[i];
        if (h->now_mib > h->peak_mib)
            h->peak_mib = h->now_mib;
        if (h->now_mib >= 0 && !h->unreported && c->used_mib >= 0)
            h->rest_mib = card_rest(c);
    }
}

static void
report_excess(struct card *c, ledger_on_excess on_excess, void *arg)
{
    for (int i = 0; i < c->n_holds; i++) {
        struct hold *h = &c->holds[i];
        if (h->demand_mib == 0 || h->now_mib <= h->demand_mib) {
            h->over = 0;
            continue;
        }
        bool is_first = !h->exceeded, is_sure = h->over == EXCESS_SURE - 1;
        h->exceeded = true;
        if (h->over < EXCESS_SURE)
            h->over++;
        struct ledger_excess x = {h->job, c->info.index, h->now_mib, h->demand_mib, is_sure};
        if (on_excess && (is_first || is_sure))
            on_excess(arg, &x);
    }
}

/* A counter that decreased was reset, with the driver or the card. */
static void
take_energy(struct card *c, int64_t energy_mj, int64_t now_us)
{
    bool goes_on = c->energy_mj > 0 && energy_mj >= c->energy_mj && now_us > c->sampled_us;
    c->step_mj = goes_on ? energy_mj - c->energy_mj : 0;
    c->step_us = goes_on ? now_us - c->sampled_us : 0;
    c->energy_mj = energy_mj;
}

int64_t
ledger_energy_mj(const struct ledger *l, int card, int64_t from_us, int64_t to_us)
{
    const struct card *c = ledger_card(l, card);
    int64_t began_us = c->sampled_us - c->step_us;
    int64_t first = from_us > began_us ? from_us : began_us;
    int64_t last = to_us < c->sampled_us ? to_us : c->sampled_us;
    if (c->step_mj == 0 || last <= first || c->n_holds == 0)
        return 0;
    return (int64_t)((double)c->step_mj * (double)(last - first) / (double)c->step_us /
                     (double)c->n_holds);
}

void
ledger_sample(struct ledger *l, int card, const struct gpu_sample *s, int64_t now_us,
              ledger_on_excess on_excess, void *arg)
{
    if (card < 0 || card >= l->n_cards)
        err_abort("sample of card %d of %d", card, l->n_cards);
    struct card *c = card_at(l, card);
    if (c->health == GPU_UNKNOWN)
        ledger_set_health(l, card, GPU_UP, now_us);
    if (c->cap_refused[0] && now_us - c->cap_refused_us > CAP_AGAIN_US) {
        c->cap_refused[0] = '\0';
        l->generation++;
    }
    mps_forget_old(l, c, now_us);
    take_energy(c, s->energy_mj, now_us);
    c->sampled_us = now_us;
    c->used_mib = s->used_mib;
    c->util = s->util;
    c->temperature_c = s->temperature_c;
    c->listed = s->n_procs >= 0;
    c->names_nobody = s->n_procs <= 0;
    if (c->listed)
        read_list(c, s, now_us);
    read_groups(c, s);
    if (c->listed || s->n_groups > 0)
        settle_holds(c);
    card_derive(l, c);
    if (c->listed || s->n_groups > 0)
        report_excess(c, on_excess, arg);
}

static bool
is_used_back(const struct ledger *l, const struct card *c, const struct hold *h)
{
    if (c->used_mib < 0)
        return true;
    if (!c->listed)
        return h->used_mib < 0 || c->used_mib <= h->used_mib + l->policy.clear_mib;
    return h->rest_mib < 0 || card_rest(c) <= h->rest_mib + l->policy.clear_mib;
}

bool
ledger_is_clear(const struct ledger *l, int card, uint32_t job, int64_t ended_us)
{
    const struct card *c = ledger_card(l, card);
    const struct hold *h = card_hold(c, job);
    if (!h || c->health == GPU_LOST)
        return true;
    if (c->sampled_us < ended_us)
        return false;
    if (c->listed && (h->now_mib >= 0 || h->unreported))
        return false;
    return is_used_back(l, c, h);
}

bool
ledger_job_is_clear(const struct ledger *l, uint32_t job, int64_t ended_us)
{
    uint8_t gpus[GPU_MAX];
    int n = ledger_cards_of(l, job, gpus);
    for (int i = 0; i < n; i++) {
        if (!ledger_is_clear(l, gpus[i], job, ended_us))
            return false;
    }
    return true;
}
