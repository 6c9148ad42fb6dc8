/* What happens to jobs: see job_changes.h. Called by the methods (people), by
 * supervisor_watch.c (shepherds), by samples.c (measurements) and by turn.c (the plan). The
 * table of what is allowed is the core's; here stands what has to be done about it. */
#include "daemon/turn/job_changes.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/counted_text.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "core/plan/fair.h"
#include "core/plan/plan.h"
#include "core/queue/array.h"
#include "core/queue/endings.h"
#include "core/queue/queue.h"
#include "daemon/attempt/supervisor_watch.h"
#include "daemon/daemon.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/prober.h"
#include "daemon/request/admit.h"
#include "daemon/rpc/rpc_server.h"
#include "daemon/turn/array_turns.h"
#include "daemon/turn/counters.h"
#include "daemon/turn/depend_turns.h"
#include "daemon/turn/estimates.h"
#include "daemon/turn/event_text.h"
#include "daemon/turn/learned_demands.h"
#include "daemon/turn/turn.h"
#include "daemon/turn/unique.h"
#include "daemon/turn/waiters.h"
#include "store/store.h"

#define CLEAR_RESAMPLE_MS 200 /* while a job's memory is awaited */

/* Applies an event that this state must allow. */
static void
must_apply(struct job *job, const struct job_event *ev)
{
    const char *why = NULL;
    if (job_apply(job, ev, &why) == JOB_REFUSED)
        err_abort("job %u in %s refuses event %d: %s", job->id, job_state_name(job->state),
                  (int)ev->type, why);
}

/* It has reached a final state: said, saved, and those who wait for it go on. */
static void
ended(struct daemon *d, struct job *job)
{
    log_info("job=%u event=ended state=%s exit_status=%d user=%s", job->id,
             job_state_name(job->state), job_exit_status(job), daemon_user_name(job->uid));
    if (job->state == JOB_COMPLETED)
        estimate_completed(d, job);
    turn_save(d, job, SAVE_JOB | SAVE_ENDED);
    event_ended(d, job);
    depend_leave(d, job);
    depend_ended(d, job);
}

/* What follows from a change of state, whatever made it. An array that was told to end and
 * has tasks on their way is still where it was. */
static void
moved(struct daemon *d, struct job *job, enum job_state from)
{
    queue_refile(d->queue, job);
    turn_save(d, job, SAVE_JOB);
    if (job_state_is_final(job->state) && !job_state_is_final(from))
        ended(d, job);
    arrays_moved(d, job, from);
}

/* What waits in an array. */
static int32_t
waiting_in(const struct job *job)
{
    return job->tasks ? array_n_pending(job) : 0;
}

/* Tasks that have never left their array may have ended with it. */
static void
count_dropped(struct daemon *d, const struct job *job, const struct job_event *ev,
              int32_t waited)
{
    int32_t n = waited - waiting_in(job);
    if (n > 0)
        tally_dropped(d, ev->type == JOB_EV_INFEASIBLE ? JOB_INFEASIBLE : JOB_CANCELLED, n);
}

static void
apply_and_move(struct daemon *d, struct job *job, const struct job_event *ev)
{
    enum job_state from = job->state;
    int32_t waited = waiting_in(job);
    must_apply(job, ev);
    count_dropped(d, job, ev, waited);
    moved(d, job, from);
}

void
jobs_infeasible(struct daemon *d, struct job *job, const char *text)
{
    const struct job_event ev = {
        .type = JOB_EV_INFEASIBLE, .wall_us = clock_wall_us(), .text = text};
    apply_and_move(d, job, &ev);
}

void
jobs_never(struct daemon *d, struct job *job, const char *text)
{
    const struct job_event ev = {
        .type = JOB_EV_DEP_FAILED, .wall_us = clock_wall_us(), .text = text};
    apply_and_move(d, job, &ev);
}

void
jobs_array_over(struct daemon *d, struct job *array)
{
    const struct job_event ev = {.type = JOB_EV_OVER, .wall_us = clock_wall_us()};
    apply_and_move(d, array, &ev);
}

void
jobs_share_texts(struct daemon *d, struct job *job)
{
    shared_join(&job->cwd, &d->last_cwd);
    shared_join(&job->user, &d->last_user);
    shared_join(&job->rlimits, &d->last_rlimits);
}

