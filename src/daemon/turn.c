/* The turn: see turn.h for its order, which is the whole durability argument. Methods,
 * watcher and prober change the core and say what must be written; this file decides when,
 * and nothing is acknowledged, launched or forgotten but from here.
 *
 * When a commit fails the memory is put right again: jobs that are new in this turn go,
 * starts that were decided are undone, everything else stays marked and is tried again. */
#include "daemon/turn.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "core/fair.h"
#include "core/ledger.h"
#include "core/plan.h"
#include "core/queue.h"
#include "daemon/arrays.h"
#include "daemon/clockset.h"
#include "daemon/courier.h"
#include "daemon/daemon.h"
#include "daemon/estimate.h"
#include "daemon/event_filter.h"
#include "daemon/events.h"
#include "daemon/health.h"
#include "daemon/hooks.h"
#include "daemon/idle.h"
#include "daemon/jobs.h"
#include "daemon/launch.h"
#include "daemon/prober.h"
#include "daemon/server.h"
#include "daemon/tally.h"
#include "daemon/telemetry.h"
#include "daemon/watch.h"
#include "store/store.h"

#define RETRY_MS         2000 /* after a failed commit */
#define CHECKPOINT_MS    1000 /* of quiet before the write-ahead log is folded in */
#define PRUNE_MS         50   /* between pieces of what goes */
#define COMMAND_IN_EVENT 200

struct event {
    char kind[16];
    bool hooks; /* somebody is to be told of it */
    uint32_t job, file;
    int64_t at_us;
    struct buf json; /* an object */
    struct buf line; /* with seq and the rest in front, once it is stored */
};

struct turn {
    uv_idle_t idle;   /* keeps the loop from sleeping while a turn is due */
    uv_check_t check; /* runs it */
    uv_timer_t retry, checkpoint, wake;
    bool due;
    bool again;         /* the plan wants another turn behind this one */
    struct err trouble; /* with the disk; ERR_NONE: it takes what we write */
    bool ended_some;    /* since the last quiet moment */
    struct job **unsaved;
    size_t n_unsaved, cap_unsaved;
    struct event *events;
    size_t n_events, cap_events;
    struct jsonw writer; /* of the event being written */
};

static void
on_idle(uv_idle_t *idle)
{
    (void)idle;
}

static void
on_check(uv_check_t *check)
{
    struct daemon *d = check->data;
    if (!d->turn->due)
        return;
    turn_run(d);
}

static void
on_timer_touch(uv_timer_t *timer)
{
    turn_touch(timer->data);
}

/* After a failed commit. While the disk is full nothing new comes in that could tell when it
 * has room again; the reserve, once it can be made again, does. */
static void
on_retry(uv_timer_t *timer)
{
    struct daemon *d = timer->data;
    struct err e = {0};
    if (store_reserve_restore(d->store, &e) == 0) {
        d->turn->trouble.code = ERR_NONE;
        log_info("event=disk-is-well");
    } else {
        uv_timer_start(timer, on_retry, RETRY_MS, 0);
    }
    turn_touch(d);
}

static void
on_checkpoint(uv_timer_t *timer)
{
    struct daemon *d = timer->data;
    d->turn->ended_some = false;
    if (idle_work(d))
        uv_timer_start(timer, on_checkpoint, PRUNE_MS, 0);
}

struct turn *
turn_new(struct daemon *d)
{
    struct turn *t = xcalloc(1, sizeof *t);
    uv_idle_init(d->loop, &t->idle);
    uv_check_init(d->loop, &t->check);
    uv_timer_init(d->loop, &t->retry);
    uv_timer_init(d->loop, &t->checkpoint);
    uv_timer_init(d->loop, &t->wake);
    t->check.data = t->retry.data = t->checkpoint.data = t->wake.data = d;
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
}

static void
event_free(struct event *ev)
{
    buf_free(&ev->json);
    buf_free(&ev->line);
}

void
turn_free(struct turn *t)
{
    for (size_t i = 0; i < t->n_events; i++)
        event_free(&t->events[i]);
    free(t->events);
    free(t->unsaved);
    free(t);
}

