/* Driver errors with a number (XID): see card_faults.h; the meaning of the numbers is in
 * gpu/xid.h. An error of the GPU stops that GPU alone; an error of a program is noted for its
 * job and stops no GPU. As the process is often gone when its message is read, its job is
 * remembered from the samples; otherwise, if only one job is on the GPU, the error is that
 * job's. */
#include "daemon/gpu/card_faults.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "core/queue/queue.h"
#include "daemon/common/event_say.h"
#include "daemon/common/instance.h"
#include "daemon/common/turn_due.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/samples.h"
#include "gpu/xid.h"

#define CLEAN_UP  45 /* follows from an earlier error, or from a killed program */
#define CONTAINED 94 /* ends one program, and also says something about the GPU */

/* The message gives the PCI address without the function: "0000:3b:00" is "0000:3b:00.0". */
static bool
is_at(const struct card *c, const char *bus_id)
{
    size_t n = bus_id ? strlen(bus_id) : 0;
    const char *at = c->info.bus_id;
    return !c->gone && n > 0 && strncasecmp(at, bus_id, n) == 0 &&
           (at[n] == '.' || at[n] == '\0');
}

static bool
is_named(const json_t *j, const char *key, int32_t number)
{
    const json_t *v = json_object_get(j, key);
    return !v || json_integer_value(v) == number;
}

/* The GPUs that a message concerns. An error that needs a reset concerns all MIG instances of
 * a divided GPU, as one reset affects all of them; any other error concerns only the instance
 * named, or all if none is. */
static uint64_t
cards_concerned(const struct instance *inst, const json_t *j, enum xid_action action)
{
    const char *bus_id = json_string_value(json_object_get(j, "bus_id"));
    bool all = action == XID_RESET || action == XID_REBOOT;
    uint64_t cards = 0;
    for (int i = 0; i < ledger_n_cards(inst->ledger); i++) {
        const struct card *c = ledger_card(inst->ledger, i);
        if (is_at(c, bus_id) &&
            (all || !c->info.mig_gpu[0] ||
             (is_named(j, "gi", c->info.mig_gi) && is_named(j, "ci", c->info.mig_ci))))
            cards |= UINT64_C(1) << i;
    }
    return cards;
}

static struct job *
job_concerned(struct cards *cards, int card, bool is_only, int32_t pid)
{
    const struct card *c = ledger_card(cards->inst->ledger, card);
    uint32_t id = pid ? sample_job_of_pid(cards, pid) : 0;
    if (!id && pid)
        id = health_owner_of(cards, pid);
    if (!id && is_only && c->n_holds == 1 && c->n_strangers == 0)
        id = c->holds[0].job;
    if (id && !is_only && !ledger_find_hold(cards->inst->ledger, card, id))
        return NULL;
    struct job *job = id ? queue_get(cards->inst->queue, id) : NULL;
    return job && job->run && job_state_is_active(job->state) ? job : NULL;
}

/* The contents of a message. */
struct told {
    int xid;
    int32_t pid; /* 0: unknown */
    enum xid_action action;
    char text[HEALTH_TEXT_MAX];
};

static void
warn_job(struct instance *inst, const struct job *job, int card, int xid, const char *text)
{
    log_warn("job=%u event=gpu-error gpu=%d xid=%d %s", job->id, card, xid, text);
    struct jsonw *w = turn_event(inst, "warning", job);
    jsonw_kint(w, "gpu", card);
    jsonw_kint(w, "xid", xid);
    jsonw_kstr(w, "text", text);
    turn_event_end(inst);
}

/* Blames the job of a process seen before, or the only job of the only GPU concerned. If the
 * message does not name the instance, the job must be known to run on this one. */
static void
blame(struct cards *cards, int card, bool is_only, int32_t pid, int xid)
{
    char text[HEALTH_TEXT_MAX];
    const struct job *job = job_concerned(cards, card, is_only, pid);
    if (!job)
        return;
    snprintf(text, sizeof text, "XID %d on gpu %d: %s", xid, card, xid_find(xid)->meaning);
    if (health_blame_job(cards, job, text) && xid != CLEAN_UP)
        warn_job(cards->inst, job, card, xid, text);
}

static void
stop_card(struct cards *cards, int card, int xid, enum xid_action action, const char *text)
{
    const struct card *c = ledger_card(cards->inst->ledger, card);
    bool news = health_fault(cards, card, xid, action == XID_REBOOT, text);
    for (int i = 0; news && i < c->n_holds; i++) {
        const struct job *job = queue_get(cards->inst->queue, c->holds[i].job);
        if (job)
            warn_job(cards->inst, job, card, xid, text);
    }
}

static void
tell_card(struct cards *cards, int card, bool is_only, const struct told *told)
{
    if (told->action == XID_PROGRAM)
        blame(cards, card, is_only, told->pid, told->xid);
    else if (told->action == XID_NOTE)
        health_note(cards, card, told->text);
    else
        stop_card(cards, card, told->xid, told->action, told->text);
    if (told->xid == CONTAINED)
        health_note(cards, card, told->text);
}

static void
take_xid(struct cards *cards, const json_t *j)
{
    struct told told = {
        .xid = (int)json_integer_value(json_object_get(j, "xid")),
        .pid = (int32_t)json_integer_value(json_object_get(j, "pid")),
    };
    const char *bus_id = json_string_value(json_object_get(j, "bus_id"));
    const char *words = json_string_value(json_object_get(j, "text"));
    const struct xid *known = xid_find(told.xid);
    told.action = xid_action_of(told.xid, words ? words : "");
    uint64_t met = cards_concerned(cards->inst, j, told.action);
    log_warn("event=xid gpu=%d bus=%s xid=%d pid=%d %s", met ? __builtin_ctzll(met) : -1,
             bus_id ? bus_id : "?", told.xid, told.pid, words ? words : "");
    /* For a number that is not in the table, the driver's text is used. */
    snprintf(told.text, sizeof told.text, "XID %d: %s", told.xid,
             known->code == told.xid || !words ? known->meaning : words);
    for (uint64_t rest = met; rest; rest &= rest - 1)
        tell_card(cards, __builtin_ctzll(rest), (met & (met - 1)) == 0, &told);
}

void
faults_take(struct cards *cards, const json_t *msg)
{
    size_t i;
    const json_t *j;
    json_array_foreach(json_object_get(msg, "faults"), i, j)
    {
        if (json_is_true(json_object_get(j, "driver_loaded")))
            health_driver_loaded(cards);
        else
            take_xid(cards, j);
    }
    health_set_log_position(cards, json_integer_value(json_object_get(msg, "kernel_log")));
    turn_touch(cards->inst);
}
