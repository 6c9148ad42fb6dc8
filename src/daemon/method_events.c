/* `events`: the stream from any point on, and whoever follows it. The stored part and the
 * live part join without gap or repetition, because both are cut at the same sequence
 * number within one turn. With a limit a request looks at a bounded piece of what is stored,
 * however little of it the filter lets through. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/queue.h"
#include "daemon/daemon.h"
#include "daemon/event_filter.h"
#include "daemon/events.h"
#include "daemon/methods.h"
#include "daemon/roles.h"
#include "daemon/turn.h"
#include "store/store.h"

#define LOOK_MAX 20000 /* events, of one request with a limit: some 20 ms */

struct reading {
    const struct daemon *daemon;
    struct viewer viewer;
    const struct event_filter *filter;
    struct jsonw *out;
    int64_t limit;    /* 0: none */
    int64_t n, found; /* looked at, given */
    int64_t at;       /* the last that was looked at */
    bool more;        /* it ended before the end */
};

static int
on_event(const struct store_event *ev, void *arg)
{
    struct reading *r = arg;
    auto_buf struct buf line = BUF_INIT;
    if (r->limit > 0 && (r->found == r->limit || r->n == LOOK_MAX)) {
        r->more = true;
        return 1;
    }
    event_line(ev, &line);
    const struct event_view view = {
        .kind = ev->kind, .job = ev->job, .file = ev->file, .line = line.data, .n = line.len};
    r->n++;
    r->at = ev->seq;
    if (!event_filter_lets(r->filter, &view) ||
        roles_hides_event(r->daemon, &r->viewer, ev->job, line.data, line.len))
        return 0;
    r->found++;
    jsonw_raw(r->out, line.data, line.len);
    return 0;
}

/* Why jobs wait is not stored, so a follower that has just come is told again. */
static void
retell_waiting(struct daemon *d, const struct event_filter *f)
{
    for (size_t i = 0; i < queue_n_kinds(d->queue); i++) {
        struct job *head = queue_kind(d->queue, i)->head;
        if (!f->file || head->file == f->file)
            head->waiting_told = false;
    }
    turn_touch(d);
}

/* Behind which number to begin. */
static int
read_since(const struct daemon *d, const json_t *params, int64_t *out, struct err *e)
{
    const json_t *since = json_object_get(params, "since");
    const json_t *since_us = json_object_get(params, "since_us");
    if ((since && !json_is_integer(since)) || (since_us && !json_is_integer(since_us)) ||
        (since && since_us))
        return err_set(e, ERR_USAGE,
                       "\"since\" must be an event's number, or \"since_us\" a time: one of "
                       "them");
    *out = json_integer_value(since);
    if (since && *out == 0)
        *out = store_event_last(d->store);
    if (since_us)
        *out = store_event_before(d->store, json_integer_value(since_us));
    return 0;
}

static int
answer(struct daemon *d, int64_t since, struct reading *r, struct err *e)
{
    r->at = since;
    jsonw_object(r->out);
    jsonw_key(r->out, "events");
    jsonw_array(r->out);
    int rc = store_events_read(d->store, since, on_event, r, e);
    jsonw_end_array(r->out);
    jsonw_kint(r->out, "seq", store_event_last(d->store));
    jsonw_kint(r->out, "first", store_event_first(d->store));
    jsonw_kint(r->out, "next", r->at);
    jsonw_kbool(r->out, "more", r->more);
    jsonw_end_object(r->out);
    return rc;
}

int
method_events(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
              struct err *e)
{
    struct event_filter filter;
    int64_t since = 0;
    if (read_since(d, params, &since, e) || event_filter_read(params, &filter, e))
        return -1;
    struct reading r = {.daemon = d,
                        .viewer = {.uid = c->uid, .admin = c->admin},
                        .filter = &filter,
                        .out = out,
                        .limit = json_integer_value(json_object_get(params, "limit"))};
    int rc = answer(d, since, &r, e);
    if (rc == 0 && json_is_true(json_object_get(params, "follow"))) {
        retell_waiting(d, &filter);
        server_follow(c->client, &filter);
    }
    event_filter_free(&filter);
    return rc;
}
