/* The events of a turn: created by the code that changes something, stored with the turn's
 * commit, and sent to followers and hooks after it; a failed commit undoes them without a
 * trace. event_text.c has their text. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/queue/queue.h"
#include "daemon/daemon.h"
#include "daemon/outbox/outbox_fill.h"
#include "daemon/request/event_filter.h"
#include "daemon/rpc/rpc_server.h"
#include "daemon/turn/event_text.h"
#include "daemon/turn/turn.h"
#include "daemon/turn/turn_priv.h"
#include "store/store.h"

#define COMMAND_IN_EVENT 200

static void
event_free(struct event *ev)
{
    buf_free(&ev->json);
    buf_free(&ev->line);
}

void
turn_events_free(struct turn *t)
{
    for (size_t i = 0; i < t->n_events; i++)
        event_free(&t->events[i]);
    free(t->events);
}

struct jsonw *
turn_event(struct daemon *d, const char *kind, const struct job *job)
{
    struct turn *t = d->turn;
    if (t->n_events == t->cap_events) {
        t->cap_events = t->cap_events ? t->cap_events * 2 : 64;
        t->events = xrealloc(t->events, t->cap_events * sizeof *t->events);
    }
    struct event *ev = &t->events[t->n_events++];
    *ev = (struct event){.at_us = clock_wall_us(), .json = BUF_INIT};
    snprintf(ev->kind, sizeof ev->kind, "%s", kind);
    jsonw_init(&t->writer, &ev->json);
    jsonw_object(&t->writer);
    if (d->caller) /* who did what to whose job, by what the kernel says */
        jsonw_kint(&t->writer, "by_uid", d->caller->uid);
    if (job) {
        ev->job = job->id;
        ev->hooks = hooks_concern(d, job, kind);
        ev->file = job->file;
        jsonw_kstr(&t->writer, "user", daemon_owner_name(job));
        if (job->req.name)
            jsonw_kstr(&t->writer, "name", job->req.name);
        jsonw_key(&t->writer, "command");
        events_write_command(&t->writer, job, COMMAND_IN_EVENT);
        if (job->line)
            jsonw_kint(&t->writer, "line", job->line);
        if (job->array) {
            jsonw_kint(&t->writer, "array_job", job->array);
            jsonw_kint(&t->writer, "array_task", job->task);
        }
    }
    turn_touch(d);
    return &t->writer;
}

void
turn_event_end(struct daemon *d)
{
    jsonw_end_object(&d->turn->writer);
}

void
turn_events_write(struct daemon *d)
{
    for (size_t i = 0; i < d->turn->n_events; i++) {
        struct event *ev = &d->turn->events[i];
        struct store_event row = {.at_us = ev->at_us,
                                  .kind = ev->kind,
                                  .job = ev->job,
                                  .file = ev->file,
                                  .json = ev->json.data,
                                  .json_len = ev->json.len};
        struct err e;
        store_event_add(d->store, &row, &e);
        event_line(&row, &ev->line);
        const struct job *job = ev->hooks ? queue_get(d->queue, ev->job) : NULL;
        if (job)
            hooks_post(d, job, ev->kind, buf_str(&ev->line));
    }
}

void
turn_events_keep_true(struct daemon *d)
{
    struct turn *t = d->turn;
    size_t keep = 0;
    for (size_t i = 0; i < t->n_events; i++) {
        struct event *ev = &t->events[i];
        const struct job *job = ev->job ? queue_get(d->queue, ev->job) : NULL;
        bool undone = strcmp(ev->kind, "started") == 0 && job && job->state == JOB_PENDING;
        buf_clear(&ev->line);
        if ((ev->job && !job) || undone)
            event_free(ev);
        else
            t->events[keep++] = *ev;
    }
    t->n_events = keep;
}

void
turn_events_publish(struct daemon *d)
{
    struct turn *t = d->turn;
    for (size_t i = 0; i < t->n_events; i++) {
        struct event *ev = &t->events[i];
        if (d->server)
            server_publish(d->server, &(struct event_view){.kind = ev->kind,
                                                           .job = ev->job,
                                                           .file = ev->file,
                                                           .line = ev->line.data,
                                                           .n = ev->line.len});
        event_free(ev);
    }
    if (d->server && t->n_events > 0)
        server_publish_end(d->server);
    t->n_events = 0;
}
