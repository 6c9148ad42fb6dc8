/* Handles what a supervisor or sweeper sends the daemon, one message per line. An outcome
 * found in a folder is handled in the same way. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "core/ledger/ledger.h"
#include "core/queue/endings.h"
#include "daemon/attempt/attempts.h"
#include "daemon/attempt/job_mps.h"
#include "daemon/attempt/machine_trouble.h"
#include "daemon/attempt/supervisor_watch_priv.h"
#include "daemon/common/event_say.h"
#include "daemon/common/instance.h"
#include "daemon/common/turn_due.h"
#include "daemon/state/changes.h"
#include "daemon/state/job_facts.h"
#include "daemon/state/state.h"
#include "sys/exitrec.h"
#include "wire/json_text.h"

static void
on_hello(struct watcher *w, struct watch *x, const json_t *msg)
{
    struct job *job = watch_job_of(w, x);
    x->shepherd = (pid_t)json_integer_value(json_object_get(msg, "pid"));
    if (!job)
        return;
    job->run->shepherd_pid = x->shepherd;
    job->run->screen_pid = (int32_t)json_integer_value(json_object_get(msg, "screen_pid"));
    x->warned = json_integer_value(json_object_get(msg, "warned_us")) > 0;
    if (job->cancel_asked)
        watch_say_stop(x, job, NULL, job->cancelled_by);
    else if (job->requeue_asked)
        watch_say_stop(x, job, "requeue", NULL); /* the supervisor keeps the first reason */
}

/* The command has been executed; key: of the time in the message. */
static void
on_started(struct watcher *w, struct watch *x, const json_t *msg, const char *key)
{
    struct job *job = watch_job_of(w, x);
    int64_t at_us = json_integer_value(json_object_get(msg, key));
    if (!job || at_us <= 0)
        return;
    watch_mps_arrived(x);
    machine_started(w->attempts, job->uid);
    job->run->command_pid = (int32_t)json_integer_value(json_object_get(msg, "command_pid"));
    if (!jobs_attempt_started(w->attempts->inst->state, job, at_us))
        return;
    struct change *change = changes_add(&w->attempts->inst->state->changes, CHANGE_LAUNCHED);
    change->job = job->id;
    change->at_us = at_us;
    turn_touch_unplanned(w->attempts->inst);
}

/* The job was sent its warning signal: notes the event once, from the supervisor's message or
 * from a record if an earlier daemon missed that. */
static void
on_warned(struct watcher *w, struct watch *x, struct job *job)
{
    if (x->warned || !job->req.warn_signal)
        return;
    x->warned = true;
    event_warned(w->attempts->inst, job);
}

/* The GPU, not the job, is at fault: the job is placed again. what: text in front of
 * the reason. */
static void
set_never_ran(struct ending *ending, const char *what, const char *why)
{
    ending->outcome = OUTCOME_NEVER_RAN;
    ending->errno_value = 0;
    auto_free char *text = xasprintf("%s: %s", what, why);
    text_copy_cut(ending->text, sizeof ending->text, text);
}

/* The GPUs' driver refused the job's VRAM cap. The GPUs count as unable to cap for a while,
 * and the job is placed again: it runs without a cap, or waits if it requires one. */
static void
excuse_uncapped(struct watcher *w, const struct watch *x, const struct job *job,
                struct ending *ending)
{
    auto_free char *why = xstrdup(ending->text);
    log_warn("job=%u attempt=%d event=not-capped %s", x->job, x->attempt, why);
    set_never_ran(ending, "cannot enforce its VRAM", why);
    for (int i = 0; i < job->run->n_gpus; i++)
        ledger_set_cap_refused(w->attempts->inst->ledger, job->run->gpus[i], why,
                               clock_boot_us());
}

/* The same for MPS: the job runs without it. */
static void
excuse_unserved(struct watcher *w, const struct watch *x, const struct job *job,
                struct ending *ending)
{
    auto_free char *why = xstrdup(ending->text);
    log_warn("job=%u attempt=%d event=no-mps %s", x->job, x->attempt, why);
    set_never_ran(ending, "cannot start MPS", why);
    mps_look(w->attempts); /* a missing program affects all users */
    uint64_t user = job->req.demand.user;
    if (job->run->n_gpus > 0 && user) /* 0: MPS is now off in the settings */
        ledger_set_mps_refused(w->attempts->inst->ledger, job->run->gpus[0], user, why,
                               clock_boot_us());
}

/* The command was not started for reasons other than the job: the job waits until the
 * trouble ends, but not for an account that is gone. */
