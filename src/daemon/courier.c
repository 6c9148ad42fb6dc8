/* Delivering what lies in the outbox: see courier.h. Each user has a line of his own, of which
 * a few are under way at once, so that slow hooks of one hold up nobody else's; the daemon
 * hands each to a process that the nursery forks, and hears of its end over a socket. Called by
 * turn.c around each commit. */
#include "daemon/courier.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uthash.h>
#include <utlist.h>
#include <uv.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "core/job.h"
#include "core/queue.h"
#include "daemon/daemon.h"
#include "daemon/environ.h"
#include "daemon/nursery.h"
#include "daemon/turn.h"
#include "store/store.h"
#include "sys/nursery.h"
#include "wire/frame.h"

#define AT_ONCE      16 /* processes, of all users */
#define AT_ONCE_USER 4
#define READ_SIZE    4096

/* Seconds before the next try of a webhook or a mail; what then fails is given up. */
static const int pauses_s[] = {1, 10, 60, 300};
#define TRIES_MAX (1 + (int)(sizeof pauses_s / sizeof pauses_s[0]))
/* A command is not repeated because it failed, only when nobody knows whether it was run. */
#define COMMAND_TRIES_MAX 3

enum result { UNKNOWN, DONE, FAILED, AGAIN };

/* One row of the outbox. */
struct letter {
    int64_t id;
    uint32_t job, uid;
    int tries;
    char channel;   /* the first letter of its kind: on_..., webhook, mail */
    int64_t due_us; /* boot clock */
    enum result result;
    struct courier *courier;
    uv_pipe_t pipe; /* while it is under way */
    struct frame in;
    struct letter *prev, *next;
};

/* A user's line. */
struct box {
    uint32_t uid;
    int n_running;
    struct letter *waiting;
    UT_hash_handle hh;
};

struct courier {
    struct daemon *daemon;
    struct box *boxes;
    struct letter *fresh;   /* posted in this turn */
    struct letter *running; /* under way */
    struct letter *over;    /* to be written down */
    struct letter *later;   /* by due_us */
    uv_timer_t timer;       /* for the first of them */
    int n_running;
    size_t n; /* all but the fresh */
    bool closing;
};

struct courier *
courier_new(struct daemon *d)
{
    struct courier *c = xcalloc(1, sizeof *c);
    c->daemon = d;
    uv_timer_init(d->loop, &c->timer);
    c->timer.data = c;
    return c;
}

static struct letter *
letter_new(struct courier *c, const struct store_letter *row)
{
    struct letter *l = xcalloc(1, sizeof *l);
    l->id = row->id;
    l->job = row->job;
    l->uid = row->uid;
    l->tries = row->tries;
    l->channel = row->kind[0];
    l->courier = c;
    return l;
}

static struct box *
box_of(struct courier *c, uint32_t uid)
{
    struct box *b;
    HASH_FIND(hh, c->boxes, &uid, sizeof uid, b);
    if (b)
        return b;
    b = xcalloc(1, sizeof *b);
    b->uid = uid;
    HASH_ADD(hh, c->boxes, uid, sizeof b->uid, b);
    return b;
}

static void
wait_in_line(struct courier *c, struct letter *l)
{
    struct box *b = box_of(c, l->uid);
    DL_APPEND(b->waiting, l);
}

static int
on_row(const struct store_letter *row, void *arg)
{
    struct courier *c = arg;
    wait_in_line(c, letter_new(c, row));
    c->n++;
    return 0;
}

int
courier_load(struct daemon *d, struct err *e)
{
    return store_outbox_walk(d->store, 0, INT64_MAX, on_row, d->courier, e);
}

/* --- one delivery ------------------------------------------------------------------------- */

/* What a row says beyond what is kept in memory. */
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

/* The job as it is, or was. *owned: what to free. NULL: nobody knows it any more. */
static const struct job *
find_job(struct daemon *d, uint32_t id, struct job **owned)
{
    const struct job *job = queue_get(d->queue, id);
    *owned = job ? NULL : store_job_load(d->store, id, NULL);
    return job ? job : *owned;
}

