/* The SLURM_* variables that single-node scripts read, as in sbatch(1). Set only for jobs with
 * slurm_env, that is scripts with #SBATCH lines: frameworks take such variables as a sign that
 * srun started them. Those about where and how the job was submitted come from the client in
 * the environment; this file has their defaults. Called by job_environ.c. */
#include "daemon/attempt/job_environ_slurm.h"

#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "core/ledger/ledger.h"
#include "core/queue/array.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"
#include "daemon/attempt/env_block.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "spec/script.h"
#include "wire/places.h"

static void
put_default(struct buf *out, const struct buf *theirs, const char *name, const char *value)
{
    const char *said = envblock_find(theirs, name);
    envblock_put(out, name, said ? said : value);
}

static void
put_host(struct buf *out)
{
    static const char *const names[] = {"SLURM_JOB_NODELIST", "SLURM_NODELIST",
                                        "SLURMD_NODENAME", "SLURM_TOPOLOGY_ADDR"};
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    envblock_put(out, "SLURM_SUBMIT_HOST", host);
    host[strcspn(host, ".")] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        envblock_put(out, names[i], host);
}

/* The folder of our srun, scontrol and others (src/compat/slurm), needed because a real
 * Slurm's would not know this job. NULL: not installed. */
static char *
shims(void)
{
    struct err e;
    auto_free char *program = places_program("berth-shepherd", &e);
    char *slash = program ? strrchr(program, '/') : NULL;
    if (!slash)
        return NULL;
    *slash = '\0';
    return xasprintf("%s/slurm", program);
}

static void
put_path(const struct buf *theirs, struct buf *out)
{
    const char *path = envblock_find(theirs, "PATH");
    auto_free char *folder = shims();
    if (!folder)
        return;
    auto_free char *all =
        xasprintf("%s:%s", folder, path ? path : "/usr/local/bin:/usr/bin:/bin");
    envblock_put(out, "PATH", all);
}

/* One node, with the script itself as task 0; the script decides how many tasks
 * srun starts. */
static void
put_layout(const struct buf *theirs, struct buf *out)
{
    static const char *const ones[] = {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"};
    static const char *const tasks[] = {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_TASKS_PER_NODE"};
    const char *ntasks = envblock_find(theirs, "SLURM_NTASKS");
    static const char *const zeros[] = {"SLURM_NODEID", "SLURM_PROCID", "SLURM_LOCALID",
                                        "SLURM_GTIDS"};
    for (size_t i = 0; i < sizeof ones / sizeof ones[0]; i++)
        envblock_put_int(out, ones[i], 1);
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++)
        envblock_put(out, tasks[i], ntasks ? ntasks : "1");
    for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++)
        envblock_put_int(out, zeros[i], 0);
}

/* Without a request Slurm books one core, and then sets no SLURM_CPUS_PER_TASK. */
static void
put_booked(const struct instance *inst, const struct job *job, const struct buf *theirs,
           struct buf *out)
{
    const struct demand *need = &job->req.demand;
    auto_buf struct buf cards = BUF_INIT;
    int cpus = need->cpus > 0 ? need->cpus : 1;
    if (need->cpus > 0 && !envblock_find(theirs, "SLURM_CPUS_PER_TASK"))
        envblock_put_int(out, "SLURM_CPUS_PER_TASK", need->cpus);
    envblock_put_int(out, "SLURM_CPUS_ON_NODE", cpus);
    envblock_put_int(out, "SLURM_JOB_CPUS_PER_NODE", cpus);
    /* A request per core or per GPU replaces this one, as in Slurm. */
    if (need->mem_mib > 0 && !envblock_find(theirs, "SLURM_MEM_PER_CPU") &&
        !envblock_find(theirs, "SLURM_MEM_PER_GPU"))
        envblock_put_int(out, "SLURM_MEM_PER_NODE", need->mem_mib);
    for (int i = 0; i < job->run->n_gpus; i++)
        buf_addf(&cards, "%s%d", i ? "," : "",
                 ledger_card(inst->ledger, job->run->gpus[i])->info.index);
    if (job->run->n_gpus == 0)
        return;
    envblock_put(out, "SLURM_JOB_GPUS", buf_str(&cards));
    envblock_put(out, "SLURM_STEP_GPUS", buf_str(&cards));
    envblock_put_int(out, "SLURM_GPUS_ON_NODE", job->run->n_gpus);
    envblock_put_int(out, "SLURM_GPUS", job->run->n_gpus);
}

