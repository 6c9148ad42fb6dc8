/* The turn: see turn.h for its order, on which durability rests. Methods, the supervisor watch
 * and the prober change the state and mark what must be written; only this file decides when,
 * and everything is acknowledged, launched or forgotten from here. turn_plan.c carries out the
 * plan; turn_events.c stores and sends the events.
 *
 * After a failed commit the memory is restored: jobs new in this turn are removed, starts are
 * undone, and everything else stays marked and is tried again. */
#include "daemon/turn/turn.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/log.h"
#include "core/queue/queue.h"
#include "daemon/state/estimates.h"
#include "daemon/state/job_facts.h"
#include "daemon/state/starts.h"
#include "daemon/state/state.h"
#include "daemon/turn/job_rows.h"
#include "daemon/turn/promises_kept.h"
#include "daemon/turn/turn_priv.h"
#include "store/store.h"

#define RETRY_MS      2000 /* before a failed commit is tried again */
#define CHECKPOINT_MS 1000 /* of quiet before the write-ahead log is checkpointed */
#define PRUNE_MS      50   /* between pieces of the pruning */
#define BUSY_US       (30 * INT64_C(1000000)) /* without quiet, upkeep runs anyway */

struct turn *
turn_new(struct state *s, struct store *store, const struct turn_host *host,
         const struct turn_part *parts, size_t n)
{
    struct turn *t = xcalloc(1, sizeof *t);
    t->state = s;
    t->store = store;
    t->host = *host;
    t->parts = xcalloc(n + 1, sizeof *parts);
    memcpy(t->parts, parts, n * sizeof *parts);
    t->n_parts = n;
    t->idle_us = turn_now_us(t);
    t->retold = t->retold_all = 1;
    clocksteps_begin(&t->clock, s);
    return t;
}

void
turn_free(struct turn *t)
{
    free(t->waits);
    free(t->promised);
    free(t->parts);
    free(t);
}

int64_t
turn_now_us(const struct turn *t)
{
    const struct around *around = t->state->around;
    return around->boot_us(around->arg);
}

void
turn_set_timer(const struct turn *t, enum turn_timer which, int64_t ms)
{
    t->host.set_timer(t->host.arg, which, ms);
}

void
turn_stop_timer(const struct turn *t, enum turn_timer which)
{
    t->host.stop_timer(t->host.arg, which);
}

/* Accounts the time since the last call to this part of the turn. */
static void
spent(const struct turn *t, const char *what)
{
    t->host.spent(t->host.arg, what);
}

/* --- requesting a turn --- */

void
turn_is_due_unplanned(struct turn *t)
{
    if (t->due)
        return;
    t->due = true;
    turn_set_timer(t, TURN_NOW, 0);
}

void
turn_is_due(struct turn *t)
{
    t->plan_due = true;
    turn_is_due_unplanned(t);
}

void
turn_is_due_unchanged(struct turn *t)
{
    t->more_due = true;
    turn_is_due_unplanned(t);
}

/* After a failed commit. While the disk is full, no new work is accepted whose commit could
 * show that there is room again; so success in recreating the reserve is the test. */
static void
try_again(struct turn *t)
{
    struct err e = {0};
    (void)store_shrink_log(t->store, NULL);
    if (store_reserve_restore(t->store, &e) == 0) {
        t->trouble.code = ERR_NONE;
        log_info("event=disk-is-well");
    } else {
        turn_set_timer(t, TURN_RETRY, RETRY_MS);
    }
    turn_is_due(t);
}

/* Upkeep stays overdue while more is left, so that it completes even on a daemon that is
 * never idle. */
static void
do_upkeep(struct turn *t)
{
    t->ended_some = false;
    t->upkeep_set = t->host.upkeep(t->host.arg);
    if (t->upkeep_set)
        turn_set_timer(t, TURN_UPKEEP, PRUNE_MS);
    else
        t->idle_us = turn_now_us(t);
    spent(t, "upkeep");
}

