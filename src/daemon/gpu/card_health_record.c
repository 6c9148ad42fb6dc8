/* The persistent part of card_health.c: stores a GPU's record as a note under its UUID, and
 * shows it to clients. */
#include "daemon/gpu/card_health_record.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/ledger/ledger.h"
#include "core/place/place.h"
#include "daemon/common/instance.h"
#include "daemon/gpu/machine_cards.h"
#include "store/store.h"

#define DAY_US (INT64_C(86400) * 1000000)

const char *
record_words(const struct record *r)
{
    const char *words = r->xid ? strstr(r->text, ": ") : NULL;
    return words ? words + 2 : r->text;
}

void
record_clear_fault(struct record *r)
{
    r->fault = FAULT_NONE;
    r->xid = 0;
    r->fault_us = 0;
    r->clean = 0;
    r->text[0] = r->note[0] = '\0';
    r->needs_reboot = r->was_reset = r->left_to_person = false;
}

bool
record_returned_often(const struct record *r, int64_t now_us)
{
    int64_t oldest = r->returns_us[RETURNS_MAX - 1];
    return oldest > 0 && now_us - oldest < DAY_US;
}

void
record_add_return(struct record *r, int64_t now_us)
{
    memmove(&r->returns_us[1], &r->returns_us[0], (RETURNS_MAX - 1) * sizeof r->returns_us[0]);
    r->returns_us[0] = now_us;
}

static char *
note_key(const struct instance *inst, int card)
{
    return xasprintf("gpu:%s", ledger_card(inst->ledger, card)->info.uuid);
}

static void
read_text(const json_t *o, const char *key, char *out, size_t size)
{
    const char *s = json_string_value(json_object_get(o, key));
    snprintf(out, size, "%s", s ? s : "");
}

static void
read_person(const json_t *o, struct record *r)
{
    const char *name = json_string_value(json_object_get(o, "admin"));
    if (!name || gpu_state_from_name(name, &r->admin) ||
        (r->admin != GPU_PAUSED && r->admin != GPU_DRAINING))
        r->admin = GPU_UP;
    read_text(o, "by", r->by, sizeof r->by);
    read_text(o, "reason", r->reason, sizeof r->reason);
    r->admin_us = json_integer_value(json_object_get(o, "admin_us"));
    r->trusted_worn = json_is_true(json_object_get(o, "trusted_worn"));
}

static void
read_fault(const json_t *o, struct record *r)
{
    r->fault_us = json_integer_value(json_object_get(o, "fault_us"));
    r->fault = r->fault_us ? FAULT_DEVICE : FAULT_NONE;
    r->xid = (int32_t)json_integer_value(json_object_get(o, "xid"));
    r->needs_reboot = json_is_true(json_object_get(o, "needs_reboot"));
    read_text(o, "text", r->text, sizeof r->text);
    r->last_us = r->fault_us;
    read_text(o, "text", r->last_text, sizeof r->last_text);
    read_text(o, "note", r->note, sizeof r->note);
}

void
record_load(struct instance *inst, int card, struct record *r)
{
    auto_free char *key = note_key(inst, card);
    auto_free char *text = store_note_get(inst->store, key);
    json_t *o = text ? json_loads(text, 0, NULL) : NULL;
    const char *boot = json_string_value(json_object_get(o, "boot"));
    size_t i;
    const json_t *v;
    *r = (struct record){.admin = GPU_UP};
    if (o)
        read_person(o, r);
    if (boot && strcmp(boot, clock_boot_id()) == 0)
        read_fault(o, r);
    json_array_foreach(json_object_get(o, "returns_us"), i, v)
    {
        if (i < RETURNS_MAX)
            r->returns_us[i] = json_integer_value(v);
    }
    json_decref(o);
}

/* A fault of a GPU that was only missing is not stored, as the next daemon looks for the GPU
 * again; an error of its own is. */
static void
save_record(struct instance *inst, int card, const struct record *r)
{
    auto_buf struct buf text = BUF_INIT;
    auto_free char *key = note_key(inst, card);
    struct jsonw w;
    struct err e; /* kept in the store; store_commit reports it */
    jsonw_init(&w, &text);
    jsonw_object(&w);
    jsonw_kstr(&w, "admin", gpu_state_name(r->admin));
    jsonw_kstr(&w, "by", r->by);
    jsonw_kstr(&w, "reason", r->reason);
    jsonw_kint(&w, "admin_us", r->admin_us);
    jsonw_kbool(&w, "trusted_worn", r->trusted_worn);
    jsonw_kstr(&w, "boot", clock_boot_id());
    jsonw_kint(&w, "fault_us", r->fault == FAULT_DEVICE ? r->fault_us : 0);
    jsonw_kint(&w, "xid", r->xid);
    jsonw_kbool(&w, "needs_reboot", r->needs_reboot);
    jsonw_kstr(&w, "text", r->text);
    jsonw_kstr(&w, "note", r->note);
    jsonw_karray(&w, "returns_us");
    for (int i = 0; i < RETURNS_MAX; i++)
        jsonw_int(&w, r->returns_us[i]);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    store_note_put(inst->store, key, buf_str(&text), &e);
}

