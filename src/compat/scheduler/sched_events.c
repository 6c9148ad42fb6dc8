/* Handles the daemon's events of a drop-in scheduler's jobs, including those submitted by
 * `add`, which have no line in the file; and ends or holds the jobs when the scheduler
 * stops. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/table/render.h"
#include "compat/scheduler/scheduler.h"
#include "wire/client.h"

#define LOOK_US     50000 /* batch several starts into one look at the GPUs */
#define COMMAND_CUT 200   /* events truncate the command to this many bytes */

/* The daemon's cancelled_by for jobs whose line was removed. */
#define LINE_REMOVED "an edit that removed its line"

/* --- jobs submitted by `add` --- */

/* The GPUs the job was submitted for; all if it has no list. */
static uint64_t
devices_of(const json_t *object)
{
    const json_t *list = json_object_get(object, "devices"), *index;
    uint64_t bits = 0;
    size_t i;

    json_array_foreach(list, i, index)
    {
        json_int_t at = json_integer_value(index);

        if (at >= 0 && at < GPU_MAX)
            bits |= UINT64_C(1) << at;
    }
    return bits ? bits : UINT64_MAX;
}

static struct sched_job *
take_added(struct sched *s, const json_t *object)
{
    int64_t id = answer_int(object, "id", 0);
    struct sched_job *job = compat_job_of(&s->session, id);
    const char *command = answer_str(object, "command");

    if (job || !answer_has_word(json_object_get(object, "tags"), s->tag) ||
        json_is_string(json_object_get(object, "key")))
        return job;
    job = xcalloc(1, sizeof *job);
    job->spec.script = sched_script_of(command, &job->spec.need);
    job->spec.text = xstrdup(job->spec.script ? job->spec.script : command);
    job->spec.args = xcalloc(1, sizeof *job->spec.args);
    snprintf(job->spec.key, sizeof job->spec.key, "+%lld", (long long)id);
    job->added = true;
    job->status = SCHED_WAITING;
    job->devices = devices_of(object);
    job->held_back = strcmp(answer_str(object, "state"), "HELD") == 0 &&
                     (job->devices & s->paused_alone) != 0;
    HASH_ADD_STR(s->jobs, spec.key, job);
    compat_bind(&s->session, &job->id, id, job);
    if (render_state_is_active(answer_str(object, "state")))
        sched_set_running(job, json_object_get(object, "gpus"));
    return job;
}

/* Fetch the pending and running added jobs; ids of held ones go to *held. */
static int
list_added(struct sched *s, json_t *held, struct err *e)
{
    auto_json json_t *jobs = sched_live_jobs(s->session.link.client, s->tag, e);
    size_t i;
    json_t *object;

    if (!jobs)
        return -1;
    json_array_foreach(jobs, i, object)
    {
        const struct sched_job *job = take_added(s, object);

        if (held && job && job->added && !job->held_back &&
            strcmp(answer_str(object, "state"), "HELD") == 0)
            json_array_append_new(held, json_integer(job->id));
    }
    return 0;
}

int
sched_list_added(struct sched *s, struct err *e)
{
    return list_added(s, NULL, e);
}

/* Jobs that start or end at this moment are neither held nor released; that is no error. */
static int
hold_or_release(struct sched *s, bool hold, struct err *e)
{
    json_t *ids = json_array();
    int rc;

    for (struct sched_job *job = s->jobs; job; job = job->hh.next) {
        bool is_kept = (job->devices & s->paused_alone) != 0;

        if (job->added && job->status == SCHED_WAITING && is_kept == hold &&
            job->held_back != hold)
            json_array_append_new(ids, json_integer(job->id));
    }
    rc = compat_call_for(&s->session, hold ? "hold" : "release", ids, NULL, NULL, e);
    return rc < 0 && (e->code == ERR_UNREACHABLE || e->code == ERR_NO_SPACE) ? -1 : 0;
}

int
sched_hold_paused(struct sched *s, struct err *e)
{
    if (!s->config.is_10x)
        return 0;
    if (hold_or_release(s, true, e) < 0 || hold_or_release(s, false, e) < 0)
        return -1;
    for (struct sched_job *job = s->jobs; job; job = job->hh.next) {
        if (job->added)
            job->held_back = job->status == SCHED_WAITING && job->devices & s->paused_alone;
    }
    return 0;
}

