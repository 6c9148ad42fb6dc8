/* scontrol show: jobs, node, partition and host lists, as key=value text in Slurm's layout, or
 * with -o one line per record. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/common/cli.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/slurm_job.h"
#include "compat/slurm/slurm_node.h"
#include "compat/slurm/slurm_scontrol.h"
#include "compat/slurm/slurm_values.h"
#include "compat/slurm/slurm_words.h"
#include "wire/client.h"

/* Line break within a record. */
#define NEXT "\n   "

/* --- a job --- */

/* Escape other users' texts: they must not break lines or move the cursor. */
static void
add_safe(struct buf *out, const char *key, const char *text)
{
    buf_addf(out, "%s=", key);
    text_add_safe(out, text, strlen(text), 0);
    buf_adds(out, NEXT);
}

static void
add_head(struct buf *out, const struct slurm_job *job)
{
    int64_t max = answer_int(json_object_get(job->json, "array"), "max", 0);

    buf_addf(out, "JobId=%lld ", (long long)job->id);
    if (job->array)
        buf_addf(out, "ArrayJobId=%lld ", (long long)job->array);
    if (job->tasks)
        buf_addf(out, "ArrayTaskId=%s ", job->tasks);
    else if (job->task >= 0)
        buf_addf(out, "ArrayTaskId=%d ", job->task);
    if (max > 0)
        buf_addf(out, "ArrayTaskThrottle=%lld ", (long long)max);
    add_safe(out, "JobName", slurm_name(job));
    buf_addf(out, "UserId=%s(%lld) GroupId=%s(%u) MCS_label=N/A" NEXT,
             answer_str(job->json, "user"), (long long)slurm_uid(job), slurm_group(job),
             (unsigned)slurm_gid(job));
    buf_addf(out, "Priority=%lld Nice=%d Account=(null) QOS=(null)" NEXT,
             (long long)slurm_priority(job), slurm_nice(job));
}

static void
add_state(struct buf *out, const struct slurm_job *job, int details)
{
    auto_buf struct buf deps = BUF_INIT;
    int code, sig;

    slurm_exit(job, &code, &sig);
    if (!job->state->ended)
        code = sig = 0;
    slurm_add_dependency(&deps, job);
    buf_addf(out, "JobState=%s Reason=%s Dependency=%s" NEXT, job->state->name,
             slurm_reason(job), deps.len ? buf_str(&deps) : "(null)");
    buf_addf(out, "Requeue=%d Restarts=%lld BatchFlag=%d Reboot=0 ExitCode=%d:%d" NEXT,
             answer_bool(job->json, "requeue"), (long long)slurm_restarts(job),
             !answer_bool(job->json, "interactive"), code, sig);
    if (details)
        buf_adds(out, "DerivedExitCode=0:0" NEXT);
}

static void
add_time(struct buf *out, const char *key, int64_t at_us, const char *otherwise)
{
    buf_addf(out, "%s=", key);
    slurm_add_time(out, at_us, otherwise);
}

static void
add_times(struct buf *out, const struct slurm_job *job)
{
    int64_t eligible_us = slurm_eligible_us(job);
    char used[SLURM_TIME], limit[SLURM_TIME];

    buf_addf(out, "RunTime=%s TimeLimit=%s TimeMin=N/A" NEXT, slurm_duration(job->run_ms, used),
             job->limit_ms ? slurm_duration(job->limit_ms, limit) : "UNLIMITED");
    add_time(out, "SubmitTime", job->submitted_us, "Unknown");
    add_time(out, " EligibleTime", eligible_us, "Unknown");
    add_time(out, NEXT "AccrueTime", eligible_us, "Unknown");
    add_time(out, NEXT "StartTime", slurm_start_us(job), "Unknown");
    add_time(out, " EndTime", slurm_end_us(job), "Unknown");
    buf_adds(out, " Deadline=N/A" NEXT "SuspendTime=None SecsPreSuspend=0");
    add_time(out, " LastSchedEval", job->started_us, "Unknown");
    buf_adds(out, " Scheduler=Main" NEXT);
}

