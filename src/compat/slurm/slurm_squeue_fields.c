/* The columns of squeue: one table of letter, name, header and what stands there. What no job
 * of Berth's has is Slurm's word for nothing. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli/ask/answer.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/slurm_job.h"
#include "compat/slurm/slurm_squeue.h"
#include "compat/slurm/slurm_values.h"
#include "compat/slurm/slurm_words.h"

#define FIELD(name) static void add_##name(struct buf *out, const void *row)
#define JOB         ((const struct slurm_job *)row)

#define CONSTANT(name, text)                                                                   \
    FIELD(name)                                                                                \
    {                                                                                          \
        (void)row;                                                                             \
        buf_adds(out, text);                                                                   \
    }

CONSTANT(null, "(null)")
CONSTANT(zero, "0")
CONSTANT(one, "1")
CONSTANT(star, "*")
CONSTANT(stars, "*:*:*")
CONSTANT(none, "N/A")
CONSTANT(partition, SLURM_PARTITION)
CONSTANT(stdin, "/dev/null")
CONSTANT(nothing, "")
CONSTANT(cluster, SLURM_CLUSTER)
CONSTANT(no_time, "0:00")
CONSTANT(no_siblings, "NA")
CONSTANT(not_set, "NotSet")

static void
add_text(struct buf *out, const void *row, const char *key)
{
    const char *text = answer_str(JOB->json, key);

    buf_adds(out, text[0] ? text : "(null)");
}

FIELD(job_id)
{
    buf_addi(out, JOB->id);
}

FIELD(array_id)
{
    slurm_add_job_id(out, JOB);
}

FIELD(array)
{
    buf_addi(out, JOB->array ? JOB->array : JOB->id);
}

FIELD(task)
{
    if (JOB->tasks)
        buf_adds(out, JOB->tasks);
    else if (JOB->task >= 0)
        buf_addi(out, JOB->task);
    else
        buf_adds(out, "N/A");
}

FIELD(gres)
{
    size_t before = out->len;

    slurm_add_gres(out, JOB);
    if (out->len == before)
        buf_adds(out, "N/A");
}

FIELD(node)
{
    if (!slurm_is_waiting(JOB) && JOB->started_us)
        buf_adds(out, slurm_node());
}

FIELD(host)
{
    buf_adds(out, slurm_is_waiting(JOB) ? "n/a" : slurm_node());
}

FIELD(machine)
{
    (void)row;
    buf_adds(out, slurm_node());
}

FIELD(container)
{
    add_text(out, row, "container");
}

FIELD(scheduled)
{
    slurm_add_time(out, JOB->started_us, "N/A");
}

FIELD(cpus)
{
    buf_addi(out, slurm_cpus(JOB));
}

FIELD(end)
{
    slurm_add_time(out, slurm_end_us(JOB), slurm_is_waiting(JOB) ? "N/A" : "NONE");
}

FIELD(start)
{
    slurm_add_time(out, slurm_start_us(JOB), "N/A");
}

FIELD(submit)
{
    slurm_add_time(out, JOB->submitted_us, "N/A");
}

FIELD(eligible)
{
    slurm_add_time(out, slurm_eligible_us(JOB), "N/A");
}

FIELD(dependency)
{
    size_t before = out->len;

    slurm_add_dependency(out, JOB);
    if (out->len == before)
        buf_adds(out, "(null)");
}

FIELD(feature)
{
    add_text(out, row, "gpu_type");
}

FIELD(group_id)
{
    gid_t id;

    (void)slurm_group(JOB, &id);
    buf_addi(out, id);
}

FIELD(group)
{
    gid_t id;

    buf_adds(out, slurm_group(JOB, &id));
}

FIELD(shared)
{
    buf_adds(out, answer_bool(JOB->json, "exclusive") ? "NO" : "OK");
}

FIELD(name)
{
    buf_adds(out, slurm_name(JOB));
}

FIELD(comment)
{
    add_text(out, row, "comment");
}

FIELD(limit)
{
    char text[SLURM_TIME];

    buf_adds(out, JOB->limit_ms ? slurm_short_duration(JOB->limit_ms, text) : "UNLIMITED");
}

/* A job that waits may have run before. */
static int64_t
used_ms(const struct slurm_job *job)
{
    return slurm_is_waiting(job) ? 0 : job->run_ms;
}