int64_t
health_log_position(struct cards *cards)
{
    struct health *h = cards->health;
    if (h->log_known)
        return h->log_seq;
    auto_free char *text = store_note_get(cards->inst->store, "kernel-log");
    json_t *o = text ? json_loads(text, 0, NULL) : NULL;
    const char *boot = json_string_value(json_object_get(o, "boot"));
    bool same = boot && strcmp(boot, clock_boot_id()) == 0;
    h->log_known = true;
    h->log_seq = same ? json_integer_value(json_object_get(o, "seq")) : -1;
    json_decref(o);
    return h->log_seq;
}

void
health_set_log_position(struct cards *cards, int64_t seq)
{
    struct health *h = cards->health;
    if (seq == h->log_seq)
        return;
    h->log_seq = seq;
    h->log_known = h->log_dirty = true;
}

static void
save_log_position(struct cards *cards)
{
    struct err e; /* kept in the store; store_commit reports it */
    auto_free char *text = xasprintf("{\"boot\":\"%s\",\"seq\":%lld}", clock_boot_id(),
                                     (long long)cards->health->log_seq);
    store_note_put(cards->inst->store, "kernel-log", text, &e);
}

void
health_save(struct cards *cards)
{
    if (cards->health->log_dirty)
        save_log_position(cards);
    for (int i = 0; i < ledger_n_cards(cards->inst->ledger); i++)
        if (cards->health->records[i].dirty)
            save_record(cards->inst, i, &cards->health->records[i]);
}

void
health_saved(struct cards *cards)
{
    cards->health->log_dirty = false;
    for (int i = 0; i < ledger_n_cards(cards->inst->ledger); i++)
        cards->health->records[i].dirty = false;
}

/* --- shown to clients --- */

static int64_t
since_us(const struct card *c, const struct record *r)
{
    enum gpu_state s = card_state(c);
    if ((s == GPU_PAUSED || s == GPU_DRAINING) && r->admin_us)
        return r->admin_us;
    if ((s == GPU_LOST || s == GPU_SICK) && r->fault_us)
        return r->fault_us;
    return c->state_since_us ? clock_wall_us() - (clock_boot_us() - c->state_since_us) : 0;
}

static const char *
state_text(const struct card *c, const struct record *r)
{
    enum gpu_state s = card_state(c);
    if (s == GPU_PAUSED || s == GPU_DRAINING)
        return r->reason;
    if (s == GPU_SICK && r->locked_out)
        return r->lock_text;
    if (s == GPU_LOST || s == GPU_SICK)
        return r->text;
    if (s == GPU_UNKNOWN && r->n_unread > 0)
        return "the driver cannot read it";
    return "";
}

static void
put_text(struct jsonw *w, const char *key, const char *text)
{
    jsonw_kstr(w, key, text[0] ? text : NULL);
}

void
health_write(const struct cards *cards, int card, struct jsonw *w)
{
    const struct card *c = ledger_card(cards->inst->ledger, card);
    const struct record *r = &cards->health->records[card];
    jsonw_ktime(w, "since", since_us(c, r)); /* the older name of state_since */
    jsonw_ktime(w, "state_since", since_us(c, r));
    put_text(w, "state_by", r->admin != GPU_UP ? r->by : "");
    put_text(w, "state_text", state_text(c, r));
    jsonw_kbool(w, "paused", r->admin != GPU_UP);
    if (r->xid)
        jsonw_kint(w, "xid", r->xid);
    else
        jsonw_knull(w, "xid");
    put_text(w, "note", r->note);
}

void
health_say(const struct cards *cards, int card, struct buf *out)
{
    const struct card *c = ledger_card(cards->inst->ledger, card);
    const struct record *r = &cards->health->records[card];
    enum gpu_state s = card_state(c);
    const char *text = state_text(c, r);
    buf_addf(out, "gpu %d is %s", card, gpu_state_name(s));
    if ((s == GPU_PAUSED || s == GPU_DRAINING) && r->by[0])
        buf_addf(out, " by %s", r->by);
    if (text[0])
        buf_addf(out, " (%s)", text);
}

void
health_explain(const struct cards *cards, const struct blocked *b, struct buf *out)
{
    if (b->gpu < 0 || b->gpu >= ledger_n_cards(cards->inst->ledger))
        return;
    const struct card *c = ledger_card(cards->inst->ledger, b->gpu);
    const struct record *r = &cards->health->records[b->gpu];
    enum reason about = b->reason == REASON_RESOURCES ? b->card_reason : b->reason;
    if (about != REASON_GPU_PAUSED && about != REASON_GPU_SICK)
        return;
    const char *text = state_text(c, r);
    const char *words = about == REASON_GPU_SICK && text == r->text ? record_words(r) : text;
    if (about == REASON_GPU_PAUSED && r->admin != GPU_UP && r->by[0])
        buf_addf(out, " by %s", r->by);
    if (text[0] && !strstr(buf_str(out), words))
        buf_addf(out, " (%s)", text);
}