static void
add_place(struct buf *out, const struct slurm_job *job, int details)
{
    const char *node = job->started_us ? slurm_node() : "";
    auto_buf struct buf gpus = BUF_INIT;

    buf_addf(out, "Partition=" SLURM_PARTITION " AllocNode:Sid=%s:0" NEXT, slurm_node());
    buf_addf(out, "ReqNodeList=(null) ExcNodeList=(null)" NEXT "NodeList=%s" NEXT, node);
    if (node[0])
        buf_addf(out, "BatchHost=%s" NEXT, node);
    buf_addf(out, "NumNodes=1 NumCPUs=%d NumTasks=1 CPUs/Task=%d ReqB:S:C:T=0:0:*:*" NEXT,
             slurm_cpus(job), slurm_cpus(job));
    buf_adds(out, "TRES=");
    slurm_add_tres(out, job);
    buf_adds(out, NEXT "Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*" NEXT);
    answer_add_gpus(&gpus, json_object_get(job->json, "gpus"));
    if (details && gpus.len) {
        buf_addf(out, "JOB_GRES=gpu:%d" NEXT, slurm_gpus(job));
        buf_addf(out, "  Nodes=%s CPU_IDs= Mem=%lld GRES=gpu:%d(IDX:%s)" NEXT, slurm_node(),
                 (long long)slurm_mem_mib(job), slurm_gpus(job), buf_str(&gpus));
    }
}

static void
add_rest(struct buf *out, const struct slurm_job *job)
{
    const char *log = answer_str(job->json, "log");
    const char *type = answer_str(job->json, "gpu_type");
    const char *comment = answer_str(job->json, "comment"), *command = slurm_command(job);
    auto_buf struct buf gres = BUF_INIT;

    slurm_add_gres(&gres, job);
    buf_addf(out, "MinCPUsNode=%d MinMemoryNode=", slurm_cpus(job));
    slurm_add_memory(out, job);
    buf_adds(out, " MinTmpDiskNode=0" NEXT);
    buf_addf(out, "Features=%s DelayBoot=00:00:00" NEXT, type[0] ? type : "(null)");
    buf_addf(out, "OverSubscribe=%s Contiguous=0 Licenses=(null) Network=(null)" NEXT,
             answer_bool(job->json, "exclusive") ? "NO" : "OK");
    add_safe(out, "Command", command[0] ? command : "(null)");
    add_safe(out, "WorkDir", answer_str(job->json, "cwd"));
    if (comment[0])
        add_safe(out, "Comment", comment);
    add_safe(out, "StdErr", slurm_error_file(job));
    buf_adds(out, "StdIn=/dev/null" NEXT);
    add_safe(out, "StdOut", log);
    buf_adds(out, "Power=" NEXT);
    if (gres.len)
        buf_addf(out, "TresPerNode=%s" NEXT, buf_str(&gres));
}

/* --- records --- */

/* With -o the record becomes one line. */
static void
put_record(const struct scontrol *s, const struct buf *record, struct buf *out)
{
    const char *p = buf_str(record);

    if (!s->one_line) {
        buf_adds(out, p);
        buf_addc(out, '\n');
        return;
    }
    for (; *p; p++) {
        if (*p == '\n') {
            p += strspn(p, "\n ") - 1;
            buf_addc(out, ' ');
        } else {
            buf_addc(out, *p);
        }
    }
    if (out->len && out->data[out->len - 1] != '\n')
        buf_addc(out, '\n');
}

static void
add_job(const struct scontrol *s, const struct slurm_job *job, struct buf *out)
{
    auto_buf struct buf record = BUF_INIT;

    add_head(&record, job);
    add_state(&record, job, s->details);
    add_times(&record, job);
    add_place(&record, job, s->details);
    add_rest(&record, job);
    buf_adds(&record, "\n");
    put_record(s, &record, out);
}

static int
show_jobs(const struct scontrol *s, const char *ids)
{
    auto_client struct client *c = slurm_connect("slurm_load_jobs error");
    auto_json json_t *select = ids ? json_array() : NULL;
    const struct slurm_wish wish = {.select = select, .detail = SLURM_FORECAST};
    auto_slurm_jobs struct slurm_jobs jobs = {0};
    auto_buf struct buf out = BUF_INIT;
    struct err e = {0};

    if (!c)
        return 1;
    if (ids && slurm_read_ids(ids, select, NULL, &e) < 0) {
        fprintf(stderr, "Invalid job id specified\n");
        return 1;
    }
    if (slurm_jobs_ask(c, &wish, &jobs, &e) < 0) {
        if (e.code != ERR_NO_JOB)
            return slurm_fail(1, "%s", e.text);
        fprintf(stderr, "slurm_load_jobs error: Invalid job id specified\n");
        return 1;
    }
    for (size_t i = 0; i < jobs.n; i++)
        add_job(s, &jobs.at[i], &out);
    if (jobs.n == 0)
        buf_adds(&out, "No jobs in the system\n");
    return cli_put(&out);
}