int
sched_recall_added(struct sched *s, struct err *e)
{
    auto_json json_t *held = json_array();

    /* Listen first, so that an event reports a job that starts or ends in between. */
    if (compat_listen(&s->session, e) < 0 || list_added(s, held, e) < 0 ||
        sched_hold_paused(s, e) < 0)
        return -1;
    return compat_call_for(&s->session, "release", TAKE(held), NULL, NULL, e);
}

static struct sched_job *
find_added(struct sched *s, int64_t id)
{
    auto_json json_t *result = NULL;

    if (compat_call_for(&s->session, "jobs", json_pack("[I]", (json_int_t)id),
                        json_pack("{s:b}", "all", 1), &result, NULL) < 0)
        return NULL;
    return take_added(s, json_array_get(json_object_get(result, "jobs"), 0));
}

/* --- events --- */

/* Two exit statuses come from our wrapper around a script (sched_job.c). A retry would end the
 * same way. */
static const char *
hopeless_end(const struct sched *s, const json_t *ev)
{
    static const char *const words[][2] = {
        {"exit 137", "exit 137: it had more memory than its limit"},
        {"exit 126", "exit 126: its script lies outside of the allowed paths"}};

    for (size_t i = 0; s->config.is_10x && i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(answer_str(ev, "text"), words[i][0]) == 0)
            return words[i][1];
    }
    return NULL;
}

static const char *
why_ended(const struct sched *s, const json_t *ev, const char *otherwise)
{
    const char *known = hopeless_end(s, ev), *text = answer_str(ev, "text");

    return known ? known : *text ? text : otherwise;
}

static void
on_started(struct sched *s, struct sched_job *job, const json_t *ev)
{
    auto_buf struct buf gpus = BUF_INIT;
    json_t *details;

    sched_make_room(s, job, false);
    sched_set_running(job, json_object_get(ev, "gpus"));
    answer_add_gpus(&gpus, json_object_get(ev, "gpus"));
    details = sched_details(job);
    json_object_set_new(details, "attempt", json_integer(answer_int(ev, "attempt", 1)));
    sched_log(&s->log, SCHED_INFO, details, "Job %lld assigned to GPU %s: %s",
              (long long)job->id, buf_str(&gpus), job->spec.script);
}

static void
say_stopped(struct sched *s, const struct sched_job *job, json_t *details)
{
    sched_log(&s->log, SCHED_INFO, details,
              "Job %lld was stopped; it runs again with the next start: %s", (long long)job->id,
              job->spec.script);
}

/* A scheduler that stops, or a line that was removed, does not mean that a person cancelled
 * the job. */
bool
sched_called_off(const char *state, const char *by)
{
    return strcmp(state, "CANCELLED") == 0 && *by && !strstr(by, "(" SCHED_STOP_WHY ")") &&
           strcmp(by, LINE_REMOVED) != 0;
}

static void
on_ended(struct sched *s, struct sched_job *job, const json_t *ev)
{
    const char *state = answer_str(ev, "state");
    bool ok = strcmp(state, "COMPLETED") == 0;
    json_t *details;

    if (job->status == SCHED_NEW || job->never || (s->leaving && job->status == SCHED_WAITING))
        return;
    sched_make_room(s, job, true);
    job->status = ok ? SCHED_COMPLETED : SCHED_FAILED;
    details = sched_details(job);
    job->n_gpus = 0;
    json_object_set_new(details, "exit_code", json_integer(answer_int(ev, "exit_status", 0)));
    if (ok)
        sched_log(&s->log, SCHED_INFO, details, "Job %lld completed: %s", (long long)job->id,
                  job->spec.script);
    else if (s->leaving && strcmp(state, "CANCELLED") == 0 &&
             !sched_called_off(state, answer_str(ev, "by")))
        say_stopped(s, job, details);
    else
        sched_log(&s->log, SCHED_ERROR, details, "Job %lld %s (%s): %s", (long long)job->id,
                  strcmp(state, "CANCELLED") == 0 ? "was cancelled" : "failed",
                  why_ended(s, ev, state), job->spec.script);
}

/* Cancel the job, since the daemon would retry it. */
static void
give_up(struct sched *s, struct sched_job *job, const json_t *ev)
{
    sched_make_room(s, job, true);
    job->status = SCHED_FAILED;
    job->never = true;
    job->n_gpus = 0;
    (void)compat_call_for(&s->session, "cancel", json_pack("[I]", (json_int_t)job->id),
                          json_pack("{s:s}", "why", SCHED_STOP_WHY), NULL, NULL);
    sched_log(&s->log, SCHED_ERROR, sched_details(job), "Job %lld failed (%s): %s",
              (long long)job->id, hopeless_end(s, ev), job->spec.script);
}

