/* Allocations for packed jobs: which jobs are packed, what an allocation requests, and its
 * options for sbatch. Pure. */
#ifndef SLURM_ALLOCATION_OPTIONS_H
#define SLURM_ALLOCATION_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct allocation_spec;
struct backlog_line;
struct buf;
struct config;
struct demand;
struct request;

/* True if the job requests packing or, without shards, needs at most slurm_pack_mib of VRAM. */
bool slurm_is_to_pack(const struct demand *d, const struct config *c);

/* What a request needs of an allocation, given its VRAM. */
void slurm_line_of_request(const struct request *r, int32_t vram_mib, struct backlog_line *out);

/* The allocation that the settings describe, made large enough for the line (NULL:
 * standard). */
void allocation_spec_for(const struct config *c, const struct backlog_line *line,
                         struct allocation_spec *out);

/* Appends the sbatch options for it, each NUL-terminated. */
void slurm_add_allocation_options(const struct allocation_spec *spec, const struct config *c,
                                  struct buf *out);

#endif
