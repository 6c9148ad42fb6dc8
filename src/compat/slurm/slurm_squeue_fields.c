/* The columns of squeue: one table with letter, name, header and value. Values that Berth does
 * not have show Slurm's placeholder. */
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli/ask/answer.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/slurm_job.h"
#include "compat/slurm/slurm_table.h"
#include "compat/slurm/slurm_values.h"
#include "compat/slurm/slurm_words.h"

/* --- identity and place --- */

static int64_t
id_of(const struct slurm_job *job)
{
    return job->id;
}

static int64_t
array_of(const struct slurm_job *job)
{
    return job->array ? job->array : job->id;
}

static void
add_task(struct buf *out, const struct slurm_job *job)
{
    if (job->tasks)
        buf_adds(out, job->tasks);
    else if (job->task >= 0)
        buf_addi(out, job->task);
}

static const char *
node_of(const struct slurm_job *job)
{
    return !slurm_is_waiting(job) && job->started_us ? slurm_node() : "";
}

static const char *
host_of(const struct slurm_job *job)
{
    return slurm_is_waiting(job) ? "n/a" : slurm_node();
}

static const char *
machine_of(const struct slurm_job *job)
{
    (void)job;
    return slurm_node();
}

/* The node of a running job, or in parentheses the reason it is not running. */
static void
add_where(struct buf *out, const struct slurm_job *job)
{
    bool runs = !slurm_is_waiting(job) && (!job->state->ended || job->started_us);

    if (runs)
        buf_adds(out, slurm_node());
    else
        buf_addf(out, "(%s)", slurm_reason(job));
}

static const char *
code_of(const struct slurm_job *job)
{
    return job->state->code;
}

static const char *
state_of(const struct slurm_job *job)
{
    return job->state->name;
}

static int64_t
exit_of(const struct slurm_job *job)
{
    int code, signal;

    slurm_exit(job, &code, &signal);
    return job->state->ended ? (code << 8) + signal : 0;
}

/* --- times --- */

static int64_t
started(const struct slurm_job *job)
{
    return job->started_us;
}

static int64_t
submitted(const struct slurm_job *job)
{
    return job->submitted_us;
}

static void
add_end(struct buf *out, const struct slurm_job *job)
{
    slurm_add_time(out, slurm_end_us(job), slurm_is_waiting(job) ? "N/A" : "NONE");
}

/* End time for sorting: running jobs without a limit sort last, pending ones first. */
static int64_t
end_of(const struct slurm_job *job)
{
    int64_t at_us = slurm_end_us(job);

    return at_us || slurm_is_waiting(job) ? at_us / 1000000 : INT64_MAX;
}

/* Seconds, as shown. A pending job shows 0 even if it ran before. */
static int64_t
used_of(const struct slurm_job *job)
{
    return slurm_is_waiting(job) ? 0 : job->run_ms / 1000;
}

static void
add_used(struct buf *out, const struct slurm_job *job)
{
    char text[SLURM_TIME];

    buf_adds(out, slurm_short_duration(used_of(job) * 1000, text));
}

static int64_t
limit_of(const struct slurm_job *job)
{
    return job->limit_ms ? job->limit_ms / 1000 : INT64_MAX;
}

static int64_t
left_of(const struct slurm_job *job)
{
    int64_t used_ms = slurm_is_waiting(job) ? 0 : job->run_ms;

    return job->limit_ms ? (job->limit_ms - used_ms) / 1000 : INT64_MAX;
}

static void
add_limited(struct buf *out, int64_t seconds)
{
    char text[SLURM_TIME];

    buf_adds(out,
             seconds < INT64_MAX ? slurm_short_duration(seconds * 1000, text) : "UNLIMITED");
}

static void
add_limit(struct buf *out, const struct slurm_job *job)
{
    add_limited(out, limit_of(job));
}

static void
add_left(struct buf *out, const struct slurm_job *job)
{
    add_limited(out, left_of(job));
}

