/* The state of each GPU, as set by administrators and observed on the machine: see
 * card_health.h. Three things can keep work off a GPU: an administrator (paused), its absence
 * (lost), a fault (sick). A fault is cleared automatically only after a check: CLEAN_SAMPLES
 * consecutive samples in which the GPU is present and reports no new error and no memory that
 * waits for a reset; if the fault needs a reset, one must also have been seen (the GPU
 * disappeared and came back, the driver was reloaded, the machine was rebooted). For a GPU
 * that was only absent the state of its memory is ignored: what does not keep work off a
 * present GPU must not keep it off this one. After RETURNS_MAX such returns within a day, a
 * GPU stays sick until a user resumes it. card_health_record.c stores the records. */
#include "daemon/gpu/card_health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "daemon/common/instance.h"
#include "daemon/common/turn_due.h"
#include "daemon/gpu/card_health_record.h"
#include "daemon/gpu/card_locks.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/samples.h"

#define CLEAN_SAMPLES 3
#define UNREAD_MAX    5 /* consecutive unreadable samples after which a GPU is lost */

static struct record *
record_of(struct cards *cards, int card)
{
    return &cards->health->records[card];
}

void
record_changed(struct cards *cards, int card)
{
    record_of(cards, card)->dirty = true;
    turn_touch(cards->inst);
}

struct health *
health_new(void)
{
    return xcalloc(1, sizeof(struct health));
}

void
health_free(struct health *h)
{
    if (!h)
        return;
    while (h->blames) {
        struct blame *next = h->blames->next;
        free(h->blames);
        h->blames = next;
    }
    free(h);
}

/* Passes the state to the ledger: absence takes precedence over faults, faults over the
 * rest. */
void
record_apply(struct cards *cards, int card)
{
    const struct record *r = record_of(cards, card);
    int64_t now = clock_boot_us();
    if (r->missing || r->fault == FAULT_AWAY)
        ledger_set_health(cards->inst->ledger, card, GPU_LOST, now);
    else if (r->fault != FAULT_NONE)
        ledger_set_sick(cards->inst->ledger, card, r->xid, record_words(r), now);
    else if (r->locked_out)
        ledger_set_sick(cards->inst->ledger, card, 0, r->lock_text, now);
    else if (cards->are_unknown || r->n_unread > 0)
        ledger_set_health(cards->inst->ledger, card, GPU_UNKNOWN, now);
    else
        ledger_set_health(cards->inst->ledger, card, GPU_UP, now);
}

/* --- set by an administrator --- */

static bool
is_empty(const struct instance *inst, int card)
{
    return ledger_card(inst->ledger, card)->n_holds == 0;
}

/* Reports the GPU's current state: one that came back may still be paused. */
static void
say_state(const struct cards *cards, int card, const char *text, const char *by)
{
    enum gpu_state now = card_state(ledger_card(cards->inst->ledger, card));
    sample_card_event(cards->inst, card, gpu_state_name(now), text, by);
}

static void
set_admin(struct cards *cards, int card, enum gpu_state s, const char *by, const char *text)
{
    struct record *r = record_of(cards, card);
    ledger_set_admin(cards->inst->ledger, card, s, clock_boot_us());
    r->admin = s;
    sample_card_event(cards->inst, card, gpu_state_name(s), text, by);
    record_changed(cards, card);
}

void
health_pause(struct cards *cards, int card, bool drain, const char *by, const char *reason)
{
    struct record *r = record_of(cards, card);
    /* A GPU that drains keeps draining, because a user may be waiting for it to be empty. */
    bool drains = (drain || r->admin == GPU_DRAINING) && !is_empty(cards->inst, card);
    enum gpu_state want = drains ? GPU_DRAINING : GPU_PAUSED;
    /* A repeated pause without a reason keeps the first user and reason. */
    if (r->admin == GPU_UP || reason[0]) {
        snprintf(r->by, sizeof r->by, "%s", by);
        snprintf(r->reason, sizeof r->reason, "%s", reason);
        r->admin_us = clock_wall_us();
    } else if (r->admin == want || r->admin == GPU_DRAINING) {
        return;
    }
    set_admin(cards, card, want, r->by, r->reason);
}

static int
take_lock(struct cards *cards, int card, struct err *e)
{
    struct record *r = record_of(cards, card);
    if (gpulock_take(cards, ledger_card(cards->inst->ledger, card)->info.uuid, e) < 0) {
        snprintf(r->lock_text, sizeof r->lock_text, "%.*s", HEALTH_TEXT_MAX - 1, e->text);
        r->locked_out = true;
        return -1;
    }
    r->locked_out = false;
    return 0;
}

