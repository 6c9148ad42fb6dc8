/* sbatch --wait and scontrol wait_job. */
#ifndef COMPAT_SLURM_SLURM_WAIT_H
#define COMPAT_SLURM_SLURM_WAIT_H

#include <stdint.h>

/* Waits until the job, or every task of the array, has ended. The exit status: the highest exit
 * code, and 1 for an end by a signal or for one that has no code. */
int slurm_wait(int64_t id);

/* Waits until the job, or a task of the array, runs: 0. 1 when it has ended or is not known. */
int slurm_wait_until_ready(int64_t id);

#endif
