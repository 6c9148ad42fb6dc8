/* The life of a job: the table of state x event, and what each step records. Called by the
 * daemon for every event, and by its recovery. Every pair is defined, so a late, repeated or
 * missing event leaves a job in a sensible state. */
#include "core/queue/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/counted_text.h"
#include "base/err.h"
#include "core/queue/array.h"
#include "core/queue/endings.h"

static const char *const state_names[JOB_STATES] = {
    [JOB_PENDING] = "PENDING",
    [JOB_HELD] = "HELD",
    [JOB_STARTING] = "STARTING",
    [JOB_RUNNING] = "RUNNING",
    [JOB_SUSPENDED] = "SUSPENDED",
    [JOB_COMPLETING] = "COMPLETING",
    [JOB_COMPLETED] = "COMPLETED",
    [JOB_FAILED] = "FAILED",
    [JOB_CANCELLED] = "CANCELLED",
    [JOB_TIMEOUT] = "TIMEOUT",
    [JOB_OUT_OF_MEMORY] = "OUT_OF_MEMORY",
    [JOB_PREEMPTED] = "PREEMPTED",
    [JOB_INFEASIBLE] = "INFEASIBLE",
    [JOB_LOST] = "LOST",
};

static const char *const reason_names[] = {
    [REASON_NONE] = "None",
    [REASON_PRIORITY] = "Priority",
    [REASON_RESOURCES] = "Resources",
    [REASON_GPU_MEMORY] = "GpuMemory",
    [REASON_GPU_SHARE] = "GpuShare",
    [REASON_GPU_BUSY] = "GpuBusy",
    [REASON_GPU_PAUSED] = "GpuPaused",
    [REASON_GPU_SICK] = "GpuSick",
    [REASON_GPU_MPS] = "GpuMps",
    [REASON_GPU_CAP] = "GpuCap",
    [REASON_CPUS] = "Cpus",
    [REASON_MEMORY] = "Memory",
    [REASON_HELD] = "Held",
    [REASON_BEGIN_TIME] = "BeginTime",
    [REASON_PROBE] = "Probe",
    [REASON_DISK] = "Disk",
    [REASON_MACHINE] = "Machine",
    [REASON_SLURM] = "Slurm",
    [REASON_DEPENDENCY] = "Dependency",
    [REASON_ARRAY_LIMIT] = "ArrayLimit",
    [REASON_USER_LIMIT] = "UserLimit",
    [REASON_QUEUE_LIMIT] = "QueueLimit",
    [REASON_RESERVATION] = "Reservation",
};

static const char *const outcome_names[] = {
    [OUTCOME_NONE] = "none",
    [OUTCOME_EXITED] = "exited",
    [OUTCOME_SIGNALED] = "signaled",
    [OUTCOME_TIMEOUT] = "timeout",
    [OUTCOME_CANCELLED] = "cancelled",
    [OUTCOME_NOT_STARTED] = "not_started",
    [OUTCOME_LOST] = "lost",
    [OUTCOME_NEVER_RAN] = "never_ran",
    [OUTCOME_PREEMPTED] = "preempted",
    [OUTCOME_REQUEUED] = "requeued",
    [OUTCOME_SETUP_FAILED] = "setup_failed",
    [OUTCOME_EXCEEDED] = "exceeded",
};

/* What an event does to a job in a state. */
enum step {
    NO,    /* refused */
    SAME,  /* ignored: already so, or overtaken by events */
    HOLD,  /* PENDING -> HELD */
    FREE,  /* HELD -> PENDING */
    DROP,  /* waiting -> CANCELLED: no process exists */
    ASK,   /* remember the request to stop; its end decides */
    GO,    /* PENDING -> STARTING with the new attempt's GPUs */
    RUN,   /* STARTING -> RUNNING */
    END,   /* active -> COMPLETING */
    CLEAR, /* COMPLETING -> final, or PENDING again */
    NEVER, /* waiting -> INFEASIBLE */
    SKIP,  /* waiting -> CANCELLED: a dependency failed */
    YIELD, /* remember to make way and run again */
    AGAIN, /* remember to run again, however it ends */
    BACK,  /* ended -> PENDING */
    SUM,   /* an array -> the state its tasks add up to */
};

