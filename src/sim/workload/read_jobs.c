/* A jobs file as a workload: what `berth run` would queue, all at the same time. The jobs
 * file's own reader has checked it (spec/jobsfile.h); here lines become shapes. */
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sim/workload/read.h"
#include "spec/jobsfile.h"

/* A share without VRAM counts as that part of the largest card; live_sim.c is exact. */
static int32_t
vram_of(const struct demand *d, const struct machine *m)
{
    int32_t most = 0;
    if (d->vram_mib > 0 || d->share_permille == 0)
        return d->vram_mib;
    for (int i = 0; i < m->n; i++)
        most = m->total_mib[i] > most ? m->total_mib[i] : most;
    return (int32_t)((int64_t)(most - m->margin_mib) * d->share_permille / 1000);
}

static struct shape
shape_of(const struct demand *d, const struct machine *m)
{
    struct shape s = {
        .allowed = d->devices ? d->devices : UINT64_MAX,
        .vram_mib = vram_of(d, m),
        .n = (uint8_t)d->gpus,
        .alone = demand_is_whole(d) || d->exclusive,
        .share_permille = d->vram_mib == 0 ? (int16_t)d->share_permille : 0,
    };
    if (d->n_ids) {
        s.allowed = 0;
        s.n = d->n_ids;
        for (int i = 0; i < d->n_ids; i++)
            s.allowed |= UINT64_C(1) << d->ids[i];
    }
    return s;
}

struct jobs_reader {
    const char *file;
    struct jobsfile lines;
    const struct machine *machine;
    const struct run_times *times;
    bool has_arrays;
    int64_t n_read; /* jobs, counting each task of an array */
    struct workload *w;
    struct read_notes *notes;
};

/* A name refers to the last such job above, whose line must be in the workload. */
static int
resolve_deps(const struct jobs_reader *r, const struct jobsfile_line *line,
             const uint32_t *numbers, struct err *e)
{
    size_t above = (size_t)(line - r->lines.lines);
    for (int i = 0; i < line->req.n_deps; i++) {
        struct dep *dep = &line->req.deps[i];
        for (size_t k = above; dep->name && dep->job == 0 && k-- > 0;) {
            const char *name = r->lines.lines[k].req.name;
            if (!name)
                name = numbers[k] ? r->w->requests[numbers[k] - 1].name : NULL;
            if (name && strcmp(name, dep->name) == 0)
                dep->job = numbers[k];
        }
        if (!dep->name)
            return err_set(
                e, ERR_USAGE,
                "%s:%d:1: this waits for job %u of a daemon, which is not simulated; to wait "
                "for a job of this file, give that job a name and use the name",
                r->file, line->line, dep->job);
        if (dep->job == 0)
            return err_set(e, ERR_USAGE, "%s:%d:1: no job named '%.40s' above this one",
                           r->file, line->line, dep->name);
    }
    return 0;
}

static void
add_rows(struct jobs_reader *r, struct sim_job *job, const struct shape *shape,
         const struct task_set *tasks)
{
    if (tasks->n == 0) {
        r->n_read++;
        job->id = r->has_arrays ? r->n_read : job->line;
        workload_add(r->w, job, shape);
    }
    for (int i = 0; i < tasks->n; i++) {
        for (job->task = tasks->ranges[i].first; job->task <= tasks->ranges[i].last;
             job->task++) {
            job->id = ++r->n_read;
            workload_add(r->w, job, shape);
        }
    }
}

/* The scheduler plans with the time limit; without one, with the past run time. */
static void
set_times(const struct jobs_reader *r, const struct request *req, struct sim_job *job)
{
    if (r->times->before)
        job->duration = r->times->before(r->times->arg, req);
    if (job->duration == 0)
        job->duration = job->estimate ? job->estimate : r->times->otherwise_s;
    if (job->estimate == 0)
        job->estimate = job->duration;
    if (job->duration > job->estimate)
        job->duration = job->estimate;
}

static int
add_line(struct jobs_reader *r, struct jobsfile_line *line, uint32_t *numbers, struct err *e)
{
    struct shape shape = shape_of(&line->req.demand, r->machine);
    struct sim_job job = {
        .estimate = (line->req.limit_ms + 999) / 1000,
        .priority = line->req.priority,
        .line = (uint32_t)line->line,
    };
    set_times(r, &line->req, &job);
    if (shape.n == 0 || line->req.hold || line->req.cancel) {
        r->notes->skipped++;
        return 0;
    }
    if (line->req.gpu_names)
        return err_set(
            e, ERR_USAGE,
            "%s:%d:1: simulated GPUs have no UUIDs; gpu-ids needs indices here, such "
            "as 0,2",
            r->file, line->line);
    if (job.duration == 0)
        return err_set(e, ERR_USAGE,
                       "%s:%d:1: the run time is unknown; add [time=1h], or use --duration 1h "
                       "for all such lines",
                       r->file, line->line);
    if (resolve_deps(r, line, numbers, e) < 0)
        return -1;
    job.request = workload_add_request(r->w, &line->req);
    numbers[line - r->lines.lines] = job.request;
    add_rows(r, &job, &shape, &r->w->requests[job.request - 1].array);
    return 0;
}

int
read_jobs(const char *file, const char *text, size_t len, const struct machine *m,
          const struct run_times *times, struct workload *w, struct read_notes *notes,
          struct err *e)
{
    struct jobs_reader r = {.file = file, .machine = m, .times = times, .w = w, .notes = notes};
    int result = jobsfile_parse(file, text, len, times->clock, &r.lines, e);
    auto_free uint32_t *numbers = xcalloc(r.lines.n_lines + 1, sizeof *numbers);
    for (size_t i = 0; result == 0 && i < r.lines.n_lines; i++)
        r.has_arrays |= r.lines.lines[i].req.array.n > 0;
    for (size_t i = 0; result == 0 && i < r.lines.n_lines; i++)
        result = add_line(&r, &r.lines.lines[i], numbers, e);
    jobsfile_free(&r.lines);
    return result;
}
