/* Long requests in slices: see long_work.h. Called by methods. rpc_client.c reports
 * disconnected clients; turn and loop run between two slices. */
#include "daemon/rpc/long_work.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "daemon/common/instance.h"
#include "daemon/common/pace.h"
#include "daemon/common/turn_due.h"
#include "daemon/request/budget.h"
#include "daemon/request/roles.h"
#include "daemon/rpc/rpc.h"
#include "daemon/rpc/rpc_server.h"
#include "daemon/turn/turn.h"
#include "store/store.h"

#define SLICE_US     10000
#define WORKS_MAX    256 /* of all users; USER_MAX of one user */
#define USER_MAX     16
#define REST_MS      10 /* pause once every user that waits has used its share for now */
#define PROGRESS_US  (INT64_C(4) * 1000 * 1000) /* clients give up after 15 s without a sign */
#define NEXT_OF_ROOT 32                         /* extra requests that root may have */

struct work {
    struct work *next;
    const struct work_kind *kind;
    void *arg;
    json_t *params;
    struct caller caller;
    struct ticket *ticket; /* NULL: the client has disconnected */
    char *token;           /* owned; NULL: none */
    int n_pieces;          /* stored with the token */
    size_t n_saved;        /* what is done and durable, in the unit of kind->n_done */
    int64_t told_us;       /* boot clock: when its client last had a sign of it, or asked */
    struct buf text;
    struct jsonw out;
};

struct works {
    uv_idle_t idle;
    uv_timer_t rest;
    struct work *first; /* the next in line; the rest follow in order */
    int n;
    int closing;
};

static void
work_free(struct rpc *rpc, struct work *x)
{
    server_keep(rpc->server, x->caller.group, -(int64_t)x->caller.len);
    x->kind->free(x->arg);
    json_decref(x->params);
    ticket_free(x->ticket);
    free(x->token);
    buf_free(&x->text);
    free(x);
}

static void
unlink_work(struct works *all, struct work **at)
{
    struct work *x = *at;
    *at = x->next;
    all->n--;
    if (all->first || all->closing)
        return;
    uv_idle_stop(&all->idle);
    uv_timer_stop(&all->rest);
}

static void
append(struct works *all, struct work *x)
{
    struct work **at = &all->first;
    while (*at)
        at = &(*at)->next;
    *at = x;
    x->next = NULL;
    all->n++;
}

/* --- slices --- */

/* Runs one slice. An answer that has become too long is an error at once. */
static int
run_slice(struct rpc *rpc, const struct work_kind *kind, struct caller *c, void *arg,
          struct jsonw *out, struct err *e)
{
    const struct caller *before = rpc->roles->caller;
    rpc_serve(rpc, c);
    int rc = kind->step(rpc, c, arg, out, clock_boot_us() + SLICE_US, e);
    rpc_serve(rpc, before);
    return rc >= 0 && out->full ? budget_too_long(out, e) : rc;
}

/* --- stored progress --- */

/* Stores the progress in the same commit as the piece just done. */
static void
keep_so_far(struct instance *inst, struct work *x)
{
    auto_buf struct buf text = BUF_INIT;
    struct err unused;
    if (!x->kind->so_far || !x->token)
        return;
    x->kind->so_far(x->arg, &text);
    if (text.len == 0)
        return;
    const struct store_piece piece = {
        .number = x->n_pieces++, .at_us = clock_wall_us(), .text = buf_str(&text)};
    store_progress_add(inst->store, x->caller.uid, x->token, &piece, &unused);
}

/* Restores what an earlier daemon had done of the request; returns the number of pieces. */
static int
resume(struct rpc *rpc, const struct work_kind *kind, const struct caller *c, void *arg)
{
    int n = 0;
    if (!kind->resume || !c->token)
        return 0;
    for (;; n++) {
        auto_free char *text = store_progress_get(rpc->inst->store, c->uid, c->token, n);
        if (!text)
            return n;
        kind->resume(arg, text);
    }
}

