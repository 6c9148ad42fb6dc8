/* Values of a job; see slurm_values.h. */
#include "compat/slurm/slurm_values.h"

#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "compat/slurm/slurm_job.h"
#include "compat/slurm/slurm_words.h"

#define PRIORITY_MIDDLE 4294900000LL
#define OOM_SIGNAL      125 /* Slurm reports out of memory as 0:125 */

void
slurm_add_job_id(struct buf *out, const struct slurm_job *job)
{
    if (job->tasks)
        buf_addf(out, "%lld_[%s]", (long long)job->array, job->tasks);
    else if (job->task >= 0)
        buf_addf(out, "%lld_%d", (long long)job->array, job->task);
    else
        buf_addf(out, "%lld", (long long)job->id);
}

bool
slurm_is_waiting(const struct slurm_job *job)
{
    return strcmp(job->state->name, "PENDING") == 0;
}

/* --- reasons --- */

static const char *
waiting_reason(const struct slurm_job *job)
{
    static const struct {
        const char *berth, *slurm;
    } reasons[] = {
        {"Held", "JobHeldUser"},
        {"Dependency", "Dependency"},
        {"BeginTime", "BeginTime"},
        {"Priority", "Priority"},
        {"Reservation", "Priority"},
        {"ArrayLimit", "JobArrayTaskLimit"},
        {"UserLimit", "QOSMaxJobsPerUserLimit"},
        {"QueueLimit", "QOSGrpJobsLimit"},
        {"GpuPaused", "ReqNodeNotAvail"},
        {"GpuSick", "ReqNodeNotAvail"},
        {"Probe", "ReqNodeNotAvail"},
        {"Disk", "ReqNodeNotAvail"},
        {"Machine", "ReqNodeNotAvail"},
    };
    const char *why = answer_str(job->json, "reason");

    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (strcmp(reasons[i].berth, why) == 0)
            return reasons[i].slurm;
    return why[0] && strcmp(why, "None") != 0 ? "Resources" : "None";
}

static const char *
ended_reason(const struct slurm_job *job)
{
    static const struct {
        const char *berth, *slurm;
    } reasons[] = {
        {"TIMEOUT", "TimeLimit"},
        {"OUT_OF_MEMORY", "OutOfMemory"},
        {"INFEASIBLE", "BadConstraints"},
        {"LOST", "NodeDown"},
    };
    int code, sig;

    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (strcmp(reasons[i].berth, job->state->berth) == 0)
            return reasons[i].slurm;
    if (strcmp(job->state->berth, "FAILED") != 0)
        return "None";
    slurm_exit(job, &code, &sig);
    return sig ? "JobLaunchFailure" : "NonZeroExitCode";
}

const char *
slurm_reason(const struct slurm_job *job)
{
    if (slurm_is_waiting(job))
        return waiting_reason(job);
    return job->state->ended ? ended_reason(job) : "None";
}

/* --- exits --- */

void
slurm_exit(const struct slurm_job *job, int *code, int *sig)
{
    *sig = (int)answer_int(job->json, "signal", 0);
    *code = (int)answer_int(job->json, "exit_code", -1);
    if (strcmp(job->state->name, "OUT_OF_MEMORY") == 0) {
        *code = 0;
        *sig = OOM_SIGNAL;
    } else if (strcmp(job->state->name, "TIMEOUT") == 0) {
        *code = 0;
        *sig = SIGTERM;
    } else if (*code < 0) {
        /* The command could not be executed, or the job can never start. */
        *code = *sig || strcmp(job->state->name, "FAILED") != 0
                    ? 0
                    : (int)answer_int(job->json, "exit_status", 1);
    }
}

void
slurm_account_exit(const struct slurm_job *job, int *code, int *sig)
{
    static const char *const others[] = {"CANCELLED", "TIMEOUT", "PREEMPTED"};

    slurm_exit(job, code, sig);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i], job->state->name) == 0)
            *code = *sig = 0;
}

int64_t
slurm_restarts(const struct slurm_job *job)
{
    int64_t attempt = answer_int(job->json, "attempt", 0);

    return attempt > 1 ? attempt - 1 : 0;
}

const char *
slurm_error_file(const struct slurm_job *job)
{
    const char *error = answer_str(job->json, "error");

    return error[0] ? error : answer_str(job->json, "log");
}

int64_t
slurm_eligible_us(const struct slurm_job *job)
{
    int64_t begin_us = answer_time_us(job->json, "begin");
    bool waits_for_others = strcmp(answer_str(job->json, "reason"), "Dependency") == 0;

    if (strcmp(job->state->berth, "HELD") == 0 || (slurm_is_waiting(job) && waits_for_others))
        return 0;
    return begin_us ? begin_us : job->submitted_us;
}

