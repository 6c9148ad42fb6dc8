/* One delivery: makes the order from the outbox row, has the nursery fork a process for it,
 * and receives the result over a socket. Called by outbox.c. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/file.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"
#include "daemon/common/event_say.h"
#include "daemon/common/instance.h"
#include "daemon/common/peer_lines.h"
#include "daemon/common/turn_due.h"
#include "daemon/outbox/outbox_priv.h"
#include "store/store.h"

/* A command that failed is not repeated; only one of which it is unknown whether it ran is. */
#define LOST_MAX 3

/* The fields of a row that are not kept in memory. */
struct content {
    char *kind, *target, *event;
};

static int
on_content(const struct store_letter *row, void *arg)
{
    struct content *x = arg;
    x->kind = xstrdup(row->kind);
    x->target = xstrdup(row->target);
    x->event = xstrdup(row->event);
    return 1;
}

static void
content_free(struct content *x)
{
    free(x->kind);
    free(x->target);
    free(x->event);
}

/* The job, live or ended. *owned: to be freed by the caller. NULL: it has been pruned. */
static const struct job *
find_job(const struct courier *c, uint32_t id, struct job **owned)
{
    const struct job *job = queue_get(c->inst->queue, id);
    *owned = job ? NULL : store_job_load(c->inst->store, id, NULL);
    return job ? job : *owned;
}

/* Accounts for the settings' hooks; the first one that exists is used. */
static const char *
site_accounts(const struct config *c)
{
    return c->hook_user[0] ? c->hook_user : "berth-hook,nobody";
}

/* Runs the hook like the job: as its user, in its folder, with its resource limits
 * and umask. */
static void
write_place_of_job(const struct courier *c, const struct job *job, struct jsonw *w)
{
    const struct places *places = &c->inst->places;
    auto_free char *log = places->system ? xasprintf("%s/%u/hooks.log", places->logs, job->uid)
                                         : xasprintf("%s/hooks.log", places->logs);
    jsonw_kstr(w, "cwd", job->cwd);
    jsonw_kint(w, "umask", job->umask_bits);
    jsonw_kstr(w, "log", log);
    jsonw_kbool(w, "log_mkdir", places->system);
    if (job->rlimits)
        jsonw_kstr(w, "rlimits", job->rlimits);
    if (places->system) {
        jsonw_kint(w, "uid", job->uid);
        jsonw_kstr(w, "user", job->user);
        c->host.write_account(c->host.arg, w);
    }
}

/* Runs the hook with nothing that the job's user could choose. The log is root's; the hook's
 * output reaches it through a pipe. */
static void
write_place_of_site(const struct courier *c, struct jsonw *w)
{
    auto_free char *log = xasprintf("%s/hooks.log", c->inst->places.logs);
    jsonw_kstr(w, "cwd", "/");
    jsonw_kint(w, "umask", 022);
    jsonw_kstr(w, "log", log);
    jsonw_kstr(w, "account", site_accounts(&c->inst->config));
}

/* Format: see docs/protocol.md, section 4. A line of JSON, followed by the environment. */
static int
write_order(const struct letter *l, const struct job *job, const struct content *x,
            struct buf *out, struct err *e)
{
    const struct courier *c = l->courier;
    const struct instance *inst = c->inst;
    auto_free char *id = xasprintf("%s-%lld", inst->name, (long long)l->id);
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kint(&w, "version", 1);
    jsonw_kstr(&w, "id", id);
    jsonw_kint(&w, "job", l->job);
    jsonw_kstr(&w, "kind", x->kind);
    jsonw_kstr(&w, "target", x->target);
    bool apart = l->site && inst->places.system;
    if (apart)
        write_place_of_site(c, &w);
    else
        write_place_of_job(c, job, &w);
    jsonw_kint(&w, "limit_ms", inst->config.hook_limit_s * 1000);
    jsonw_kstr(&w, "sendmail", inst->config.sendmail);
    /* Unique per daemon, because a delivery begun by an earlier one may still run. */
    auto_free char *group = xasprintf("hook-%lld.%d-%llx", (long long)l->id, l->tries,
                                      (unsigned long long)inst->started_boot_us);
    c->host.write_groups(c->host.arg, job, group, &w);
    jsonw_key(&w, "event");
    jsonw_raw(&w, x->event, strlen(x->event));
    jsonw_end_object(&w);
    buf_addc(out, '\n');
    const struct delivery delivery = {
        .job = job, .kind = x->kind, .event = x->event, .apart = apart};
    return c->host.add_environment(c->host.arg, &delivery, out, e);
}

/* The delivery's process has finished or vanished: moves the letter to c->over. */
static void
delivered(struct letter *l)
{
    struct courier *c = l->courier;
    DL_DELETE(c->running, l);
    c->n_running--;
    courier_box(c, l)->n_running--;
    peer_lines_close(TAKE(l->answer));
    DL_APPEND(c->over, l);
    turn_touch(c->inst);
}

