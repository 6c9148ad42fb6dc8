/* sbatch --wait and scontrol wait_job. */
#ifndef COMPAT_SLURM_SLURM_WAIT_H
#define COMPAT_SLURM_SLURM_WAIT_H

#include <stdint.h>

/* Wait until the job, or every task of the array, has ended. Returns the highest exit code; 1
 * for a job that ended by a signal or has no exit code. */
int slurm_wait(int64_t id);

/* Wait until the job, or a task of the array, is running: returns 0; 1 if it ended or is
 * unknown. */
int slurm_wait_until_ready(int64_t id);

#endif
