/* sacct --json: accounting records in the schema of Slurm's OpenAPI v0.0.38 (22.05). */
#include <jansson.h>
#include <string.h>

#include "base/libc.h"
#include "cli/ask/answer.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/slurm_job.h"
#include "compat/slurm/slurm_json.h"
#include "compat/slurm/slurm_values.h"

static json_t *
exit_of(int code, int sig)
{
    if (sig)
        return json_pack("{s:s, s:i, s:{s:i, s:s}}", "status", "SIGNALED", "return_code", 0,
                         "signal", "signal_id", sig, "name",
                         libc_signal_name(sig) ? libc_signal_name(sig) : "");
    return json_pack("{s:s, s:i}", "status", code ? "ERROR" : "SUCCESS", "return_code", code);
}

static json_int_t
seconds(int64_t us)
{
    return (json_int_t)(us / 1000000);
}

static json_t *
time_of(const struct slurm_job *job)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:i, s:o}", "elapsed", (json_int_t)(job->run_ms / 1000),
        "submission", seconds(job->submitted_us), "eligible", seconds(slurm_eligible_us(job)),
        "start", seconds(job->started_us), "end", seconds(job->ended_us), "suspended", 0,
        "limit", job->limit_ms ? json_integer(job->limit_ms / 60000) : json_null());
}

static json_t *
tres_of(const struct slurm_job *job)
{
    json_t *list =
        json_pack("[{s:s, s:n, s:i, s:i}, {s:s, s:n, s:i, s:i}]", "type", "cpu", "name", "id",
                  1, "count", slurm_cpus(job), "type", "node", "name", "id", 4, "count", 1);

    if (slurm_mem_mib(job) > 0)
        json_array_append_new(list,
                              json_pack("{s:s, s:n, s:i, s:I}", "type", "mem", "name", "id", 2,
                                        "count", (json_int_t)slurm_mem_mib(job)));
    if (slurm_gpus(job) > 0)
        json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:i}", "type", "gres", "name",
                                              "gpu", "id", 1001, "count", slurm_gpus(job)));
    return list;
}

/* The one step of a job: the batch script, or the program of srun. */
static json_t *
steps_of(const struct slurm_job *job)
{
    bool is_batch = !answer_bool(job->json, "interactive");
    json_t *steps = json_array();
    int code, sig;

    slurm_exit(job, &code, &sig);
    json_array_append_new(
        steps, json_pack("{s:{s:I, s:s, s:s}, s:s, s:o, s:o, s:{s:i}, s:{s:i, s:s, s:[s]}}",
                         "step", "job_id", (json_int_t)job->id, "id", is_batch ? "batch" : "0",
                         "name", is_batch ? "batch" : slurm_name(job), "state",
                         sig && job->state->ended ? "CANCELLED" : job->state->name, "exit_code",
                         job->state->ended ? exit_of(code, sig) : exit_of(0, 0), "time",
                         time_of(job), "tasks", "count", 1, "nodes", "count", 1, "range",
                         slurm_node(), "list", slurm_node()));
    return steps;
}

/* The user who cancelled the job; null: none. */
static json_t *
canceller_of(const struct slurm_job *job)
{
    const char *by = answer_str(job->json, "cancelled_by");

    return by[0] ? json_stringn(by, strcspn(by, " ")) : json_null();
}

static json_t *
account_of(const struct slurm_job *job, bool has_step)
{
    json_t *tres = tres_of(job), *to;
    int code = 0, sig = 0;

    if (job->state->ended)
        slurm_account_exit(job, &code, &sig);
    to = json_pack("{s:I, s:s, s:s, s:s, s:s, s:s, s:I, s:s, s:s, s:s}", "job_id",
                   (json_int_t)job->id, "name", slurm_name(job), "user",
                   answer_str(job->json, "user"), "cluster", SLURM_CLUSTER, "partition",
                   SLURM_PARTITION, "account", "", "priority", (json_int_t)slurm_priority(job),
                   "qos", "", "nodes", job->started_us ? slurm_node() : "None assigned",
                   "working_directory", answer_str(job->json, "cwd"));
    json_object_update_new(
        to,
        json_pack("{s:{s:s, s:s}, s:o, s:o, s:o, s:o, s:{s:i, s:I}, s:o, s:i, s:s}", "state",
                  "current", job->state->name, "reason", slurm_reason(job), "exit_code",
                  exit_of(code, sig), "derived_exit_code", exit_of(0, 0), "time", time_of(job),
                  "steps", has_step ? steps_of(job) : json_array(), "required", "CPUs",
                  slurm_cpus(job), "memory", (json_int_t)slurm_mem_mib(job),
                  "kill_request_user", canceller_of(job), "allocation_nodes",
                  job->started_us ? 1 : 0, "constraints", answer_str(job->json, "gpu_type")));
    json_object_update_new(
        to, json_pack("{s:{s:O, s:o}, s:{s:I, s:o, s:o}, s:{s:s}}", "tres", "requested", tres,
                      "allocated", job->started_us ? json_incref(tres) : json_array(), "array",
                      "job_id", (json_int_t)job->array, "task_id",
                      job->task >= 0 ? json_integer(job->task) : json_null(), "task",
                      job->tasks ? json_string(job->tasks) : json_null(), "comment", "job",
                      answer_str(job->json, "comment")));
    json_decref(tres);
    return to;
}

int
slurm_put_accounts(const struct slurm_jobs *jobs,
                   bool (*has_step)(const struct slurm_job *job, const void *arg),
                   const void *arg)
{
    json_t *list = json_array();

    for (size_t i = 0; i < jobs->n; i++)
        json_array_append_new(list, account_of(&jobs->at[i], has_step(&jobs->at[i], arg)));
    return slurm_put_json("jobs", list);
}