/* Drops the stored progress in the transaction that stores the answer. */
static void
drop_so_far(struct instance *inst, uid_t uid, const char *token, int n_pieces)
{
    struct err unused;
    if (n_pieces > 0)
        store_progress_drop(inst->store, uid, token, &unused);
}

static void
finish(struct rpc *rpc, struct work *x, int rc, const struct err *e)
{
    struct ticket *t = x->ticket;
    struct err unused;
    x->ticket = NULL;
    if (rc >= 0 && x->token && !turn_disk_trouble(rpc->inst))
        store_answer_put(rpc->inst->store, x->caller.uid, x->token, buf_str(&x->text), &unused);
    drop_so_far(rpc->inst, x->caller.uid, x->token, x->n_pieces);
    if (t && rc < 0)
        server_refuse(t, e);
    else if (t && x->kind->answer_later)
        x->kind->answer_later(rpc, x->arg, t);
    else if (t)
        server_answer(t, &x->text);
    work_free(rpc, x);
    turn_touch_unplanned(rpc->inst); /* clients that wait for all changes may proceed */
}

static void
say_nothing_saved(const struct work *x, const struct err *why, struct err *e)
{
    if (x->n_saved == 0)
        turn_say_not_saved(why, e);
    else if (x->kind->lines)
        err_set(e, why->code,
                "%zu lines of it are accepted, the others are not; the same command continues "
                "with them: %s. Running jobs continue",
                x->n_saved, why->text);
    else
        err_set(e, why->code,
                "%zu jobs were changed, the others were not: %s. Running jobs continue",
                x->n_saved, why->text);
}

/* not_saved: the reason is a failed commit, so what was counted as done since the last commit
 * is lost. */
static void
end_changes(struct rpc *rpc, const struct err *why, bool not_saved)
{
    struct work **at = rpc->works ? &rpc->works->first : NULL;
    while (at && *at) {
        struct work *x = *at;
        struct err e = *why;
        if (!x->kind->changes) {
            at = &x->next;
            continue;
        }
        if (not_saved)
            say_nothing_saved(x, why, &e);
        unlink_work(rpc->works, at);
        finish(rpc, x, -1, &e);
    }
}

void
works_fail(struct rpc *rpc, const struct err *why)
{
    end_changes(rpc, why, false);
}

void
works_not_saved(struct rpc *rpc, const struct err *why)
{
    end_changes(rpc, why, true);
}

void
works_saved(struct rpc *rpc)
{
    for (struct work *x = rpc->works ? rpc->works->first : NULL; x; x = x->next)
        if (x->kind->n_done)
            x->n_saved = x->kind->n_done(x->arg);
}

/* Moves all requests of x's user behind those of other users, and x behind those. So users
 * take turns, and so do the requests of one user, however many there are. */
static void
had_its_turn(struct works *all, struct work *x)
{
    struct work *others = NULL, *same = NULL, *next;
    struct work **other_end = &others, **same_end = &same;
    for (struct work *y = all->first; y; y = next) {
        struct work ***end = y->caller.group == x->caller.group ? &same_end : &other_end;
        next = y->next;
        if (y == x)
            continue;
        **end = y;
        *end = &y->next;
    }
    *same_end = x;
    x->next = NULL;
    *other_end = same;
    all->first = others;
}

/* The first in line whose user has time left; NULL: none. */
static struct work *
take_next(struct rpc *rpc, struct works *all)
{
    for (struct work *x = all->first; x; x = x->next) {
        if (!server_may_work(rpc->server, x->caller.group))
            continue;
        had_its_turn(all, x);
        return x;
    }
    return NULL;
}