static void
write_log_path(const struct daemon *d, const struct job *job, struct jsonw *w)
{
    auto_free char *path = d->places.system
                               ? xasprintf("%s/%u/hooks.log", d->places.logs, job->uid)
                               : xasprintf("%s/hooks.log", d->places.logs);
    jsonw_kstr(w, "log", path);
    jsonw_kbool(w, "log_mkdir", d->places.system);
}

/* As docs/protocol.md has it, section 4: a line of JSON, and behind it the environment. */
static int
write_order(struct daemon *d, const struct letter *l, const struct job *job,
            const struct content *x, struct buf *out, struct err *e)
{
    auto_free char *id = xasprintf("%s-%lld", d->instance, (long long)l->id);
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kint(&w, "version", 1);
    jsonw_kstr(&w, "id", id);
    jsonw_kint(&w, "job", l->job);
    jsonw_kstr(&w, "kind", x->kind);
    jsonw_kstr(&w, "target", x->target);
    jsonw_kstr(&w, "cwd", job->cwd);
    jsonw_kint(&w, "umask", job->umask_bits);
    write_log_path(d, job, &w);
    jsonw_kint(&w, "limit_ms", d->config.hook_limit_s * 1000);
    jsonw_kstr(&w, "sendmail", d->config.sendmail);
    if (job->rlimits)
        jsonw_kstr(&w, "rlimits", job->rlimits);
    if (d->places.system) {
        jsonw_kint(&w, "uid", job->uid);
        jsonw_kstr(&w, "user", job->user);
    }
    jsonw_key(&w, "event");
    jsonw_raw(&w, x->event, strlen(x->event));
    jsonw_end_object(&w);
    buf_addc(out, '\n');
    return environ_add_hook(d, job, x->kind, x->event, out, e);
}

static void
on_closed(uv_handle_t *handle)
{
    struct letter *l = handle->data;
    frame_free(&l->in);
    if (l->courier->closing) {
        free(l);
        return;
    }
    DL_APPEND(l->courier->over, l);
    turn_touch(l->courier->daemon);
}

/* What came of it is known, or will never be. */
static void
delivered(struct letter *l)
{
    struct courier *c = l->courier;
    DL_DELETE(c->running, l);
    c->n_running--;
    box_of(c, l->uid)->n_running--;
    uv_close((uv_handle_t *)&l->pipe, on_closed);
}

/* The result goes into the event stream, and into the outbox with the next commit. */
static void
tell_result(struct letter *l, const char *kind, const char *state, const json_t *msg)
{
    struct daemon *d = l->courier->daemon;
    struct job *owned;
    const struct job *job = find_job(d, l->job, &owned);
    const json_t *status = json_object_get(msg, "exit_status");
    const char *text = json_string_value(json_object_get(msg, "text"));
    if (job) {
        struct jsonw *w = turn_event(d, "hook", job);
        jsonw_kstr(w, "hook", kind);
        jsonw_kstr(w, "state", state);
        if (json_is_integer(status))
            jsonw_kint(w, "exit_status", json_integer_value(status));
        jsonw_kint(w, "tries", l->tries);
        if (text && text[0])
            jsonw_kstr(w, "text", text);
        turn_event_end(d);
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
    l->result = !state                        ? UNKNOWN
                : strcmp(state, "done") == 0  ? DONE
                : strcmp(state, "again") == 0 ? AGAIN
                                              : FAILED;
    if (l->result == AGAIN && l->tries >= TRIES_MAX)
        l->result = FAILED;
    tell_result(l, kind ? kind : "?",
                l->result == DONE    ? "done"
                : l->result == AGAIN ? "again"
                                     : "failed",
                msg);
}

static void
on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct letter *l = handle->data;
    char *room = frame_room(&l->in, READ_SIZE);
    *out = uv_buf_init(room, room ? READ_SIZE : 0);
}

/* Its process ended without a word: killed, or it could not even read what it was given. */
static void
lost(struct letter *l)
{
    l->tries++;
    l->result = l->tries >= COMMAND_TRIES_MAX ? FAILED : AGAIN;
    log_warn("job=%u event=hook-lost tries=%d its process went without a word%s", l->job,
             l->tries, l->result == FAILED ? "; given up" : "");
}

