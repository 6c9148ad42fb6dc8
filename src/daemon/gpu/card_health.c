/* The state of each card, as people and the machine have it: see card_health.h. Three things
 * may keep work off a card: a person (paused), its absence (lost), a fault (sick). A fault goes
 * away by itself only after a check: CLEAN_SAMPLES in a row in which the card is there,
 * reports no new error and no memory that waits for a reset; and where the fault needs a
 * reset, one must have been seen (the card went and came back, the driver was loaded, the
 * machine was restarted). A card that needs more than RETURNS_MAX such returns in a day is
 * left to a person. What is kept, and how, is in card_health_record.c. */
#include "daemon/gpu/card_health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "daemon/common/daemon.h"
#include "daemon/common/turn_due.h"
#include "daemon/gpu/card_health_record.h"
#include "daemon/gpu/card_locks.h"
#include "daemon/gpu/samples.h"

#define CLEAN_SAMPLES 3

static struct record *
record_of(struct daemon *d, int card)
{
    return &d->health->records[card];
}

void
record_changed(struct daemon *d, int card)
{
    record_of(d, card)->dirty = true;
    turn_touch(&d->inst);
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

/* The ledger learns what counts: absence before faults, faults before health. */
void
record_apply(struct daemon *d, int card)
{
    const struct record *r = record_of(d, card);
    int64_t now = clock_boot_us();
    if (r->missing || r->fault == FAULT_AWAY)
        ledger_set_health(d->inst.ledger, card, GPU_LOST, now);
    else if (r->fault != FAULT_NONE)
        ledger_set_sick(d->inst.ledger, card, r->xid, record_words(r), now);
    else if (r->locked_out)
        ledger_set_sick(d->inst.ledger, card, 0, r->lock_text, now);
    else if (d->gpus_are_unknown)
        ledger_set_health(d->inst.ledger, card, GPU_UNKNOWN, now);
    else
        ledger_set_health(d->inst.ledger, card, GPU_UP, now);
}

/* --- a person's word --- */

static bool
is_empty(const struct daemon *d, int card)
{
    return ledger_card(d->inst.ledger, card)->n_holds == 0;
}

static void
set_admin(struct daemon *d, int card, enum gpu_state s, const char *by, const char *text)
{
    struct record *r = record_of(d, card);
    ledger_set_admin(d->inst.ledger, card, s, clock_boot_us());
    r->admin = s;
    sample_card_event(d, card, gpu_state_name(s), text, by);
    record_changed(d, card);
}

void
health_pause(struct daemon *d, int card, bool drain, const char *by, const char *reason)
{
    struct record *r = record_of(d, card);
    enum gpu_state want = drain && !is_empty(d, card) ? GPU_DRAINING : GPU_PAUSED;
    /* Said again without a reason, it stays whose it was. */
    if (r->admin == GPU_UP || reason[0]) {
        snprintf(r->by, sizeof r->by, "%s", by);
        snprintf(r->reason, sizeof r->reason, "%s", reason);
        r->admin_us = clock_wall_us();
    } else if (r->admin == want || r->admin == GPU_DRAINING) {
        return;
    }
    set_admin(d, card, want, r->by, r->reason);
}

static int
take_lock(struct daemon *d, int card, struct err *e)
{
    struct record *r = record_of(d, card);
    if (gpulock_take(d, ledger_card(d->inst.ledger, card)->info.uuid, e) < 0) {
        snprintf(r->lock_text, sizeof r->lock_text, "%.*s", HEALTH_TEXT_MAX - 1, e->text);
        r->locked_out = true;
        return -1;
    }
    r->locked_out = false;
    return 0;
}

int
health_resume(struct daemon *d, int card, const char *by, struct err *e)
{
    struct record *r = record_of(d, card);
    bool was_paused = r->admin != GPU_UP, was_sick = r->fault != FAULT_NONE;
    if (r->locked_out && take_lock(d, card, e) < 0)
        return -1;
    record_apply(d, card);
    if (was_paused) {
        r->by[0] = r->reason[0] = '\0';
        r->admin_us = 0;
        set_admin(d, card, GPU_UP, by, was_sick ? "" : "resumed");
    }
    if (was_sick && !r->missing) {
        r->trusted_worn = r->memory == HEALTH_MEMORY_FAILED;
        record_clear_fault(r);
        memset(r->returns_us, 0, sizeof r->returns_us);
        record_apply(d, card);
        sample_card_event(d, card, "up", "resumed: its fault is forgotten", by);
    }
    r->note[0] = '\0';
    record_changed(d, card);
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

void
health_missing(struct daemon *d, int card)
{
    struct record *r = record_of(d, card);
    if (r->missing)
        return;
    r->missing = true;
    r->clean = 0;
    if (r->fault == FAULT_NONE) {
        r->fault = FAULT_AWAY;
        record_set_fault_text(
            r, "missing from the driver's list of GPUs; it may have fallen off the bus");
    }
    record_apply(d, card);
    sample_card_event(d, card, "lost", r->text, NULL);
    record_changed(d, card);
}

bool
health_fault(struct daemon *d, int card, int32_t xid, bool needs_reboot, const char *text)
{
    struct record *r = record_of(d, card);
    bool news = r->fault != FAULT_DEVICE || r->xid != xid;
    /* Of two errors the first is the cause, unless the second is worse. */
    if (r->fault != FAULT_DEVICE || (needs_reboot && !r->needs_reboot)) {
        r->fault = FAULT_DEVICE;
        r->xid = xid;
        r->needs_reboot = needs_reboot;
        record_set_fault_text(r, text);
    }
    r->was_reset = false;
    r->clean = 0;
    record_apply(d, card);
    if (news)
        sample_card_event(d, card, "sick", text, NULL);
    record_changed(d, card);
    return news;
}

void
health_note(struct daemon *d, int card, const char *text)
{
    struct record *r = record_of(d, card);
    if (strcmp(r->note, text) == 0)
        return;
    snprintf(r->note, sizeof r->note, "%s", text);
    sample_card_event(d, card, gpu_state_name(card_state(ledger_card(d->inst.ledger, card))),
                      text, NULL);
    record_changed(d, card);
}

void
health_driver_loaded(struct daemon *d)
{
    log_info("event=driver-loaded every card was reset");
    for (int i = 0; i < ledger_n_cards(d->inst.ledger); i++)
        record_of(d, i)->was_reset = true;
}

static bool
may_return(const struct record *r)
{
    if (r->fault == FAULT_AWAY)
        return true;
    return r->was_reset && !r->needs_reboot;
}

/* It has been seen well often enough. */
static void
give_back(struct daemon *d, int card)
{
    struct record *r = record_of(d, card);
    int64_t now = clock_wall_us();
    if (record_returned_often(r, now)) {
        if (!r->left_to_person) {
            snprintf(r->note, sizeof r->note,
                     "came back %d times within a day; 'berth resume %d' trusts it again",
                     RETURNS_MAX, card);
            sample_card_event(d, card, "sick", r->note, NULL);
        }
        r->left_to_person = true;
        return;
    }
    record_add_return(r, now);
    record_clear_fault(r);
    record_apply(d, card);
    sample_card_event(d, card, "up", "it is back and has passed its check", NULL);
    record_changed(d, card);
}

static void
take_memory(struct daemon *d, int card, enum health_memory memory)
{
    static const char waits[] = "bad memory will be retired at the next reset";
    static const char worn[] = "bad memory could not be retired: replace the GPU";
    struct record *r = record_of(d, card);
    if (memory != HEALTH_MEMORY_UNKNOWN)
        r->memory = memory;
    if (memory == HEALTH_MEMORY_FAILED && r->fault != FAULT_DEVICE && !r->trusted_worn)
        health_fault(d, card, 0, true, worn);
    else if (memory == HEALTH_MEMORY_PENDING)
        health_note(d, card, waits);
    else if (memory == HEALTH_MEMORY_FINE && strcmp(r->note, waits) == 0)
        r->note[0] = '\0';
}

void
health_seen(struct daemon *d, int card, enum health_memory memory)
{
    struct record *r = record_of(d, card);
    struct err e = {0};
    if (r->missing) {
        r->missing = false;
        r->was_reset = true;
        record_apply(d, card);
        log_info("event=gpu-seen gpu=%d it answers again and is being checked", card);
        record_changed(d, card);
    }
    if (r->locked_out && take_lock(d, card, &e) == 0) {
        record_apply(d, card);
        sample_card_event(d, card,
                          gpu_state_name(card_state(ledger_card(d->inst.ledger, card))),
                          "the other daemon no longer uses it", NULL);
    }
    take_memory(d, card, memory);
    if (r->fault == FAULT_NONE || !may_return(r))
        return;
    r->clean = r->memory > HEALTH_MEMORY_FINE ? 0 : r->clean + 1;
    if (r->clean >= CLEAN_SAMPLES)
        give_back(d, card);
}

/* --- what follows --- */

void
health_card_added(struct daemon *d, int card)
{
    struct record *r = record_of(d, card);
    struct err e = {0};
    record_load(d, card, r);
    health_inherit(d, card);
    if (r->admin != GPU_UP)
        ledger_set_admin(d->inst.ledger, card, r->admin, clock_boot_us());
    if (take_lock(d, card, &e) < 0) {
        log_error("event=gpu-taken gpu=%d %s", card, e.text);
        if (!d->lock_conflict)
            d->lock_conflict = xstrdup(e.text);
    }
    if (r->fault != FAULT_NONE || r->locked_out)
        record_apply(d, card);
}

bool
health_all_locked_out(struct daemon *d)
{
    for (int i = 0; i < ledger_n_cards(d->inst.ledger); i++)
        if (!record_of(d, i)->locked_out)
            return false;
    return true;
}

void
health_settle(struct daemon *d)
{
    for (int i = 0; i < ledger_n_cards(d->inst.ledger); i++) {
        const struct record *r = record_of(d, i);
        if (r->admin == GPU_DRAINING && is_empty(d, i) && d->inst.ready)
            set_admin(d, i, GPU_PAUSED, r->by, "drained: no job is left on it");
        health_let_go(d, i);
    }
}

bool
health_wants_new_probe(const struct daemon *d)
{
    for (int i = 0; i < ledger_n_cards(d->inst.ledger); i++)
        if (d->health->records[i].missing && !d->health->records[i].removed_us)
            return true;
    return false;
}

bool
health_is_checking(const struct daemon *d)
{
    for (int i = 0; i < ledger_n_cards(d->inst.ledger); i++) {
        const struct record *r = &d->health->records[i];
        if (r->fault != FAULT_NONE && !r->missing && may_return(r) && !r->left_to_person)
            return true;
    }
    return false;
}
