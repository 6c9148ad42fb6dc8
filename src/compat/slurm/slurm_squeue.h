/* The columns that squeue knows. */
#ifndef COMPAT_SLURM_SLURM_SQUEUE_H
#define COMPAT_SLURM_SLURM_SQUEUE_H

#include "compat/slurm/slurm_table.h"

struct slurm_job;

/* Rows are struct slurm_job. Ends with a NULL header. */
extern const struct slurm_field squeue_fields[];

/* By the time in the column of this letter: l (limit), L (left) or M (used). What has no limit
 * is behind all that has one. */
int squeue_compare_times(char letter, const struct slurm_job *a, const struct slurm_job *b);

#endif