/* --- the machine --- */

static void
add_node(struct buf *out, const struct slurm_machine *m)
{
    char text[SLURM_TIME];
    struct utsname name;

    uname(&name);
    buf_addf(out, "NodeName=%s Arch=%s CoresPerSocket=1 " NEXT, slurm_node(), name.machine);
    buf_addf(out, "CPUAlloc=%d CPUEfctv=%d CPUTot=%d CPULoad=%.2f" NEXT, m->cpus_used, m->cpus,
             m->cpus, m->load);
    buf_adds(out, "AvailableFeatures=(null)" NEXT "ActiveFeatures=(null)" NEXT);
    if (m->gpus)
        buf_addf(out, "Gres=gpu:%d" NEXT, m->gpus);
    else
        buf_adds(out, "Gres=(null)" NEXT);
    buf_addf(out, "NodeAddr=%s NodeHostName=%s Version=" SLURM_RELEASE NEXT, slurm_node(),
             slurm_node());
    buf_addf(out, "OS=%s %s %s " NEXT, name.sysname, name.release, name.version);
    buf_addf(out, "RealMemory=%lld AllocMem=%lld FreeMem=%lld Sockets=%d Boards=1" NEXT,
             (long long)m->mem_mib, (long long)m->mem_used_mib, (long long)m->mem_free_mib,
             m->cpus);
    buf_adds(out, "State=");
    for (const char *p = m->state; *p; p++)
        buf_addc(out, (char)(*p - 'a' + 'A'));
    buf_adds(out, " ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A" NEXT
                  "Partitions=" SLURM_PARTITION " " NEXT);
    buf_addf(out, "BootTime=%s ", slurm_time(m->booted_us, text));
    buf_addf(out, "SlurmdStartTime=%s" NEXT, slurm_time(m->started_us, text));
    buf_addf(out, "CfgTRES=cpu=%d,mem=%lldM,billing=%d", m->cpus, (long long)m->mem_mib,
             m->cpus);
    if (m->gpus)
        buf_addf(out, ",gres/gpu=%d", m->gpus);
    buf_addf(out, NEXT "AllocTRES=%s", m->cpus_used ? "cpu=" : "");
    if (m->cpus_used)
        buf_addf(out, "%d", m->cpus_used);
    if (m->gpus_used)
        buf_addf(out, "%sgres/gpu=%d", m->cpus_used ? "," : "", m->gpus_used);
    if (m->reason[0])
        buf_addf(out, NEXT "Reason=%s", m->reason);
    buf_adds(out, "\n");
}

static void
add_partition(struct buf *out, const struct slurm_machine *m)
{
    buf_addf(out,
             "PartitionName=" SLURM_PARTITION NEXT
             "AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL" NEXT
             "AllocNodes=ALL Default=YES QoS=N/A" NEXT
             "DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO" NEXT
             "MaxNodes=1 MaxTime=UNLIMITED MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED" NEXT
             "Nodes=%s" NEXT
             "PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO" NEXT
             "OverTimeLimit=NONE PreemptMode=OFF" NEXT
             "State=UP TotalCPUs=%d TotalNodes=1 SelectTypeParameters=NONE" NEXT
             "JobDefaults=(null)" NEXT "DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED\n",
             slurm_node(), m->cpus);
}

static int
show_machine(const struct scontrol *s, void (*add)(struct buf *, const struct slurm_machine *))
{
    auto_client struct client *c = slurm_connect("slurm_load_node error");
    auto_buf struct buf record = BUF_INIT, out = BUF_INIT;
    struct slurm_machine m;
    struct err e = {0};

    if (!c)
        return 1;
    if (slurm_machine_ask(c, &m, &e) < 0)
        return slurm_fail(1, "%s", e.text);
    add(&record, &m);
    put_record(s, &record, &out);
    return cli_put(&out);
}

static int
show_node(const struct scontrol *s, const char *name)
{
    if (name && !slurm_is_here(name)) {
        printf("Node %s not found\n", name);
        return 1;
    }
    return show_machine(s, add_node);
}

