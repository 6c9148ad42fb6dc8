/* Slurm's JSON; see slurm_json.h. Every key that programs read is present; values that Berth
 * does not have are Slurm's defaults. */
#include "compat/slurm/slurm_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/ask/answer.h"
#include "cli/common/cli.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/slurm_job.h"
#include "compat/slurm/slurm_values.h"

int
slurm_put_json(const char *name, json_t *list)
{
    json_t *all = json_pack("{s:{s:{s:s, s:s}, s:{s:{s:i, s:i, s:i}, s:s}}, s:[], s:o}", "meta",
                            "plugin", "type", "openapi/v0.0.38", "name",
                            "Slurm OpenAPI v0.0.38", "Slurm", "version", "major", 22, "micro",
                            8, "minor", 5, "release", SLURM_RELEASE, "errors", name, list);
    int status = cli_put_json(all);

    json_decref(all);
    return status;
}

static json_t *
text_of(void (*add)(struct buf *out, const struct slurm_job *job), const struct slurm_job *job)
{
    auto_buf struct buf text = BUF_INIT;

    add(&text, job);
    return json_string(buf_str(&text));
}

/* Ids, names, user and array. */
static void
add_identity(json_t *to, const struct slurm_job *job)
{
    bool is_task = job->task >= 0;

    json_object_update_new(
        to, json_pack("{s:I, s:s, s:I, s:s, s:i, s:s, s:I, s:o, s:I, s:s, s:s, s:s}", "job_id",
                      (json_int_t)job->id, "name", slurm_name(job), "user_id",
                      (json_int_t)slurm_uid(job), "user_name", answer_str(job->json, "user"),
                      "group_id", (int)slurm_gid(job), "group_name", slurm_group(job),
                      "array_job_id", (json_int_t)job->array, "array_task_id",
                      is_task ? json_integer(job->task) : json_null(), "array_max_tasks",
                      (json_int_t)answer_int(json_object_get(job->json, "array"), "max", 0),
                      "array_task_string", job->tasks ? job->tasks : "", "cluster",
                      SLURM_CLUSTER, "partition", SLURM_PARTITION));
}

static void
add_state(json_t *to, const struct slurm_job *job)
{
    int code, sig;

    slurm_exit(job, &code, &sig);
    json_object_update_new(
        to, json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:b, s:o, s:I}", "job_state",
                      job->state->name, "state_reason", slurm_reason(job), "state_description",
                      "", "exit_code", job->state->ended ? (code << 8) + sig : 0,
                      "derived_exit_code", 0, "restart_cnt", (json_int_t)slurm_restarts(job),
                      "requeue", answer_bool(job->json, "requeue"), "nice",
                      slurm_nice(job) ? json_integer(slurm_nice(job)) : json_null(), "priority",
                      (json_int_t)slurm_priority(job)));
}

static json_int_t
seconds(int64_t us)
{
    return (json_int_t)(us / 1000000);
}

static void
add_times(json_t *to, const struct slurm_job *job)
{
    int64_t eligible_us = slurm_eligible_us(job);

    json_object_update_new(
        to, json_pack("{s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:o}", "submit_time",
                      seconds(job->submitted_us), "eligible_time", seconds(eligible_us),
                      "accrue_time", seconds(eligible_us), "start_time",
                      seconds(slurm_start_us(job)), "end_time", seconds(slurm_end_us(job)),
                      "suspend_time", 0, "deadline", 0, "time_limit",
                      job->limit_ms ? json_integer(job->limit_ms / 60000) : json_null()));
}

static void
add_resources(json_t *to, const struct slurm_job *job)
{
    const char *node = job->started_us ? slurm_node() : "";
    int64_t mem = slurm_mem_mib(job);

    json_object_update_new(
        to,
        json_pack("{s:i, s:i, s:i, s:s, s:s, s:o, s:n, s:o, s:s, s:o, s:o, s:s}", "cpus",
                  slurm_cpus(job), "node_count", 1, "tasks", 1, "nodes", node, "batch_host",
                  node, "memory_per_node", mem ? json_integer(mem) : json_null(),
                  "memory_per_cpu", "tres_per_node", text_of(slurm_add_gres, job),
                  "tres_per_job", "", "tres_req_str", text_of(slurm_add_tres, job),
                  "tres_alloc_str", node[0] ? text_of(slurm_add_tres, job) : json_string(""),
                  "features", answer_str(job->json, "gpu_type")));
}

static void
add_files(json_t *to, const struct slurm_job *job)
{
    json_object_update_new(
        to, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "command", slurm_command(job),
                      "current_working_directory", answer_str(job->json, "cwd"),
                      "standard_output", answer_str(job->json, "log"), "standard_error",
                      slurm_error_file(job), "standard_input", "/dev/null", "comment",
                      answer_str(job->json, "comment"), "batch_flag", 1));
}

/* Resources on the node; an empty object before the job starts. */
static json_t *
resources_of(const struct slurm_job *job)
{
    if (!job->started_us)
        return json_object();
    return json_pack("{s:s, s:i, s:i}", "nodes", slurm_node(), "allocated_cpus",
                     slurm_cpus(job), "allocated_hosts", 1);
}

static void
add_wishes(json_t *to, const struct slurm_job *job)
{
    json_object_update_new(
        to,
        json_pack("{s:o, s:i, s:i, s:I, s:[], s:o}", "job_resources", resources_of(job),
                  "cpus_per_task", slurm_cpus(job), "minimum_cpus_per_node", slurm_cpus(job),
                  "last_sched_evaluation", seconds(job->started_us), "flags", "shared",
                  answer_bool(job->json, "exclusive") ? json_string("none") : json_null()));
}

/* Keys that are always empty strings. */
static void
add_empty(json_t *to)
{
    static const char *const keys[] = {"account",        "admin_comment",  "qos",
                                       "wckey",          "licenses",       "network",
                                       "excluded_nodes", "required_nodes", "resv_name",
                                       "mcs_label",      "system_comment", "tres_per_task",
                                       "tres_per_socket"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        json_object_set_new(to, keys[i], json_string(""));
}

static json_t *
json_of(const struct slurm_job *job)
{
    json_t *to = json_object();

    add_identity(to, job);
    add_state(to, job);
    add_times(to, job);
    add_resources(to, job);
    add_wishes(to, job);
    add_files(to, job);
    add_empty(to);
    json_object_set_new(to, "dependency", text_of(slurm_add_dependency, job));
    return to;
}

int
slurm_put_jobs(const struct slurm_jobs *jobs)
{
    json_t *list = json_array();

    for (size_t i = 0; i < jobs->n; i++)
        json_array_append_new(list, json_of(&jobs->at[i]));
    return slurm_put_json("jobs", list);
}