/* Runs a slice of x and finishes it when done. */
static void
go_on(struct rpc *rpc, struct work *x)
{
    struct work **at = &rpc->works->first;
    struct err e = {0};
    int64_t began_us = clock_boot_us();
    pace_spent(rpc->pace, PACE_REST, UINT32_MAX);
    int rc = run_slice(rpc, x->kind, &x->caller, x->arg, &x->out, &e);
    if (x->kind->changes && !(x->kind->last_changes && rc == WORK_MORE))
        server_changed(rpc->server, x->caller.group);
    if (rc == WORK_MORE)
        keep_so_far(rpc->inst, x);
    int64_t us = clock_boot_us() - began_us;
    server_charge(rpc->server, x->caller.group, us);
    pace_spent(rpc->pace, x->caller.method, x->caller.uid);
    if (rc == WORK_MORE)
        return;
    while (*at != x)
        at = &(*at)->next;
    unlink_work(rpc->works, at);
    finish(rpc, x, rc, &e);
}

/* Sends a sign to one client that has had none for long. Only one per call, because dropping
 * that client may remove other entries of the list. */
static void
say_progress(struct works *all)
{
    const int64_t now_us = clock_boot_us();
    for (struct work *x = all->first; x; x = x->next) {
        if (!x->ticket)
            continue;
        if (now_us - x->told_us < PROGRESS_US && !crash_is_due("request-takes-long"))
            continue;
        x->told_us = now_us;
        server_say_progress(x->ticket);
        return;
    }
}

static void on_idle(uv_idle_t *idle);

static void
on_rested(uv_timer_t *timer)
{
    struct rpc *rpc = timer->data;
    if (rpc->works->first)
        uv_idle_start(&rpc->works->idle, on_idle);
}

static void
on_idle(uv_idle_t *idle)
{
    struct rpc *rpc = idle->data;
    struct works *all = rpc->works;
    say_progress(all);
    struct work *x = take_next(rpc, all);
    if (!x) {
        uv_idle_stop(&all->idle);
        uv_timer_start(&all->rest, on_rested, REST_MS, 0);
        return;
    }
    go_on(rpc, x);
}

/* --- begin and end --- */

static struct works *
works_of(struct rpc *rpc)
{
    if (rpc->works)
        return rpc->works;
    rpc->works = xcalloc(1, sizeof *rpc->works);
    uv_idle_init(rpc->inst->loop, &rpc->works->idle);
    uv_timer_init(rpc->inst->loop, &rpc->works->rest);
    rpc->works->idle.data = rpc->works->rest.data = rpc;
    return rpc->works;
}

static int
check_room(const struct rpc *rpc, const struct caller *c, struct err *e)
{
    int own = 0;
    for (const struct work *x = rpc->works ? rpc->works->first : NULL; x; x = x->next)
        own += x->caller.group == c->group;
    if (budget_binds(rpc->budget, c->uid) && own >= USER_MAX)
        return err_set(
            e, ERR_REFUSED,
            "%d long requests of yours are in progress; try again when one of them is answered",
            own);
    if (rpc->works && rpc->works->n >= WORKS_MAX + (c->uid == 0 ? NEXT_OF_ROOT : 0) && own > 0)
        return err_set(e, ERR_REFUSED, "%d long requests are in progress; try again later",
                       rpc->works->n);
    return 0;
}

