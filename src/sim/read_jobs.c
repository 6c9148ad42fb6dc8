/* A jobs file as a workload: what `berth run` would queue, all at once. Its own reader has
 * checked it (spec/jobsfile.h); here lines become shapes. */
#include "base/err.h"
#include "sim/read.h"
#include "spec/jobsfile.h"

static struct shape
shape_of(const struct demand *d)
{
    struct shape s = {
        .allowed = d->devices ? d->devices : UINT64_MAX,
        .vram_mib = d->vram_mib,
        .n = (uint8_t)d->gpus,
        .alone = d->vram_mib == 0 || d->exclusive,
    };
    if (d->n_ids) {
        s.allowed = 0;
        s.n = d->n_ids;
        for (int i = 0; i < d->n_ids; i++)
            s.allowed |= UINT64_C(1) << d->ids[i];
    }
    return s;
}

static int
add_line(const char *file, struct jobsfile_line *line, int64_t duration_s, struct workload *w,
         struct read_notes *notes, struct err *e)
{
    const struct demand *d = &line->req.demand;
    struct shape shape = shape_of(d);
    struct sim_job job = {
        .id = line->line,
        .duration = line->req.limit_ms ? (line->req.limit_ms + 999) / 1000 : duration_s,
        .priority = line->req.priority,
        .line = (uint32_t)line->line,
    };
    job.estimate = job.duration;
    if (shape.n == 0 || line->req.hold || line->req.cancel) {
        notes->skipped++;
        return 0;
    }
    if (job.duration == 0)
        return err_set(e, ERR_USAGE,
                       "%s:%d:1: nothing says how long this runs; give it [time=1h], or say "
                       "--duration 1h for all such lines",
                       file, line->line);
    job.request = workload_add_request(w, &line->req);
    workload_add(w, &job, &shape);
    return 0;
}

int
read_jobs(const char *file, const char *text, size_t len, int64_t duration_s,
          struct workload *w, struct read_notes *notes, struct err *e)
{
    struct jobsfile f;
    int result = jobsfile_parse(file, text, len, &f, e);
    for (size_t i = 0; result == 0 && i < f.n_lines; i++)
        result = add_line(file, &f.lines[i], duration_s, w, notes, e);
    jobsfile_free(&f);
    return result;
}
