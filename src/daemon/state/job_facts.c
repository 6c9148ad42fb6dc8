/* What happens to jobs: see job_facts.h. Called by the methods (users), supervisor_watch.c
 * (supervisors), samples.c (measurements) and starts.c (the plan). The core's table says which
 * event a state allows; this file does what follows from it for the job and for other jobs.
 * Other parts of the daemon read the changes. */
#include "daemon/state/job_facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/counted_text.h"
#include "base/err.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "core/plan/fair.h"
#include "core/plan/plan.h"
#include "core/queue/array.h"
#include "core/queue/endings.h"
#include "core/queue/queue.h"
#include "daemon/state/array_turns.h"
#include "daemon/state/depend_turns.h"
#include "daemon/state/estimates.h"
#include "daemon/state/learned_demands.h"
#include "daemon/state/state.h"
#include "daemon/state/unique.h"

/* Applies an event that the job's state must allow; aborts otherwise. */
static void
must_apply(struct job *job, const struct job_event *ev)
{
    const char *why = NULL;
    if (job_apply(job, ev, &why) == JOB_REFUSED)
        err_abort("job %u in %s refuses event %d: %s", job->id, job_state_name(job->state),
                  (int)ev->type, why);
}

static void
note_by(struct state *s, enum change_type type, const struct job *job, const char *by)
{
    struct change *x = state_note(s, type, job);
    x->by = by ? xstrdup(by) : NULL;
}

/* Copies the ending: the job may be requeued before the change is read. */
static void
note_end(struct state *s, const struct job *job)
{
    auto_buf struct buf text = BUF_INIT;
    job_end_text(job, &text);
    struct change *x = state_note(s, CHANGE_ENDED, job);
    x->state = job->state;
    x->exit_status = job_exit_status(job);
    x->by = job->cancelled_by ? xstrdup(job->cancelled_by) : NULL;
    x->text = xstrdup(buf_str(&text));
}

/* The job has reached a final state: notes and saves it, and resolves its dependents. */
static void
ended(struct state *s, struct job *job)
{
    log_info("job=%u event=ended state=%s exit_status=%d user=%s", job->id,
             job_state_name(job->state), job_exit_status(job), s->around->user_name(job->uid));
    if (job->state == JOB_COMPLETED)
        estimate_completed(s, job);
    state_save(s, job, SAVE_JOB | SAVE_ENDED);
    note_end(s, job);
    depend_leave(s, job);
    depend_ended(s, job);
}

/* Follow-up of any change of state. An array that is to end but still has live tasks has not
 * changed its state. */
static void
moved(struct state *s, struct job *job, enum job_state from)
{
    queue_refile(s->queue, job);
    state_save(s, job, SAVE_JOB);
    if (job_state_is_final(job->state) && !job_state_is_final(from))
        ended(s, job);
    arrays_moved(s, job, from);
}

/* Pending tasks in an array; 0 for other jobs. */
static int32_t
waiting_in(const struct job *job)
{
    return job->tasks ? array_n_pending(job) : 0;
}

/* Counts the tasks that ended with their array without ever leaving it. */
static void
count_dropped(struct state *s, const struct job *job, const struct job_event *ev,
              int32_t waited)
{
    int32_t n = waited - waiting_in(job);
    if (n <= 0)
        return;
    struct change *x = state_note(s, CHANGE_DROPPED, job);
    x->state = ev->type == JOB_EV_INFEASIBLE ? JOB_INFEASIBLE : JOB_CANCELLED;
    x->number = n;
}

static void
apply_and_move(struct state *s, struct job *job, const struct job_event *ev)
{
    enum job_state from = job->state;
    int32_t waited = waiting_in(job);
    must_apply(job, ev);
    count_dropped(s, job, ev, waited);
    moved(s, job, from);
}

void
jobs_infeasible(struct state *s, struct job *job, const char *text)
{
    const struct job_event ev = {
        .type = JOB_EV_INFEASIBLE, .wall_us = state_wall_us(s), .text = text};
    apply_and_move(s, job, &ev);
}

