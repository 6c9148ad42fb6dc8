/* Allocations for packed jobs: which jobs are packed, what an allocation is to be, and what of
 * that is for sbatch. Pure. */
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

/* It asked for that, or its VRAM is as small as the settings say. */
bool slurm_is_to_pack(const struct demand *d, const struct config *c);

/* What a request asks an allocation for, with so much VRAM. */
void slurm_line_of_request(const struct request *r, int32_t vram_mib, struct backlog_line *out);

/* An allocation as the settings have it, and large enough for the line (NULL: for any). */
void allocation_spec_for(const struct config *c, const struct backlog_line *line,
                         struct allocation_spec *out);

/* Appends NUL-terminated options for it. */
void slurm_add_allocation_options(const struct allocation_spec *spec, const struct config *c,
                                  struct buf *out);

#endif