int64_t
slurm_start_us(const struct slurm_job *job)
{
    if (job->started_us)
        return job->started_us;
    if (slurm_is_waiting(job))
        return answer_time_us(job->json, "expected_start");
    return job->ended_us; /* it ended without running */
}

int64_t
slurm_end_us(const struct slurm_job *job)
{
    if (job->ended_us)
        return job->ended_us;
    return job->started_us && job->limit_ms ? job->started_us + job->limit_ms * 1000 : 0;
}

/* --- resources and names --- */

int
slurm_cpus(const struct slurm_job *job)
{
    int64_t cpus = answer_int(job->json, "cpus", 0);

    return cpus > 0 ? (int)cpus : 1;
}

int64_t
slurm_cpu_number(const struct slurm_job *job)
{
    return slurm_cpus(job);
}

int64_t
slurm_mem_mib(const struct slurm_job *job)
{
    return answer_int(job->json, "mem_mib", 0);
}

void
slurm_add_memory(struct buf *out, const struct slurm_job *job)
{
    if (slurm_mem_mib(job) > 0)
        slurm_add_mib(out, slurm_mem_mib(job));
    else
        buf_adds(out, "0");
}

int
slurm_gpus(const struct slurm_job *job)
{
    size_t held = json_array_size(json_object_get(job->json, "gpus"));

    return held ? (int)held : (int)answer_int(job->json, "gpus_wanted", 0);
}

void
slurm_add_tres(struct buf *out, const struct slurm_job *job)
{
    buf_addf(out, "cpu=%d", slurm_cpus(job));
    if (slurm_mem_mib(job) > 0) {
        buf_adds(out, ",mem=");
        slurm_add_mib(out, slurm_mem_mib(job));
    }
    buf_addf(out, ",node=1,billing=%d", slurm_cpus(job));
    if (slurm_gpus(job) > 0)
        buf_addf(out, ",gres/gpu=%d", slurm_gpus(job));
}

void
slurm_add_gres(struct buf *out, const struct slurm_job *job)
{
    const char *type = answer_str(job->json, "gpu_type");

    if (slurm_gpus(job) > 0)
        buf_addf(out, "gres:gpu:%s%s%d", type, type[0] ? ":" : "", slurm_gpus(job));
}

void
slurm_add_dependency(struct buf *out, const struct slurm_job *job)
{
    const json_t *after = json_object_get(job->json, "after"), *dep;
    size_t i;

    if (!slurm_is_waiting(job) || strcmp(answer_str(job->json, "reason"), "Dependency") != 0)
        return;
    json_array_foreach(after, i, dep)
    {
        const char *type = answer_str(dep, "type");
        int64_t task = answer_int(dep, "task", -1);

        buf_addf(out, "%s%s:%lld", i ? "," : "",
                 strcmp(type, "any") == 0      ? "afterany"
                 : strcmp(type, "failed") == 0 ? "afternotok"
                                               : "afterok",
                 (long long)answer_int(dep, "job", 0));
        if (task >= 0)
            buf_addf(out, "_%lld", (long long)task);
        buf_adds(out, "(unfulfilled)");
    }
    if (json_is_true(json_object_get(job->json, "singleton")))
        buf_addf(out, "%ssingleton(unfulfilled)", i ? "," : "");
}

bool
slurm_is_of(const struct slurm_job *job, const char *users)
{
    auto_free char *uid = xasprintf("%lld", (long long)slurm_uid(job));

    return slurm_is_listed(users, answer_str(job->json, "user")) || slurm_is_listed(users, uid);
}

int64_t
slurm_uid(const struct slurm_job *job)
{
    return answer_int(job->json, "uid", 0);
}

int64_t
slurm_gid(const struct slurm_job *job)
{
    const struct passwd *pw = getpwuid((uid_t)slurm_uid(job));

    return pw ? pw->pw_gid : 0;
}

const char *
slurm_group(const struct slurm_job *job)
{
    const struct passwd *pw = getpwuid((uid_t)slurm_uid(job));
    const struct group *gr = pw ? getgrgid(pw->pw_gid) : NULL;

    return gr ? gr->gr_name : "";
}

const char *
slurm_command(const struct slurm_job *job)
{
    bool is_said = json_is_string(json_object_get(job->json, "submitted_as"));

    return answer_str(job->json, is_said ? "submitted_as" : "command");
}

const char *
slurm_name(const struct slurm_job *job)
{
    const char *name = answer_str(job->json, "name");

    return name[0] ? name : "berth";
}

int
slurm_nice(const struct slurm_job *job)
{
    return (int)-answer_int(job->json, "priority", 0);
}

int64_t
slurm_priority(const struct slurm_job *job)
{
    const char *state = job->state->berth;

    return strcmp(state, "HELD") == 0 ? 0
                                      : PRIORITY_MIDDLE + answer_int(job->json, "priority", 0);
}