void
jobs_never(struct state *s, struct job *job, const char *text)
{
    const struct job_event ev = {
        .type = JOB_EV_DEP_FAILED, .wall_us = state_wall_us(s), .text = text};
    apply_and_move(s, job, &ev);
}

void
jobs_array_over(struct state *s, struct job *array)
{
    const struct job_event ev = {.type = JOB_EV_OVER, .wall_us = state_wall_us(s)};
    apply_and_move(s, array, &ev);
}

/* Shares the text of folder, user and limits with the previous job's where they are equal. */
static void
share_texts(struct state *s, struct job *job)
{
    shared_join(&job->cwd, &s->last_cwd);
    shared_join(&job->user, &s->last_user);
    shared_join(&job->rlimits, &s->last_rlimits);
}

void
jobs_add(struct state *s, struct job *job, char **why)
{
    auto_buf struct buf text = BUF_INIT;
    if (!job->id) {
        job->id = s->past->next_job_id(s->past->arg);
        job->order = s->past->next_order(s->past->arg);
    }
    job->submitted_us = state_wall_us(s);
    job->declared_mib = job->req.demand.vram_mib;
    learned_apply(s, job);
    if (job->req.hold)
        job->state = JOB_HELD;
    job->begin_us = job->req.begin_us;
    if (job->req.array.n)
        array_begin(job);
    share_texts(s, job);
    unique_mark(job);
    estimate_enter(s, job);
    queue_add(s->queue, job);
    planner_submitted(s->planner, &job->req.demand, job->tasks ? array_n_pending(job) : 1,
                      job->submitted_us);
    state_save(s, job, SAVE_INSERT);
    state_note(s, CHANGE_ENTERED, job);
    if (!state_could_start(s, job->uid, &job->req.demand, &text)) {
        jobs_infeasible(s, job, buf_str(&text));
        if (why)
            *why = xstrdup(buf_str(&text));
    }
}

bool
jobs_attempt_started(struct state *s, struct job *job, int64_t at_us)
{
    const struct job_event ev = {.type = JOB_EV_STARTED, .wall_us = at_us};
    /* Not saved on its own: the supervisor has a record, and the attempt's end is
     * written anyway. */
    if (job_apply(job, &ev, NULL) != JOB_NEXT)
        return false;
    queue_refile(s->queue, job);
    return true;
}

/* --- the end of an attempt --- */

/* The job waits again; its place in the queue depends on how the attempt ended. */
static void
back_in_line(struct state *s, struct job *job, int32_t vram_old)
{
    log_info("job=%u event=requeued outcome=%s", job->id,
             outcome_name(job->run->ending.outcome));
    job->waiting_told = 0;
    if (job_goes_last(job))
        queue_reorder(s->queue, job, s->past->next_order(s->past->arg));
    if (job->run->ending.outcome != OUTCOME_NEVER_RAN) {
        struct change *x = state_note(s, CHANGE_RETRIED, job);
        x->vram_old = vram_old;
        x->vram = job->req.demand.vram_mib;
        x->begin_us = job->begin_us;
    }
    if (job->state == JOB_HELD)
        state_note(s, CHANGE_HELD, job);
}

/* Start of the attempt on the clock as it is set now. For a lost attempt the run time was
 * not measured. */
static int64_t
began_us(const struct attempt *run)
{
    if (run->ending.run_ms > 0)
        return run->ending.ended_us - run->ending.run_ms * 1000;
    return run->started_us + run->clock_set_us;
}

/* Charges the attempt's usage to its user. The commit of the attempt's end stores
 * it (SAVE_SETTLED). */
static void
charge(struct state *s, const struct job *job)
{
    const struct attempt *run = job->run;
    struct demand demand = job->req.demand;
    if (!run->started_us || run->ending.ended_us <= began_us(run))
        return;
    demand.vram_mib = run->vram_mib;
    double part = fair_part(s->ledger, &demand, run->gpus, run->n_gpus);
    fair_charge(s->fair, job->uid, part, began_us(run), run->ending.ended_us);
}

