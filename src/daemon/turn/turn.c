/* The turn: see turn.h for its order, which is the whole durability argument. Methods, watcher
 * and prober change the core and say what must be written; this file decides when, and nothing
 * is acknowledged, launched or forgotten but from here. Its plan is carried out in
 * turn_plan.c; pass_on.c lists the readers of its changes; the events that it stores and sends
 * are turn_events.c's.
 *
 * When a commit fails the memory is put right again: jobs that are new in this turn go, starts
 * that were decided are undone, everything else stays marked and is tried again. */
#include "daemon/turn/turn.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/log.h"
#include "core/queue/queue.h"
#include "daemon/attempt/attempt_folder.h"
#include "daemon/attempt/launch.h"
#include "daemon/attempt/launch_spec.h"
#include "daemon/attempt/machine_trouble.h"
#include "daemon/attempt/supervisor_watch.h"
#include "daemon/common/counters.h"
#include "daemon/common/daemon.h"
#include "daemon/common/pace.h"
#include "daemon/common/turn_due.h"
#include "daemon/common/turn_priv.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/card_numbers.h"
#include "daemon/gpu/telemetry.h"
#include "daemon/outbox/outbox.h"
#include "daemon/rpc/long_work.h"
#include "daemon/rpc/rpc_server.h"
#include "daemon/rpc/waiters.h"
#include "daemon/slurm/slurm_engine.h"
#include "daemon/state/job_facts.h"
#include "daemon/state/starts.h"
#include "daemon/state/state.h"
#include "daemon/turn/idle_work.h"
#include "daemon/turn/job_rows.h"
#include "daemon/turn/pass_on.h"
#include "daemon/turn/promises_kept.h"
#include "store/store.h"

#define RETRY_MS      2000 /* after a failed commit */
#define CHECKPOINT_MS 1000 /* of quiet before the write-ahead log is folded in */
#define PRUNE_MS      50   /* between pieces of what goes */
#define BUSY_US       (30 * INT64_C(1000000)) /* without quiet: then it is done all the same */

static void
on_check(uv_check_t *check)
{
    struct daemon *d = check->data;
    if (!d->turn->due)
        return;
    turn_run(d);
}

/* After a failed commit. While the disk is full nothing new comes in that could show when it
 * has room again; the reserve, once it can be made again, does. */
static void
on_retry(uv_timer_t *timer)
{
    struct daemon *d = timer->data;
    struct err e = {0};
    (void)store_shrink_log(d->store, NULL);
    if (store_reserve_restore(d->store, &e) == 0) {
        d->turn->trouble.code = ERR_NONE;
        log_info("event=disk-is-well");
    } else {
        uv_timer_start(timer, on_retry, RETRY_MS, 0);
    }
    turn_touch(d);
}

/* A part of the turn is done. */
static void
part(struct daemon *d, const char *what)
{
    pace_spent(d, what, UINT32_MAX);
}

/* While there is more to do it stays overdue, so that a daemon that is never idle comes to the
 * end of it. */
static void
on_checkpoint(uv_timer_t *timer)
{
    struct daemon *d = timer->data;
    d->turn->ended_some = false;
    if (idle_work(d))
        uv_timer_start(timer, on_checkpoint, PRUNE_MS, 0);
    else
        d->turn->idle_us = clock_boot_us();
    part(d, "upkeep");
}

struct turn *
turn_new(struct daemon *d, void (*after)(struct daemon *))
{
    struct turn *t = xcalloc(1, sizeof *t);
    t->after = after;
    t->idle_us = clock_boot_us();
    t->retold = t->retold_all = 1;
    uv_idle_init(d->loop, &t->idle);
    uv_check_init(d->loop, &t->check);
    uv_timer_init(d->loop, &t->retry);
    uv_timer_init(d->loop, &t->checkpoint);
    uv_timer_init(d->loop, &t->wake);
    uv_timer_init(d->loop, &t->rest);
    t->check.data = t->retry.data = t->checkpoint.data = t->wake.data = t->rest.data = d;
    uv_check_start(&t->check, on_check);
    uv_unref((uv_handle_t *)&t->check);
    return t;
}

void
turn_close(struct turn *t)
{
    uv_close((uv_handle_t *)&t->idle, NULL);
    uv_close((uv_handle_t *)&t->check, NULL);
    uv_close((uv_handle_t *)&t->retry, NULL);
    uv_close((uv_handle_t *)&t->checkpoint, NULL);
    uv_close((uv_handle_t *)&t->wake, NULL);
    uv_close((uv_handle_t *)&t->rest, NULL);
}