void
turn_touch(struct daemon *d)
{
    if (!d->turn || d->turn->due || d->leaving)
        return;
    d->turn->due = true;
    uv_idle_start(&d->turn->idle, on_idle);
}

void
turn_save(struct daemon *d, struct job *job, unsigned what)
{
    struct turn *t = d->turn;
    if (!job->unsaved) {
        if (t->n_unsaved == t->cap_unsaved) {
            t->cap_unsaved = t->cap_unsaved ? t->cap_unsaved * 2 : 64;
            t->unsaved = xrealloc(t->unsaved, t->cap_unsaved * sizeof(struct job *));
        }
        t->unsaved[t->n_unsaved++] = job;
    }
    job->unsaved |= (uint8_t)what;
    turn_touch(d);
}

struct job *
turn_find_new(struct daemon *d, bool (*match)(const struct job *, const void *),
              const void *arg)
{
    const struct turn *t = d->turn;
    for (size_t i = t->n_unsaved; i-- > 0;)
        if (t->unsaved[i]->unsaved & SAVE_INSERT && match(t->unsaved[i], arg))
            return t->unsaved[i];
    return NULL;
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
        jsonw_kstr(&t->writer, "user", daemon_user_name(job->uid));
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

/* --- the plan ---------------------------------------------------------------------------- */

static void
start_job(struct daemon *d, struct job *job, const struct placement *where)
{
    /* The attempt before this one is not on the disk yet: its row first, this start next. */
    if (job->unsaved & SAVE_ATTEMPT) {
        ledger_release(d->ledger, job->id);
        d->turn->again = true;
        return;
    }
    if (arrays_keep_back(d, job)) {
        ledger_release(d->ledger, job->id);
        d->turn->again = true;
        return;
    }
    struct attempt *run = xcalloc(1, sizeof *run);
    run->number = job->attempts + 1;
    run->n_gpus = where->n;
    memcpy(run->gpus, where->gpus, where->n);
    for (int i = 0; i < GPU_MAX; i++)
        run->peak_mib[i] = run->now_mib[i] = -1;
    run->vram_mib = job->req.demand.vram_mib;
    struct job_event ev = {.type = JOB_EV_START, .wall_us = clock_wall_us(), .run = run};
    const char *why = NULL;
    if (job_apply(job, &ev, &why) != JOB_NEXT)
        err_abort("job %u was planned to start but cannot: %s", job->id, why ? why : "?");
    queue_refile(d->queue, job);
    turn_save(d, job, SAVE_JOB | SAVE_ATTEMPT_NEW);
    jobs_event_started(d, job);
    arrays_moved(d, job, JOB_PENDING);
}

static void
carry_out(struct daemon *d, const struct decision *x)
{
    struct job *job = queue_get(d->queue, x->job);
    switch (x->type) {
    case PLAN_START:
        if (x->task >= 0)
            job = arrays_split(d, job, x->task, x->as);
        start_job(d, job, &x->where);
        break;
    case PLAN_INFEASIBLE:
        jobs_infeasible(d, job, x->text);
        break;
    case PLAN_PREEMPT:
        jobs_preempt(d, job, x->by);
        break;
    }
}

static int
compare_heads(const void *a, const void *b)
{
    const struct job *x = *(struct job *const *)a, *y = *(struct job *const *)b;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Heads of lines that have just been found not to start, in the order of the queue. */
static void
tell_why_waiting(struct daemon *d)
{
    size_t kinds = queue_n_kinds(d->queue), n = 0;
    struct job **heads = xcalloc(kinds + 1, sizeof(struct job *));
    for (size_t i = 0; i < kinds; i++) {
        const struct kind *kind = queue_kind(d->queue, i);
        /* One that was passed over for want of a commit gets its turn in the next. */
        if (!kind->head->waiting_told && kind->blocked.reason != REASON_NONE)
            heads[n++] = kind->head;
    }
    qsort(heads, n, sizeof(struct job *), compare_heads);
    for (size_t i = 0; i < n; i++) {
        heads[i]->waiting_told = true;
        event_waiting(d, heads[i]);
    }
    free(heads);
}

/* True when there is a plan: heads that stay in line can then be told why. */
static bool
plan(struct daemon *d)
{
    struct turn *t = d->turn;
    uv_timer_stop(&t->wake);
    if (d->stopping || !d->ready || t->trouble.code)
        return false;
    clockset_follow(d);
    int64_t now = clock_wall_us();
    if (!prober_is_fresh(d->prober))
        return false; /* a sample is on its way; it touches the turn */
    auto_plan struct plan p = PLAN_INIT;
    uint32_t next_id = store_peek_job_id(d->store);
    int64_t began_us = clock_boot_us();
    plan_make(d->planner, d->queue, d->ledger, now, &next_id, &p);
    d->needs_told = 0;
    tally_plan(d, clock_boot_us() - began_us);
    store_advance_job_id(d->store, next_id);
    for (size_t i = 0; i < p.n; i++)
        carry_out(d, &p.decisions[i]);
    if (p.wake_us != INT64_MAX) {
        int64_t ms = (p.wake_us - now) / 1000 + 1;
        uv_timer_start(&t->wake, on_timer_touch, ms > 0 ? (uint64_t)ms : 1, 0);
    }
    return true;
}

/* --- the transaction ---------------------------------------------------------------------- */

static void
write_job(struct daemon *d, struct job *job)
{
    struct store *s = d->store;
    struct err e; /* errors stick to the store; store_commit tells */
    if (job->unsaved & SAVE_INSERT)
        store_job_insert(s, job, &e);
    else if (job->unsaved & (SAVE_JOB | SAVE_ENDED))
        store_job_update(s, job, &e);
    if (job->unsaved & SAVE_ENDED)
        estimate_save(d, job);
    if (job->unsaved & SAVE_DETACH)
        store_job_detach(s, job->id, &e);
    if (job->unsaved & SAVE_SETTLED) {
        int64_t now_us = clock_wall_us();
        store_usage_set(s, job->uid, fair_usage(d->fair, job->uid, now_us), now_us, &e);
    }
    if (job->unsaved & SAVE_ATTEMPT_NEW) {
        const char *uuids[GPU_MAX];
        for (int i = 0; i < job->run->n_gpus; i++)
            uuids[i] = ledger_card(d->ledger, job->run->gpus[i])->info.uuid;
        store_attempt_insert(s, job->id, job->run, uuids, &e);
    } else if (job->unsaved & SAVE_ATTEMPT) {
        store_attempt_update(s, job->id, job->run, &e);
        telemetry_write(d, job, job->unsaved & SAVE_SETTLED);
    }
}

/* Stores the events and turns each into the line that followers get. */
static void
write_events(struct daemon *d)
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

static void
undo_start(struct daemon *d, struct job *job)
{
    ledger_release(d->ledger, job->id);
    free(job->run);
    job->run = NULL;
    job->attempts--;
    job->state = JOB_PENDING;
    job->unsaved &= (uint8_t)~SAVE_ATTEMPT_NEW;
    queue_refile(d->queue, job);
    arrays_moved(d, job, JOB_STARTING);
}

/* Whether a job that is new and could not be saved goes again. A task goes back into its
 * array, unless it has ended in that moment: then its row is tried again, as its array counts
 * it already. */
static bool
may_go(struct daemon *d, struct job *job)
{
    if (!job->array)
        return true;
    if (job_state_is_final(job->state))
        return false;
    arrays_unsplit(d, job);
    return true;
}

/* Events of what was taken back go, the others wait for the commit that succeeds. */
static void
keep_true_events(struct daemon *d)
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
    uv_timer_start(&t->retry, on_retry, RETRY_MS, 0);
}

void
turn_disk_full(struct daemon *d)
{
    struct err e = {0};
    err_set(&e, ERR_NO_SPACE, "the disk that holds %s is full", d->places.state);
    disk_trouble(d, &e);
}

/* The store has rolled back: take back what nobody has been told yet. */
static void
commit_failed(struct daemon *d, const struct err *e)
{
    struct turn *t = d->turn;
    disk_trouble(d, e);
    size_t keep = 0;
    for (size_t i = 0; i < t->n_unsaved; i++) {
        struct job *job = t->unsaved[i];
        if (job->unsaved & SAVE_ATTEMPT_NEW)
            undo_start(d, job);
        if (job->unsaved & SAVE_INSERT && may_go(d, job))
            jobs_retire(d, job); /* who waits for it already is not left waiting */
        else
            t->unsaved[keep++] = job;
    }
    t->n_unsaved = keep;
    keep_true_events(d);
    courier_not_saved(d);
    struct err told = {0};
    err_set(&told, e->code, "nothing was accepted: %s. Running jobs go on", e->text);
    if (d->server)
        server_release(d->server, &told);
}

/* What was waiting for the disk: launches, good-byes to supervisors, ends. */
static void
act_on_saved(struct daemon *d)
{
    struct turn *t = d->turn;
    size_t n = t->n_unsaved;
    struct job **jobs = t->unsaved;
    t->unsaved = NULL;
    t->n_unsaved = t->cap_unsaved = 0;
    for (size_t i = 0; i < n; i++) {
        struct job *job = jobs[i];
        unsigned what = job->unsaved;
        job->unsaved = 0;
        if (what & SAVE_ATTEMPT)
            telemetry_written(d, job->id, what & SAVE_SETTLED);
        if (what & SAVE_SETTLED)
            watch_settled(d, job->id, job->run->number);
        if (what & SAVE_ATTEMPT_NEW)
            launch_attempt(d, job);
        if (what & SAVE_ENDED) {
            t->ended_some = true; /* so others may be old enough to go */
            jobs_retire(d, job);
        }
    }
    free(jobs);
}

static void
publish_events(struct daemon *d)
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
    t->n_events = 0;
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
    struct turn *t = d->turn;
    struct err e = {0};
    for (size_t i = 0; i < t->n_unsaved; i++)
        write_job(d, t->unsaved[i]);
    /* With what recovery found, in whichever turn gets that onto the disk. */
    if (d->ready && strcmp(store_boot_id(d->store), clock_boot_id()) != 0)
        store_boot_id_set(d->store, clock_boot_id(), NULL);
    health_save(d);
    courier_save(d);
    write_events(d);
    tally_write(d, t->unsaved, t->n_unsaved);
    crash_point("daemon-before-commit");
    if (save(d, &e)) {
        commit_failed(d, &e);
        return -1;
    }
    tally_written(d);
    health_saved(d);
    crash_point("daemon-after-commit");
    return 0;
}