int
health_resume(struct cards *cards, int card, const char *by, struct err *e)
{
    struct record *r = record_of(cards, card);
    bool was_paused = r->admin != GPU_UP, was_sick = r->fault != FAULT_NONE;
    if (r->locked_out && take_lock(cards, card, e) < 0)
        return -1;
    record_apply(cards, card);
    if (was_paused) {
        r->by[0] = r->reason[0] = '\0';
        r->admin_us = 0;
        set_admin(cards, card, GPU_UP, by, was_sick ? "" : "resumed");
    }
    if (was_sick && !r->missing) {
        r->trusted_worn = r->memory == HEALTH_MEMORY_FAILED;
        record_clear_fault(r);
        memset(r->returns_us, 0, sizeof r->returns_us);
        record_apply(cards, card);
        say_state(cards, card, "resumed: its fault is forgotten", by);
    }
    r->note[0] = '\0';
    record_changed(cards, card);
    if (!r->missing)
        return 0;
    return err_set(e, ERR_FAILED, "gpu %d is lost: the driver does not list it%s", card,
                   was_paused ? ". It is no longer paused" : "");
}

/* --- faults --- */

void
record_set_fault_text(struct record *r, const char *text)
{
    r->fault_us = r->last_us = clock_wall_us();
    snprintf(r->text, sizeof r->text, "%s", text);
    snprintf(r->last_text, sizeof r->last_text, "%s", text);
}

static void
set_lost(struct cards *cards, int card, const char *text)
{
    struct record *r = record_of(cards, card);
    r->missing = true;
    r->clean = 0;
    if (r->fault != FAULT_DEVICE) {
        r->fault = FAULT_AWAY;
        record_set_fault_text(r, text);
    }
    record_apply(cards, card);
    sample_card_event(cards->inst, card, "lost", r->text, NULL);
    record_changed(cards, card);
}

void
health_missing(struct cards *cards, int card)
{
    struct record *r = record_of(cards, card);
    if (r->is_silent) {
        health_unreadable(cards, card);
        return;
    }
    r->n_unread = 0;
    if (!r->removed_us)
        r->was_absent = true;
    if (!r->missing)
        set_lost(cards, card,
                 "missing from the driver's list of GPUs; it may have fallen off the bus");
}

void
health_unreadable(struct cards *cards, int card)
{
    struct record *r = record_of(cards, card);
    r->clean = 0;
    if (r->missing)
        return;
    r->n_unread++;
    if (r->n_unread == UNREAD_MAX) {
        char text[HEALTH_TEXT_MAX];
        snprintf(text, sizeof text,
                 "the driver could not read it %d times in a row; it may be stuck", UNREAD_MAX);
        set_lost(cards, card, text);
    } else if (r->n_unread == 1) {
        record_apply(cards, card);
        say_state(cards, card, "the driver could not read it", NULL);
        turn_touch(cards->inst);
    }
}

bool
health_fault(struct cards *cards, int card, int32_t xid, bool needs_reboot, const char *text)
{
    struct record *r = record_of(cards, card);
    bool news = r->fault != FAULT_DEVICE || r->xid != xid;
    /* The first of two errors is the cause, unless the second is worse. */
    if (r->fault != FAULT_DEVICE || (needs_reboot && !r->needs_reboot)) {
        r->fault = FAULT_DEVICE;
        r->xid = xid;
        r->needs_reboot = needs_reboot;
        record_set_fault_text(r, text);
    }
    r->was_reset = false;
    r->clean = 0;
    record_apply(cards, card);
    if (news)
        sample_card_event(cards->inst, card, "sick", text, NULL);
    record_changed(cards, card);
    return news;
}

void
health_note(struct cards *cards, int card, const char *text)
{
    struct record *r = record_of(cards, card);
    if (strcmp(r->note, text) == 0)
        return;
    snprintf(r->note, sizeof r->note, "%s", text);
    say_state(cards, card, text, NULL);
    record_changed(cards, card);
}

void
health_driver_loaded(struct cards *cards)
{
    log_info("event=driver-loaded every card was reset");
    for (int i = 0; i < ledger_n_cards(cards->inst->ledger); i++)
        record_of(cards, i)->was_reset = true;
}

static const char was_away[] = "was missing from the driver's list of GPUs";
static const char was_unreadable[] = "could not be read by the driver";

static bool
may_return(const struct record *r)
{
    if (r->fault == FAULT_AWAY)
        return true;
    return r->was_reset && !r->needs_reboot;
}

