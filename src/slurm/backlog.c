/* Lines of the backlog and of allocation specifications: see backlog.h. Words and numbers
 * separated by one blank. As the files are replaced atomically, a line that cannot be parsed
 * is from another version, and is ignored. Called by daemon/slurm and shepherd/slurm. */
#include "slurm/backlog.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

#define NO_TYPE "-"

static void
add_job(const struct backlog_line *l, struct buf *out)
{
    const struct demand *d = &l->demand;
    buf_addf(out, "job %" PRIu32 ".%" PRId32 " %d %d %d %d %d %d %d", l->job, l->attempt,
             d->gpus, d->vram_mib, d->share_permille, d->exclusive, d->cpus, d->mem_mib,
             d->margin_mib);
    buf_addf(out, " %" PRId64 " %" PRId64 " %" PRId64 " %s\n", l->limit_ms, l->grace_ms,
             l->span_ms, d->gpu_type[0] ? d->gpu_type : NO_TYPE);
}

void
backlog_add(const struct backlog_line *line, struct buf *out)
{
    if (line->word == BACKLOG_JOB)
        add_job(line, out);
    else if (line->word == BACKLOG_STOP)
        buf_addf(out, "stop %" PRIu32 ".%" PRId32 " %d\n", line->job, line->attempt,
                 line->times);
    else
        buf_addf(out, "leave %s\n", line->key);
}

static void
set_type(const char *said, char *out)
{
    if (strcmp(said, NO_TYPE) != 0)
        snprintf(out, GPU_TYPE_MAX, "%s", said);
}

static bool
read_job(const char *text, struct backlog_line *out)
{
    struct demand *d = &out->demand;
    char type[GPU_TYPE_MAX];
    int exclusive;
    if (sscanf(text,
               "job %" SCNu32 ".%" SCNd32 " %d %d %d %d %d %d %d %" SCNd64 " %" SCNd64
               " %" SCNd64 " %23s",
               &out->job, &out->attempt, &d->gpus, &d->vram_mib, &d->share_permille, &exclusive,
               &d->cpus, &d->mem_mib, &d->margin_mib, &out->limit_ms, &out->grace_ms,
               &out->span_ms, type) != 13)
        return false;
    d->exclusive = exclusive != 0;
    set_type(type, d->gpu_type);
    return out->job > 0 && d->gpus >= 0 && d->gpus <= GPU_MAX;
}

bool
backlog_read(const char *text, struct backlog_line *out)
{
    *out = (struct backlog_line){.word = BACKLOG_JOB};
    demand_init(&out->demand);
    if (read_job(text, out))
        return true;
    out->word = BACKLOG_STOP;
    if (sscanf(text, "stop %" SCNu32 ".%" SCNd32 " %d", &out->job, &out->attempt,
               &out->times) == 3)
        return out->job > 0;
    out->word = BACKLOG_LEAVE;
    return sscanf(text, "leave %19s", out->key) == 1;
}

void
allocation_spec_add(const struct allocation_spec *s, struct buf *out)
{
    buf_addf(out, "allocation %d %d %d %" PRId64 " %" PRId64 " %d %s\n", s->gpus, s->cpus,
             s->mem_mib, s->limit_ms, s->idle_ms, s->gpu_mib, s->type[0] ? s->type : NO_TYPE);
}

bool
allocation_spec_read(const char *text, struct allocation_spec *out)
{
    char type[GPU_TYPE_MAX];
    *out = (struct allocation_spec){0};
    if (sscanf(text, "allocation %d %d %d %" SCNd64 " %" SCNd64 " %d %23s", &out->gpus,
               &out->cpus, &out->mem_mib, &out->limit_ms, &out->idle_ms, &out->gpu_mib,
               type) != 7)
        return false;
    set_type(type, out->type);
    return out->gpus >= 0 && out->gpus <= GPU_MAX && out->limit_ms > 0 && out->idle_ms >= 0;
}

int64_t
allocation_early_ms(const struct backlog_line *line)
{
    return line->grace_ms > ALLOCATION_GRACE_MS ? line->grace_ms - ALLOCATION_GRACE_MS : 0;
}

bool
allocation_has_time(const struct allocation_spec *spec, const struct backlog_line *line,
                    int64_t left_ms)
{
    left_ms -= allocation_early_ms(line);
    if (line->limit_ms > 0)
        return line->limit_ms <= left_ms + ALLOCATION_SLACK_MS;
    if (line->span_ms > 0 && line->span_ms <= spec->limit_ms)
        return line->span_ms <= left_ms;
    return left_ms >= ALLOCATION_LATE(spec->limit_ms);
}

/* An allocation requested without cores or memory has Slurm's default: at least one core. */
bool
allocation_is_fit(const struct allocation_spec *spec, const struct backlog_line *line)
{
    const struct demand *d = &line->demand;
    int32_t cpus = d->cpus == 0 && d->gpus == 0 ? 1 : d->cpus;
    int64_t whole_ms = line->limit_ms > 0 ? line->limit_ms + allocation_early_ms(line) : 0;
    return d->gpus <= spec->gpus && whole_ms <= spec->limit_ms &&
           (!d->gpu_type[0] || strcmp(d->gpu_type, spec->type) == 0) &&
           cpus <= (spec->cpus ? spec->cpus : 1) && d->mem_mib <= spec->mem_mib;
}
