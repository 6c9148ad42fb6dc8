/* `events`: the stream from any point on, and whoever follows it. The stored part and the
 * live part join without gap or repetition, because both are cut at the same sequence
 * number within one turn. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/queue.h"
#include "daemon/daemon.h"
#include "daemon/events.h"
#include "daemon/methods.h"
#include "daemon/roles.h"
#include "daemon/turn.h"
#include "store/store.h"

struct reading {
    const struct daemon *daemon;
    struct viewer viewer;
    struct jsonw *out;
};

static int
on_event(const struct store_event *ev, void *arg)
{
    const struct reading *r = arg;
    auto_buf struct buf line = BUF_INIT;
    event_line(ev, &line);
    if (!roles_hides_event(r->daemon, &r->viewer, ev->job, line.data, line.len))
        jsonw_raw(r->out, line.data, line.len);
    return 0;
}

static int
compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static int
read_filter(const json_t *params, struct follow *out, struct err *e)
{
    const json_t *jobs = json_object_get(params, "jobs"), *j;
    size_t i;
    *out =
        (struct follow){.file = (uint32_t)json_integer_value(json_object_get(params, "file"))};
    if (!jobs)
        return 0;
    if (!json_is_array(jobs))
        return err_set(e, ERR_USAGE, "\"jobs\" must be a list of ids");
    out->jobs = xcalloc(json_array_size(jobs) + 1, sizeof *out->jobs);
    json_array_foreach(jobs, i, j) out->jobs[out->n_jobs++] = (uint32_t)json_integer_value(j);
    qsort(out->jobs, (size_t)out->n_jobs, sizeof *out->jobs, compare_ids);
    return 0;
}

/* Why jobs wait is not stored, so a follower that has just come is told again. */
static void
retell_waiting(struct daemon *d, const struct follow *f)
{
    for (size_t i = 0; i < queue_n_kinds(d->queue); i++) {
        struct job *head = queue_kind(d->queue, i)->head;
        if (!f->file || head->file == f->file)
            head->waiting_told = false;
    }
    turn_touch(d);
}

int
method_events(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
              struct err *e)
{
    const json_t *since = json_object_get(params, "since");
    struct follow follow;
    if (read_filter(params, &follow, e))
        return -1;
    struct store_event_filter f = {
        .since = json_integer_value(since),
        .limit = json_integer_value(json_object_get(params, "limit")),
        .file = follow.file,
        .jobs = follow.jobs,
        .n_jobs = follow.n_jobs,
    };
    if (json_is_integer(since) && f.since == 0)
        f.since = store_event_last(d->store);
    jsonw_object(out);
    jsonw_key(out, "events");
    jsonw_array(out);
    struct reading r = {.daemon = d, .viewer = {.uid = c->uid, .admin = c->admin}, .out = out};
    int rc = store_events_read(d->store, &f, on_event, &r, e);
    jsonw_end_array(out);
    jsonw_kint(out, "seq", store_event_last(d->store));
    jsonw_end_object(out);
    if (rc == 0 && json_is_true(json_object_get(params, "follow"))) {
        retell_waiting(d, &follow);
        server_follow(c->client, &follow);
    }
    free(follow.jobs);
    return rc;
}