int
turn_run(struct daemon *d)
{
    struct turn *t = d->turn;
    health_settle(d);
    bool planned = plan(d);
    /* After the plan, whose own marks and events go with this very commit. */
    t->due = false;
    uv_idle_stop(&t->idle);
    if (store_has_changes(d->store) || t->n_unsaved + t->n_events > 0)
        uv_timer_stop(&t->checkpoint); /* it is not quiet; who only looks disturbs nobody */
    if (commit(d)) {
        t->again = false; /* the retry's timer comes back */
        if (d->stopping && !d->stop_when_empty)
            daemon_after_turn(d);
        return -1;
    }
    if (t->again)
        turn_touch(d);
    t->again = false;
    if (d->server)
        server_release(d->server, NULL);
    publish_events(d);
    if (planned)
        tell_why_waiting(d);
    crash_point("daemon-after-reply");
    act_on_saved(d);
    courier_saved(d);
    if ((store_wants_checkpoint(d->store) || t->ended_some) &&
        !uv_is_active((uv_handle_t *)&t->checkpoint))
        uv_timer_start(&t->checkpoint, on_checkpoint, CHECKPOINT_MS, 0);
    daemon_after_turn(d);
    return 0;
}

const struct err *
turn_disk_trouble(const struct daemon *d)
{
    return d->turn->trouble.code ? &d->turn->trouble : NULL;
}