static void
finish(struct state *s, struct job *job)
{
    enum job_state from = job->state;
    int32_t vram_old = job->run->vram_mib;
    charge(s, job);
    s->around->explain_end(s->around->arg, job);
    const struct job_event ev = {.type = JOB_EV_VRAM_BACK, .wall_us = state_wall_us(s)};
    must_apply(job, &ev);
    ledger_release(s->ledger, job->id);
    state_save(s, job, SAVE_ATTEMPT | SAVE_SETTLED);
    learned_attempt_over(s, job);
    if (!job_state_is_final(job->state))
        back_in_line(s, job, vram_old);
    moved(s, job, from);
}

bool
jobs_check_clear(struct state *s, struct job *job, bool force)
{
    if (job->state != JOB_COMPLETING)
        return true;
    bool nothing_there = job->run->n_gpus == 0;
    if (!force && !nothing_there &&
        !ledger_job_is_clear(s->ledger, job->id, job->run->ended_boot_us))
        return false;
    finish(s, job);
    return true;
}

void
jobs_attempt_ended(struct state *s, struct job *job, const struct ending *ending)
{
    const struct job_event ev = {
        .type = JOB_EV_ENDED, .wall_us = state_wall_us(s), .ending = ending};
    if (job_apply(job, &ev, NULL) != JOB_NEXT)
        return;
    job->run->ended_boot_us = s->around->boot_us(s->around->arg);
    if (ending->run_ms > 0)
        planner_ended(s->planner, job->span_ms, ending->run_ms);
    if (ending->outcome == OUTCOME_CANCELLED)
        planner_stopped(s->planner, job, ending->run_ms);
    queue_refile(s->queue, job);
    if (!jobs_check_clear(s, job, false))
        state_note(s, CHANGE_AWAITED, job);
}

/* --- requests by users --- */

/* Cancels this job alone, for an array without the tasks that have left it. */
static int
cancel_one(struct state *s, struct job *job, const char *by)
{
    const struct job_event ev = {.type = JOB_EV_CANCEL, .wall_us = state_wall_us(s), .by = by};
    enum job_state from = job->state;
    int32_t waited = waiting_in(job);
    if (job_apply(job, &ev, NULL) != JOB_NEXT) {
        if (job_state_is_final(job->state))
            return -1;
        if (job->cancelled_by && strcmp(by, job->cancelled_by) != 0)
            note_by(s, CHANGE_CANCEL, job, by);
        else
            state_note(s, CHANGE_CANCEL_MORE, job);
        return 0;
    }
    count_dropped(s, job, &ev, waited);
    log_info("job=%u event=cancel by=%s", job->id, by);
    moved(s, job, from);
    if (job->state == JOB_CANCELLED)
        return 0;
    note_by(s, CHANGE_CANCEL, job, by);
    return 0;
}

void
jobs_set_stop_grace(struct state *s, struct job *job, int64_t grace_ms)
{
    if (grace_ms < 0 || grace_ms == job->stop_grace_ms || job_state_is_final(job->state))
        return;
    job->stop_grace_ms = grace_ms;
    state_save(s, job, SAVE_JOB);
}

int
jobs_cancel_alone(struct state *s, struct job *array, const char *by)
{
    return array->cancel_asked && array_next(array) < 0 ? 0 : cancel_one(s, array, by);
}

/* Cancels an array's split-off tasks one by one, and the rest with the array itself. */
int
jobs_cancel(struct state *s, struct job *job, const char *by)
{
    size_t n = 0;
    auto_free struct job **tasks = job->tasks ? arrays_live_tasks(s, job, &n) : NULL;
    bool asked = job->tasks && job->cancel_asked && array_next(job) < 0;
    bool was_over = job_state_is_final(job->state);
    for (size_t i = 0; i < n; i++) {
        jobs_set_stop_grace(s, tasks[i], job->stop_grace_ms);
        cancel_one(s, tasks[i], by);
    }
    if ((asked && n > 0) || (!was_over && job_state_is_final(job->state)))
        return 0; /* the array ended with its last task */
    return cancel_one(s, job, by);
}

