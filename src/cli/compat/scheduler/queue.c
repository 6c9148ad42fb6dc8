/* The lines of the jobs file and the daemon: what waits is told as a whole, lowest priority
 * number first and in the file's order within one, whenever it has changed. What completed is
 * known to the daemon and never runs again; what ended otherwise runs again with a new start of
 * the scheduler. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/answer.h"
#include "cli/compat/scheduler/scheduler.h"
#include "cli/render.h"
#include "spec/attr.h"
#include "wire/client.h"

struct sched_job *
sched_job_of_id(const struct sched *s, int64_t id)
{
    struct sched_job *job;

    HASH_FIND(by_id, s->ids, &id, sizeof id, job);
    return job;
}

void
sched_set_id(struct sched *s, struct sched_job *job, int64_t id)
{
    if (job->id == id || id == 0)
        return;
    if (job->id)
        HASH_DELETE(by_id, s->ids, job);
    job->id = id;
    HASH_ADD(by_id, s->ids, id, sizeof job->id, job);
}

json_t *
sched_details(const struct sched_job *job)
{
    json_t *d =
        json_pack("{s:o,s:[]}", "job_id", json_sprintf("%lld", (long long)job->id), "gpu_ids");

    for (int i = 0; i < job->n_gpus; i++)
        json_array_append_new(json_object_get(d, "gpu_ids"), json_integer(job->gpus[i]));
    json_object_set_new(d, "required_gpus", json_real(job->spec.need));
    json_object_set_new(d, "script", json_string(job->spec.script));
    return d;
}

/* ------------------------------------------------------------- telling it */

static int
by_turn(const void *a, const void *b)
{
    const struct sched_job *x = *(struct sched_job *const *)a;
    const struct sched_job *y = *(struct sched_job *const *)b;

    if (x->spec.priority != y->spec.priority)
        return x->spec.priority < y->spec.priority ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static void
refuse(struct sched *s, struct sched_job *job, const char *why)
{
    job->never = true;
    sched_log(&s->log, SCHED_ERROR, sched_details(job), "%s cannot run: %s", job->spec.text,
              why);
}

/* Whether it is told to the daemon now. */
static bool
is_to_be_sent(struct sched *s, struct sched_job *job, int64_t room)
{
    int needed = sched_cards_needed(s, job->spec.need);
    uint64_t devices = sched_devices(s, job);

    if (job->added || job->never || job->status > SCHED_RUNNING)
        return false;
    if (__builtin_popcountll(devices) < needed) {
        auto_free char *why = xasprintf("it needs %d GPUs, and may use %d", needed,
                                        __builtin_popcountll(devices));

        refuse(s, job, why);
        return false;
    }
    job->held_back = __builtin_popcountll(devices & ~s->paused_alone) < needed ||
                     (job->status == SCHED_NEW && room <= 0);
    return !job->held_back || job->status == SCHED_RUNNING;
}

static int64_t
count_waiting(const struct sched *s)
{
    int64_t n = 0;

    for (const struct sched_job *job = s->jobs; job; job = job->hh.next)
        n += job->status == SCHED_WAITING;
    return n;
}

static size_t
choose(struct sched *s, struct sched_job **chosen)
{
    int64_t room = s->config.queue_max ? s->config.queue_max - count_waiting(s) : INT64_MAX;
    size_t n = 0, kept = 0;

    for (struct sched_job *job = s->jobs; job; job = job->hh.next)
        chosen[n++] = job;
    qsort(chosen, n, sizeof *chosen, by_turn);
    for (size_t i = 0; i < n; i++) {
        struct sched_job *job = chosen[i];

        if (!is_to_be_sent(s, job, room))
            continue;
        room -= job->status == SCHED_NEW;
        chosen[kept++] = job;
    }
    return kept;
}

static size_t
fill_lines(struct sched *s, struct sched_job **chosen, size_t n, struct request *requests,
           struct compat_line *lines)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        struct sched_job *job = chosen[i];
        struct err e = {0};

        if (!job->stamp_us)
            job->stamp_us = clock_wall_us();
        sched_request_fill(s, job, &requests[kept]);
        if (request_validate(&requests[kept], &e) < 0) {
            refuse(s, job, e.text);
            request_free(&requests[kept]);
            continue;
        }
        lines[kept] =
            (struct compat_line){job->spec.key, job->line, &requests[kept], job->again};
        chosen[kept++] = job;
    }
    return kept;
}

static int
send_lines(struct sched *s, struct sched_job **chosen, size_t *n, json_t **result,
           struct err *e)
{
    auto_free struct request *requests = xcalloc(*n + 1, sizeof *requests);
    auto_free struct compat_line *lines = xcalloc(*n + 1, sizeof *lines);
    int rc;

    *n = fill_lines(s, chosen, *n, requests, lines);
    rc = compat_sync(&s->session, s->sync_path, lines, *n, false, result, e);
    for (size_t i = 0; i < *n; i++)
        request_free(&requests[i]);
    if (rc == 0 || e->code != ERR_PERMISSION || s->no_priority)
        return rc;
    /* The machine's daemon: a priority above the usual is not for everybody. */
    s->no_priority = true;
    return send_lines(s, chosen, n, result, e);
}

