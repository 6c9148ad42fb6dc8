/* The columns of sacct: one table of name, width and what stands there. What Berth does not
 * record, such as accounts and CPU time, is empty. */
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/slurm_job.h"
#include "compat/slurm/slurm_sacct.h"
#include "compat/slurm/slurm_values.h"
#include "compat/slurm/slurm_words.h"

#define FIELD(name) static void add_##name(struct buf *out, const struct sacct_row *row)
/* Of the job alone; empty in the line of its step. */
#define JOB_FIELD(name)                                                                        \
    static void job_##name(struct buf *out, const struct slurm_job *job);                      \
    FIELD(name)                                                                                \
    {                                                                                          \
        if (!row->is_step)                                                                     \
            job_##name(out, row->job);                                                         \
    }                                                                                          \
    static void job_##name(struct buf *out, const struct slurm_job *job)

/* A job that srun brought has a step of its own number. */
static bool
is_batch(const struct slurm_job *job)
{
    return !answer_bool(job->json, "interactive");
}

const char *
sacct_step(const struct slurm_job *job)
{
    return is_batch(job) ? "batch" : "0";
}

static void
add_step(struct buf *out, const struct sacct_row *row)
{
    if (row->is_step)
        buf_addf(out, ".%s", sacct_step(row->job));
}

FIELD(job_id)
{
    slurm_add_job_id(out, row->job);
    add_step(out, row);
}

FIELD(job_id_raw)
{
    buf_addi(out, row->job->id);
    add_step(out, row);
}

FIELD(job_name)
{
    buf_adds(out, row->is_step && is_batch(row->job) ? "batch" : slurm_name(row->job));
}

/* --- its end --- */

/* "CANCELLED by 1000". */
static void
add_canceller(struct buf *out, const struct slurm_job *job)
{
    const char *by = answer_str(job->json, "cancelled_by");
    auto_free char *name = xstrndup(by, strcspn(by, " "));
    const struct passwd *pw = name[0] ? getpwnam(name) : NULL;

    if (pw)
        buf_addf(out, " by %u", pw->pw_uid);
}

/* A step that a signal ended is CANCELLED for Slurm, whatever its job is. */
FIELD(state)
{
    const struct slurm_job *job = row->job;
    int code, sig;

    slurm_exit(job, &code, &sig);
    if (row->is_step && job->state->ended && sig &&
        strcmp(job->state->name, "OUT_OF_MEMORY") != 0) {
        buf_adds(out, "CANCELLED");
        return;
    }
    buf_adds(out, job->state->name);
    if (!row->is_step && strcmp(job->state->name, "CANCELLED") == 0)
        add_canceller(out, job);
}

FIELD(exit)
{
    int code = 0, sig = 0;

    if (row->job->state->ended && row->is_step)
        slurm_exit(row->job, &code, &sig);
    else if (row->job->state->ended)
        slurm_account_exit(row->job, &code, &sig);
    if (row->is_step && row->job->state->ended && !code && !sig &&
        strcmp(row->job->state->name, "CANCELLED") == 0)
        sig = SIGTERM;
    buf_addf(out, "%d:%d", code, sig);
}

JOB_FIELD(derived)
{
    (void)job;
    buf_adds(out, "0:0");
}

JOB_FIELD(reason)
{
    buf_adds(out, slurm_reason(job));
}

/* --- times --- */

static void
add_span(struct buf *out, int64_t ms)
{
    char text[SLURM_TIME];

    buf_adds(out, slurm_duration(ms, text));
}

FIELD(start)
{
    slurm_add_time(out, row->job->started_us, row->job->state->ended ? "None" : "Unknown");
}

FIELD(end)
{
    slurm_add_time(out, row->job->ended_us, "Unknown");
}

FIELD(submit)
{
    slurm_add_time(out, row->is_step ? row->job->started_us : row->job->submitted_us,
                   "Unknown");
}

FIELD(eligible)
{
    slurm_add_time(out, row->is_step ? row->job->started_us : slurm_eligible_us(row->job),
                   "Unknown");
}

FIELD(elapsed)
{
    add_span(out, row->job->run_ms);
}

FIELD(elapsed_raw)
{
    buf_addi(out, row->job->run_ms / 1000);
}

FIELD(cpu_time)
{
    add_span(out, row->job->run_ms / 1000 * 1000 * slurm_cpus(row->job));
}

FIELD(cpu_time_raw)
{
    buf_addi(out, row->job->run_ms / 1000 * slurm_cpus(row->job));
}

JOB_FIELD(limit)
{
    if (job->limit_ms)
        add_span(out, job->limit_ms);
    else
        buf_adds(out, "UNLIMITED");
}

JOB_FIELD(limit_raw)
{
    if (job->limit_ms)
        buf_addi(out, job->limit_ms / 60000);
    else
        buf_adds(out, "UNLIMITED");
}