static void
excuse(struct watcher *w, const struct watch *x, const struct job *job, enum blame blame,
       struct ending *ending)
{
    if (blame == BLAME_ACCOUNT && machine_account_is_gone(w->attempts, job->uid, ending->text))
        return;
    log_warn("job=%u attempt=%d event=not-started %s", x->job, x->attempt, ending->text);
    ending->outcome = OUTCOME_NEVER_RAN;
    if (!ending->errno_value)
        ending->errno_value = EIO;
    if (blame == BLAME_USER)
        machine_trouble_of(w->attempts, job->uid, ending->text);
    else if (blame == BLAME_MACHINE)
        machine_trouble(w->attempts, ending->text);
}

void
watch_not_forked(struct watcher *w, struct watch *x, int errnum)
{
    struct err e = {0};
    err_errno(&e, ERR_FAILED, errnum, "no process can be started");
    machine_trouble(w->attempts, e.text);
    struct job *job = watch_job_of(w, x);
    if (!job || x->ended)
        return;
    struct ending ending = ending_never_ran(errnum, clock_wall_us());
    text_copy_cut(ending.text, sizeof ending.text, e.text);
    x->ended = true;
    jobs_attempt_ended(w->attempts->inst->state, job, &ending);
}

void
watch_take_record(struct watcher *w, struct watch *x, struct job *job,
                  const struct exitrec *rec)
{
    x->ended = true;
    watch_mps_arrived(x);
    if (rec->ending.outcome == OUTCOME_CANCELLED && !job->cancelled_by && rec->by[0])
        job->cancelled_by = xstrdup(rec->by);
    if (rec->started_us > 0)
        jobs_attempt_started(w->attempts->inst->state, job, rec->started_us);
    if (rec->warned_us > 0)
        on_warned(w, x, job);
    struct ending ending = rec->ending;
    if (ending.outcome == OUTCOME_NOT_STARTED && rec->blame == BLAME_CAP)
        excuse_uncapped(w, x, job, &ending);
    else if (ending.outcome == OUTCOME_NOT_STARTED && rec->blame == BLAME_MPS)
        excuse_unserved(w, x, job, &ending);
    else if (ending.outcome == OUTCOME_NOT_STARTED && rec->blame != BLAME_COMMAND)
        excuse(w, x, job, rec->blame, &ending);
    jobs_attempt_ended(w->attempts->inst->state, job, &ending);
}

static void
on_ended(struct watcher *w, struct watch *x, const char *line, size_t len)
{
    struct job *job = watch_job_of(w, x);
    struct exitrec rec;
    struct err e = {0};
    if (!job || x->ended)
        return;
    if (exitrec_decode(line, len, &rec, &e) < 0) {
        log_error("job=%u unreadable end: %s", x->job, e.text);
        return; /* the folder will have it once the supervisor has exited */
    }
    watch_take_record(w, x, job, &rec);
}

static void
on_guest(struct watcher *w, struct watch *x, const json_t *msg, bool came)
{
    const struct job *job = watch_job_of(w, x);
    json_int_t uid = json_integer_value(json_object_get(msg, "uid"));
    if (job && !x->ended && uid >= 0 && uid < UINT32_MAX)
        event_attached(w->attempts->inst, job, came, (uint32_t)uid,
                       json_is_true(json_object_get(msg, "input")));
}

void
watch_hear(struct watcher *w, struct watch *x, const char *line, size_t len)
{
    json_error_t je;
    json_t *msg = json_text_read(line, len, &je);
    const char *event = json_string_value(json_object_get(msg, "event"));
    if (!event) {
        log_error("job=%u its supervisor sent an invalid message: %s", x->job, je.text);
    } else if (strcmp(event, "hello") == 0) {
        on_hello(w, x, msg);
        on_started(w, x, msg, "started_us");
    } else if (strcmp(event, "started") == 0) {
        on_started(w, x, msg, "at_us");
    } else if (strcmp(event, "screen") == 0) {
        struct job *job = watch_job_of(w, x);
        if (job)
            job->run->screen_pid = (int32_t)json_integer_value(json_object_get(msg, "pid"));
    } else if (strcmp(event, "attached") == 0 || strcmp(event, "detached") == 0) {
        on_guest(w, x, msg, event[0] == 'a');
    } else if (strcmp(event, "warned") == 0) {
        struct job *job = watch_job_of(w, x);
        if (job)
            on_warned(w, x, job);
    } else if (strcmp(event, "ended") == 0) {
        on_ended(w, x, line, len);
    } else if (strcmp(event, "swept") == 0) {
        x->swept = true;
    } else if (strcmp(event, "not_forked") == 0) {
        x->not_forked = (int)json_integer_value(json_object_get(msg, "errno"));
    }
    json_decref(msg);
}