/* True if an admin holds the job and the caller is not an admin. */
static bool
is_kept_by_admin(const struct state *s, const struct job *job)
{
    return job->admin_held && s->asker.is_known && !s->asker.admin;
}

/* Records a hold by an admin on another user's job, which only an admin can release. */
static void
note_admin_hold(struct state *s, struct job *job)
{
    if (job->admin_held || !s->system || !s->asker.is_known || !s->asker.admin ||
        s->asker.uid == job->uid)
        return;
    job->admin_held = true;
    state_save(s, job, SAVE_JOB);
}

static int
hold_or_release(struct state *s, struct job *job, enum job_event_type type, struct err *e)
{
    const struct job_event ev = {.type = type, .wall_us = state_wall_us(s)};
    const char *why = NULL;
    enum job_state from = job->state;
    if (type == JOB_EV_RELEASE && is_kept_by_admin(s, job))
        return err_set(e, ERR_PERMISSION,
                       "job %s cannot be released: an admin holds it, and only an admin can "
                       "release it",
                       job_words(job).text);
    enum job_verdict v = job_apply(job, &ev, &why);
    if (v == JOB_REFUSED)
        return err_set(e, ERR_FAILED, "job %s cannot be %s: %s", job_words(job).text,
                       type == JOB_EV_HOLD ? "held" : "released", why);
    if (v == JOB_IGNORED && type == JOB_EV_RELEASE)
        return err_set(e, ERR_FAILED, "job %s is not held: it is %s", job_words(job).text,
                       job_state_name(from));
    if (type == JOB_EV_HOLD)
        note_admin_hold(s, job);
    if (v == JOB_NEXT) {
        job->waiting_told = 0;
        moved(s, job, from);
        state_note(s, type == JOB_EV_HOLD ? CHANGE_HELD : CHANGE_RELEASED, job);
    }
    return 0;
}

/* For an array, only the tasks that have not left it. 0 or -1; 1 with e if there are none, or
 * they are not held. */
static int
hold_or_release_alone(struct state *s, struct job *job, enum job_event_type type, struct err *e)
{
    bool is_free = job->tasks && type == JOB_EV_RELEASE && job->state == JOB_PENDING;
    if (!job->tasks || array_next(job) >= 0 || job_state_is_final(job->state)) {
        int rc = hold_or_release(s, job, type, e);
        return rc < 0 && is_free ? 1 : rc;
    }
    if (type == JOB_EV_RELEASE)
        err_set(e, ERR_FAILED, "job %u is not held, and none of its tasks is", job->id);
    else
        err_set(e, ERR_FAILED,
                "job %u cannot be held: all its tasks have started; use 'berth cancel' to stop "
                "them",
                job->id);
    return 1;
}

/* For an array, its waiting split-off tasks and the tasks that have not left it. */
static int
hold_or_release_all(struct state *s, struct job *job, enum job_event_type type, struct err *e)
{
    size_t n = 0, done = 0;
    auto_free struct job **tasks = job->tasks ? arrays_live_tasks(s, job, &n) : NULL;
    struct err of_task, refused = {0};
    for (size_t i = 0; i < n; i++) {
        bool is_done = hold_or_release(s, tasks[i], type, &of_task) == 0;
        done += is_done;
        if (!is_done && of_task.code == ERR_PERMISSION)
            refused = of_task;
    }
    int rc = hold_or_release_alone(s, job, type, e);
    if (rc <= 0)
        return rc;
    if (done > 0)
        return 0;
    if (refused.code)
        *e = refused;
    return -1;
}

int
jobs_hold(struct state *s, struct job *job, struct err *e)
{
    return hold_or_release_all(s, job, JOB_EV_HOLD, e);
}

int
jobs_release(struct state *s, struct job *job, struct err *e)
{
    return hold_or_release_all(s, job, JOB_EV_RELEASE, e);
}

