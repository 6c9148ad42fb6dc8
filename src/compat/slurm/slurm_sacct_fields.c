/* The columns of sacct: one table with name, width and value. Values that Berth does not
 * record, such as accounts and CPU time, are empty. */
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

/* Jobs of srun and salloc have a numbered step instead. */
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
add_step(struct buf *out, const struct slurm_row *row)
{
    if (row->is_step)
        buf_addf(out, ".%s", sacct_step(row->job));
}

static void
add_id(struct buf *out, const struct slurm_row *row)
{
    slurm_add_job_id(out, row->job);
    add_step(out, row);
}

static void
add_id_raw(struct buf *out, const struct slurm_row *row)
{
    buf_addi(out, row->job->id);
    add_step(out, row);
}

static void
add_name(struct buf *out, const struct slurm_row *row)
{
    buf_adds(out, row->is_step && is_batch(row->job) ? "batch" : slurm_name(row->job));
}

/* --- state and exit --- */

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

/* In Slurm a step ended by a signal is CANCELLED, whatever its job's state. */
static void
add_state(struct buf *out, const struct slurm_row *row)
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

static void
add_exit(struct buf *out, const struct slurm_row *row)
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

/* --- times --- */

static void
add_start(struct buf *out, const struct slurm_job *job)
{
    slurm_add_time(out, job->started_us, job->state->ended ? "None" : "Unknown");
}

static int64_t
ended(const struct slurm_job *job)
{
    return job->ended_us;
}

static void
add_submit(struct buf *out, const struct slurm_row *row)
{
    slurm_add_time(out, row->is_step ? row->job->started_us : row->job->submitted_us,
                   "Unknown");
}

static void
add_eligible(struct buf *out, const struct slurm_row *row)
{
    slurm_add_time(out, row->is_step ? row->job->started_us : slurm_eligible_us(row->job),
                   "Unknown");
}

static void
add_span(struct buf *out, int64_t ms)
{
    char text[SLURM_TIME];

    buf_adds(out, slurm_duration(ms, text));
}

static void
add_elapsed(struct buf *out, const struct slurm_job *job)
{
    add_span(out, job->run_ms);
}

static int64_t
elapsed_s(const struct slurm_job *job)
{
    return job->run_ms / 1000;
}

static int64_t
cpu_s(const struct slurm_job *job)
{
    return elapsed_s(job) * slurm_cpus(job);
}

static void
add_cpu_time(struct buf *out, const struct slurm_job *job)
{
    add_span(out, cpu_s(job) * 1000);
}

static void
add_limit(struct buf *out, const struct slurm_job *job)
{
    if (job->limit_ms)
        add_span(out, job->limit_ms);
}

static void
add_limit_raw(struct buf *out, const struct slurm_job *job)
{
    if (job->limit_ms)
        buf_addi(out, job->limit_ms / 60000);
}

static void
add_reserved(struct buf *out, const struct slurm_job *job)
{
    int64_t until_us = job->started_us ? job->started_us : job->ended_us;

    if (until_us)
        add_span(out, (until_us - job->submitted_us) / 1000);
}

/* --- resources --- */

static const char *
nodes_of(const struct slurm_job *job)
{
    return job->started_us ? "1" : "0";
}

static const char *
node_of(const struct slurm_job *job)
{
    return job->started_us ? slurm_node() : "None assigned";
}

/* Sorted by name, as in sacct. */
static void
add_tres(struct buf *out, const struct slurm_row *row)
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

static void
add_tres_alloc(struct buf *out, const struct slurm_row *row)
{
    if (row->job->started_us)
        add_tres(out, row);
}

/* Peak GPU memory, under the name of later Slurm releases. */
static void
add_peak(struct buf *out, const struct slurm_job *job)
{
    int64_t mib = answer_peak(json_object_get(job->json, "peak_mib"));

    if (mib >= 0)
        buf_addf(out, "gres/gpumem=%lldM", (long long)mib);
}

/* Energy of the GPUs only, in joules; 0 if not measured, as in Slurm. */
static int64_t
energy_j(const struct slurm_job *job)
{
    return answer_int(job->json, "energy_j", 0);
}