static void
say_refused(struct sched *s, const json_t *result)
{
    size_t i;
    json_t *line;

    json_array_foreach(json_object_get(result, "refused"), i, line)
    {
        struct sched_job *job;

        HASH_FIND_STR(s->jobs, answer_str(line, "key"), job);
        if (job && !job->never)
            refuse(s, job, answer_str(line, "error"));
    }
}

static void
take_known(struct sched *s, struct sched_job *job, const char *state, json_t *active)
{
    bool is_new = job->status == SCHED_NEW;

    job->again = false;
    if (render_state_is_active(state)) {
        if (job->status != SCHED_RUNNING)
            json_array_append_new(active, json_sprintf("%lld", (long long)job->id));
    } else if (!render_state_is_final(state)) {
        if (is_new)
            sched_log(&s->log, SCHED_INFO, sched_details(job), "Job %lld queued: %s",
                      (long long)job->id, job->spec.text);
        job->status = SCHED_WAITING;
    } else if (strcmp(state, "COMPLETED") == 0) {
        if (is_new)
            sched_log(&s->log, SCHED_INFO, sched_details(job),
                      "Job %lld has completed before and is not run again: %s",
                      (long long)job->id, job->spec.text);
        job->status = SCHED_COMPLETED;
    } else if (strcmp(state, "INFEASIBLE") == 0) {
        job->status = SCHED_FAILED;
    } else if (is_new) {
        job->again = s->sync_due = true;
    }
}

void
sched_set_running(struct sched_job *job, const json_t *gpus)
{
    size_t i;
    json_t *gpu;

    job->status = SCHED_RUNNING;
    job->n_gpus = 0;
    json_array_foreach(gpus, i, gpu)
    {
        int64_t index = json_is_object(gpu) ? answer_int(gpu, "index", -1)
                                            : (int64_t)json_integer_value(gpu);

        if (index >= 0 && index < GPU_MAX && job->n_gpus < GPU_MAX)
            job->gpus[job->n_gpus++] = (uint8_t)index;
    }
}

/* What runs already, and no event has told. */
static int
adopt(struct sched *s, const json_t *active, struct err *e)
{
    auto_json json_t *result = NULL;
    size_t i;
    json_t *object;

    if (json_array_size(active) == 0)
        return 0;
    if (compat_call(&s->session, "jobs", json_pack("{s:O,s:b}", "select", active, "all", 1),
                    &result, e) < 0)
        return -1;
    json_array_foreach(json_object_get(result, "jobs"), i, object)
    {
        struct sched_job *job = sched_job_of_id(s, answer_int(object, "id", 0));

        if (job && render_state_is_active(answer_str(object, "state")))
            sched_set_running(job, json_object_get(object, "gpus"));
    }
    s->look_due_us = clock_boot_us();
    return 0;
}

/* scheduler_10x hears of all jobs: those that `add` hands over are of no file. */
static int
follow(struct sched *s, struct err *e)
{
    auto_json json_t *result = NULL;

    s->following = true;
    if (!s->config.is_10x)
        return compat_follow(&s->session, e);
    if (compat_call(&s->session, "events",
                    json_pack("{s:b,s:I,s:[ssss]}", "follow", 1, "since",
                              (json_int_t)s->session.seq, "kinds", "started", "requeued",
                              "ended", "gpu"),
                    &result, e) < 0)
        return -1;
    json_array_extend(s->session.events, json_object_get(result, "events"));
    return 0;
}

int
sched_sync(struct sched *s, struct err *e)
{
    auto_free struct sched_job **chosen =
        xcalloc(HASH_COUNT(s->jobs) + 1, sizeof(struct sched_job *));
    auto_json json_t *result = NULL, *active = json_array();
    size_t n = choose(s, chosen), i;
    json_t *line;

    s->sync_due = false;
    if (send_lines(s, chosen, &n, &result, e) < 0 || (!s->following && follow(s, e) < 0))
        return -1;
    json_array_foreach(json_object_get(result, "lines"), i, line)
    {
        if (i >= n)
            break;
        sched_set_id(s, chosen[i], answer_int(line, "id", 0));
        take_known(s, chosen[i], answer_str(line, "state"), active);
    }
    say_refused(s, result);
    sched_log(&s->log, SCHED_DEBUG, NULL, "The daemon knows of %zu jobs that wait or run", n);
    sched_log(&s->log, SCHED_DEBUG, NULL, "The daemon knows of %zu jobs that wait or run", n);
    return adopt(s, active, e);
}

int
sched_put_aside(struct sched *s, struct err *e)
{
    auto_free struct sched_job **chosen =
        xcalloc(HASH_COUNT(s->jobs) + 1, sizeof(struct sched_job *));
    auto_json json_t *result = NULL;
    size_t n = 0;

    s->leaving = true;
    for (struct sched_job *job = s->jobs; job && s->session.link.own; job = job->hh.next) {
        if (job->status == SCHED_WAITING && !job->added)
            chosen[n++] = job;
    }
    return send_lines(s, chosen, &n, &result, e);
}
