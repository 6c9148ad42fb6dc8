/* Event filters: see event_filter.h. Used by method_events.c for stored events, and by
 * rpc_server.c for each event and follower. */
#include "daemon/request/event_filter.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/ids.h"
#include "base/jsonw.h"

/* All kinds of events (docs/protocol.md, "An event"). */
static const char *const kinds[] = {
    "submitted", "waiting",   "started", "launched", "warning",   "exceeds",
    "ended",     "requeued",  "held",    "released", "cancelled", "signal",
    "updated",   "preempted", "usage",   "hook",     "gpu",       "daemon",
    "attached",  "detached",  "requeue", "delayed",
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static uint32_t
kind_bit(const char *name)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(name, kinds[i]) == 0)
            return UINT32_C(1) << i;
    return 0;
}

static int
read_kinds(const json_t *list, uint32_t *out, struct err *e)
{
    auto_buf struct buf known = BUF_INIT;
    const json_t *item;
    size_t i;
    for (i = 0; i < KINDS; i++)
        buf_addf(&known, "%s%s", i ? ", " : "", kinds[i]);
    if (!json_is_array(list) || json_array_size(list) == 0)
        return err_set(e, ERR_USAGE, "\"kinds\" must be a list of some of %s", buf_str(&known));
    json_array_foreach(list, i, item)
    {
        const char *name = json_string_value(item);
        uint32_t bit = name ? kind_bit(name) : 0;
        if (!bit)
            return err_set(e, ERR_USAGE, "unknown kind of event '%.40s'; the kinds are %s",
                           name ? name : "?", buf_str(&known));
        *out |= bit;
    }
    return 0;
}

static int
read_jobs(const json_t *list, struct event_filter *out, struct err *e)
{
    const json_t *item;
    size_t i;
    if (!json_is_array(list))
        return err_set(e, ERR_USAGE, "\"jobs\" must be a list of ids");
    out->jobs = xcalloc(json_array_size(list) + 1, sizeof *out->jobs);
    json_array_foreach(list, i, item) out->jobs[out->n_jobs++] =
        (uint32_t)json_integer_value(item);
    qsort(out->jobs, (size_t)out->n_jobs, sizeof *out->jobs, ids_compare);
    return 0;
}

/* The user's member as in the event line. It cannot match inside a user's text, where quotes
 * are escaped. */
static char *
user_text(const char *name)
{
    struct buf out = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &out);
    jsonw_object(&w);
    jsonw_kstr(&w, "user", name);
    buf_drop(&out, 1);
    return buf_take(&out);
}

int
event_filter_read(const json_t *params, struct event_filter *out, struct err *e)
{
    const json_t *jobs = json_object_get(params, "jobs");
    const json_t *wanted = json_object_get(params, "kinds");
    const json_t *user = json_object_get(params, "user");
    *out = (struct event_filter){
        .file = (uint32_t)json_integer_value(json_object_get(params, "file"))};
    if (user && !json_is_string(user))
        return err_set(e, ERR_USAGE, "\"user\" must be a user's name");
    if ((wanted && read_kinds(wanted, &out->kinds, e) < 0) ||
        (jobs && read_jobs(jobs, out, e) < 0)) {
        event_filter_free(out);
        return -1;
    }
    out->only_jobs = json_is_false(json_object_get(params, "machine"));
    if (user)
        out->user = user_text(json_string_value(user));
    return 0;
}

void
event_filter_free(struct event_filter *f)
{
    free(f->jobs);
    free(f->user);
    *f = (struct event_filter){0};
}

bool
event_filter_takes(const struct event_filter *f, const char *kind)
{
    return !f->kinds || f->kinds & kind_bit(kind);
}

bool
event_filter_lets(const struct event_filter *f, const struct event_view *ev)
{
    if (!event_filter_takes(f, ev->kind))
        return false;
    if (f->user && !memmem(ev->line, ev->n, f->user, strlen(f->user)))
        return false;
    if (ev->job == 0) /* about the machine: for all users */
        return !f->only_jobs;
    if (f->file && f->file != ev->file)
        return false;
    return !f->jobs ||
           bsearch(&ev->job, f->jobs, (size_t)f->n_jobs, sizeof ev->job, ids_compare);
}