static void
on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
    (void)b;
    struct letter *l = stream->data;
    size_t at = 0, len = 0;
    if (n > 0)
        frame_filled(&l->in, (size_t)n);
    const char *line = n > 0 ? frame_next(&l->in, &at, &len) : NULL;
    if (n >= 0 && !line) {
        frame_done(&l->in, at);
        return;
    }
    json_t *msg = line ? json_loadb(line, len, 0, NULL) : NULL;
    if (msg)
        judge(l, msg);
    else
        lost(l);
    json_decref(msg);
    delivered(l);
}

static int
order_file(const struct buf *order, struct err *e)
{
    auto_close int fd = memfd_create("berth-hook", MFD_CLOEXEC);
    if (fd < 0 || write(fd, order->data, order->len) != (ssize_t)order->len)
        return err_set(e, ERR_FAILED, "cannot write what is to be delivered");
    return TAKE_FD(fd);
}

static int
hand_over(struct letter *l, const struct buf *order, struct err *e)
{
    struct daemon *d = l->courier->daemon;
    auto_close int file = order_file(order, e);
    int pair[2];
    if (file < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return err_set(e, ERR_FAILED, "cannot make a socket pair");
    auto_close int ours = pair[0];
    auto_close int theirs = pair[1];
    if (nursery_ask(d->nursery, NURSERY_DELIVER, theirs, file, file, e))
        return -1;
    crash_point("daemon-hook-sent");
    frame_init(&l->in, FRAME_MAX_PEER);
    uv_pipe_init(d->loop, &l->pipe, 0);
    l->pipe.data = l;
    if (uv_pipe_open(&l->pipe, ours)) {
        lost(l);
        delivered(l);
        return 0;
    }
    (void)TAKE_FD(ours);
    uv_read_start((uv_stream_t *)&l->pipe, on_alloc, on_read);
    return 0;
}

/* 0: under way. -1: it is over already, one way or the other. */
static int
deliver(struct letter *l)
{
    struct daemon *d = l->courier->daemon;
    auto_buf struct buf order = BUF_INIT;
    struct content x = {0};
    struct job *owned = NULL;
    struct err e = {0};
    int rc = store_outbox_walk(d->store, l->id, l->id, on_content, &x, &e);
    const struct job *job = rc == 0 && x.kind ? find_job(d, l->job, &owned) : NULL;
    if (rc == 0 && !job)
        l->result = DONE; /* nobody is left to be told of */
    else if (rc == 0)
        rc = write_order(d, l, job, &x, &order, &e);
    if (rc == 0 && job)
        rc = hand_over(l, &order, &e);
    if (rc) {
        log_error("job=%u event=hook-not-sent %s", l->job, e.text);
        l->tries++;
        l->result = l->tries >= TRIES_MAX ? FAILED : AGAIN;
    }
    content_free(&x);
    job_free(owned);
    return rc == 0 && job ? 0 : -1;
}

/* What is told of one job in one way is told in its order: not its end before its start. */
static bool
must_wait(const struct courier *c, const struct letter *l)
{
    const struct letter *r;
    DL_FOREACH(c->running, r)
    {
        if (r->job == l->job && r->channel == l->channel)
            return true;
    }
    return false;
}

static struct letter *
next_of(const struct courier *c, const struct box *b)
{
    struct letter *l;
    if (b->n_running >= AT_ONCE_USER || c->n_running >= AT_ONCE)
        return NULL;
    DL_FOREACH(b->waiting, l)
    {
        if (!must_wait(c, l))
            return l;
    }
    return NULL;
}

/* As many as may be under way. */
static void
pump(struct courier *c)
{
    struct box *b, *next;
    bool more = !c->closing && !c->daemon->leaving && c->daemon->ready;
    HASH_ITER(hh, c->boxes, b, next)
    {
        struct letter *l;
        while (more && (l = next_of(c, b))) {
            DL_DELETE(b->waiting, l);
            DL_APPEND(c->running, l);
            b->n_running++;
            c->n_running++;
            if (deliver(l) == 0)
                continue;
            DL_DELETE(c->running, l);
            b->n_running--;
            c->n_running--;
            DL_APPEND(c->over, l);
            turn_touch(c->daemon);
        }
        if (b->waiting || b->n_running > 0)
            continue;
        HASH_DEL(c->boxes, b);
        free(b);
    }
}

/* --- those that wait for another try -------------------------------------------------------
 */

static void
on_timer(uv_timer_t *timer)
{
    struct courier *c = timer->data;
    int64_t now = clock_boot_us();
    while (c->later && c->later->due_us <= now) {
        struct letter *l = c->later;
        DL_DELETE(c->later, l);
        wait_in_line(c, l);
    }
    if (c->later)
        uv_timer_start(timer, on_timer, (uint64_t)((c->later->due_us - now) / 1000 + 1), 0);
    pump(c);
}

static int
by_due(const struct letter *a, const struct letter *b)
{
    return (a->due_us > b->due_us) - (a->due_us < b->due_us);
}

static void
try_later(struct courier *c, struct letter *l)
{
    int at = l->tries - 1 < TRIES_MAX - 2 ? l->tries - 1 : TRIES_MAX - 2;
    l->result = UNKNOWN;
    l->due_us = clock_boot_us() + pauses_s[at] * INT64_C(1000000);
    DL_INSERT_INORDER(c->later, l, by_due);
    if (c->later == l)
        uv_timer_start(&c->timer, on_timer, (uint64_t)pauses_s[at] * 1000, 0);
}

/* --- around a commit ---------------------------------------------------------------------- */

void
courier_post(struct daemon *d, const struct job *job, const char *kind, const char *target,
             const char *event)
{
    struct store_letter row = {
        .job = job->id, .uid = job->uid, .kind = kind, .target = target, .event = event};
    struct err e; /* errors stick to the store; store_commit tells */
    if (store_outbox_add(d->store, &row, &e))
        return;
    struct letter *l = letter_new(d->courier, &row);
    DL_APPEND(d->courier->fresh, l);
}

void
courier_save(struct daemon *d)
{
    struct err e;
    for (const struct letter *l = d->courier->over; l; l = l->next) {
        if (l->result == AGAIN)
            store_outbox_tried(d->store, l->id, l->tries, &e);
        else
            store_outbox_remove(d->store, l->id, &e);
    }
}

void
courier_saved(struct daemon *d)
{
    struct courier *c = d->courier;
    struct letter *over = c->over, *fresh = c->fresh, *l, *next;
    c->over = c->fresh = NULL;
    for (l = over; l; l = next) {
        next = l->next;
        if (l->result == AGAIN) {
            try_later(c, l);
        } else {
            free(l);
            c->n--;
        }
    }
    for (l = fresh; l; l = next) {
        next = l->next;
        wait_in_line(c, l);
        c->n++;
    }
    if (c->n > 0)
        pump(c);
}

void
courier_not_saved(struct daemon *d)
{
    struct letter *l, *next;
    DL_FOREACH_SAFE(d->courier->fresh, l, next)
    {
        DL_DELETE(d->courier->fresh, l);
        free(l);
    }
}

bool
courier_is_idle(const struct courier *c, bool now)
{
    size_t later = 0;
    const struct letter *l;
    if (now)
        DL_COUNT(c->later, l, later);
    return c->n == later && !c->fresh;
}

size_t
courier_count(const struct courier *c)
{
    size_t fresh = 0;
    const struct letter *l;
    DL_COUNT(c->fresh, l, fresh);
    return c->n + fresh;
}

/* --- the end ------------------------------------------------------------------------------ */

static void
free_all(struct letter *head)
{
    struct letter *l, *next;
    for (l = head; l; l = next) {
        next = l->next;
        free(l);
    }
}

void
courier_close(struct courier *c)
{
    struct letter *l, *next;
    c->closing = true;
    uv_close((uv_handle_t *)&c->timer, NULL);
    for (l = c->running; l; l = next) {
        next = l->next;
        uv_close((uv_handle_t *)&l->pipe, on_closed);
    }
    c->running = NULL;
}

void
courier_free(struct courier *c)
{
    struct box *b, *next;
    HASH_ITER(hh, c->boxes, b, next)
    {
        free_all(b->waiting);
        HASH_DEL(c->boxes, b);
        free(b);
    }
    free_all(c->fresh);
    free_all(c->over);
    free_all(c->later);
    free(c);
}
