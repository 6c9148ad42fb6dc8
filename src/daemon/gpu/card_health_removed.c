/* GPUs that are no longer in the machine because an administrator changed their MIG division
 * or replaced them. A job there continues as on a lost GPU. As an administrator removes all
 * instances of a GPU before creating others, a removed one keeps its number for a while
 * (mig_wait_ms), during which jobs that fit nowhere else wait; then it is gone, and the number
 * may be reused. Called by card_list.c when the probe describes the GPUs, and before each
 * commit. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "core/queue/queue.h"
#include "daemon/common/instance.h"
#include "daemon/common/turn_due.h"
#include "daemon/gpu/card_health_record.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/samples.h"

#define BUCKETS_ALL SIZE_MAX

void
health_removed(struct cards *cards, int card, const char *text)
{
    struct record *r = &cards->health->records[card];
    const struct card *c = ledger_card(cards->inst->ledger, card);
    if (r->removed_us || c->gone)
        return;
    r->removed_us = clock_boot_us();
    r->missing = true;
    r->clean = 0;
    if (r->fault != FAULT_DEVICE) {
        r->fault = FAULT_AWAY;
        record_set_fault_text(r, text);
    }
    record_apply(cards, card);
    sample_card_event(cards->inst, card, "lost", text, NULL);
    record_changed(cards, card);
}

/* Its absence was no fault; a fault that it had before remains. */
void
health_listed(struct cards *cards, int card)
{
    struct record *r = &cards->health->records[card];
    r->is_silent = false;
    if (!r->removed_us)
        return;
    r->removed_us = 0;
    r->missing = false;
    if (r->fault == FAULT_AWAY)
        record_clear_fault(r);
    record_apply(cards, card);
    sample_card_event(cards->inst, card,
                      gpu_state_name(card_state(ledger_card(cards->inst->ledger, card))),
                      "it is there again", NULL);
    record_changed(cards, card);
}

static bool
may_let_go(const struct cards *cards, int card)
{
    const struct record *r = &cards->health->records[card];
    const struct card *c = ledger_card(cards->inst->ledger, card);
    return r->removed_us && c->n_holds == 0 && !c->gone &&
           clock_boot_us() - r->removed_us >= cards->inst->config.mig_wait_ms * 1000;
}

bool
health_may_let_go(const struct cards *cards)
{
    for (int i = 0; i < ledger_n_cards(cards->inst->ledger); i++) {
        if (may_let_go(cards, i))
            return true;
    }
    return false;
}

void
health_let_go(struct cards *cards, int card)
{
    const struct card *c = ledger_card(cards->inst->ledger, card);
    if (!may_let_go(cards, card))
        return;
    ledger_set_gone(cards->inst->ledger, card);
    cards->n_saved = -1;
    log_info("event=gpu-gone gpu=%d uuid=%s", card, c->info.uuid);
    turn_touch(cards->inst);
}

static const char *
gpu_of(const struct card *c)
{
    return c->info.mig_gpu[0] ? c->info.mig_gpu : c->info.uuid;
}

void
health_inherit(struct cards *cards, int card)
{
    struct record *r = &cards->health->records[card];
    for (int i = 0; i < ledger_n_cards(cards->inst->ledger) && r->fault == FAULT_NONE; i++) {
        const struct record *other = &cards->health->records[i];
        const struct card *c = ledger_card(cards->inst->ledger, i);
        if (i == card || c->gone || other->fault != FAULT_DEVICE ||
            strcmp(gpu_of(c), gpu_of(ledger_card(cards->inst->ledger, card))) != 0)
            continue;
        r->fault = FAULT_DEVICE;
        r->xid = other->xid;
        r->needs_reboot = other->needs_reboot;
        record_set_fault_text(r, other->text);
        record_changed(cards, card);
    }
}

/* --- numbers --- */

/* Collects numbers that must not be reused: those that a job names, or was on when it last
 * ran. */
static void
add_numbers(struct job *job, void *arg)
{
    uint64_t *used = arg;
    for (int i = 0; i < job->req.demand.n_ids; i++)
        *used |= UINT64_C(1) << job->req.demand.ids[i];
    for (int i = 0; job->run && i < job->run->n_gpus; i++)
        *used |= UINT64_C(1) << job->run->gpus[i];
}

int
health_free_number(const struct cards *cards)
{
    struct queue_at at = {0};
    uint64_t used = 0;
    int n = ledger_n_cards(cards->inst->ledger), removed = -1;
    (void)queue_walk(cards->inst->queue, &at, BUCKETS_ALL, add_numbers, &used);
    for (int i = 0; i < n; i++) {
        const struct card *c = ledger_card(cards->inst->ledger, i);
        if (used >> i & 1 || c->n_holds > 0)
            continue;
        if (c->gone)
            return i;
        if (removed < 0 && cards->health->records[i].removed_us)
            removed = i;
    }
    return n == GPU_MAX ? removed : -1;
}