/* clang-format off */
static const uint8_t steps[JOB_STATES][JOB_EVENTS] = {
    /*                  HOLD  RELEASE CANCEL START STARTED ENDED VRAM_BACK INFEASIBLE DEP_FAILED PREEMPT REQUEUE OVER */
    [JOB_PENDING]    = {HOLD, SAME,   DROP,  GO,   NO,     NO,   SAME,     NEVER,     SKIP,      SAME,   NO,     SUM},
    [JOB_HELD]       = {SAME, FREE,   DROP,  NO,   NO,     NO,   SAME,     NEVER,     SKIP,      SAME,   NO,     SUM},
    [JOB_STARTING]   = {NO,   SAME,   ASK,   NO,   RUN,    END,  SAME,     NO,        NO,        YIELD,  AGAIN,  NO},
    [JOB_RUNNING]    = {NO,   SAME,   ASK,   NO,   SAME,   END,  SAME,     NO,        NO,        YIELD,  AGAIN,  NO},
    [JOB_SUSPENDED]  = {NO,   SAME,   ASK,   NO,   SAME,   END,  SAME,     NO,        NO,        YIELD,  AGAIN,  NO},
    [JOB_COMPLETING] = {NO,   SAME,   ASK,   NO,   SAME,   SAME, CLEAR,    NO,        NO,        SAME,   AGAIN,  NO},
    [JOB_COMPLETED ... JOB_LOST]
                     = {NO,   NO,     SAME,  NO,   SAME,   SAME, SAME,     SAME,      SAME,      SAME,   BACK,   SAME},
};
/* clang-format on */

struct job *
job_new(void)
{
    struct job *job = xcalloc(1, sizeof *job);
    request_init(&job->req);
    job->task = -1;
    job->stop_grace_ms = -1;
    return job;
}

static void
attempt_free(struct attempt *run)
{
    if (run)
        free(run->before);
    free(run);
}

struct attempt *
attempt_new(int32_t number)
{
    struct attempt *run = xcalloc(1, sizeof *run);
    run->number = number;
    run->sent.peak_mib = -1;
    for (int i = 0; i < GPU_MAX; i++)
        run->peak_mib[i] = run->now_mib[i] = -1;
    return run;
}

void
job_free(struct job *job)
{
    if (!job)
        return;
    request_free(&job->req);
    attempt_free(job->run);
    free(job->key);
    shared_free(job->cwd);
    shared_free(job->rlimits);
    shared_free(job->user);
    free(job->cancelled_by);
    free(job->never_text);
    free(job->fingerprint);
    array_free(job->tasks);
    free(job);
}

const char *
job_state_name(enum job_state s)
{
    return state_names[s];
}

struct job_words
job_words(const struct job *job)
{
    struct job_words w;
    if (job->array)
        snprintf(w.text, sizeof w.text, "%u_%d", job->array, job->task);
    else
        snprintf(w.text, sizeof w.text, "%u", job->id);
    return w;
}

static int
name_find(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (strcasecmp(names[i], name) == 0)
            return i;
    }
    return -1;
}

int
job_state_from_name(const char *name, enum job_state *out)
{
    int i = name_find(state_names, JOB_STATES, name);
    if (i < 0)
        return -1;
    *out = (enum job_state)i;
    return 0;
}

bool
job_state_is_final(enum job_state s)
{
    return s >= JOB_COMPLETED;
}

void
job_states_text(uint32_t states, struct buf *out)
{
    size_t before = out->len;
    for (int i = 0; i < JOB_STATES; i++)
        if (states >> i & 1 && i != JOB_SUSPENDED) /* no event leads to it */
            buf_addf(out, "%s%s", out->len > before ? ", " : "", state_names[i]);
}

bool
job_state_is_active(enum job_state s)
{
    return s >= JOB_STARTING && s <= JOB_COMPLETING;
}

const char *
reason_name(enum reason r)
{
    return reason_names[r];
}

const char *
outcome_name(enum outcome o)
{
    return outcome_names[o];
}

static void
note_cancel(struct job *job, const struct job_event *ev)
{
    job->cancel_asked = true;
    if (ev->by && !job->cancelled_by)
        job->cancelled_by = xstrdup(ev->by);
}

static void
end_at(struct job *job, enum job_state s, int64_t wall_us)
{
    job->state = s;
    job->ended_us = wall_us;
}

static void
begin_attempt(struct job *job, struct attempt *run)
{
    if (!run)
        err_abort("job %u is started without an attempt", job->id);
    attempt_free(job->run);
    job->run = run;
    job->begin_us = 0;
    run->number = ++job->attempts;
    job->state = JOB_STARTING;
}

static void
note_ending(struct job *job, const struct job_event *ev)
{
    if (!job->run || !ev->ending || ev->ending->outcome == OUTCOME_NONE)
        err_abort("job %u ends without an attempt or an outcome", job->id);
    job->run->ending = *ev->ending;
    if (!job->run->ending.ended_us)
        job->run->ending.ended_us = ev->wall_us;
    job->state = JOB_COMPLETING;
}