static int64_t
pending_of(const struct slurm_job *job)
{
    int64_t until_us = job->started_us ? job->started_us : clock_wall_us();

    return (until_us - job->submitted_us) / 1000000;
}

/* --- request --- */

static const char *
shared_of(const struct slurm_job *job)
{
    return answer_bool(job->json, "exclusive") ? "NO" : "OK";
}

static int64_t
requeue_of(const struct slurm_job *job)
{
    return answer_bool(job->json, "requeue");
}

static void
add_priority(struct buf *out, const struct slurm_job *job)
{
    buf_addf(out, "%.14f", (double)slurm_priority(job) / 4294967295.0);
}

static int64_t
nice_of(const struct slurm_job *job)
{
    return slurm_nice(job);
}

#define B SLURM_BRIEF
#define W SLURM_WHOLE
#define F SLURM_FORECAST

const struct slurm_field squeue_fields[] = {
    {'a', "account", "ACCOUNT", B, CONSTANT("(null)")},
    {'A', "jobid", "JOBID", B, NUMBER(id_of)},
    {'b', "tres-per-node", "TRES_PER_NODE", W, ADD(slurm_add_gres), OTHERWISE("N/A")},
    {'B', "batchhost", "EXEC_HOST", B, TEXT(host_of)},
    {'c', "mincpus", "MIN_CPUS", B, NUMBER(slurm_cpu_number)},
    {'C', "numcpus", "CPUS", B, NUMBER(slurm_cpu_number)},
    {'d', "mintmpdisk", "MIN_TMP_DISK", B, CONSTANT("0")},
    {'D', "numnodes", "NODES", B, CONSTANT("1")},
    {'e', "endtime", "END_TIME", B, ADD(add_end), NUMBER(end_of)},
    {'E', "dependency", "DEPENDENCY", W, ADD(slurm_add_dependency), OTHERWISE("(null)")},
    {'f', "feature", "FEATURES", W, KEY("gpu_type"), OTHERWISE("(null)")},
    {'F', "arrayjobid", "ARRAY_JOB_ID", B, NUMBER(array_of)},
    {'g', "groupname", "GROUP", B, TEXT(slurm_group)},
    {'G', "groupid", "GROUP", B, NUMBER(slurm_gid)},
    {'h', "oversubscribe", "OVER_SUBSCRIBE", W, TEXT(shared_of)},
    {'H', "sockets", "SOCKETS_PER_NODE", B, CONSTANT("*")},
    {'i', "jobarrayid", "JOBID", B, ADD(slurm_add_job_id)},
    {'I', "cores", "CORES_PER_SOCKET", B, CONSTANT("*")},
    {'j', "name", "NAME", B, TEXT(slurm_name)},
    {'J', "threads", "THREADS_PER_CORE", B, CONSTANT("*")},
    {'k', "comment", "COMMENT", W, KEY("comment"), OTHERWISE("(null)")},
    {'K', "arraytaskid", "ARRAY_TASK_ID", B, ADD(add_task), OTHERWISE("N/A")},
    {'l', "timelimit", "TIME_LIMIT", B, ADD(add_limit), NUMBER(limit_of)},
    {'L', "timeleft", "TIME_LEFT", B, ADD(add_left), NUMBER(left_of)},
    {'m', "minmemory", "MIN_MEMORY", B, ADD(slurm_add_memory), NUMBER(slurm_mem_mib)},
    {'M', "timeused", "TIME", B, ADD(add_used), NUMBER(used_of)},
    {'n', "reqnodes", "REQ_NODES", B, CONSTANT("")},
    {'N', "nodelist", "NODELIST", B, TEXT(node_of)},
    {'o', "command", "COMMAND", W, TEXT(slurm_command), OTHERWISE("(null)")},
    {'O', "contiguous", "CONTIGUOUS", B, CONSTANT("0")},
    {'p', "priority", "PRIORITY", B, ADD(add_priority), NUMBER(slurm_priority)},
    {'P', "partition", "PARTITION", B, CONSTANT(SLURM_PARTITION)},
    {'q', "qos", "QOS", B, CONSTANT("(null)")},
    {'Q', "prioritylong", "PRIORITY", B, NUMBER(slurm_priority)},
    {'r', "reason", "REASON", W, TEXT(slurm_reason)},
    {'R', "reasonlist", "NODELIST(REASON)", B, ADD(add_where)},
    {'s', "selectjobinfo", "", B, CONSTANT("")},
    {'S', "starttime", "START_TIME", F, TIME(slurm_start_us), OTHERWISE("N/A")},
    {'t', "statecompact", "ST", B, TEXT(code_of)},
    {'T', "state", "STATE", B, TEXT(state_of)},
    {'u', "username", "USER", B, KEY("user")},
    {'U', "userid", "UID", B, NUMBER(slurm_uid)},
    {'v', "reservation", "RESERVATION", B, CONSTANT("(null)")},
    {'V', "submittime", "SUBMIT_TIME", B, TIME(submitted), OTHERWISE("N/A")},
    {'w', "wckey", "WCKEY", B, CONSTANT("(null)")},
    {'W', "licenses", "LICENSES", B, CONSTANT("(null)")},
    {'x', NULL, "EXC_NODES", B, CONSTANT("")},
    {'X', "corespec", "CORE_SPEC", B, CONSTANT("N/A")},
    {'y', "nice", "NICE", B, NUMBER(nice_of)},
    {'Y', "schednodes", "SCHEDNODES", B, CONSTANT("(null)")},
    {'z', "sct", "S:C:T", B, CONSTANT("*:*:*")},
    {'Z', "workdir", "WORK_DIR", W, KEY("cwd"), OTHERWISE("(null)")},
    {0, "accruetime", "ACCRUE_TIME", W, TIME(slurm_eligible_us), OTHERWISE("N/A")},
    {0, "admin_comment", "ADMIN_COMMENT", B, CONSTANT("(null)")},
    {0, "allocnodes", "ALLOC_NODES", B, TEXT(machine_of)},
    {0, "associd", "ASSOC_ID", B, CONSTANT("0")},
    {0, "batchflag", "BATCH_FLAG", B, CONSTANT("1")},
    {0, "boardspernode", "BOARDS_PER_NODE", B, CONSTANT("0")},
    {0, "burstbuffer", "BURST_BUFFER", B, CONSTANT("(null)")},
    {0, "burstbufferstate", "BURST_BUFFER_STATE", B, CONSTANT("(null)")},
    {0, "cluster", "CLUSTER", B, CONSTANT(SLURM_CLUSTER)},
    {0, "clusterfeature", "CLUSTER_FEATURES", B, CONSTANT("(null)")},
    {0, "container", "CONTAINER", W, KEY("container"), OTHERWISE("(null)")},
    {0, "cpus-per-task", "CPUS_PER_TASK", B, NUMBER(slurm_cpu_number)},
    {0, "cpuspertask", "CPUS_PER_TASK", B, NUMBER(slurm_cpu_number)},
    {0, "cpus-per-tres", "CPUS_PER_TRES", B, CONSTANT("N/A")},
    {0, "deadline", "DEADLINE", B, CONSTANT("N/A")},
    {0, "delayboot", "DELAY_BOOT", B, CONSTANT("0:00")},
    {0, "derivedec", "DERIVED_EC", B, CONSTANT("0")},
    {0, "eligibletime", "ELIGIBLE_TIME", W, TIME(slurm_eligible_us), OTHERWISE("N/A")},
    {0, "exit_code", "EXIT_CODE", W, NUMBER(exit_of)},
    {0, "gres", "TRES_PER_NODE", W, ADD(slurm_add_gres), OTHERWISE("N/A")},
    {0, "hetjobid", "HET_JOB_ID", B, CONSTANT("N/A")},
    {0, "hetjobidset", "HET_JOB_ID_SET", B, CONSTANT("N/A")},
    {0, "hetjoboffset", "HET_JOB_OFFSET", B, CONSTANT("N/A")},
    {0, "lastschedeval", "LAST_SCHED_EVAL", B, TIME(started), OTHERWISE("N/A")},
    {0, "maxcpus", "MAX_CPUS", B, NUMBER(slurm_cpu_number)},
    {0, "maxnodes", "MAX_NODES", B, CONSTANT("1")},
    {0, "mcslabel", "MCSLABEL", B, CONSTANT("(null)")},
    {0, "mem-per-tres", "MEM_PER_TRES", B, CONSTANT("N/A")},
    {0, "mintime", "TIME_MIN", B, CONSTANT("0:00")},
    {0, "network", "NETWORK", B, CONSTANT("(null)")},
    {0, "ntperboard", "NTASKS_PER_BOARD", B, CONSTANT("0")},
    {0, "ntpercore", "NTASKS_PER_CORE", B, CONSTANT("N/A")},
    {0, "ntpernode", "NTASKS_PER_NODE", B, CONSTANT("0")},
    {0, "ntpersocket", "NTASKS_PER_SOCKET", B, CONSTANT("N/A")},
    {0, "numtasks", "TASKS", B, CONSTANT("1")},
    {0, "origin", "ORIGIN", B, CONSTANT("NA")},
    {0, "originraw", "ORIGIN_RAW", B, CONSTANT("NA")},
    {0, "pendingtime", "PENDING_TIME", B, NUMBER(pending_of)},
    {0, "preempttime", "PREEMPT_TIME", B, CONSTANT("N/A")},
    {0, "prefer", "PREFER", B, CONSTANT("(null)")},
    {0, "profile", "PROFILE", B, CONSTANT("NotSet")},
    {0, "reboot", "REBOOT", B, CONSTANT("0")},
    {0, "reqswitch", "REQ_SWITCH", B, CONSTANT("0")},
    {0, "requeue", "REQUEUE", W, NUMBER(requeue_of)},
    {0, "resizetime", "RESIZE_TIME", B, CONSTANT("N/A")},
    {0, "restartcnt", "RESTART_COUNT", W, NUMBER(slurm_restarts)},
    {0, "siblingsactive", "ACTIVE_SIBLINGS", B, CONSTANT("NA")},
    {0, "siblingsactiveraw", "ACTIVE_SIBLINGS_RAW", B, CONSTANT("NA")},
    {0, "siblingsviable", "VIABLE_SIBLINGS", B, CONSTANT("NA")},
    {0, "siblingsviableraw", "VIALBLE_SIBLINGS_RAW", B, CONSTANT("NA")}, /* Slurm's spelling */
    {0, "sperboard", "SOCKETS_PER_BOARD", B, CONSTANT("0")},
    {0, "stderr", "STDERR", W, TEXT(slurm_error_file), OTHERWISE("(null)")},
    {0, "stdin", "STDIN", B, CONSTANT("/dev/null")},
    {0, "stdout", "STDOUT", W, KEY("log"), OTHERWISE("(null)")},
    {0, "system_comment", "SYSTEM_COMMENT", B, CONSTANT("(null)")},
    {0, "tres", "TRES_ALLOC", B, ADD(slurm_add_tres)},
    {0, "tres-alloc", "TRES_ALLOC", B, ADD(slurm_add_tres)},
    {0, "tres-bind", "TRES_BIND", B, CONSTANT("N/A")},
    {0, "tres-freq", "TRES_FREQ", B, CONSTANT("N/A")},
    {0, "tres-per-job", "TRES_PER_JOB", B, CONSTANT("N/A")},
    {0, "tres-per-socket", "TRES_PER_SOCKET", B, CONSTANT("N/A")},
    {0, "tres-per-task", "TRES_PER_TASK", B, CONSTANT("N/A")},
    {0, "wait4switch", "WAIT4SWITCH", B, CONSTANT("0:00")},
    {0},
};