void
jobs_add(struct daemon *d, struct job *job, char **why)
{
    auto_buf struct buf text = BUF_INIT;
    if (!job->id) {
        job->id = store_next_job_id(d->store);
        job->order = store_next_order(d->store);
    }
    job->submitted_us = clock_wall_us();
    job->declared_mib = job->req.demand.vram_mib;
    learned_apply(d, job);
    if (job->req.hold)
        job->state = JOB_HELD;
    job->begin_us = job->req.begin_us;
    if (job->req.array.n)
        array_begin(job);
    jobs_share_texts(d, job);
    unique_mark(job);
    estimate_enter(d, job);
    queue_add(d->queue, job);
    planner_submitted(d->planner, &job->req.demand, job->tasks ? array_n_pending(job) : 1,
                      job->submitted_us);
    turn_save(d, job, SAVE_INSERT);
    event_submitted(d, job);
    if (!admit_could_start(d, job->uid, &job->req.demand, &text)) {
        jobs_infeasible(d, job, buf_str(&text));
        if (why)
            *why = xstrdup(buf_str(&text));
    }
}

void
jobs_event_started(struct daemon *d, struct job *job)
{
    log_debug("job=%u event=started attempt=%d", job->id, job->run->number);
    event_started(d, job);
    if (job->run->n_gpus > 0)
        prober_hurry(d->prober);
}

bool
jobs_attempt_started(struct daemon *d, struct job *job, int64_t at_us)
{
    const struct job_event ev = {.type = JOB_EV_STARTED, .wall_us = at_us};
    /* Not saved on its own: the shepherd knows, and the attempt's end writes it. */
    if (job_apply(job, &ev, NULL) != JOB_NEXT)
        return false;
    queue_refile(d->queue, job);
    return true;
}

/* --- the end of an attempt
 * -------------------------------------------------------------------- */

/* It waits again; where is for its ending to say. */
static void
back_in_line(struct daemon *d, struct job *job, int32_t vram_old)
{
    log_info("job=%u event=requeued outcome=%s", job->id,
             outcome_name(job->run->ending.outcome));
    job->waiting_told = 0;
    if (job_goes_last(job))
        queue_reorder(d->queue, job, store_next_order(d->store));
    if (job->run->ending.outcome != OUTCOME_NEVER_RAN)
        event_requeued(d, job, vram_old);
    if (job->state == JOB_HELD)
        event_plain(d, "held", job, NULL);
}

/* What the attempt has used counts against its user from now on. The commit of its end writes
 * it down (SAVE_SETTLED). */
static void
charge(struct daemon *d, const struct job *job)
{
    const struct attempt *run = job->run;
    struct demand demand = job->req.demand;
    if (!run->started_us || run->ending.ended_us <= run->started_us)
        return;
    demand.vram_mib = run->vram_mib;
    double part = fair_part(d->ledger, &demand, run->gpus, run->n_gpus);
    fair_charge(d->fair, job->uid, part, run->started_us, run->ending.ended_us);
}

static void
finish(struct daemon *d, struct job *job)
{
    enum job_state from = job->state;
    int32_t vram_old = job->run->vram_mib;
    charge(d, job);
    health_job_over(d, job);
    const struct job_event ev = {.type = JOB_EV_VRAM_BACK, .wall_us = clock_wall_us()};
    must_apply(job, &ev);
    ledger_release(d->ledger, job->id);
    turn_save(d, job, SAVE_ATTEMPT | SAVE_SETTLED);
    learned_attempt_over(d, job);
    if (!job_state_is_final(job->state))
        back_in_line(d, job, vram_old);
    moved(d, job, from);
}

void
jobs_check_clear(struct daemon *d, struct job *job, bool force)
{
    if (job->state != JOB_COMPLETING)
        return;
    bool nothing_there = job->run->n_gpus == 0;
    if (nothing_there || ledger_job_is_clear(d->ledger, job->id, job->run->ended_boot_us)) {
        finish(d, job);
    } else if (force) {
        bool silent = prober_unknown_since_us(d->prober) > 0;
        log_warn("job=%u event=vram-wait-over %s", job->id,
                 silent ? "the probe does not say whether its memory is back"
                        : "its memory is still in use; counted as a stranger's from now on");
        finish(d, job);
    }
}

static void on_clear_timer(uv_timer_t *timer);

/* The clock of COMPLETING jobs, armed while there are any. */
static void
start_clear_timer(struct daemon *d)
{
    d->clear_timer.data = d;
    if (!uv_is_active((uv_handle_t *)&d->clear_timer))
        uv_timer_start(&d->clear_timer, on_clear_timer, CLEAR_RESAMPLE_MS, 0);
}