static void
on_requeued(struct sched *s, struct sched_job *job, const json_t *ev)
{
    json_t *details = sched_details(job);

    job->status = SCHED_WAITING;
    job->n_gpus = 0;
    if (s->leaving)
        say_stopped(s, job, details);
    else
        sched_log(&s->log, SCHED_WARNING, details, "Job %lld runs again (%s): %s",
                  (long long)job->id, why_ended(s, ev, ""), job->spec.script);
}

/* True if an unknown job without a file may come from `add`. Avoids a request for each job of
 * other users, or of this user outside the scheduler. */
static bool
may_be_added(const struct sched *s, const json_t *ev)
{
    const char *command = answer_str(ev, "command");

    return s->config.is_10x && answer_int(ev, "job", 0) && !json_object_get(ev, "file") &&
           (strstr(command, " compat scheduler-job ") || strlen(command) >= COMMAND_CUT);
}

static void
take_event(struct sched *s, const json_t *ev)
{
    const char *kind = answer_str(ev, "kind");
    int64_t id = answer_int(ev, "job", 0);
    struct sched_job *job = compat_job_of(&s->session, id);

    if (strcmp(kind, "gpu") == 0)
        s->look_due_us = clock_boot_us();
    if (!job && may_be_added(s, ev))
        job = find_added(s, id);
    if (!job)
        return;
    if (strcmp(kind, "started") == 0)
        on_started(s, job, ev);
    else if (strcmp(kind, "requeued") == 0 && !s->leaving && hopeless_end(s, ev))
        give_up(s, job, ev);
    else if (strcmp(kind, "requeued") == 0)
        on_requeued(s, job, ev);
    else if (strcmp(kind, "ended") == 0)
        on_ended(s, job, ev);
    else
        return;
    if (!s->look_due_us)
        s->look_due_us = clock_boot_us() + LOOK_US;
}

void
sched_take_events(void *sched)
{
    struct sched *s = sched;
    auto_json json_t *events = compat_events(&s->session);
    size_t i;
    json_t *ev;

    json_array_foreach(events, i, ev) take_event(s, ev);
}

/* --- stopping --- */

/* Jobs in screen sessions continue without a scheduler, as in the original. */
static bool
is_stopped_with_us(const struct sched *s, const struct sched_job *job)
{
    return job->status == SCHED_RUNNING && job->id && !s->config.screen;
}

bool
sched_any_to_await(const void *sched)
{
    const struct sched *s = sched;

    for (const struct sched_job *job = s->jobs; job; job = job->hh.next) {
        if (is_stopped_with_us(s, job))
            return true;
    }
    return false;
}

/* Added jobs have no line that would bring them back: pending ones are held, running ones are
 * requeued and held, in one request each, so that none is lost if we die. Jobs that cannot be
 * held any more have just started or ended. */
static int
hold_added(struct sched *s, enum sched_status status, const char *method, struct err *e)
{
    json_t *ids = json_array();
    int rc;

    for (const struct sched_job *job = s->jobs; job; job = job->hh.next) {
        if (job->added && job->id && job->status == status)
            json_array_append_new(ids, json_integer(job->id));
    }
    rc = compat_call_for(&s->session, method, ids,
                         json_pack("{s:b,s:b}", "hold", 1, "active", 1), NULL, e);
    return rc < 0 && e->code == ERR_UNREACHABLE ? -1 : 0;
}

int
sched_stop(void *sched, struct err *e)
{
    struct sched *s = sched;
    json_t *running;

    if (s->config.is_10x && list_added(s, NULL, e) < 0)
        return -1;
    /* On a full disk pending jobs stay, but running ones must still end. */
    if ((sched_put_aside(s, e) < 0 && e->code != ERR_NO_SPACE) ||
        hold_added(s, SCHED_WAITING, "hold", e) < 0)
        return -1;
    sched_take_events(s); /* jobs that started until now */
    if (!s->config.screen && hold_added(s, SCHED_RUNNING, "requeue", e) < 0)
        return -1;
    running = json_array();
    for (const struct sched_job *job = s->jobs; job; job = job->hh.next) {
        if (is_stopped_with_us(s, job) && !job->added)
            json_array_append_new(running, json_integer(job->id));
    }
    return compat_call_for(&s->session, "cancel", running,
                           json_pack("{s:I,s:s}", "grace_ms", (json_int_t)s->config.stop_ms,
                                     "why", SCHED_STOP_WHY),
                           NULL, e);
}
