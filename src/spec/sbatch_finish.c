/* Settles combined sbatch options after all are read: cores and memory per GPU or core, tasks,
 * and options that apply only if nothing else was set. Called by script.c. */
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/request.h"
#include "spec/attr.h"
#include "spec/script_priv.h"

/* Stores each * count in *field; 0, or -1 with e. */
static int
multiply(int64_t each, int64_t count, int64_t max, int32_t *field, struct err *e)
{
    if (each > max / count)
        return err_set(e, ERR_USAGE, "%lld times %lld is too much", (long long)each,
                       (long long)count);
    *field = (int32_t)(each * count);
    return 0;
}

/* The number of GPUs. The command line takes precedence, though it is applied after the
 * script. */
static int
gpus_of(const struct sbatch *s)
{
    const struct demand *over = s->over ? &s->over->demand : NULL;
    int gpus = over && s->over->gpus_said ? over->gpus
               : over && over->n_ids      ? over->n_ids
                                          : s->r->demand.gpus;

    return gpus < 0 ? 1 : gpus; /* not set */
}

static int
cpus_of(const struct sbatch *s)
{
    int cpus = s->over && s->over->demand.cpus ? s->over->demand.cpus : s->r->demand.cpus;

    return cpus > 0 ? cpus : 1;
}

static void
settle_over(struct sbatch *s)
{
    if (s->over->demand.mem_mib)
        sbatch_replace(s, "mem");
    if (s->over->demand.cpus)
        s->cpus_per_gpu = 0;
}

/* Slurm refuses --cpus-per-gpu together with cores per task, and without GPUs uses its
 * default. */
static int
finish_cpus(struct sbatch *s, struct err *e)
{
    int64_t each = s->cpus_per_gpu, gpus = gpus_of(s);

    s->cpus_per_gpu = 0;
    if (s->cpus_per_task && !s->cpus_of_job)
        return sbatch_refuse(e, "mutually exclusive with --cpus-per-task");
    return gpus ? multiply(each, gpus, CPUS_MAX, &s->r->demand.cpus, e) : 0;
}

static int
finish_mem(struct sbatch *s, struct err *e)
{
    struct demand *d = &s->r->demand;
    int64_t each = s->mem_per_cpu ? s->mem_per_cpu : s->mem_per_gpu;
    int64_t count = s->mem_per_cpu ? cpus_of(s) : gpus_of(s);

    bool per_cpu = s->mem_per_cpu != 0;
    s->mem_per_cpu = s->mem_per_gpu = 0;
    if (count == 0)
        return sbatch_refuse(e, "the job requests no GPU");
    script_add_variable(
        s->out, xasprintf("SLURM_MEM_PER_%s=%lld", per_cpu ? "CPU" : "GPU", (long long)each));
    return multiply(each, count, VRAM_MAX_MIB, &d->mem_mib, e);
}

static void
settle_constraint(struct sbatch *s)
{
    struct demand *d = &s->r->demand;
    auto_buf struct buf note = BUF_INIT;

    buf_addf(&note, "--constraint=%s ", s->constraint);
    if (d->gpus == 0)
        buf_adds(&note, "is ignored: the job has no GPU");
    else if (d->gpu_type[0])
        buf_addf(&note, "is ignored: the type of GPU is %s", d->gpu_type);
    else
        buf_adds(&note, "is read as a type of GPU");
    if (d->gpus != 0 && !d->gpu_type[0]) {
        memcpy(d->gpu_type, s->constraint, sizeof d->gpu_type);
        s->r->type_from = TYPE_BY_CONSTRAINT;
    }
    script_note(s->out, s->constraint_line, buf_str(&note));
    s->constraint[0] = '\0';
}

/* Drops --exclusive for jobs without GPUs: scripts for CPU-only nodes often contain it. */
static void
settle_exclusive(struct sbatch *s)
{
    if (s->r->demand.gpus == 0 && s->r->demand.exclusive) {
        s->r->demand.exclusive = 0;
        script_note(s->out, s->exclusive_line,
                    "--exclusive is ignored: the job has no GPU, and the machine is shared");
    }
    s->exclusive = false;
}