void
jobs_attempt_ended(struct daemon *d, struct job *job, const struct ending *ending)
{
    const struct job_event ev = {
        .type = JOB_EV_ENDED, .wall_us = clock_wall_us(), .ending = ending};
    if (job_apply(job, &ev, NULL) != JOB_NEXT)
        return;
    job->run->ended_boot_us = clock_boot_us();
    if (ending->run_ms > 0)
        planner_ended(d->planner, job->span_ms, ending->run_ms);
    queue_refile(d->queue, job);
    jobs_check_clear(d, job, false);
    if (job->state == JOB_COMPLETING) {
        prober_request(d->prober);
        start_clear_timer(d);
    }
}

static void
on_clear_timer(uv_timer_t *timer)
{
    struct daemon *d = timer->data;
    int64_t now = clock_boot_us();
    struct job *next;
    bool more = false;
    for (struct job *job = queue_active(d->queue); job; job = next) {
        next = queue_active_next(job);
        if (job->state != JOB_COMPLETING)
            continue;
        jobs_check_clear(d, job,
                         now - job->run->ended_boot_us >= d->config.vram_wait_ms * 1000);
        more |= job->state == JOB_COMPLETING;
    }
    if (more) {
        prober_request(d->prober);
        uv_timer_start(timer, on_clear_timer, CLEAR_RESAMPLE_MS, 0);
    }
}

/* --- people
 * ------------------------------------------------------------------------------------ */

/* The one job. */
static int
cancel_one(struct daemon *d, struct job *job, const char *by)
{
    const struct job_event ev = {.type = JOB_EV_CANCEL, .wall_us = clock_wall_us(), .by = by};
    enum job_state from = job->state;
    int32_t waited = waiting_in(job);
    if (job_apply(job, &ev, NULL) != JOB_NEXT) {
        if (job_state_is_final(job->state))
            return -1;
        if (job->cancelled_by && strcmp(by, job->cancelled_by) != 0)
            event_plain(d, "cancelled", job, by);
        watch_cancel(d, job); /* once more, perhaps with less grace */
        return 0;
    }
    count_dropped(d, job, &ev, waited);
    log_info("job=%u event=cancel by=%s", job->id, by);
    moved(d, job, from);
    if (job->state == JOB_CANCELLED)
        return 0;
    event_plain(d, "cancelled", job, by);
    watch_cancel(d, job);
    return 0;
}

/* What has not left an array is cancelled with it, and what has is cancelled one by one. */
int
jobs_cancel(struct daemon *d, struct job *job, const char *by)
{
    size_t n = 0;
    auto_free struct job **tasks = job->tasks ? arrays_live_tasks(d, job, &n) : NULL;
    bool asked = job->tasks && job->cancel_asked && array_next(job) < 0;
    bool was_over = job_state_is_final(job->state);
    for (size_t i = 0; i < n; i++) {
        tasks[i]->req.grace_ms = job->req.grace_ms;
        cancel_one(d, tasks[i], by);
    }
    if ((asked && n > 0) || (!was_over && job_state_is_final(job->state)))
        return 0; /* with its last task it has ended as well */
    return cancel_one(d, job, by);
}

/* Whoever is no admin keeps a hold that an admin has put on the job. */
static bool
is_kept_by_admin(const struct daemon *d, const struct job *job)
{
    return job->admin_held && d->caller && !d->caller->admin;
}

/* An admin's hold on somebody else's job stays until an admin lets go. */
static void
note_admin_hold(struct daemon *d, struct job *job)
{
    if (job->admin_held || !d->places.system || !d->caller || !d->caller->admin ||
        d->caller->uid == job->uid)
        return;
    job->admin_held = true;
    turn_save(d, job, SAVE_JOB);
}

static int
hold_or_release(struct daemon *d, struct job *job, enum job_event_type type, struct err *e)
{
    const struct job_event ev = {.type = type, .wall_us = clock_wall_us()};
    const char *why = NULL;
    enum job_state from = job->state;
    if (type == JOB_EV_RELEASE && is_kept_by_admin(d, job))
        return err_set(e, ERR_PERMISSION,
                       "job %u cannot be released: an admin holds it, and only an admin can "
                       "release it",
                       job->id);
    enum job_verdict v = job_apply(job, &ev, &why);
    if (v == JOB_REFUSED)
        return err_set(e, ERR_FAILED, "job %u cannot be %s: %s", job->id,
                       type == JOB_EV_HOLD ? "held" : "released", why);
    if (v == JOB_IGNORED && type == JOB_EV_RELEASE)
        return err_set(e, ERR_FAILED, "job %u is not held: it is %s", job->id,
                       job_state_name(from));
    if (type == JOB_EV_HOLD)
        note_admin_hold(d, job);
    if (v == JOB_NEXT) {
        job->waiting_told = 0;
        moved(d, job, from);
        event_plain(d, type == JOB_EV_HOLD ? "held" : "released", job, NULL);
    }
    return 0;
}

