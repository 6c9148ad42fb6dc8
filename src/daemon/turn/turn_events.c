/* The events that the changes of a turn make: stored with its commit, and sent to followers and
 * hooks after it; a failed commit undoes them without a trace. event_text.c has their text. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/queue/queue.h"
#include "daemon/common/daemon.h"
#include "daemon/common/event_words.h"
#include "daemon/common/turn_due.h"
#include "daemon/common/turn_priv.h"
#include "daemon/outbox/outbox_fill.h"
#include "daemon/request/event_filter.h"
#include "daemon/rpc/rpc_server.h"
#include "store/store.h"

void
turn_events_write(struct daemon *d)
{
    const struct changes *c = &d->state.changes;
    for (size_t i = 0; i < c->n_read; i++) {
        struct change *ev = &c->list[i];
        if (!ev->kind[0])
            continue;
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
    struct changes *c = &d->state.changes;
    size_t keep = 0, n_read = 0;
    for (size_t i = 0; i < c->n; i++) {
        bool is_read = i < c->n_read;
        struct change *ev = &c->list[i];
        const struct job *job = ev->job ? queue_get(d->queue, ev->job) : NULL;
        bool undone = ev->type == CHANGE_STARTED && job && job->state == JOB_PENDING;
        buf_clear(&ev->line);
        if ((is_read && !ev->kind[0]) || (ev->job && !job) || undone) {
            change_free(ev);
        } else {
            c->list[keep++] = *ev;
            n_read += is_read;
        }
    }
    c->n = keep;
    c->n_read = n_read;
}

void
turn_events_publish(struct daemon *d)
{
    struct changes *c = &d->state.changes;
    bool any = false;
    for (size_t i = 0; i < c->n_read; i++) {
        const struct change *ev = &c->list[i];
        any |= ev->kind[0] != '\0';
        if (d->server && ev->kind[0])
            server_publish(d->server, &(struct event_view){.kind = ev->kind,
                                                           .job = ev->job,
                                                           .file = ev->file,
                                                           .line = ev->line.data,
                                                           .n = ev->line.len});
    }
    if (d->server && any)
        server_publish_end(d->server);
    if (changes_drop_read(c))
        turn_touch(d);
}