/* The GPU has passed its check. */
static void
give_back(struct cards *cards, int card)
{
    struct record *r = record_of(cards, card);
    int64_t now = clock_wall_us();
    if (record_returned_often(r, now)) {
        if (!r->left_to_person) {
            snprintf(r->note, sizeof r->note,
                     "came back %d times within a day; 'berth resume %d' trusts it again",
                     RETURNS_MAX, card);
            sample_card_event(cards->inst, card, "sick", r->note, NULL);
            if (r->fault == FAULT_AWAY)
                snprintf(r->text, sizeof r->text, "%s and is back", was_away);
        }
        r->left_to_person = true;
        return;
    }
    record_add_return(r, now);
    record_clear_fault(r);
    record_apply(cards, card);
    say_state(cards, card, "it is back and has passed its check", NULL);
    record_changed(cards, card);
}

static void
take_memory(struct cards *cards, int card, enum health_memory memory)
{
    static const char waits[] = "bad memory will be retired at the next reset";
    static const char worn[] = "bad memory could not be retired: replace the GPU";
    struct record *r = record_of(cards, card);
    if (memory != HEALTH_MEMORY_UNKNOWN)
        r->memory = memory;
    if (memory == HEALTH_MEMORY_FAILED && r->fault != FAULT_DEVICE && !r->trusted_worn)
        health_fault(cards, card, 0, true, worn);
    else if (memory == HEALTH_MEMORY_PENDING)
        health_note(cards, card, waits);
    else if (memory == HEALTH_MEMORY_FINE && strcmp(r->note, waits) == 0)
        r->note[0] = '\0';
}

static void
begin_check(struct cards *cards, int card)
{
    struct record *r = record_of(cards, card);
    r->missing = false;
    r->was_reset |= r->was_absent;
    if (r->fault == FAULT_AWAY)
        snprintf(r->text, sizeof r->text, "%s; it answers again and is being checked",
                 r->n_unread > 0 ? was_unreadable : was_away);
    r->was_absent = false;
    r->n_unread = 0;
    record_apply(cards, card);
    log_info("event=gpu-seen gpu=%d it answers again and is being checked", card);
    record_changed(cards, card);
}

/* Worn-out memory that no user has accepted is a fault of its own. */
static bool
is_memory_well(const struct record *r)
{
    return r->fault == FAULT_AWAY || r->memory <= HEALTH_MEMORY_FINE;
}

void
health_seen(struct cards *cards, int card, enum health_memory memory)
{
    struct record *r = record_of(cards, card);
    struct err e = {0};
    if (r->missing)
        begin_check(cards, card);
    if (r->n_unread > 0) {
        r->n_unread = 0;
        record_apply(cards, card);
        say_state(cards, card, "the driver can read it again", NULL);
        turn_touch(cards->inst);
    }
    if (r->locked_out && take_lock(cards, card, &e) == 0) {
        record_apply(cards, card);
        sample_card_event(cards->inst, card,
                          gpu_state_name(card_state(ledger_card(cards->inst->ledger, card))),
                          "the other daemon no longer uses it", NULL);
    }
    take_memory(cards, card, memory);
    if (r->fault == FAULT_NONE || !may_return(r))
        return;
    r->clean = is_memory_well(r) ? r->clean + 1 : 0;
    if (r->clean >= CLEAN_SAMPLES)
        give_back(cards, card);
}

/* --- consequences --- */

void
health_card_added(struct cards *cards, int card)
{
    struct record *r = record_of(cards, card);
    struct err e = {0};
    record_load(cards->inst, card, r);
    health_inherit(cards, card);
    if (r->admin != GPU_UP)
        ledger_set_admin(cards->inst->ledger, card, r->admin, clock_boot_us());
    if (take_lock(cards, card, &e) < 0) {
        log_error("event=gpu-taken gpu=%d %s", card, e.text);
        if (!cards->lock_conflict)
            cards->lock_conflict = xstrdup(e.text);
    }
    if (r->fault != FAULT_NONE || r->locked_out)
        record_apply(cards, card);
}

bool
health_all_locked_out(struct cards *cards)
{
    for (int i = 0; i < ledger_n_cards(cards->inst->ledger); i++)
        if (!record_of(cards, i)->locked_out)
            return false;
    return true;
}

void
health_settle(struct cards *cards)
{
    for (int i = 0; i < ledger_n_cards(cards->inst->ledger); i++) {
        const struct record *r = record_of(cards, i);
        if (r->admin == GPU_DRAINING && is_empty(cards->inst, i) && cards->inst->ready)
            set_admin(cards, i, GPU_PAUSED, r->by, "drained: no job is left on it");
        health_let_go(cards, i);
    }
}

bool
health_is_checking(const struct cards *cards)
{
    for (int i = 0; i < ledger_n_cards(cards->inst->ledger); i++) {
        const struct record *r = &cards->health->records[i];
        if (r->fault != FAULT_NONE && !r->missing && may_return(r) && !r->left_to_person)
            return true;
    }
    return false;
}
