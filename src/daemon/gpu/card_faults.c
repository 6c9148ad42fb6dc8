/* Errors that the driver gives a number (XID): see card_faults.h; what the numbers mean is in
 * gpu/xid.h. An error of the card stops that card alone; an error of a program is noted for
 * its job, and stops no card. The process is often gone when its message is read, so whose it
 * was is remembered from the samples; with only one job on the card, it was that job's. */
#include "daemon/gpu/card_faults.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "core/queue/queue.h"
#include "daemon/common/daemon.h"
#include "daemon/common/event_say.h"
#include "daemon/common/turn_due.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/samples.h"
#include "gpu/xid.h"

#define CLEAN_UP  45 /* an echo of what came before, or of a program that was killed */
#define CONTAINED 94 /* ends one program, and says something of the card as well */

/* The message names the card without its function: "0000:3b:00" is "0000:3b:00.0". */
static int
card_at(const struct daemon *d, const char *bus_id)
{
    size_t n = bus_id ? strlen(bus_id) : 0;
    for (int i = 0; n > 0 && i < ledger_n_cards(d->ledger); i++) {
        const char *at = ledger_card(d->ledger, i)->info.bus_id;
        if (strncasecmp(at, bus_id, n) == 0 && (at[n] == '.' || at[n] == '\0'))
            return i;
    }
    return -1;
}

static struct job *
job_concerned(struct daemon *d, int card, int32_t pid)
{
    const struct card *c = ledger_card(d->ledger, card);
    uint32_t id = pid ? sample_job_of_pid(d, pid) : 0;
    if (!id && pid)
        id = health_owner_of(d, pid);
    if (!id && c->n_holds == 1 && c->n_strangers == 0)
        id = c->holds[0].job;
    struct job *job = id ? queue_get(d->queue, id) : NULL;
    return job && job->run && job_state_is_active(job->state) ? job : NULL;
}

static void
warn_job(struct daemon *d, const struct job *job, int card, int xid, const char *text)
{
    log_warn("job=%u event=gpu-error gpu=%d xid=%d %s", job->id, card, xid, text);
    struct jsonw *w = turn_event(d, "warning", job);
    jsonw_kint(w, "gpu", card);
    jsonw_kint(w, "xid", xid);
    jsonw_kstr(w, "text", text);
    turn_event_end(d);
}

static void
blame(struct daemon *d, int card, int32_t pid, int xid)
{
    char text[HEALTH_TEXT_MAX];
    const struct job *job = job_concerned(d, card, pid);
    if (!job)
        return;
    snprintf(text, sizeof text, "XID %d on gpu %d: %s", xid, card, xid_find(xid)->meaning);
    if (health_blame_job(d, job, text) && xid != CLEAN_UP)
        warn_job(d, job, card, xid, text);
}

static void
stop_card(struct daemon *d, int card, int xid, enum xid_action action, const char *text)
{
    const struct card *c = ledger_card(d->ledger, card);
    bool news = health_fault(d, card, xid, action == XID_REBOOT, text);
    for (int i = 0; news && i < c->n_holds; i++) {
        const struct job *job = queue_get(d->queue, c->holds[i].job);
        if (job)
            warn_job(d, job, card, xid, text);
    }
}

static void
take_xid(struct daemon *d, const json_t *j)
{
    int xid = (int)json_integer_value(json_object_get(j, "xid"));
    int32_t pid = (int32_t)json_integer_value(json_object_get(j, "pid"));
    const char *bus_id = json_string_value(json_object_get(j, "bus_id"));
    const char *words = json_string_value(json_object_get(j, "text"));
    const struct xid *known = xid_find(xid);
    enum xid_action action = xid_action_of(xid, words ? words : "");
    int card = card_at(d, bus_id);
    char text[HEALTH_TEXT_MAX];
    log_warn("event=xid gpu=%d bus=%s xid=%d pid=%d %s", card, bus_id ? bus_id : "?", xid, pid,
             words ? words : "");
    if (card < 0)
        return;
    /* A number that is not in the table is reported in the driver's words. */
    snprintf(text, sizeof text, "XID %d: %s", xid,
             known->code == xid || !words ? known->meaning : words);
    if (action == XID_PROGRAM)
        blame(d, card, pid, xid);
    else if (action == XID_NOTE)
        health_note(d, card, text);
    else
        stop_card(d, card, xid, action, text);
    if (xid == CONTAINED)
        health_note(d, card, text);
}

void
faults_take(struct daemon *d, const json_t *msg)
{
    size_t i;
    const json_t *j;
    json_array_foreach(json_object_get(msg, "faults"), i, j)
    {
        if (json_is_true(json_object_get(j, "driver_loaded")))
            health_driver_loaded(d);
        else
            take_xid(d, j);
    }
    health_set_log_position(d, json_integer_value(json_object_get(msg, "kernel_log")));
    turn_touch(d);
}