static bool
retry_oom(struct job *job)
{
    const struct ending *e = &job->run->ending;
    if (e->oom != OOM_CUDA && e->outcome != OUTCOME_EXCEEDED)
        return false;
    if (job->oom_used >= job->req.oom_retries)
        return false;
    job->oom_used++;
    if (job->run->vram_mib > 0) {
        job->req.demand.vram_mib =
            account_oom_next_mib(attempt_peak_mib(job->run), job->run->vram_mib);
    }
    return true;
}

static bool
retry_failure(struct job *job, int64_t wall_us)
{
    if (job->retries_used >= job->req.retries)
        return false;
    job->begin_us = wall_us + account_backoff_us(++job->retries_used);
    return true;
}

/* An attempt whose command never ran is not the job's fault, so it is retried without limit:
 * the first time at once, because a stray kill looks like that, then with growing pauses. If
 * the machine's problem is known (errno_value), its owner decides when to retry. */
static void
retry_misfire(struct job *job, int64_t wall_us)
{
    if (job->run->ending.errno_value)
        return;
    if (job->misfires < INT32_MAX)
        job->misfires++;
    if (job->misfires > 1)
        job->begin_us = wall_us + account_backoff_us(job->misfires - 1);
}

/* It was being stopped, to run again. A job that completed before the request arrived need not
 * make way any more; a person's request still counts. */
static bool
was_requeued(const struct job *job, enum requeue why, enum job_state s)
{
    /* A daemon may have asked the supervisor and died before recording that; the exit record
     * says so. */
    enum outcome o = job->run->ending.outcome;
    return o == OUTCOME_PREEMPTED || o == OUTCOME_REQUEUED || why == REQUEUE_WANTED ||
           (why != REQUEUE_NO && s != JOB_COMPLETED);
}

static bool
retry_timeout(struct job *job)
{
    if (job->req.on_timeout != ON_TIMEOUT_REQUEUE ||
        job->requeues_used >= job->req.max_requeues)
        return false;
    job->requeues_used++;
    job->lined_us = job->first_since_us = 0; /* waits anew at the end of its line */
    return true;
}

int64_t
job_grace_ms(const struct job *job)
{
    return job->stop_grace_ms >= 0 ? job->stop_grace_ms : request_grace_ms(&job->req);
}

int64_t
job_lined_us(const struct job *job, int64_t now_us)
{
    if (job->lined_us <= 0)
        return -job->lined_us;
    return now_us > job->lined_us ? now_us - job->lined_us : 0;
}

/* Stops the job's time in line. */
static void
leave_line(struct job *job, int64_t wall_us)
{
    job->lined_us = -job_lined_us(job, wall_us);
}

bool
job_goes_last(const struct job *job)
{
    return job->state == JOB_PENDING && job->run && job->run->ending.outcome == OUTCOME_TIMEOUT;
}

/* Whether the job runs again after an attempt that ended in this state. */
static bool
wants_retry(struct job *job, enum requeue asked, enum job_state s, int64_t wall_us)
{
    if (job->cancel_asked)
        return false;
    if (was_requeued(job, asked, s))
        return true;
    if (job->run->ending.outcome == OUTCOME_NEVER_RAN) {
        retry_misfire(job, wall_us);
        return true;
    }
    job->misfires = 0;
    if (s == JOB_LOST)
        return job->req.requeue;
    if (s == JOB_TIMEOUT)
        return retry_timeout(job);
    if (retry_oom(job))
        return true;
    if (job->run->ending.outcome == OUTCOME_EXCEEDED)
        return false; /* it would exceed the same demand again, beside other jobs */
    if (s == JOB_FAILED || s == JOB_OUT_OF_MEMORY)
        return retry_failure(job, wall_us);
    return false;
}

static void
settle(struct job *job, int64_t wall_us)
{
    const struct ending *e = &job->run->ending;
    enum job_state s = ending_state(e);
    enum requeue asked = (enum requeue)job->requeue_asked;
    if (!job->cancel_asked)
        job->requeue_asked = REQUEUE_NO;
    if (wants_retry(job, asked, s, wall_us))
        job->state = asked == REQUEUE_HELD ? JOB_HELD : JOB_PENDING;
    else if ((e->outcome == OUTCOME_NEVER_RAN || e->outcome == OUTCOME_PREEMPTED) &&
             job->cancel_asked)
        end_at(job, JOB_CANCELLED, e->ended_us);
    else
        end_at(job, s, e->ended_us);
}

