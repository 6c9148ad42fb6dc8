/* What an allocation requests, and its sbatch options: see allocation_options.h. Called by
 * daemon/slurm and for --dry-run. */
#include "slurm/allocation_options.h"

#include <string.h>

#include "base/request.h"
#include "slurm/backlog.h"
#include "slurm/sent_options.h"
#include "spec/config.h"

bool
slurm_is_to_pack(const struct demand *d, const struct config *c)
{
    return d->pack || (d->gpus > 0 && d->vram_mib > 0 && c->slurm_shard_mib == 0 &&
                       d->vram_mib <= c->slurm_pack_mib);
}

void
slurm_line_of_request(const struct request *r, int32_t vram_mib, struct backlog_line *out)
{
    *out = (struct backlog_line){.word = BACKLOG_JOB,
                                 .demand = r->demand,
                                 .limit_ms = r->limit_ms,
                                 .grace_ms = request_grace_ms(r)};
    out->demand.vram_mib = vram_mib;
}

static int32_t
larger(int64_t a, int64_t b)
{
    return (int32_t)(a > b ? a : b);
}

void
allocation_spec_for(const struct config *c, const struct backlog_line *line,
                    struct allocation_spec *out)
{
    *out = (struct allocation_spec){.gpus = (int32_t)c->slurm_allocation_gpus,
                                    .cpus = (int32_t)c->slurm_allocation_cpus,
                                    .mem_mib = (int32_t)c->slurm_allocation_mem_mib,
                                    .limit_ms = c->slurm_allocation_s * 1000,
                                    .idle_ms = c->slurm_allocation_idle_s * 1000,
                                    .gpu_mib = (int32_t)c->slurm_gpu_mib};
    if (!line)
        return;
    out->gpus = larger(out->gpus, line->demand.gpus);
    if (line->demand.cpus > (out->cpus ? out->cpus : 1))
        out->cpus = line->demand.cpus;
    out->mem_mib = larger(out->mem_mib, line->demand.mem_mib);
    int64_t whole_ms = line->limit_ms > 0 ? line->limit_ms + allocation_early_ms(line) : 0;
    if (whole_ms > out->limit_ms)
        out->limit_ms = whole_ms;
    memcpy(out->type, line->demand.gpu_type, sizeof out->type);
}

void
slurm_add_allocation_options(const struct allocation_spec *spec, const struct config *c,
                             struct buf *out)
{
    struct request r = request_standard;
    char name[] = "berth-pack";
    r.demand.engine = ENGINE_SLURM;
    r.demand.gpus = spec->gpus;
    r.demand.cpus = spec->cpus;
    r.demand.mem_mib = spec->mem_mib;
    memcpy(r.demand.gpu_type, spec->type, sizeof r.demand.gpu_type);
    r.limit_ms = spec->limit_ms;
    r.grace_ms = ALLOCATION_GRACE_MS + ALLOCATION_SLACK_MS;
    r.name = name;
    slurm_add_options(&r, true, c, out);
}
