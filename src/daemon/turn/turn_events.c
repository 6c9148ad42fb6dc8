/* Events made of a turn's changes: stored with its commit, then sent to followers and hooks; a
 * failed commit undoes them completely. event_text.c makes their text. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/queue/queue.h"
#include "daemon/state/changes.h"
#include "daemon/state/state.h"
#include "daemon/turn/event_line.h"
#include "daemon/turn/turn_priv.h"
#include "store/store.h"

/* Looks the change up again for each part, because a part that notes a change may have
 * reallocated the list. */
void
turn_events_read(struct turn *t)
{
    struct changes *c = &t->state->changes;
    for (; c->n_read < c->n; c->n_read++)
        PARTS(t, read, &c->list[c->n_read]);
}

void
turn_events_write(struct turn *t)
{
    const struct changes *c = &t->state->changes;
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
        store_event_add(t->store, &row, &e);
        event_line(&row, &ev->line);
        PARTS(t, write_event, ev);
    }
}

void
turn_events_keep_true(struct turn *t)
{
    const struct queue *q = t->state->queue;
    struct changes *c = &t->state->changes;
    size_t keep = 0, n_read = 0;
    for (size_t i = 0; i < c->n; i++) {
        bool is_read = i < c->n_read;
        struct change *ev = &c->list[i];
        const struct job *job = ev->job ? queue_get(q, ev->job) : NULL;
        bool undone = ev->type == CHANGE_STARTED && job && job->state == JOB_PENDING;
        buf_clear(&ev->line);
        /* A job that had ended before may have an event too, which stays valid. */
        bool taken_back = ev->of_live && !job;
        if ((is_read && !ev->kind[0]) || taken_back || undone) {
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
turn_events_publish(struct turn *t)
{
    struct changes *c = &t->state->changes;
    PARTS(t, publish, c->list, c->n_read);
    if (changes_drop_read(c))
        turn_is_due(t);
}