static void
put_array(const struct instance *inst, const struct job *job, struct buf *out)
{
    const struct job *array = job->array ? queue_get(inst->queue, job->array) : NULL;
    if (!job->array)
        return;
    envblock_put_int(out, "SLURM_ARRAY_JOB_ID", job->array);
    envblock_put_int(out, "SLURM_ARRAY_TASK_ID", job->task);
    if (!array || !array->tasks || array->req.array.n == 0)
        return;
    const struct task_set *set = &array->req.array;
    int32_t step = set->n > 1 && set->ranges[0].first == set->ranges[0].last
                       ? set->ranges[1].first - set->ranges[0].first
                       : 1;
    envblock_put_int(out, "SLURM_ARRAY_TASK_COUNT", array->tasks->total);
    envblock_put_int(out, "SLURM_ARRAY_TASK_MIN", set->ranges[0].first);
    envblock_put_int(out, "SLURM_ARRAY_TASK_MAX", set->ranges[set->n - 1].last);
    envblock_put_int(out, "SLURM_ARRAY_TASK_STEP", step);
}

void
environ_add_slurm(const struct instance *inst, const struct job *job, const struct buf *theirs,
                  struct buf *ours)
{
    int64_t now_s = clock_wall_us() / 1000000;
    if (!job->req.slurm_env || job->req.demand.engine == ENGINE_SLURM)
        return; /* on Slurm, the real ones are set */
    envblock_put_int(ours, "SLURM_JOB_ID", job->id);
    envblock_put_int(ours, "SLURM_JOBID", job->id);
    envblock_put(ours, "SLURM_JOB_NAME", job->req.name ? job->req.name : "sbatch");
    envblock_put(ours, "SLURM_JOB_USER", daemon_owner_name(job));
    envblock_put_int(ours, "SLURM_JOB_UID", job->uid);
    envblock_put(ours, "SLURM_CLUSTER_NAME", SCRIPT_CLUSTER);
    put_default(ours, theirs, "SLURM_SUBMIT_DIR", job->cwd);
    put_default(ours, theirs, "SLURM_JOB_PARTITION", "berth");
    put_path(theirs, ours);
    put_host(ours);
    put_layout(theirs, ours);
    put_booked(inst, job, theirs, ours);
    put_array(inst, job, ours);
    envblock_put_int(ours, "SLURM_JOB_START_TIME", now_s);
    if (job->req.limit_ms > 0)
        envblock_put_int(ours, "SLURM_JOB_END_TIME", now_s + job->req.limit_ms / 1000);
    if (job->run->number > 1) /* like Slurm, from the first restart on */
        envblock_put_int(ours, "SLURM_RESTART_COUNT", job->run->number - 1);
}

/* Appends PATH without the folder that put_path added for an outer job. */
static void
put_path_without(const char *path, struct buf *out)
{
    auto_buf struct buf rest = BUF_INIT;
    auto_free char *folder = shims();
    auto_free char *copy = xstrdup(path);
    char *left = copy, *piece;
    const char *colon = "";
    while ((piece = strsep(&left, ":"))) {
        if (folder && strcmp(piece, folder) == 0)
            continue;
        buf_addf(&rest, "%s%s", colon, piece);
        colon = ":";
    }
    envblock_put(out, "PATH", buf_str(&rest));
}

/* A Slurm, real or ours, always sets SLURM_CLUSTER_NAME; without it, SLURM_* are
 * the user's. */
void
environ_add_captured(const struct job *job, const struct buf *captured, const char *var,
                     struct buf *out)
{
    bool is_slurms = strncmp(var, "SLURM_", 6) == 0 || strncmp(var, "SLURMD_", 7) == 0;
    bool is_path = strncmp(var, "PATH=", 5) == 0;
    const char *cluster =
        is_slurms || is_path ? envblock_find(captured, "SLURM_CLUSTER_NAME") : NULL;
    bool is_stale = job->req.slurm_env || (cluster && strcmp(cluster, SCRIPT_CLUSTER) == 0);
    if (is_slurms && cluster && is_stale)
        return;
    if (is_path && is_stale)
        put_path_without(var + 5, out);
    else
        buf_addz(out, var);
}