void
turn_free(struct turn *t)
{
    free(t->waits);
    free(t->promised);
    free(t);
}

/* --- the transaction --- */

static void
disk_trouble(struct daemon *d, const struct err *e)
{
    struct turn *t = d->turn;
    bool is_new = !t->trouble.code;
    /* Said once, and not by everything that is tried meanwhile: the log may be on that disk. */
    if (is_new || strcmp(t->trouble.text, e->text) != 0)
        log_error("event=commit-failed %s", e->text);
    t->trouble = *e;
    if (is_new && store_reserve_release(d->store))
        log_warn("event=reserve-released outcomes are still written if there is room now");
    if (e->code == ERR_NO_SPACE)
        (void)store_shrink_log(d->store, NULL); /* our own log may be what fills it */
    uv_timer_start(&t->retry, on_retry, RETRY_MS, 0);
}

static void
retire(struct daemon *d, struct job *job)
{
    waits_job_ended(d, job);
    jobs_retire(&d->state, job);
}

static void
on_start_undone(void *arg, const struct job *job)
{
    folder_remove(arg, job->id, job->run->number);
}

static void
on_new_gone(void *arg, const struct job *job)
{
    waits_job_ended(arg, job); /* a client that waits for it already is not left waiting */
}

/* The store has rolled back: take back what no client has been told yet. */
static void
commit_failed(struct daemon *d, const struct err *e)
{
    disk_trouble(d, e);
    starts_take_back(&d->state, on_start_undone, on_new_gone, d);
    promises_regain_all(d);
    turn_events_keep_true(d);
    courier_not_saved(d);
    struct err told = {0};
    err_set(&told, e->code, "nothing was accepted: %s. Running jobs continue", e->text);
    works_not_saved(d, e);
    if (d->server)
        server_release(d->server, &told);
}

/* One that is saved, but for its launch. */
static void
act_on_job(struct daemon *d, struct job *job, unsigned what)
{
    if (what & SAVE_ATTEMPT)
        telemetry_written(d, job->id, what & SAVE_SETTLED);
    if (what & SAVE_SETTLED) {
        slurm_settled(d, job->id, job->run->number);
        watch_settled(d, job->id, job->run->number);
    }
    if (what & SAVE_ENDED) {
        d->turn->ended_some = true; /* so others may be old enough to go */
        retire(d, job);
    }
}

/* What was waiting for the disk: launches first, as a card is idle until then; good-byes to
 * supervisors, ends. Marks are taken from all beforehand: a launch that fails marks anew. */
static void
act_on_saved(struct daemon *d)
{
    struct changes *c = &d->state.changes;
    size_t n = c->n_unsaved;
    auto_free struct job **jobs = c->unsaved;
    auto_free uint8_t *what = xcalloc(n + 1, sizeof *what);
    c->unsaved = NULL;
    c->n_unsaved = c->cap_unsaved = 0;
    for (size_t i = 0; i < n; i++) {
        what[i] = jobs[i]->unsaved;
        jobs[i]->unsaved = 0;
    }
    for (size_t i = 0; i < n; i++)
        if (what[i] & SAVE_ATTEMPT_NEW) {
            starts_keep(jobs[i]);
            if (jobs[i]->req.demand.engine == ENGINE_SLURM)
                slurm_launch(d, jobs[i]);
            else
                launch_attempt(d, jobs[i]);
        }
    for (size_t i = 0; i < n; i++)
        act_on_job(d, jobs[i], what[i]);
}

/* For Slurm with what is to run: a node may come to the folder of any attempt that is
 * committed. */
static int
make_folder(struct daemon *d, const struct job *job, struct err *e)
{
    auto_close int dir = -1;
    auto_close int lock = -1;
    if (folder_make(d, job, e) < 0)
        return -1;
    if (job->req.demand.engine != ENGINE_SLURM || spec_fill_folder(d, job, &dir, &lock, e) == 0)
        return 0;
    folder_remove(d, job->id, job->run->number);
    return -1;
}

/* The folders of those that start with this commit: first, so that what is committed has one. A
 * start whose folder cannot be made has not been decided: its job waits. */
