/* The columns that squeue knows. */
#ifndef COMPAT_SLURM_SLURM_SQUEUE_H
#define COMPAT_SLURM_SLURM_SQUEUE_H

#include "compat/slurm/slurm_table.h"

/* Ends with a NULL header. */
extern const struct slurm_field squeue_fields[];

#endif