FIELD(left)
{
    char text[SLURM_TIME];

    buf_adds(out, JOB->limit_ms ? slurm_short_duration(JOB->limit_ms - used_ms(JOB), text)
                                : "UNLIMITED");
}

FIELD(used)
{
    char text[SLURM_TIME];

    buf_adds(out, slurm_short_duration(used_ms(JOB), text));
}

FIELD(memory)
{
    if (slurm_mem_mib(JOB) > 0)
        slurm_add_mib(out, slurm_mem_mib(JOB));
    else
        buf_adds(out, "0");
}

FIELD(command)
{
    const char *text = slurm_command(JOB);

    buf_adds(out, text[0] ? text : "(null)");
}

FIELD(priority)
{
    buf_addf(out, "%.14f", (double)slurm_priority(JOB) / 4294967295.0);
}

FIELD(priority_long)
{
    buf_addi(out, slurm_priority(JOB));
}

FIELD(nice)
{
    buf_addi(out, slurm_nice(JOB));
}

FIELD(reason)
{
    buf_adds(out, slurm_reason(JOB));
}

/* Where it runs, or in brackets why it does not. */
FIELD(where)
{
    bool runs = !slurm_is_waiting(JOB) && (!JOB->state->ended || JOB->started_us);

    if (runs)
        buf_adds(out, slurm_node());
    else
        buf_addf(out, "(%s)", slurm_reason(JOB));
}

FIELD(code)
{
    buf_adds(out, JOB->state->code);
}

FIELD(state)
{
    buf_adds(out, JOB->state->name);
}

FIELD(user)
{
    buf_adds(out, answer_str(JOB->json, "user"));
}

FIELD(uid)
{
    buf_addi(out, answer_int(JOB->json, "uid", 0));
}

FIELD(folder)
{
    add_text(out, row, "cwd");
}

FIELD(output)
{
    add_text(out, row, "log");
}

FIELD(errors)
{
    const char *file = slurm_error_file(JOB);

    buf_adds(out, file[0] ? file : "(null)");
}

FIELD(exit)
{
    int code, signal;

    slurm_exit(JOB, &code, &signal);
    buf_addi(out, JOB->state->ended ? (code << 8) + signal : 0);
}

FIELD(requeue)
{
    buf_addi(out, answer_bool(JOB->json, "requeue"));
}

FIELD(restarts)
{
    buf_addi(out, slurm_restarts(JOB));
}

FIELD(tres)
{
    slurm_add_tres(out, JOB);
}

FIELD(pending_time)
{
    int64_t until_us = JOB->started_us ? JOB->started_us : clock_wall_us();

    buf_addi(out, (until_us - JOB->submitted_us) / 1000000);
}

#define B SLURM_BRIEF
#define W SLURM_WHOLE
#define F SLURM_FORECAST