static void
make_folders(struct daemon *d)
{
    const struct changes *c = &d->state.changes;
    bool undone = false;
    for (size_t i = 0; i < c->n_unsaved; i++) {
        struct job *job = c->unsaved[i];
        struct err e = {0};
        if (!(job->unsaved & SAVE_ATTEMPT_NEW))
            continue;
        if (!machine_says(d) && make_folder(d, job, &e) == 0)
            continue;
        if (e.code)
            machine_trouble(d, e.text);
        starts_undo(&d->state, job);
        promises_regain(d, job->id);
        undone = true;
    }
    if (undone)
        turn_events_keep_true(d);
}

static void
write_job(struct daemon *d, struct job *job)
{
    rows_write(d->store, &d->state, job);
    if (job->unsaved & SAVE_ATTEMPT && !(job->unsaved & SAVE_ATTEMPT_NEW))
        telemetry_write(d, job, job->unsaved & SAVE_SETTLED);
}

/* A turn that changes nothing writes nothing, and says nothing of the disk. */
static int
save(struct daemon *d, struct err *e)
{
    bool any = store_has_changes(d->store);
    int64_t began_us = clock_boot_us();
    int rc = store_commit(d->store, e);
    if (any)
        tally_commit(d, clock_boot_us() - began_us, rc ? e : NULL);
    return rc;
}

static int
commit(struct daemon *d)
{
    const struct changes *c = &d->state.changes;
    struct err e = {0};
    make_folders(d);
    slurm_prepare(d);
    for (size_t i = 0; i < c->n_unsaved; i++)
        write_job(d, c->unsaved[i]);
    /* With what recovery found, in whichever turn gets the last of that onto the disk: a daemon
     * that is started before has to know that there was a boot in between. */
    if (d->ready && strcmp(store_boot_id(d->store), clock_boot_id()) != 0 &&
        !watch_has_of_before(d))
        store_boot_id_set(d->store, clock_boot_id(), NULL);
    health_save(d);
    cards_save(d);
    promises_save(d);
    courier_save(d);
    pass_on_changes(d); /* what has been noted since: its events belong to this commit too */
    turn_events_write(d);
    tally_write(d, c->unsaved, c->n_unsaved);
    part(d, "rows");
    crash_point("daemon-before-commit");
    if (save(d, &e) < 0) {
        commit_failed(d, &e);
        return -1;
    }
    works_saved(d);
    tally_written(d);
    health_saved(d);
    cards_saved(d);
    promises_saved(d);
    crash_point("daemon-after-commit");
    return 0;
}

/* All that a turn does is done for those who changed something: their next requests wait for
 * it. */
static void
charge(struct daemon *d, int64_t began_us)
{
    if (d->server)
        server_charge_turn(d->server, clock_boot_us() - began_us);
}

int
turn_run(struct daemon *d)
{
    struct turn *t = d->turn;
    const struct changes *c = &d->state.changes;
    int64_t began_us = clock_boot_us();
    part(d, PACE_REST);
    health_settle(d);
    pass_on_changes(d); /* a job that is to be stopped does not wait for the plan */
    part(d, "changes");
    bool planned = (t->plan_due || t->more_due) && turn_plan(d);
    part(d, "plan");
    pass_on_changes(d);
    part(d, "changes");
    /* After the plan, whose own marks and events go with this very commit. */
    t->due = false;
    t->plan_due &= !planned;
    uv_idle_stop(&t->idle);
    bool overdue = clock_boot_us() - t->idle_us > BUSY_US;
    if (!overdue && (store_has_changes(d->store) || c->n_unsaved + c->n > 0))
        uv_timer_stop(&t->checkpoint); /* not quiet; reads do not count */
    if (commit(d)) {
        t->again = false; /* the retry's timer comes back */
        if (d->stopping && !d->stop_when_empty)
            t->after(d);
        return -1;
    }
    part(d, "commit");
    if (t->again)
        turn_touch(d);
    t->again = false;
    if (d->server)
        server_release(d->server, NULL);
    turn_events_publish(d);
    part(d, "answers");
    if (planned)
        turn_tell_why_waiting(d);
    part(d, "why");
    crash_point("daemon-after-reply");
    act_on_saved(d);
    courier_saved(d);
    part(d, "launches");
    if ((store_wants_checkpoint(d->store) || t->ended_some || overdue) &&
        !uv_is_active((uv_handle_t *)&t->checkpoint))
        uv_timer_start(&t->checkpoint, on_checkpoint, CHECKPOINT_MS, 0);
    charge(d, began_us);
    t->after(d);
    return 0;
}
