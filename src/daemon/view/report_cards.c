/* The use of GPUs over time. Attempts arrive in descending order of end times, running ones
 * first; so whatever a new attempt overlaps with earlier ones lies after their earliest start,
 * and one number per GPU suffices to sum the time in which any job held the GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/ledger/ledger.h"
#include "core/queue/queue.h"
#include "daemon/common/instance.h"
#include "daemon/view/report_data.h"

#define CARDS_MAX 128 /* including those that are gone */

static struct report_card *
card_add(struct report *r, const char *uuid, int32_t index, int64_t total_mib)
{
    if (r->n_cards == CARDS_MAX)
        return NULL;
    r->cards = xrealloc(r->cards, (size_t)(r->n_cards + 1) * sizeof *r->cards);
    struct report_card *card = &r->cards[r->n_cards++];
    *card = (struct report_card){.index = index, .total_mib = total_mib, .low_us = r->until_us};
    (void)snprintf(card->uuid, sizeof card->uuid, "%s", uuid);
    card->bins = xcalloc((unsigned long)r->bins, sizeof *card->bins);
    return card;
}

static struct report_card *
card_of(struct report *r, const char *uuid, int32_t index)
{
    for (int i = 0; i < r->n_cards; i++)
        if (strcmp(r->cards[i].uuid, uuid) == 0)
            return &r->cards[i];
    struct report_card *card = card_add(r, uuid, index, 0);
    if (card)
        card->gone = true;
    return card;
}

/* Distributes from..to over the bins: adds each bin's share in us, times weight, to the field
 * at this offset. */
static void
spread_over(const struct report *r, struct report_card *card, int64_t from_us, int64_t to_us,
            size_t field, double weight)
{
    int64_t width = report_bin_us(r);
    for (int64_t i = (from_us - r->from_us) / width; i < r->bins && from_us < to_us; i++) {
        int64_t end = r->from_us + (i + 1) * width;
        int64_t part = (to_us < end ? to_us : end) - from_us;
        *(double *)((char *)&card->bins[i] + field) += (double)part * weight;
        from_us += part;
    }
}

static int64_t
asked_mib(const struct report_card *card, const struct store_used *x)
{
    if (x->attempt->vram_mib > 0)
        return x->attempt->vram_mib;
    if (x->share_permille > 0)
        return card->total_mib * x->share_permille / 1000;
    return card->total_mib;
}

static void
add_on_card(struct report *r, const struct store_used *x, int slot, int64_t from_us,
            int64_t to_us)
{
    struct report_card *card = card_of(r, x->uuids[slot], x->attempt->gpus[slot]);
    if (!card)
        return;
    int64_t free_until = card->low_us < to_us ? card->low_us : to_us;
    int32_t peak = x->attempt->peak_mib[slot];
    card->runs++;
    if (from_us < free_until) {
        card->busy_us += free_until - from_us;
        spread_over(r, card, from_us, free_until, offsetof(struct report_bin, busy_us), 1);
    }
    card->low_us = from_us < card->low_us ? from_us : card->low_us;
    spread_over(r, card, from_us, to_us, offsetof(struct report_bin, asked),
                (double)asked_mib(card, x));
    if (peak > 0)
        spread_over(r, card, from_us, to_us, offsetof(struct report_bin, used), peak);
}

void
report_add_used(struct report *r, const struct store_used *x)
{
    int64_t from_us = x->attempt->started_us, to_us = x->attempt->ending.ended_us;
    from_us = from_us > r->from_us ? from_us : r->from_us;
    to_us = to_us < r->until_us ? to_us : r->until_us;
    if (!x->attempt->started_us || from_us >= to_us || !report_counts(r, x->uid, x->user))
        return;
    for (int i = 0; i < x->attempt->n_gpus; i++)
        add_on_card(r, x, i, from_us, to_us);
}

static void
add_running(struct report *r, const struct job *job, int64_t now_us)
{
    const char *uuids[GPU_MAX];
    if (!job->run || job->run->ending.outcome != OUTCOME_NONE)
        return; /* its end is, or soon will be, in the store */
    struct attempt now = *job->run;
    now.ending.ended_us = now_us;
    for (int i = 0; i < now.n_gpus; i++)
        uuids[i] = ledger_card(r->inst->ledger, now.gpus[i])->info.uuid;
    const struct store_used x = {.job = job->id,
                                 .uid = job->uid,
                                 .user = job->user,
                                 .share_permille = job->req.demand.share_permille,
                                 .attempt = &now,
                                 .uuids = uuids};
    report_add_used(r, &x);
}

void
report_cards_begin(struct report *r)
{
    const struct ledger *l = r->inst->ledger;
    for (int i = 0; i < ledger_n_cards(l); i++) {
        const struct gpu_info *info = &ledger_card(l, i)->info;
        if (!ledger_card(l, i)->gone)
            card_add(r, info->uuid, info->index, info->total_mib);
    }
    for (struct job *job = queue_active(r->inst->queue); job; job = queue_active_next(job))
        add_running(r, job, r->until_us);
}
