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

struct cq_job *
cq_job_of_id(const struct cudaq *q, int64_t id)
{
    struct cq_job *job;

    HASH_FIND(by_id, q->ids, &id, sizeof id, job);
    return job;
}

void
cq_set_id(struct cudaq *q, struct cq_job *job, int64_t id)
{
    if (job->id == id)
        return;
    if (job->id)
        HASH_DELETE(by_id, q->ids, job);
    job->id = id;
    HASH_ADD(by_id, q->ids, id, sizeof job->id, job);
}

void
cq_take_exit(struct cq_job *job, const json_t *ended)
{
    int64_t sig = answer_int(ended, "signal", 0);

    if (json_is_integer(json_object_get(ended, "exit_code")) || sig > 0) {
        job->exit_code = sig > 0 ? -sig : answer_int(ended, "exit_code", 0);
        job->exit_known = true;
    }
}

void
cq_take_object(struct cq_job *job, const json_t *object)
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

/* A job that an earlier dispatcher had handed on, as it is now. */
static void
settle(struct cudaq *q, struct cq_job *job, const json_t *object)
{
    const char *state = answer_str(object, "state");
    bool has_result = strcmp(state, "CANCELLED") != 0 && strcmp(state, "LOST") != 0 &&
                      strcmp(state, "INFEASIBLE") != 0;

    if (!has_result && job->status == CQ_PENDING)
        return;
    cq_take_object(job, object);
    cq_take_exit(job, object);
    cq_job_set(q, job, strcmp(state, "COMPLETED") == 0 ? CQ_COMPLETED : CQ_FAILED);
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

/* What the daemon says of them, by key. */
static int
ask_of_earlier(struct cudaq *q, json_t **result, struct err *e)
{
    json_t *lines = json_array();

    for (const struct cq_job *job = q->jobs; job; job = job->hh.next) {
        if (was_handed_on(job))
            json_array_append_new(lines, json_pack("{s:s,s:s,s:i}", "key", job->key, "command",
                                                   job->command, "line", 1));
    }
    if (json_array_size(lines) == 0) {
        json_decref(lines);
        return 0;
    }
    return compat_call(&q->session, "file.plan",
                       json_pack("{s:s,s:o,s:s,s:i,s:[]}", "path", q->sync_path, "jobs", lines,
                                 "cwd", "/", "umask", 0, "env"),
                       result, e);
}

int
cq_recall(struct cudaq *q, struct err *e)
{
    auto_json json_t *result = NULL, *jobs = NULL;
    json_t *select = json_array(), *line;
    struct cq_job *job;
    size_t i;

    if (ask_of_earlier(q, &result, e) < 0) {
        json_decref(select);
        return -1;
    }
    json_array_foreach(json_object_get(result, "lines"), i, line)
    {
        int64_t id = answer_int(line, "id", 0);

        HASH_FIND_STR(q->jobs, answer_str(line, "key"), job);
        if (!job || !id || (job->noted_id && job->noted_id != id))
            continue;
        cq_set_id(q, job, id);
        if (render_state_is_final(answer_str(line, "state")))
            json_array_append_new(select, json_integer(id));
    }
    for (job = q->jobs; job; job = job->hh.next) {
        if (job->in_file && job->status == CQ_RUNNING && !job->id)
            judge_foreign(q, job);
    }
    if (compat_fetch(&q->session, select, &jobs, e) < 0)
        return -1;
    json_array_foreach(jobs, i, line)
    {
        job = cq_job_of_id(q, answer_int(line, "id", 0));
        if (job)
            settle(q, job, line);
    }
    q->fresh_due = q->sync_due = true;
    return 0;
}