static void
add_energy(struct buf *out, const struct slurm_job *job)
{
    int64_t joules = energy_j(job);

    if (joules >= 1000000)
        buf_addf(out, "%.2fM", (double)joules / 1000000);
    else if (joules >= 1000)
        buf_addf(out, "%.2fK", (double)joules / 1000);
    else
        buf_addi(out, joules);
}

const struct sacct_field sacct_fields[] = {
    {"Account", 10, CONSTANT("")},
    {"AdminComment", 15, CONSTANT("")},
    {"AllocCPUS", 10, NUMBER(slurm_cpu_number)},
    {"AllocNodes", 10, TEXT(nodes_of)},
    {"AllocTRES", 10, ADD_ROW(add_tres_alloc)},
    {"AssocID", 7, CONSTANT("")},
    {"AveCPU", 10, CONSTANT("")},
    {"AveCPUFreq", 10, CONSTANT("")},
    {"AveDiskRead", 14, CONSTANT("")},
    {"AveDiskWrite", 14, CONSTANT("")},
    {"AvePages", 10, CONSTANT("")},
    {"AveRSS", 10, CONSTANT("")},
    {"AveVMSize", 10, CONSTANT("")},
    {"BlockID", 16, CONSTANT("")},
    {"Cluster", 10, CONSTANT(SLURM_CLUSTER)},
    {"Comment", 14, KEY("comment"), .of = SACCT_JOB},
    {"Constraints", 19, KEY("gpu_type"), .of = SACCT_JOB},
    {"ConsumedEnergy", 14, ADD(add_energy)},
    {"ConsumedEnergyRaw", 17, NUMBER(energy_j)},
    {"Container", 19, CONSTANT("")},
    {"CPUTime", 10, ADD(add_cpu_time)},
    {"CPUTimeRAW", 10, NUMBER(cpu_s)},
    {"DBIndex", -10, CONSTANT("")},
    {"DerivedExitCode", 15, CONSTANT("0:0"), .of = SACCT_JOB},
    {"Elapsed", 10, ADD(add_elapsed)},
    {"ElapsedRaw", 10, NUMBER(elapsed_s)},
    {"Eligible", 19, ADD_ROW(add_eligible)},
    {"End", 19, TIME(ended), OTHERWISE("Unknown")},
    {"ExitCode", 8, ADD_ROW(add_exit)},
    {"Flags", 19, CONSTANT("")},
    {"GID", 6, NUMBER(slurm_gid), .of = SACCT_JOB},
    {"Group", 9, TEXT(slurm_group), .of = SACCT_JOB},
    {"JobID", -12, ADD_ROW(add_id)},
    {"JobIDRaw", -12, ADD_ROW(add_id_raw)},
    {"JobName", 10, ADD_ROW(add_name)},
    {"Layout", 9, CONSTANT("")},
    {"MaxDiskRead", 12, CONSTANT("")},
    {"MaxDiskReadNode", 15, CONSTANT("")},
    {"MaxDiskReadTask", 15, CONSTANT("")},
    {"MaxDiskWrite", 12, CONSTANT("")},
    {"MaxDiskWriteNode", 16, CONSTANT("")},
    {"MaxDiskWriteTask", 16, CONSTANT("")},
    {"MaxPages", 8, CONSTANT("")},
    {"MaxPagesNode", 12, CONSTANT("")},
    {"MaxPagesTask", 14, CONSTANT("")},
    {"MaxRSS", 10, CONSTANT("")},
    {"MaxRSSNode", 10, CONSTANT("")},
    {"MaxRSSTask", 10, CONSTANT("")},
    {"MaxVMSize", 10, CONSTANT("")},
    {"MaxVMSizeNode", 14, CONSTANT("")},
    {"MaxVMSizeTask", 14, CONSTANT("")},
    {"McsLabel", 12, CONSTANT("")},
    {"MinCPU", 10, CONSTANT("")},
    {"MinCPUNode", 10, CONSTANT("")},
    {"MinCPUTask", 10, CONSTANT("")},
    {"NCPUS", 10, NUMBER(slurm_cpu_number)},
    {"NNodes", 8, CONSTANT("1")},
    {"NodeList", 15, TEXT(node_of)},
    {"NTasks", 8, CONSTANT("1"), .of = SACCT_STEP},
    {"Partition", 10, CONSTANT(SLURM_PARTITION), .of = SACCT_JOB},
    {"Priority", 10, NUMBER(slurm_priority), .of = SACCT_JOB},
    {"QOS", 10, CONSTANT("")},
    {"QOSRAW", 6, CONSTANT("")},
    {"Reason", 22, TEXT(slurm_reason), .of = SACCT_JOB},
    {"ReqCPUFreq", 10, CONSTANT("")},
    {"ReqCPUFreqGov", 13, CONSTANT("")},
    {"ReqCPUFreqMax", 13, CONSTANT("")},
    {"ReqCPUFreqMin", 13, CONSTANT("")},
    {"ReqCPUS", 8, NUMBER(slurm_cpu_number)},
    {"ReqMem", 10, ADD(slurm_add_memory), .of = SACCT_JOB},
    {"ReqNodes", 8, CONSTANT("1")},
    {"ReqTRES", 10, ADD_ROW(add_tres)},
    {"Reservation", 20, CONSTANT("")},
    {"ReservationId", 8, CONSTANT("")},
    {"Reserved", 10, ADD(add_reserved), .of = SACCT_JOB},
    {"ResvCPU", 10, CONSTANT("")},
    {"ResvCPURAW", 10, CONSTANT("")},
    {"Start", 19, ADD(add_start)},
    {"State", 10, ADD_ROW(add_state)},
    {"Submit", 19, ADD_ROW(add_submit)},
    {"SubmitLine", 20, CONSTANT("")},
    {"Suspended", 10, CONSTANT("00:00:00")},
    {"SystemComment", 15, CONSTANT("")},
    {"SystemCPU", 10, CONSTANT("")},
    {"Timelimit", 10, ADD(add_limit), OTHERWISE("UNLIMITED"), .of = SACCT_JOB},
    {"TimelimitRaw", 10, ADD(add_limit_raw), OTHERWISE("UNLIMITED"), .of = SACCT_JOB},
    {"TotalCPU", 10, CONSTANT("")},
    {"TRESUsageInAve", 14, CONSTANT("")},
    {"TRESUsageInMax", 14, ADD(add_peak), .of = SACCT_STEP},
    {"TRESUsageInMaxNode", 18, CONSTANT("")},
    {"TRESUsageInMaxTask", 18, CONSTANT("")},
    {"TRESUsageInMin", 14, CONSTANT("")},
    {"TRESUsageInMinNode", 18, CONSTANT("")},
    {"TRESUsageInMinTask", 18, CONSTANT("")},
    {"TRESUsageInTot", 14, CONSTANT("")},
    {"TRESUsageOutAve", 15, CONSTANT("")},
    {"TRESUsageOutMax", 15, CONSTANT("")},
    {"TRESUsageOutMaxNode", 19, CONSTANT("")},
    {"TRESUsageOutMaxTask", 19, CONSTANT("")},
    {"TRESUsageOutMin", 15, CONSTANT("")},
    {"TRESUsageOutMinNode", 19, CONSTANT("")},
    {"TRESUsageOutMinTask", 19, CONSTANT("")},
    {"TRESUsageOutTot", 15, CONSTANT("")},
    {"UID", 6, NUMBER(slurm_uid), .of = SACCT_JOB},
    {"User", 9, KEY("user"), .of = SACCT_JOB},
    {"UserCPU", 10, CONSTANT("")},
    {"WCKey", 10, CONSTANT("")},
    {"WCKeyID", 10, CONSTANT("")},
    {"WorkDir", 20, KEY("cwd"), .of = SACCT_JOB},
    {0},
};

const struct sacct_field sacct_later_fields[] = {
    {"Planned", 10, ADD(add_reserved), .of = SACCT_JOB},
    {"Restarts", 8, NUMBER(slurm_restarts), .of = SACCT_JOB},
    {"StdErr", 20, TEXT(slurm_error_file), .of = SACCT_JOB},
    {"StdIn", 20, CONSTANT("/dev/null"), .of = SACCT_JOB},
    {"StdOut", 20, KEY("log"), .of = SACCT_JOB},
    {0},
};