int
work_begin(struct rpc *rpc, struct caller *c, const struct work_kind *kind, void *arg,
           json_t *params, struct jsonw *out, struct err *e)
{
    bool room_first = kind->changes && !kind->last_changes; /* a piece cannot be undone */
    int rc = room_first ? check_room(rpc, c, e) : 0;
    int n_pieces = 0;
    size_t n_saved = 0;
    if (rc == 0) {
        n_pieces = resume(rpc, kind, c, arg);
        n_saved = n_pieces > 0 ? kind->n_done(arg) : 0;
        rc = run_slice(rpc, kind, c, arg, out, e);
    }
    if (rc == WORK_MORE && !room_first && check_room(rpc, c, e) < 0)
        rc = -1;
    if (rc != WORK_MORE) {
        bool later = rc == WORK_DONE && kind->answer_later;
        if (later)
            kind->answer_later(rpc, arg, server_ticket(c));
        drop_so_far(rpc->inst, c->uid, c->token, n_pieces);
        kind->free(arg);
        return rc < 0 ? -1 : later ? METHOD_LATER : 0;
    }
    struct work *x = xcalloc(1, sizeof *x);
    x->kind = kind;
    x->arg = arg;
    x->params = json_incref(params);
    server_keep(rpc->server, c->group, (int64_t)c->len);
    x->caller = *c;
    x->caller.id = NULL;
    x->caller.token = NULL;
    x->token = c->token ? xstrdup(c->token) : NULL;
    x->n_pieces = n_pieces;
    x->n_saved = n_saved;
    x->told_us = clock_boot_us();
    x->ticket = server_ticket(c);
    x->text = *out->out;
    *out->out = (struct buf)BUF_INIT;
    x->out = *out;
    x->out.out = &x->text;
    struct works *all = works_of(rpc);
    append(all, x);
    keep_so_far(rpc->inst, x);
    if (!uv_is_active((uv_handle_t *)&all->rest))
        uv_idle_start(&all->idle, on_idle);
    return METHOD_LATER;
}

/* True if the request must not be left half done. */
static bool
must_end(const struct work *x)
{
    return x->kind->changes && (!x->kind->has_begun || x->kind->has_begun(x->arg));
}

void
works_drop_client(struct rpc *rpc, const struct client *client)
{
    struct work **at = rpc->works ? &rpc->works->first : NULL;
    while (at && *at) {
        struct work *x = *at;
        if (x->caller.client != client) {
            at = &x->next;
        } else if (must_end(x)) {
            ticket_free(x->ticket);
            x->ticket = NULL;
            x->caller.client = NULL;
            at = &x->next;
        } else {
            unlink_work(rpc->works, at);
            work_free(rpc, x);
        }
    }
}

bool
works_take_up(struct rpc *rpc, struct caller *c)
{
    struct work *x = rpc->works ? rpc->works->first : NULL;
    while (x && !(x->token && x->caller.uid == c->uid && strcmp(x->token, c->token) == 0))
        x = x->next;
    if (!x)
        return false;
    struct err e;
    err_set(&e, ERR_REFUSED, "the same request was sent again and is answered there");
    if (x->ticket)
        server_refuse(TAKE(x->ticket), &e);
    x->ticket = server_ticket(c);
    x->told_us = clock_boot_us();
    x->caller.client = c->client;
    return true;
}

static struct work *
find_change(const struct rpc *rpc)
{
    struct work *x = rpc->works ? rpc->works->first : NULL;
    while (x && !must_end(x))
        x = x->next;
    return x;
}

bool
works_change(const struct rpc *rpc)
{
    return find_change(rpc) != NULL;
}

void
works_finish(struct rpc *rpc)
{
    struct work *x;
    while ((x = find_change(rpc))) {
        had_its_turn(rpc->works, x); /* one may wait for another to complete */
        go_on(rpc, x);
    }
}

static void
on_closed(uv_handle_t *handle)
{
    struct rpc *rpc = handle->data;
    if (--rpc->works->closing > 0)
        return;
    free(rpc->works); /* which contains both handles */
    rpc->works = NULL;
}

void
works_free(struct rpc *rpc)
{
    struct works *all = rpc->works;
    if (!all)
        return;
    while (all->first) {
        struct work *x = all->first;
        unlink_work(all, &all->first);
        work_free(rpc, x);
    }
    all->closing = 2;
    uv_close((uv_handle_t *)&all->idle, on_closed);
    uv_close((uv_handle_t *)&all->rest, on_closed);
}

bool
works_read_past(const struct rpc *rpc)
{
    for (const struct work *x = rpc->works ? rpc->works->first : NULL; x; x = x->next)
        if (x->kind->past)
            return true;
    return false;
}
