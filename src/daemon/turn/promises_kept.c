/* See promises_kept.h. Promises are stored as a note, one line each: "JOB AT_US CARDS
 * LIMIT_MS". Their times, and the expected ends of running jobs, are on the wall clock; so the
 * note also has a line "clock OFFSET_US BOOT" and, for each running job during which the clock
 * was set, "set JOB BY_US". Called by turn.c, turn_plan.c and berthd.c. */
#include "daemon/turn/promises_kept.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/plan/plan.h"
#include "core/queue/queue.h"
#include "daemon/state/state.h"
#include "daemon/turn/clock_steps.h"
#include "daemon/turn/turn_priv.h"
#include "store/store.h"

#define NOTE "promises"

static void
write_all(const struct turn *t, struct buf *out)
{
    size_t n;
    const struct promise *list = planner_promises(t->state->planner, &n);
    buf_addf(out, "clock %" PRId64 " %s\n", clocksteps_offset_us(&t->clock), clock_boot_id());
    for (struct job *job = queue_active(t->state->queue); job; job = queue_active_next(job)) {
        if (job->run && job->run->clock_set_us)
            buf_addf(out, "set %" PRIu32 " %" PRId64 "\n", job->id, job->run->clock_set_us);
    }
    for (size_t i = 0; i < n; i++)
        buf_addf(out, "%" PRIu32 " %" PRId64 " %" PRIx64 " %" PRId64 "\n", list[i].job,
                 list[i].at_us, list[i].cards, list[i].limit_ms);
}

/* True if the note was written in this boot. *length: 0 if there is no such line. */
static bool
read_clock(const char *at, int64_t *offset_us, int *length)
{
    char boot[64];
    *length = 0;
    return sscanf(at, "clock %" SCNd64 " %63s\n%n", offset_us, boot, length) == 2 &&
           strcmp(boot, clock_boot_id()) == 0;
}

static bool
read_set(struct turn *t, const char *at, int *length)
{
    uint32_t id;
    int64_t by_us;
    if (sscanf(at, "set %" SCNu32 " %" SCNd64 "\n%n", &id, &by_us, length) != 2)
        return false;
    struct job *job = queue_get(t->state->queue, id);
    if (job && job->run && job_state_is_active(job->state))
        job->run->clock_set_us = by_us;
    return true;
}

static bool
read_promise(struct turn *t, const char *at, int *length)
{
    struct promise x = {0};
    if (sscanf(at, "%" SCNu32 " %" SCNd64 " %" SCNx64 " %" SCNd64 "\n%n", &x.job, &x.at_us,
               &x.cards, &x.limit_ms, length) != 4)
        return false;
    if (queue_get(t->state->queue, x.job))
        planner_restore_promise(t->state->planner, &x);
    return true;
}

void
promises_load(struct turn *t)
{
    auto_free char *text = store_note_get(t->store, NOTE);
    const char *at = text ? text : "";
    int64_t offset_us = 0;
    int length;
    bool is_this_boot = read_clock(at, &offset_us, &length);
    for (at += length; read_set(t, at, &length); at += length)
        ;
    for (; read_promise(t, at, &length); at += length)
        ;
    if (*at)
        log_warn("event=promises-damaged some of the promised starts cannot be read");
    if (is_this_boot)
        clocksteps_was(&t->clock, t->state, offset_us);
    clocksteps_bound_retries(t->state);
    t->promised = text ? TAKE(text) : xstrdup("");
}

void
promises_save(struct turn *t)
{
    auto_buf struct buf text = BUF_INIT;
    struct err e; /* errors stick to the store; store_commit reports them */
    if (!t->promised)
        return;
    write_all(t, &text);
    if (strcmp(buf_str(&text), t->promised) != 0)
        store_note_put(t->store, NOTE, buf_str(&text), &e);
}

void
promises_saved(struct turn *t)
{
    auto_buf struct buf text = BUF_INIT;
    t->n_kept = 0;
    if (!t->promised)
        return;
    write_all(t, &text);
    free(t->promised);
    t->promised = xstrdup(buf_str(&text));
}

static void
regain(struct turn *t, const struct kept_promise *x)
{
    struct promise promise = x->promise;
    if (queue_get(t->state->queue, x->as))
        promise.job = x->as; /* a task that is a job of its own now */
    planner_restore_promise(t->state->planner, &promise);
}

void
promises_regain(struct turn *t, uint32_t id)
{
    for (size_t i = 0; i < t->n_kept; i++) {
        if (t->kept[i].as == id)
            regain(t, &t->kept[i]);
    }
}

void
promises_regain_all(struct turn *t)
{
    for (size_t i = 0; i < t->n_kept; i++)
        regain(t, &t->kept[i]);
    t->n_kept = 0;
}

static void
say_why(const struct turn *t, const struct broken *x, struct buf *out)
{
    const struct job *by = x->by ? queue_get(t->state->queue, x->by) : NULL;
    struct called called = {.id = x->by};
    if (by && by->array)
        called = (struct called){.id = by->id, .array = by->array, .task = by->task};
    buf_adds(out, "the promised start cannot be kept: ");
    switch (x->why) {
    case BROKEN_OVERRUN:
        buf_adds(out, "job ");
        called_text(&called, out);
        buf_adds(out, " has not ended at its time limit");
        return;
    case BROKEN_PRIORITY:
        buf_adds(out, "job ");
        called_text(&called, out);
        buf_adds(out, " has a higher priority");
        return;
    case BROKEN_MACHINE:
        buf_adds(out, "the GPUs, cores or memory for it are no longer free by then");
        return;
    case BROKEN_LIMIT:
        buf_adds(out, "a limit that was set since may hold the job back");
        return;
    case BROKEN_SETTINGS:
        buf_adds(out, "the settings now allow fewer promised starts");
        return;
    }
}

void
promises_tell(struct turn *t, const struct plan *p)
{
    for (size_t i = 0; i < p->n_broken; i++) {
        const struct broken *x = &p->broken[i];
        const struct job *job = queue_get(t->state->queue, x->job);
        auto_buf struct buf text = BUF_INIT;
        if (!job)
            continue;
        say_why(t, x, &text);
        struct change *c = state_note(t->state, CHANGE_DELAYED, job);
        c->begin_us = x->at_us;
        c->other = x->by;
        c->text = xstrdup(buf_str(&text));
    }
}