void
turn_timer_over(struct turn *t, enum turn_timer which)
{
    switch (which) {
    case TURN_NOW:
        break;
    case TURN_WAKE:
        turn_is_due(t);
        break;
    case TURN_REST:
        turn_is_due_unchanged(t);
        break;
    case TURN_RETRY:
        try_again(t);
        break;
    case TURN_UPKEEP:
        do_upkeep(t);
        break;
    }
}

const struct err *
turn_trouble(const struct turn *t)
{
    return t->trouble.code ? &t->trouble : NULL;
}

/* --- the transaction --- */

static void
disk_trouble(struct turn *t, const struct err *e)
{
    bool is_new = !t->trouble.code;
    /* Logged once per error rather than for each failed try: the log may be on that disk. */
    if (is_new || strcmp(t->trouble.text, e->text) != 0)
        log_error("event=commit-failed %s", e->text);
    t->trouble = *e;
    if (is_new && store_reserve_release(t->store))
        log_warn("event=reserve-released outcomes are still written if there is room now");
    if (e->code == ERR_NO_SPACE)
        (void)store_shrink_log(t->store, NULL); /* the WAL may be what fills it */
    turn_set_timer(t, TURN_RETRY, RETRY_MS);
}

static void
on_start_undone(void *arg, const struct job *job)
{
    const struct turn *t = arg;
    PARTS(t, start_undone, job);
}

static void
on_new_gone(void *arg, const struct job *job)
{
    const struct turn *t = arg;
    PARTS(t, job_gone, job);
}

void
turn_say_not_saved(const struct err *why, struct err *e)
{
    err_set(
        e, why->code,
        "no new job was accepted, and a change to jobs may take effect only later, when the "
        "disk can be written again: %s. Running jobs continue",
        why->text);
}

/* The store has rolled back: takes back what has not been acknowledged to any client. */
static void
commit_failed(struct turn *t, const struct err *e)
{
    disk_trouble(t, e);
    starts_take_back(t->state, on_start_undone, on_new_gone, t);
    promises_regain_all(t);
    turn_events_keep_true(t);
    PARTS(t, not_saved, e);
    struct err told = {0};
    turn_say_not_saved(e, &told);
    PARTS(t, answer, &told);
}

static bool
can_start(const struct turn *t, struct job *job)
{
    for (size_t i = 0; i < t->n_parts; i++)
        if (t->parts[i].prepare_start && !t->parts[i].prepare_start(t->parts[i].arg, job))
            return false;
    return true;
}

/* Prepares the starts of this commit before it is written. A start that cannot be prepared is
 * undone, and its job waits. */
static void
prepare_starts(struct turn *t)
{
    const struct changes *c = &t->state->changes;
    bool undone = false;
    for (size_t i = 0; i < c->n_unsaved; i++) {
        struct job *job = c->unsaved[i];
        if (!(job->unsaved & SAVE_ATTEMPT_NEW) || can_start(t, job))
            continue;
        starts_undo(t->state, job);
        promises_regain(t, job->id);
        undone = true;
    }
    if (undone)
        turn_events_keep_true(t);
}

/* A turn without changes writes nothing, and so tells nothing about the disk. */
static int
save(struct turn *t, struct err *e)
{
    bool any = store_has_changes(t->store);
    int64_t began_us = turn_now_us(t);
    int rc = store_commit(t->store, e);
    if (any)
        PARTS(t, measured, turn_now_us(t) - began_us, rc ? e : NULL);
    return rc;
}