JOB_FIELD(reserved)
{
    int64_t until_us = job->started_us ? job->started_us : job->ended_us;

    if (until_us)
        add_span(out, (until_us - job->submitted_us) / 1000);
}

FIELD(zero_time)
{
    (void)row;
    buf_adds(out, "00:00:00");
}

/* --- what it had --- */

FIELD(cpus)
{
    buf_addi(out, slurm_cpus(row->job));
}

FIELD(one)
{
    (void)row;
    buf_adds(out, "1");
}

FIELD(nodes)
{
    buf_adds(out, row->job->started_us ? "1" : "0");
}

FIELD(ntasks)
{
    if (row->is_step)
        buf_adds(out, "1");
}

/* In the order of names, as sacct has them. */
FIELD(tres)
{
    const struct slurm_job *job = row->job;

    if (!row->is_step)
        buf_addf(out, "billing=%d,", slurm_cpus(job));
    buf_addf(out, "cpu=%d", slurm_cpus(job));
    if (slurm_gpus(job) > 0)
        buf_addf(out, ",gres/gpu=%d", slurm_gpus(job));
    if (slurm_mem_mib(job) > 0) {
        buf_adds(out, ",mem=");
        slurm_add_mib(out, slurm_mem_mib(job));
    }
    buf_adds(out, ",node=1");
}

FIELD(tres_alloc)
{
    if (row->job->started_us)
        add_tres(out, row);
}

JOB_FIELD(memory)
{
    if (slurm_mem_mib(job) > 0)
        slurm_add_mib(out, slurm_mem_mib(job));
    else
        buf_adds(out, "0");
}

/* The most of a GPU's memory that it used, under the name of later releases of Slurm. */
FIELD(peak)
{
    int64_t mib = answer_peak(json_object_get(row->job->json, "peak_mib"));

    if (row->is_step && mib >= 0)
        buf_addf(out, "gres/gpumem=%lldM", (long long)mib);
}

/* Joules, of the GPUs alone; as Slurm's, 0 where nobody measures. */
FIELD(energy_raw)
{
    buf_addi(out, answer_int(row->job->json, "energy_j", 0));
}

FIELD(energy)
{
    int64_t joules = answer_int(row->job->json, "energy_j", 0);

    if (joules >= 1000000)
        buf_addf(out, "%.2fM", (double)joules / 1000000);
    else if (joules >= 1000)
        buf_addf(out, "%.2fK", (double)joules / 1000);
    else
        buf_addi(out, joules);
}

FIELD(node)
{
    buf_adds(out, row->job->started_us ? slurm_node() : "None assigned");
}

JOB_FIELD(constraints)
{
    buf_adds(out, answer_str(job->json, "gpu_type"));
}

JOB_FIELD(partition)
{
    (void)job;
    buf_adds(out, SLURM_PARTITION);
}

FIELD(cluster)
{
    (void)row;
    buf_adds(out, SLURM_CLUSTER);
}

/* --- whose it is --- */

JOB_FIELD(user)
{
    buf_adds(out, answer_str(job->json, "user"));
}

JOB_FIELD(uid)
{
    buf_addi(out, answer_int(job->json, "uid", 0));
}

JOB_FIELD(gid)
{
    gid_t id;

    (void)slurm_group(job, &id);
    buf_addi(out, id);
}

JOB_FIELD(group)
{
    gid_t id;

    buf_adds(out, slurm_group(job, &id));
}

JOB_FIELD(folder)
{
    buf_adds(out, answer_str(job->json, "cwd"));
}

JOB_FIELD(comment)
{
    buf_adds(out, answer_str(job->json, "comment"));
}

JOB_FIELD(priority)
{
    buf_addi(out, slurm_priority(job));
}

JOB_FIELD(output)
{
    buf_adds(out, answer_str(job->json, "log"));
}

JOB_FIELD(errors)
{
    buf_adds(out, slurm_error_file(job));
}

JOB_FIELD(input)
{
    (void)job;
    buf_adds(out, "/dev/null");
}

JOB_FIELD(restarts)
{
    buf_addi(out, slurm_restarts(job));
}