const struct slurm_field squeue_fields[] = {
    {'a', "account", "ACCOUNT", B, add_null},
    {'A', "jobid", "JOBID", B, add_job_id},
    {'b', "tres-per-node", "TRES_PER_NODE", W, add_gres},
    {'B', "batchhost", "EXEC_HOST", B, add_host},
    {'c', "mincpus", "MIN_CPUS", B, add_cpus},
    {'C', "numcpus", "CPUS", B, add_cpus},
    {'d', "mintmpdisk", "MIN_TMP_DISK", B, add_zero},
    {'D', "numnodes", "NODES", B, add_one},
    {'e', "endtime", "END_TIME", B, add_end},
    {'E', "dependency", "DEPENDENCY", W, add_dependency},
    {'f', "feature", "FEATURES", W, add_feature},
    {'F', "arrayjobid", "ARRAY_JOB_ID", B, add_array},
    {'g', "groupname", "GROUP", B, add_group},
    {'G', "groupid", "GROUP", B, add_group_id},
    {'h', "oversubscribe", "OVER_SUBSCRIBE", W, add_shared},
    {'H', "sockets", "SOCKETS_PER_NODE", B, add_star},
    {'i', "jobarrayid", "JOBID", B, add_array_id},
    {'I', "cores", "CORES_PER_SOCKET", B, add_star},
    {'j', "name", "NAME", B, add_name},
    {'J', "threads", "THREADS_PER_CORE", B, add_star},
    {'k', "comment", "COMMENT", W, add_comment},
    {'K', "arraytaskid", "ARRAY_TASK_ID", B, add_task},
    {'l', "timelimit", "TIME_LIMIT", B, add_limit},
    {'L', "timeleft", "TIME_LEFT", B, add_left},
    {'m', "minmemory", "MIN_MEMORY", B, add_memory},
    {'M', "timeused", "TIME", B, add_used},
    {'n', "reqnodes", "REQ_NODES", B, add_nothing},
    {'N', "nodelist", "NODELIST", B, add_node},
    {'o', "command", "COMMAND", W, add_command},
    {'O', "contiguous", "CONTIGUOUS", B, add_zero},
    {'p', "priority", "PRIORITY", B, add_priority},
    {'P', "partition", "PARTITION", B, add_partition},
    {'q', "qos", "QOS", B, add_null},
    {'Q', "prioritylong", "PRIORITY", B, add_priority_long},
    {'r', "reason", "REASON", W, add_reason},
    {'R', "reasonlist", "NODELIST(REASON)", B, add_where},
    {'s', "selectjobinfo", "", B, add_nothing},
    {'S', "starttime", "START_TIME", F, add_start},
    {'t', "statecompact", "ST", B, add_code},
    {'T', "state", "STATE", B, add_state},
    {'u', "username", "USER", B, add_user},
    {'U', "userid", "UID", B, add_uid},
    {'v', "reservation", "RESERVATION", B, add_null},
    {'V', "submittime", "SUBMIT_TIME", B, add_submit},
    {'w', "wckey", "WCKEY", B, add_null},
    {'W', "licenses", "LICENSES", B, add_null},
    {'x', NULL, "EXC_NODES", B, add_nothing},
    {'X', "corespec", "CORE_SPEC", B, add_none},
    {'y', "nice", "NICE", B, add_nice},
    {'Y', "schednodes", "SCHEDNODES", B, add_null},
    {'z', "sct", "S:C:T", B, add_stars},
    {'Z', "workdir", "WORK_DIR", W, add_folder},
    {0, "accruetime", "ACCRUE_TIME", W, add_eligible},
    {0, "admin_comment", "ADMIN_COMMENT", B, add_null},
    {0, "allocnodes", "ALLOC_NODES", B, add_machine},
    {0, "associd", "ASSOC_ID", B, add_zero},
    {0, "batchflag", "BATCH_FLAG", B, add_one},
    {0, "boardspernode", "BOARDS_PER_NODE", B, add_zero},
    {0, "burstbuffer", "BURST_BUFFER", B, add_null},
    {0, "burstbufferstate", "BURST_BUFFER_STATE", B, add_null},
    {0, "cluster", "CLUSTER", B, add_cluster},
    {0, "clusterfeature", "CLUSTER_FEATURES", B, add_null},
    {0, "container", "CONTAINER", W, add_container},
    {0, "cpus-per-task", "CPUS_PER_TASK", B, add_cpus},
    {0, "cpuspertask", "CPUS_PER_TASK", B, add_cpus},
    {0, "cpus-per-tres", "CPUS_PER_TRES", B, add_none},
    {0, "deadline", "DEADLINE", B, add_none},
    {0, "delayboot", "DELAY_BOOT", B, add_no_time},
    {0, "derivedec", "DERIVED_EC", B, add_zero},
    {0, "eligibletime", "ELIGIBLE_TIME", W, add_eligible},
    {0, "exit_code", "EXIT_CODE", W, add_exit},
    {0, "gres", "TRES_PER_NODE", W, add_gres},
    {0, "hetjobid", "HET_JOB_ID", B, add_none},
    {0, "hetjobidset", "HET_JOB_ID_SET", B, add_none},
    {0, "hetjoboffset", "HET_JOB_OFFSET", B, add_none},
    {0, "lastschedeval", "LAST_SCHED_EVAL", B, add_scheduled},
    {0, "maxcpus", "MAX_CPUS", B, add_cpus},
    {0, "maxnodes", "MAX_NODES", B, add_one},
    {0, "mcslabel", "MCSLABEL", B, add_null},
    {0, "mem-per-tres", "MEM_PER_TRES", B, add_none},
    {0, "mintime", "TIME_MIN", B, add_no_time},
    {0, "network", "NETWORK", B, add_null},
    {0, "ntperboard", "NTASKS_PER_BOARD", B, add_zero},
    {0, "ntpercore", "NTASKS_PER_CORE", B, add_none},
    {0, "ntpernode", "NTASKS_PER_NODE", B, add_zero},
    {0, "ntpersocket", "NTASKS_PER_SOCKET", B, add_none},
    {0, "numtasks", "TASKS", B, add_one},
    {0, "origin", "ORIGIN", B, add_no_siblings},
    {0, "originraw", "ORIGIN_RAW", B, add_no_siblings},
    {0, "pendingtime", "PENDING_TIME", B, add_pending_time},
    {0, "preempttime", "PREEMPT_TIME", B, add_none},
    {0, "prefer", "PREFER", B, add_null},
    {0, "profile", "PROFILE", B, add_not_set},
    {0, "reboot", "REBOOT", B, add_zero},
    {0, "reqswitch", "REQ_SWITCH", B, add_zero},
    {0, "requeue", "REQUEUE", W, add_requeue},
    {0, "resizetime", "RESIZE_TIME", B, add_none},
    {0, "restartcnt", "RESTART_COUNT", W, add_restarts},
    {0, "siblingsactive", "ACTIVE_SIBLINGS", B, add_no_siblings},
    {0, "siblingsactiveraw", "ACTIVE_SIBLINGS_RAW", B, add_no_siblings},
    {0, "siblingsviable", "VIABLE_SIBLINGS", B, add_no_siblings},
    {0, "siblingsviableraw", "VIALBLE_SIBLINGS_RAW", B, add_no_siblings}, /* Slurm's word */
    {0, "sperboard", "SOCKETS_PER_BOARD", B, add_zero},
    {0, "stderr", "STDERR", W, add_errors},
    {0, "stdin", "STDIN", B, add_stdin},
    {0, "stdout", "STDOUT", W, add_output},
    {0, "system_comment", "SYSTEM_COMMENT", B, add_null},
    {0, "tres", "TRES_ALLOC", B, add_tres},
    {0, "tres-alloc", "TRES_ALLOC", B, add_tres},
    {0, "tres-bind", "TRES_BIND", B, add_none},
    {0, "tres-freq", "TRES_FREQ", B, add_none},
    {0, "tres-per-job", "TRES_PER_JOB", B, add_none},
    {0, "tres-per-socket", "TRES_PER_SOCKET", B, add_none},
    {0, "tres-per-task", "TRES_PER_TASK", B, add_none},
    {0, "wait4switch", "WAIT4SWITCH", B, add_no_time},
    {0, NULL, NULL, B, NULL},
};

