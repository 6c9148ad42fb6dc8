/* `events`: the stream from any point on, and its followers. The stored part and the live part
 * join without gap or repetition, because both are cut at the same sequence number within one
 * turn. Stored events are read in pieces (long_work.h). A request with a limit examines a
 * bounded number of events, however few pass the filter. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "daemon/common/instance.h"
#include "daemon/common/turn_due.h"
#include "daemon/request/event_filter.h"
#include "daemon/request/roles.h"
#include "daemon/rpc/long_work.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "daemon/rpc/rpc_server.h"
#include "daemon/turn/event_line.h"
#include "store/store.h"

#define LOOK_MAX  20000 /* events that one request with a limit examines */
#define LOOK_EACH 100   /* events between two checks of the clock */

struct reading {
    const struct rpc *rpc;
    struct viewer viewer;
    struct event_filter filter;
    struct jsonw *out;
    int64_t limit; /* 0: none */
    bool follow;
    int64_t n, found; /* examined, returned */
    int64_t at;       /* sequence number of the last event examined */
    bool more;        /* the limit was reached before the end */
    int64_t until_us; /* boot clock: the end of this piece */
    bool is_late;     /* until_us has passed */
};

static void
give(struct reading *r, const struct store_event *ev)
{
    auto_buf struct buf line = BUF_INIT;
    event_line(ev, &line);
    const struct event_view view = {
        .kind = ev->kind, .job = ev->job, .file = ev->file, .line = line.data, .n = line.len};
    if (!event_filter_lets(&r->filter, &view) ||
        roles_hides_event(r->rpc->roles, &r->viewer, ev->job, line.data, line.len))
        return;
    r->found++;
    jsonw_raw(r->out, line.data, line.len);
}

static int
on_event(const struct store_event *ev, void *arg)
{
    struct reading *r = arg;
    if (r->limit > 0 && (r->found == r->limit || r->n == LOOK_MAX)) {
        r->more = true;
        return 1;
    }
    r->n++;
    r->at = ev->seq;
    if (event_filter_takes(&r->filter, ev->kind)) /* skips building the line */
        give(r, ev);
    r->is_late = r->n % LOOK_EACH == 0 && clock_boot_us() >= r->until_us;
    return r->is_late || r->out->full;
}

/* Reads the sequence number after which to begin. */
static int
read_since(const struct instance *inst, const json_t *params, int64_t *out, struct err *e)
{
    const json_t *since = json_object_get(params, "since");
    const json_t *since_us = json_object_get(params, "since_us");
    if ((since && !json_is_integer(since)) || (since_us && !json_is_integer(since_us)) ||
        (since && since_us))
        return err_set(e, ERR_USAGE,
                       "give either \"since\" (an event's number) or \"since_us\" (a time)");
    *out = json_integer_value(since);
    if (since && *out == 0)
        *out = store_event_last(inst->store);
    if (since_us)
        *out = store_event_before(inst->store, json_integer_value(since_us));
    return 0;
}

/* A follower joins at the end of what is stored and misses nothing, because this runs before
 * this turn's events are stored and sent. */
static int
step(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out, int64_t until_us,
     struct err *e)
{
    struct reading *r = arg;
    r->out = out;
    r->until_us = until_us;
    r->is_late = false;
    if (store_events_read(rpc->inst->store, r->at, on_event, r, e) < 0)
        return -1;
    if (r->is_late || out->full)
        return WORK_MORE; /* if full, run_slice reports it after each piece */
    jsonw_end_array(out);
    jsonw_kint(out, "seq", store_event_last(rpc->inst->store));
    jsonw_kint(out, "first", store_event_first(rpc->inst->store));
    jsonw_kint(out, "next", r->at);
    jsonw_kbool(out, "more", r->more);
    jsonw_end_object(out);
    if (r->follow && !r->more) { /* otherwise events in between would be missing */
        turn_retell_waiting(rpc->inst, r->filter.file);
        server_follow(c->client, &r->filter);
    }
    return WORK_DONE;
}

static void
reading_free(void *arg)
{
    struct reading *r = arg;
    event_filter_free(&r->filter);
    free(r);
}

int
method_events(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
              struct err *e)
{
    static const struct work_kind kind = {.step = step, .free = reading_free, .past = true};
    struct reading *r = xcalloc(1, sizeof *r);
    if (read_since(rpc->inst, params, &r->at, e) < 0 ||
        event_filter_read(params, &r->filter, e) < 0) {
        reading_free(r);
        return -1;
    }
    r->rpc = rpc;
    r->viewer = (struct viewer){.uid = c->uid, .admin = c->admin};
    r->limit = json_integer_value(json_object_get(params, "limit"));
    r->follow = json_is_true(json_object_get(params, "follow"));
    jsonw_object(out);
    jsonw_karray(out, "events");
    return work_begin(rpc, c, &kind, r, params, out, e);
}
