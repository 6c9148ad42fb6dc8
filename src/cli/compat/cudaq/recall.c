/* What an earlier dispatcher of cudaq had begun: the daemon's jobs are settled with their true
 * ends, so that nothing runs twice; processes that the original began are watched, for nobody
 * else can know how they end. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/compat/cudaq/cudaq.h"
#include "cli/compat/pytext.h"
#include "cli/render.h"
#include "sys/procs.h"
#include "wire/client.h"

#define PID_SLACK_US 5000000 /* between a process's start and what its record says */

void
cq_take_exit(struct cq_job *job, const json_t *ended)
{
    int64_t sig = answer_int(ended, "signal", 0);

    if (json_is_integer(json_object_get(ended, "exit_code")) || sig > 0) {
        job->exit_code = sig > 0 ? -sig : answer_int(ended, "exit_code", 0);
        job->exit_known = true;
    }
}

static void
take_object(struct cq_job *job, const json_t *object)
{
    const json_t *gpu = json_array_get(json_object_get(object, "gpus"), 0);
    const char *log = answer_str(object, "log"), *slash = strrchr(log, '/');

    job->gpu = answer_int(gpu, "index", job->gpu);
    if (answer_int(object, "pid", 0) > 0)
        job->pid = answer_int(object, "pid", 0);
    job->start_us = answer_time_us(object, "started");
    free(job->log_name);
    job->log_name = xstrdup(slash ? slash + 1 : log);
}

/* A job that has ended, and no event told. */
static void
settle(struct cudaq *q, struct cq_job *job, const json_t *object)
{
    const char *state = answer_str(object, "state");
    bool has_result = strcmp(state, "CANCELLED") != 0 && strcmp(state, "LOST") != 0 &&
                      strcmp(state, "INFEASIBLE") != 0;

    if (!has_result && job->status == CQ_PENDING)
        return;
    take_object(job, object);
    cq_take_exit(job, object);
    cq_job_set(q, job, strcmp(state, "COMPLETED") == 0 ? CQ_COMPLETED : CQ_FAILED);
}

void
cq_adopt(void *cudaq, void *cq_job, const json_t *object)
{
    const char *state = answer_str(object, "state");
    struct cq_job *job = cq_job;

    if (render_state_is_final(state)) {
        settle(cudaq, job, object);
    } else if (render_state_is_active(state)) {
        take_object(job, object);
        cq_job_set(cudaq, job, CQ_RUNNING);
    }
}

/* Whether the process that a record names is still that: one that began later is another. */
static bool
is_process_of(const struct cq_job *job)
{
    struct proc p;

    if (job->pid <= 0 || proc_read((pid_t)job->pid, &p) < 0 || p.state == 'Z')
        return false;
    return job->began_us == 0 || proc_began_us(&p) < job->began_us + PID_SLACK_US;
}

/* Begun by the original: it runs on beside us, or its end is not to be known any more. */
static void
judge_foreign(struct cudaq *q, struct cq_job *job)
{
    job->foreign = is_process_of(job);
    if (!job->foreign)
        cq_job_set(q, job, CQ_FAILED);
}

void
cq_look_at_foreign(struct cudaq *q)
{
    for (struct cq_job *job = q->jobs; job; job = job->hh.next) {
        if (job->foreign && job->status == CQ_RUNNING && !is_process_of(job))
            cq_job_set(q, job, CQ_UNKNOWN);
    }
}

static bool
was_handed_on(const struct cq_job *job)
{
    return job->in_file && (job->status == CQ_RUNNING ||
                            (job->status == CQ_PENDING && job->noted_id && !job->was_started));
}

/* A record that names another job of the daemon's speaks of one that it has forgotten. */
static bool
on_known(void *cudaq, void *cq_job, int64_t id, const char *state)
{
    const struct cq_job *job = cq_job;

    (void)cudaq;
    (void)state;
    return !job->noted_id || job->noted_id == id;
}

int
cq_recall(struct cudaq *q, struct err *e)
{
    auto_free struct compat_line *lines = xcalloc(HASH_COUNT(q->jobs) + 1, sizeof *lines);
    struct compat_file file = cq_file(q);
    size_t n = 0;

    file.known = on_known;
    for (struct cq_job *job = q->jobs; job; job = job->hh.next) {
        if (was_handed_on(job))
            lines[n++] =
                (struct compat_line){.key = job->key, .number = 1, .job = job, .id = &job->id};
    }
    if (compat_recall(&q->session, &file, lines, n, e) < 0)
        return -1;
    for (struct cq_job *job = q->jobs; job; job = job->hh.next) {
        if (job->in_file && job->status == CQ_RUNNING && !job->id)
            judge_foreign(q, job);
    }
    q->sync_due = true;
    return 0;
}