/* In seconds, as it is shown. */
static int64_t
time_of(char letter, const struct slurm_job *job)
{
    if (letter == 'M')
        return used_ms(job) / 1000;
    if (!job->limit_ms)
        return INT64_MAX;
    return (job->limit_ms - (letter == 'L' ? used_ms(job) : 0)) / 1000;
}

/* As Slurm: a start that is not known is the last. What runs without a limit has no end; what
 * waits has none yet. */
static int64_t
moment_of(char letter, const struct slurm_job *job)
{
    int64_t at_us = letter == 'V'   ? job->submitted_us
                    : letter == 'S' ? slurm_start_us(job)
                                    : slurm_end_us(job);
    bool is_first = letter == 'e' && slurm_is_waiting(job);

    return at_us || is_first ? at_us / 1000000 : INT64_MAX;
}

static int64_t
number_of(char letter, const struct slurm_job *job)
{
    gid_t group;

    if (strchr("lLM", letter))
        return time_of(letter, job);
    if (strchr("eSV", letter))
        return moment_of(letter, job);
    switch (letter) {
    case 'A':
        return job->id;
    case 'F':
        return job->array ? job->array : job->id;
    case 'G':
        return (void)slurm_group(job, &group), (int64_t)group;
    case 'm':
        return slurm_mem_mib(job);
    case 'p':
    case 'Q':
        return slurm_priority(job);
    case 'U':
        return answer_int(job->json, "uid", 0);
    case 'y':
        return slurm_nice(job);
    default:
        return slurm_cpus(job);
    }
}

bool
squeue_compare_numbers(char letter, const struct slurm_job *a, const struct slurm_job *b,
                       int *order)
{
    if (!strchr("AcCeFGlLmMpQSUVy", letter))
        return false;
    int64_t left = number_of(letter, a), right = number_of(letter, b);
    *order = (left > right) - (left < right);
    return true;
}