const struct sacct_field sacct_fields[] = {
    {"Account", 10, NULL},
    {"AdminComment", 15, NULL},
    {"AllocCPUS", 10, add_cpus},
    {"AllocNodes", 10, add_nodes},
    {"AllocTRES", 10, add_tres_alloc},
    {"AssocID", 7, NULL},
    {"AveCPU", 10, NULL},
    {"AveCPUFreq", 10, NULL},
    {"AveDiskRead", 14, NULL},
    {"AveDiskWrite", 14, NULL},
    {"AvePages", 10, NULL},
    {"AveRSS", 10, NULL},
    {"AveVMSize", 10, NULL},
    {"BlockID", 16, NULL},
    {"Cluster", 10, add_cluster},
    {"Comment", 14, add_comment},
    {"Constraints", 19, add_constraints},
    {"ConsumedEnergy", 14, add_energy},
    {"ConsumedEnergyRaw", 17, add_energy_raw},
    {"Container", 19, NULL},
    {"CPUTime", 10, add_cpu_time},
    {"CPUTimeRAW", 10, add_cpu_time_raw},
    {"DBIndex", -10, NULL},
    {"DerivedExitCode", 15, add_derived},
    {"Elapsed", 10, add_elapsed},
    {"ElapsedRaw", 10, add_elapsed_raw},
    {"Eligible", 19, add_eligible},
    {"End", 19, add_end},
    {"ExitCode", 8, add_exit},
    {"Flags", 19, NULL},
    {"GID", 6, add_gid},
    {"Group", 9, add_group},
    {"JobID", -12, add_job_id},
    {"JobIDRaw", -12, add_job_id_raw},
    {"JobName", 10, add_job_name},
    {"Layout", 9, NULL},
    {"MaxDiskRead", 12, NULL},
    {"MaxDiskReadNode", 15, NULL},
    {"MaxDiskReadTask", 15, NULL},
    {"MaxDiskWrite", 12, NULL},
    {"MaxDiskWriteNode", 16, NULL},
    {"MaxDiskWriteTask", 16, NULL},
    {"MaxPages", 8, NULL},
    {"MaxPagesNode", 12, NULL},
    {"MaxPagesTask", 14, NULL},
    {"MaxRSS", 10, NULL},
    {"MaxRSSNode", 10, NULL},
    {"MaxRSSTask", 10, NULL},
    {"MaxVMSize", 10, NULL},
    {"MaxVMSizeNode", 14, NULL},
    {"MaxVMSizeTask", 14, NULL},
    {"McsLabel", 12, NULL},
    {"MinCPU", 10, NULL},
    {"MinCPUNode", 10, NULL},
    {"MinCPUTask", 10, NULL},
    {"NCPUS", 10, add_cpus},
    {"NNodes", 8, add_one},
    {"NodeList", 15, add_node},
    {"NTasks", 8, add_ntasks},
    {"Partition", 10, add_partition},
    {"Priority", 10, add_priority},
    {"QOS", 10, NULL},
    {"QOSRAW", 6, NULL},
    {"Reason", 22, add_reason},
    {"ReqCPUFreq", 10, NULL},
    {"ReqCPUFreqGov", 13, NULL},
    {"ReqCPUFreqMax", 13, NULL},
    {"ReqCPUFreqMin", 13, NULL},
    {"ReqCPUS", 8, add_cpus},
    {"ReqMem", 10, add_memory},
    {"ReqNodes", 8, add_one},
    {"ReqTRES", 10, add_tres},
    {"Reservation", 20, NULL},
    {"ReservationId", 8, NULL},
    {"Reserved", 10, add_reserved},
    {"ResvCPU", 10, NULL},
    {"ResvCPURAW", 10, NULL},
    {"Start", 19, add_start},
    {"State", 10, add_state},
    {"Submit", 19, add_submit},
    {"SubmitLine", 20, NULL},
    {"Suspended", 10, add_zero_time},
    {"SystemComment", 15, NULL},
    {"SystemCPU", 10, NULL},
    {"Timelimit", 10, add_limit},
    {"TimelimitRaw", 10, add_limit_raw},
    {"TotalCPU", 10, NULL},
    {"TRESUsageInAve", 14, NULL},
    {"TRESUsageInMax", 14, add_peak},
    {"TRESUsageInMaxNode", 18, NULL},
    {"TRESUsageInMaxTask", 18, NULL},
    {"TRESUsageInMin", 14, NULL},
    {"TRESUsageInMinNode", 18, NULL},
    {"TRESUsageInMinTask", 18, NULL},
    {"TRESUsageInTot", 14, NULL},
    {"TRESUsageOutAve", 15, NULL},
    {"TRESUsageOutMax", 15, NULL},
    {"TRESUsageOutMaxNode", 19, NULL},
    {"TRESUsageOutMaxTask", 19, NULL},
    {"TRESUsageOutMin", 15, NULL},
    {"TRESUsageOutMinNode", 19, NULL},
    {"TRESUsageOutMinTask", 19, NULL},
    {"TRESUsageOutTot", 15, NULL},
    {"UID", 6, add_uid},
    {"User", 9, add_user},
    {"UserCPU", 10, NULL},
    {"WCKey", 10, NULL},
    {"WCKeyID", 10, NULL},
    {"WorkDir", 20, add_folder},
    {NULL, 0, NULL},
};

const struct sacct_field sacct_later_fields[] = {
    {"Planned", 10, add_reserved}, {"Restarts", 8, add_restarts}, {"StdErr", 20, add_errors},
    {"StdIn", 20, add_input},      {"StdOut", 20, add_output},    {NULL, 0, NULL},
};
