/* The columns that squeue knows. */
#ifndef COMPAT_SLURM_SLURM_SQUEUE_H
#define COMPAT_SLURM_SLURM_SQUEUE_H

#include <stdbool.h>

#include "compat/slurm/slurm_table.h"

struct slurm_job;

/* Rows are struct slurm_job. Ends with a NULL header. */
extern const struct slurm_field squeue_fields[];

/* By the number in the column of this letter, such as a time, memory or cores. False: it has
 * none. What has no limit and no known start is behind all that has one; what has no end is in
 * front. */
bool squeue_compare_numbers(char letter, const struct slurm_job *a, const struct slurm_job *b,
                            int *order);

#endif