/* An array: those of its tasks that wait in their own name, and what has not left. */
static int
hold_or_release_all(struct daemon *d, struct job *job, enum job_event_type type, struct err *e)
{
    size_t n = 0, done = 0;
    auto_free struct job **tasks = job->tasks ? arrays_live_tasks(d, job, &n) : NULL;
    struct err ignored;
    for (size_t i = 0; i < n; i++)
        done += hold_or_release(d, tasks[i], type, &ignored) == 0;
    if (!job->tasks || array_next(job) >= 0 || job_state_is_final(job->state))
        return hold_or_release(d, job, type, e);
    return done ? 0
                : err_set(e, ERR_FAILED,
                          "job %u cannot be held: all its tasks have started already; cancel "
                          "stops them",
                          job->id);
}

int
jobs_hold(struct daemon *d, struct job *job, struct err *e)
{
    return hold_or_release_all(d, job, JOB_EV_HOLD, e);
}

int
jobs_release(struct daemon *d, struct job *job, struct err *e)
{
    return hold_or_release_all(d, job, JOB_EV_RELEASE, e);
}

static bool
is_waiting(const struct job *job)
{
    return job->state == JOB_PENDING || job->state == JOB_HELD;
}

static void
set_priority(struct daemon *d, struct job *job, int32_t priority)
{
    if (job->req.priority == priority)
        return;
    job->req.priority = priority;
    job->waiting_told = 0;
    queue_refile(d->queue, job);
    turn_save(d, job, SAVE_JOB);
    struct jsonw *w = turn_event(d, "updated", job);
    jsonw_kint(w, "priority", priority);
    if (d->caller)
        jsonw_kstr(w, "by", daemon_user_name(d->caller->uid));
    turn_event_end(d);
}

int
jobs_set_priority(struct daemon *d, struct job *job, int32_t priority, struct err *e)
{
    size_t n = 0;
    auto_free struct job **tasks = job->tasks ? arrays_live_tasks(d, job, &n) : NULL;
    if (!is_waiting(job))
        return err_set(e, ERR_FAILED, "job %u waits for nothing: %s", job->id,
                       job_state_is_final(job->state) ? "it has ended" : "it has started");
    for (size_t i = 0; i < n; i++)
        if (is_waiting(tasks[i]))
            set_priority(d, tasks[i], priority);
    set_priority(d, job, priority);
    return 0;
}

int
jobs_requeue(struct daemon *d, struct job *job, const char *by, bool hold, struct err *e)
{
    const struct job_event ev = {
        .type = JOB_EV_REQUEUE, .wall_us = clock_wall_us(), .by = by, .hold = hold};
    const char *why = NULL;
    enum job_state from = job->state;
    enum job_verdict v = job_apply(job, &ev, &why);
    if (v == JOB_REFUSED)
        return err_set(e, ERR_FAILED, "job %u cannot be requeued: %s", job->id, why);
    if (hold)
        note_admin_hold(d, job);
    if (v == JOB_IGNORED)
        return 0;
    log_info("job=%u event=requeue by=%s", job->id, by);
    job->unsaved &= (uint8_t)~SAVE_ENDED; /* if it had ended in this very turn */
    learned_apply(d, job);
    moved(d, job, from);
    if (job_state_is_final(from))
        waits_job_back(d, job);
    if (job->state == JOB_PENDING) {
        struct jsonw *w = turn_event(d, "requeued", job);
        jsonw_kint(w, "attempt", job->attempts);
        jsonw_kstr(w, "by", by);
        jsonw_kstr(w, "text", "by request");
        turn_event_end(d);
    } else {
        event_plain(d, "requeue", job, by);
        watch_requeue(d, job, by);
    }
    return 0;
}

void
jobs_preempt(struct daemon *d, struct job *job, uint32_t for_job)
{
    const struct job_event ev = {.type = JOB_EV_PREEMPT, .wall_us = clock_wall_us()};
    if (job_apply(job, &ev, NULL) != JOB_NEXT)
        return;
    log_info("job=%u event=preempt for=%u", job->id, for_job);
    turn_save(d, job, SAVE_JOB);
    struct jsonw *w = turn_event(d, "preempted", job);
    jsonw_kint(w, "for", for_job);
    turn_event_end(d);
    watch_preempt(d, job);
}

void
jobs_retire(struct daemon *d, struct job *job)
{
    waits_job_ended(d, job);
    estimate_leave(d, job);
    depend_leave(d, job);
    job_free(queue_remove(d->queue, job->id));
}