static int
show_partition(const struct scontrol *s, const char *name)
{
    if (name && strcmp(name, SLURM_PARTITION) != 0) {
        printf("Partition %s not found\n", name);
        return 1;
    }
    return show_machine(s, add_partition);
}

static int
show_config(const struct scontrol *s, const char *name)
{
    auto_buf struct buf out = BUF_INIT;

    (void)s;
    (void)name;
    buf_addf(&out,
             "ClusterName             = " SLURM_CLUSTER "\n"
             "SlurmctldHost[0]        = %s\n"
             "SLURM_VERSION           = " SLURM_RELEASE "\n"
             "MaxArraySize            = 1000001\n"
             "GresTypes               = gpu\n"
             "JobRequeue              = 1\n"
             "KillWait                = 10 sec\n",
             slurm_node());
    return cli_put(&out);
}

/* --- host names --- */

/* Expand "n[1-3],m" to one name per line; numbers keep leading zeros. */
static void
add_hosts(struct buf *out, const char *text, size_t n)
{
    auto_free char *host = xstrndup(text, n);
    char *open = strchr(host, '['), *close = open ? strchr(open, ']') : NULL;

    if (!close) {
        buf_addf(out, "%s\n", host);
        return;
    }
    *open = *close = '\0';
    char *rest = open + 1, *piece;
    while ((piece = strsep(&rest, ","))) {
        char *dash = strchr(piece, '-');
        long first = strtol(piece, NULL, 10), last = dash ? strtol(dash + 1, NULL, 10) : first;
        int width = (int)(dash ? (size_t)(dash - piece) : strlen(piece));

        for (long i = first; i <= last && i - first < 65536; i++)
            buf_addf(out, "%s%0*ld%s\n", host, width, i, close + 1);
    }
}

static int
show_hostnames(const struct scontrol *s, const char *list)
{
    auto_buf struct buf out = BUF_INIT;

    (void)s;
    if (!list)
        list = getenv("SLURM_JOB_NODELIST");
    if (!list)
        list = slurm_node();
    while (*list) {
        size_t n = 0;
        bool inside = false;

        for (; list[n] && (inside || list[n] != ','); n++)
            inside = list[n] == '[' || (inside && list[n] != ']');
        add_hosts(&out, list, n);
        list += n + (list[n] == ',');
    }
    return cli_put(&out);
}

static int
show_hostlist(const struct scontrol *s, const char *list)
{
    (void)s;
    printf("%s\n", list ? list : slurm_node());
    return 0;
}

/* --- the command --- */

static int
show_none(const char *none, const char *what, const char *name)
{
    if (name)
        printf("%s %s not found\n", what, name);
    else
        printf("%s\n", none);
    return name ? 1 : 0;
}

static const struct {
    const char *name; /* any prefix of at least three letters matches */
    int (*show)(const struct scontrol *s, const char *name);
    const char *none, *found; /* if show is NULL: text without a name; word for "not found" */
} shows[] = {
    {"hostnames", show_hostnames, NULL, NULL},
    {"hostlistsorted", show_hostlist, NULL, NULL},
    {"hostlist", show_hostlist, NULL, NULL},
    {"jobs", show_jobs, NULL, NULL},
    {"jobid", show_jobs, NULL, NULL},
    {"nodes", show_node, NULL, NULL},
    {"partitions", show_partition, NULL, NULL},
    {"config", show_config, NULL, NULL},
    {"reservations", NULL, "No reservations in the system", "Reservation"},
    {"licenses", NULL, "No licenses configured in Slurm.", "License"},
};

int
scontrol_show(const struct scontrol *s, char *const *words, int n)
{
    const char *eq = strchr(words[0], '='), *name = eq ? eq + 1 : n > 1 ? words[1] : NULL;
    size_t len = eq ? (size_t)(eq - words[0]) : strlen(words[0]);

    if (n > 2) {
        fprintf(stderr, "too many arguments for keyword:show\n");
        return 1;
    }
    for (size_t i = 0; i < sizeof shows / sizeof shows[0]; i++)
        if (len > 2 && strncasecmp(shows[i].name, words[0], len) == 0)
            return shows[i].show ? shows[i].show(s, name)
                                 : show_none(shows[i].none, shows[i].found, name);
    fprintf(stderr, "invalid entity:%s for keyword:show \n", words[0]);
    return 1;
}