/* Notes the result as an event. The next commit writes it to the outbox. */
static void
tell_result(struct letter *l, const char *kind, const char *state, const json_t *msg)
{
    struct instance *inst = l->courier->inst;
    struct job *owned;
    const struct job *job = find_job(l->courier, l->job, &owned);
    const json_t *status = json_object_get(msg, "exit_status");
    const char *text = json_string_value(json_object_get(msg, "text"));
    if (job) {
        struct jsonw *w = turn_event(inst, "hook", job);
        jsonw_kstr(w, "hook", kind);
        jsonw_kstr(w, "state", state);
        if (json_is_integer(status))
            jsonw_kint(w, "exit_status", json_integer_value(status));
        jsonw_kint(w, "tries", l->tries);
        if (text && text[0])
            jsonw_kstr(w, "text", text);
        turn_event_end(inst);
    }
    if (l->result == DONE)
        log_debug("job=%u event=hook hook=%s state=%s", l->job, kind, state);
    else
        log_info("job=%u event=hook hook=%s state=%s tries=%d %s", l->job, kind, state,
                 l->tries, text ? text : "");
    job_free(owned);
}

static void
judge(struct letter *l, const json_t *msg)
{
    const char *kind = json_string_value(json_object_get(msg, "kind"));
    const char *state = json_string_value(json_object_get(msg, "state"));
    l->tries++;
    l->setbacks = 0;
    l->result = !state                        ? UNKNOWN
                : strcmp(state, "done") == 0  ? DONE
                : strcmp(state, "again") == 0 ? AGAIN
                                              : FAILED;
    if (l->result == AGAIN && l->tries >= COURIER_TRIES_MAX)
        l->result = FAILED;
    tell_result(l, kind ? kind : "?",
                l->result == DONE    ? "done"
                : l->result == AGAIN ? "again"
                                     : "failed",
                msg);
}

/* Counts a failed try, and decides whether another one follows. */
static void
count_try(struct letter *l, int most)
{
    l->tries++;
    l->setbacks = 0;
    l->result = l->tries >= most ? FAILED : AGAIN;
}

/* Counts a setback instead of a try, because none could be made. */
static void
count_setback(struct letter *l)
{
    if (l->setbacks < COURIER_TRIES_MAX)
        l->setbacks++;
    l->result = AGAIN;
}

static void
tell_given_up(struct letter *l, const char *kind, const char *text)
{
    json_t *msg = json_pack("{s:s}", "text", text);
    tell_result(l, kind ? kind : "?", "failed", msg);
    json_decref(msg);
}

/* The delivery's process exited without a result: it was killed, or could not even read
 * its order. */
static void
lost(struct letter *l)
{
    struct content x = {0};
    struct err unused;
    count_try(l, LOST_MAX);
    log_warn("job=%u event=hook-lost tries=%d its process exited without an answer%s", l->job,
             l->tries, l->result == FAILED ? "; given up" : "");
    if (l->result != FAILED)
        return;
    (void)store_outbox_walk(l->courier->inst->store, l->id, l->id, on_content, &x, &unused);
    tell_given_up(l, x.kind, "its process exited without an answer");
    content_free(&x);
}

static void
on_line(void *arg, const char *line, size_t len)
{
    struct letter *l = arg;
    json_t *msg = line ? json_loadb(line, len, 0, NULL) : NULL;
    const char *event = json_string_value(json_object_get(msg, "event"));
    if (event && strcmp(event, "not_forked") == 0)
        count_setback(l);
    else if (msg)
        judge(l, msg);
    else
        lost(l);
    json_decref(msg);
    delivered(l);
}

static int
hand_over(struct letter *l, const struct buf *order, struct err *e)
{
    const struct courier *c = l->courier;
    auto_close int file = file_in_memory("berth-hook", order->data, order->len);
    if (file < 0)
        return err_set(e, ERR_FAILED, "cannot write what is to be delivered");
    int ours = c->host.start(c->host.arg, file, e);
    if (ours < 0)
        return -1;
    crash_point("daemon-hook-sent");
    l->answer = peer_lines_open(c->inst->loop, ours, on_line, l, e);
    return l->answer ? 0 : -1;
}

/* The delivery's content could not be assembled. This may be permanent, so the attempt counts
 * and the delivery is eventually given up. */
static void
not_made(struct letter *l, const char *kind, const struct err *e)
{
    count_try(l, COURIER_TRIES_MAX);
    if (l->result == FAILED)
        tell_given_up(l, kind, e->text);
}

int
courier_send(struct letter *l)
{
    auto_buf struct buf order = BUF_INIT;
    struct content x = {0};
    struct job *owned = NULL;
    struct err e = {0};
    int rc = store_outbox_walk(l->courier->inst->store, l->id, l->id, on_content, &x, &e);
    const struct job *job = rc == 0 && x.kind ? find_job(l->courier, l->job, &owned) : NULL;
    bool is_made = rc == 0 && job && write_order(l, job, &x, &order, &e) == 0;
    if (rc == 0 && !job)
        l->result = DONE; /* the job has been pruned */
    else if (rc == 0)
        rc = is_made ? hand_over(l, &order, &e) : -1;
    if (rc < 0)
        log_error("job=%u event=hook-not-sent %s", l->job, e.text);
    if (rc < 0 && job && !is_made)
        not_made(l, x.kind, &e);
    else if (rc < 0)
        count_setback(l);
    content_free(&x);
    job_free(owned);
    return rc == 0 && !job ? -1 : rc;
}