/* As in Slurm, a job that requests no GPUs gets none. */
static void
settle_gpus(struct request *r)
{
    const struct demand *d = &r->demand;

    if (r->gpus_said || d->vram_mib || r->vram_auto || d->share_permille || d->n_ids || r->llm)
        return;
    r->demand.gpus = 0;
    r->gpus_said = true;
}

/* If no number of tasks is given, derives it from --gpus and --gpus-per-task, as Slurm
 * does. */
static int
count_tasks(struct sbatch *s, struct err *e)
{
    struct demand *d = &s->r->demand;
    int64_t each = s->gpus_per_task, all = s->gpus_of_job;

    if (each == 0 || all == 0 || (d->gpus != each && d->gpus != all))
        return 0;
    if (all % each)
        return err_set(e, ERR_USAGE, "%lld GPUs are no multiple of %lld", (long long)all,
                       (long long)each);
    s->ntasks = all / each;
    d->gpus = (int32_t)each;
    return 0;
}

/* The script runs once; srun in it starts the tasks, whose number is in the environment.
 * Resources per task are multiplied, unless a later option set a total. */
static int
finish_tasks(struct sbatch *s, struct err *e)
{
    struct demand *d = &s->r->demand;
    int64_t tasks = s->ntasks ? s->ntasks : s->ntasks_per_node;
    int64_t most = s->ntasks_per_node;
    int64_t cpus = s->cpus_per_task ? s->cpus_per_task : 1, gpus = s->gpus_per_task;

    s->ntasks = s->ntasks_per_node = s->gpus_per_task = 0;
    if (gpus > 0 && d->gpus == gpus)
        script_add_variable(s->out, xasprintf("SLURM_GPUS_PER_TASK=%lld", (long long)gpus));
    if (tasks <= 1)
        return 0;
    script_add_variable(s->out, xasprintf("SLURM_NTASKS=%lld", (long long)tasks));
    script_add_variable(s->out, xasprintf("SLURM_CPUS_PER_TASK=%lld", (long long)cpus));
    if (gpus > 0 && d->gpus == gpus && multiply(gpus, tasks, GPU_MAX, &d->gpus, e) < 0)
        return -1;
    if (!s->cpus_of_job && (d->cpus == 0 || d->cpus == s->cpus_per_task) &&
        multiply(cpus, tasks, CPUS_MAX, &d->cpus, e) < 0)
        return -1;
    if (most > 0 && tasks > most)
        return sbatch_refuse(e, "%lld tasks exceed %lld on each node: there is one machine",
                             (long long)tasks, (long long)most);
    return 0;
}

int
sbatch_finish(struct sbatch *s, int *line, const char **what, struct err *e)
{
    int rc = 0;

    if (s->over)
        settle_over(s);
    if (s->bare)
        settle_gpus(s->r);
    if (s->constraint[0])
        settle_constraint(s);
    if (s->exclusive)
        settle_exclusive(s);
    if (s->gpus_per_task && !s->ntasks && !s->ntasks_per_node) {
        *line = s->each_line;
        *what = "--gpus-per-task";
        rc = count_tasks(s, e);
        s->gpus_of_job = 0;
    }
    if (rc == 0 && (s->ntasks || s->ntasks_per_node || s->gpus_per_task)) {
        *line = s->tasks_line;
        *what = "--ntasks";
        rc = finish_tasks(s, e);
    }
    if (rc == 0 && s->cpus_per_gpu) { /* before finish_mem, which multiplies by cores */
        *line = s->cpus_line;
        *what = "--cpus-per-gpu";
        rc = finish_cpus(s, e);
    }
    if (rc == 0 && (s->mem_per_cpu || s->mem_per_gpu)) {
        *line = s->mem_line;
        *what = s->mem_per_cpu ? "--mem-per-cpu" : "--mem-per-gpu";
        rc = finish_mem(s, e);
    }
    return rc;
}