static int
commit(struct turn *t)
{
    const struct changes *c = &t->state->changes;
    struct err e = {0};
    prepare_starts(t);
    PARTS(t, prepare);
    for (size_t i = 0; i < c->n_unsaved; i++) {
        rows_write(t->store, t->state, c->unsaved[i]);
        PARTS(t, write_job, c->unsaved[i]);
    }
    promises_save(t);
    PARTS(t, write);
    turn_events_read(t); /* changes noted since then: their events belong to this commit too */
    turn_events_write(t);
    PARTS(t, sum_up, c->unsaved, c->n_unsaved);
    spent(t, "rows");
    crash_point("daemon-before-commit");
    if (save(t, &e) < 0) {
        commit_failed(t, &e);
        return -1;
    }
    PARTS(t, saved);
    promises_saved(t);
    crash_point("daemon-after-commit");
    return 0;
}

/* --- after the commit --- */

/* Acts on the changes of a saved job, except for its launch. */
static void
act_on_job(struct turn *t, struct job *job, unsigned what)
{
    PARTS(t, act, job, what);
    if (what & SAVE_ENDED) {
        t->ended_some = true; /* so older jobs may be due for pruning */
        jobs_retire(t->state, job);
    }
}

/* Launches first, because GPUs are idle until then; then the rest. All marks are taken before
 * that, because a launch that fails sets new ones. */
static void
act_on_saved(struct turn *t)
{
    struct changes *c = &t->state->changes;
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
            PARTS(t, launch, jobs[i]);
        }
    for (size_t i = 0; i < n; i++)
        act_on_job(t, jobs[i], what[i]);
    PARTS(t, finish);
}

/* --- the turn --- */

/* Changes postpone upkeep, reads do not. True: upkeep is overdue and no longer waits
 * for quiet. */
static bool
put_off_upkeep(struct turn *t)
{
    const struct changes *c = &t->state->changes;
    bool overdue = turn_now_us(t) - t->idle_us > BUSY_US;
    if (!overdue && (store_has_changes(t->store) || c->n_unsaved + c->n > 0)) {
        turn_stop_timer(t, TURN_UPKEEP);
        t->upkeep_set = false;
    }
    return overdue;
}

static void
want_upkeep(struct turn *t, bool overdue)
{
    if (t->upkeep_set || !(store_wants_checkpoint(t->store) || t->ended_some || overdue))
        return;
    turn_set_timer(t, TURN_UPKEEP, CHECKPOINT_MS);
    t->upkeep_set = true;
}

static void
after(const struct turn *t, bool saved, int64_t began_us)
{
    t->host.after(t->host.arg, saved, turn_now_us(t) - began_us);
}

static void
save_lined(struct job *job, void *arg)
{
    state_save(arg, job, SAVE_JOB);
}

int
turn_run(struct turn *t)
{
    int64_t began_us = turn_now_us(t);
    spent(t, NULL);
    clocksteps_follow(&t->clock, t->state); /* even without a plan */
    PARTS(t, settle);
    bool follow = estimates_follow(t->state);
    turn_events_read(t); /* so that stopping a job does not wait for the plan */
    queue_mark_lines(t->state->queue, state_wall_us(t->state), save_lined, t->state);
    spent(t, "changes");
    bool planned = (t->plan_due || t->more_due) && turn_plan(t);
    spent(t, "plan");
    turn_events_read(t);
    spent(t, "changes");
    /* Reset after the plan, whose own marks and events are part of this commit. */
    t->due = false;
    t->plan_due &= !planned;
    turn_stop_timer(t, TURN_NOW);
    bool overdue = put_off_upkeep(t), again = t->again || follow;
    t->again = false;
    if (commit(t) < 0) {
        after(t, false, began_us); /* the retry timer runs the next turn */
        return -1;
    }
    spent(t, "commit");
    if (again)
        turn_is_due(t);
    PARTS(t, answer, NULL);
    turn_events_publish(t);
    spent(t, "answers");
    if (planned)
        turn_tell_why_waiting(t);
    spent(t, "why");
    crash_point("daemon-after-reply");
    act_on_saved(t);
    spent(t, "launches");
    want_upkeep(t, overdue);
    after(t, true, began_us);
    return 0;
}