int
jobs_hold_alone(struct state *s, struct job *array, struct err *e)
{
    return hold_or_release_alone(s, array, JOB_EV_HOLD, e);
}

int
jobs_release_alone(struct state *s, struct job *array, struct err *e)
{
    return hold_or_release_alone(s, array, JOB_EV_RELEASE, e);
}

static bool
is_waiting(const struct job *job)
{
    return job->state == JOB_PENDING || job->state == JOB_HELD;
}

static void
set_priority(struct state *s, struct job *job, int32_t priority)
{
    if (job->req.priority == priority)
        return;
    job->req.priority = priority;
    job->waiting_told = 0;
    queue_refile(s->queue, job);
    state_save(s, job, SAVE_JOB);
    state_note(s, CHANGE_PRIORITY, job)->number = priority;
}

int
jobs_set_priority_alone(struct state *s, struct job *array, int32_t priority, struct err *e)
{
    if (!is_waiting(array))
        return err_set(e, ERR_FAILED, "%s %u is not pending: %s",
                       array->tasks ? "array" : "job", array->id,
                       job_state_is_final(array->state) ? "it has ended" : "it has started");
    set_priority(s, array, priority);
    return 0;
}

int
jobs_set_priority(struct state *s, struct job *job, int32_t priority, struct err *e)
{
    size_t n = 0;
    auto_free struct job **tasks = job->tasks ? arrays_live_tasks(s, job, &n) : NULL;
    if (jobs_set_priority_alone(s, job, priority, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (is_waiting(tasks[i]))
            set_priority(s, tasks[i], priority);
    return 0;
}

int
jobs_requeue(struct state *s, struct job *job, const char *by, bool hold, struct err *e)
{
    const struct job_event ev = {
        .type = JOB_EV_REQUEUE, .wall_us = state_wall_us(s), .by = by, .hold = hold};
    const char *why = NULL;
    enum job_state from = job->state;
    enum job_verdict v = job_apply(job, &ev, &why);
    if (v == JOB_REFUSED)
        return err_set(e, ERR_FAILED, "job %u cannot be requeued: %s", job->id, why);
    if (hold)
        note_admin_hold(s, job);
    if (v == JOB_IGNORED)
        return 0;
    log_info("job=%u event=requeue by=%s", job->id, by);
    if (job_state_is_final(from) && !(job->unsaved & SAVE_ENDED))
        state_save(s, job, SAVE_BACK);
    job->unsaved &= (uint8_t)~SAVE_ENDED; /* if it had ended in this turn */
    learned_apply(s, job);
    moved(s, job, from);
    if (job->state == JOB_PENDING) {
        struct change *x = state_note(s, CHANGE_BACK, job);
        x->by = xstrdup(by);
        x->state = from;
        x->number = job->attempts;
    } else {
        note_by(s, CHANGE_REQUEUE, job, by);
    }
    return 0;
}

void
jobs_preempt(struct state *s, struct job *job, uint32_t for_job)
{
    const struct job_event ev = {.type = JOB_EV_PREEMPT, .wall_us = state_wall_us(s)};
    if (job_apply(job, &ev, NULL) != JOB_NEXT)
        return;
    log_info("job=%u event=preempt for=%u", job->id, for_job);
    state_save(s, job, SAVE_JOB);
    state_note(s, CHANGE_PREEMPT, job)->other = for_job;
}

void
jobs_retire(struct state *s, struct job *job)
{
    estimate_leave(s, job);
    depend_leave(s, job);
    job_free(queue_remove(s->queue, job->id));
}

void
jobs_recover(struct state *s, struct job *job)
{
    if (job_state_is_active(job->state)) {
        job->state = JOB_STARTING; /* its folder says how far it got */
        job->run->ending = (struct ending){.outcome = OUTCOME_NONE};
        job->run->shepherd_pid = 0;
    }
    share_texts(s, job);
    estimate_enter(s, job);
    queue_add(s->queue, job);
    arrays_recover(s, job);
}