/* Ends a waiting job, or all tasks still in an array. */
static void
end_waiting(struct job *job, enum job_state s, const struct job_event *ev)
{
    if (ev->text) {
        free(job->never_text);
        job->never_text = xstrdup(ev->text);
    }
    if (job->tasks) {
        array_drop(job, s);
        if (!array_is_over(job, &s))
            return;
    }
    end_at(job, s, ev->wall_us);
}

static void
sum_up(struct job *job, int64_t wall_us)
{
    enum job_state s;
    if (!job->tasks || !array_is_over(job, &s))
        err_abort("job %u is not an array whose tasks have all ended", job->id);
    end_at(job, s, wall_us);
}

/* Resets the job to how it was before it ended, with full retries. A raised demand stays
 * raised, because it was learned. */
static void
start_over(struct job *job)
{
    free(job->cancelled_by);
    free(job->never_text);
    job->cancelled_by = job->never_text = NULL;
    job->cancel_asked = job->admin_held = false;
    job->requeue_asked = REQUEUE_NO;
    job->stop_grace_ms = -1;
    job->oom_used = job->retries_used = job->requeues_used = job->misfires = 0;
    job->begin_us = job->ended_us = 0;
    job->blocked_since_us = job->limited_since_us = job->first_since_us = 0;
    job->lined_us = 0;
    job->state = JOB_PENDING;
}

static const char *
refusal(enum job_state s, enum job_event_type type)
{
    if (job_state_is_final(s))
        return "it has ended";
    if (type == JOB_EV_STARTED || type == JOB_EV_ENDED)
        return "it has no running attempt";
    if (type == JOB_EV_REQUEUE)
        return "it is pending already";
    if (s == JOB_HELD)
        return "it is held";
    if (type == JOB_EV_HOLD)
        return "it has started; 'berth cancel' stops it";
    return "it has its GPUs already";
}

static enum job_verdict
ask_cancel(struct job *job, const struct job_event *ev)
{
    if (job->cancel_asked)
        return JOB_IGNORED;
    note_cancel(job, ev);
    return JOB_NEXT;
}

/* A cancel overrides it, and a person's request overrides the plan's. */
static enum job_verdict
ask_requeue(struct job *job, enum requeue how, const char **why)
{
    if (job->cancel_asked && how != REQUEUE_PREEMPTED) {
        if (why)
            *why = "it is being cancelled";
        return JOB_REFUSED;
    }
    if (job->cancel_asked || job->requeue_asked >= how)
        return JOB_IGNORED;
    job->requeue_asked = (uint8_t)how;
    return JOB_NEXT;
}

static void
take_step(struct job *job, enum step step, const struct job_event *ev)
{
    switch (step) {
    case HOLD:
        leave_line(job, ev->wall_us);
        job->state = JOB_HELD;
        job->blocked_since_us = job->limited_since_us = 0; /* no job passes it while held */
        break;
    case FREE:
        job->admin_held = false;
        job->state = JOB_PENDING;
        break;
    case DROP:
        note_cancel(job, ev);
        end_waiting(job, JOB_CANCELLED, ev);
        break;
    case GO:
        leave_line(job, ev->wall_us);
        begin_attempt(job, ev->run);
        break;
    case RUN:
        if (!job->run->started_us)
            job->run->started_us = ev->wall_us;
        job->state = JOB_RUNNING;
        break;
    case END:
        note_ending(job, ev);
        break;
    case CLEAR:
        settle(job, ev->wall_us);
        break;
    case NEVER:
        end_waiting(job, JOB_INFEASIBLE, ev);
        break;
    case SKIP:
        end_waiting(job, JOB_CANCELLED, ev);
        break;
    case BACK:
        start_over(job);
        break;
    case SUM:
        sum_up(job, ev->wall_us);
        break;
    case NO:
    case SAME:
    case ASK:
    case YIELD:
    case AGAIN:
        break; /* handled by job_apply */
    }
}

enum job_verdict
job_apply(struct job *job, const struct job_event *ev, const char **why)
{
    enum step step = (enum step)steps[job->state][ev->type];
    if (why)
        *why = NULL;
    if (step == SAME)
        return JOB_IGNORED;
    if (step == ASK)
        return ask_cancel(job, ev);
    if (step == YIELD)
        return ask_requeue(job, REQUEUE_PREEMPTED, why);
    if (step == AGAIN)
        return ask_requeue(job, ev->hold ? REQUEUE_HELD : REQUEUE_WANTED, why);
    if (step == NO) {
        if (why)
            *why = refusal(job->state, ev->type);
        return JOB_REFUSED;
    }
    take_step(job, step, ev);
    return JOB_NEXT;
}
