/* Waits that tests shorten. */
#ifndef SLURM_HASTE_H
#define SLURM_HASTE_H

#include <stdint.h>

/* Divides a wait, in any unit, by BERTH_SLURM_HASTE (1 to 100) from the environment; unset:
 * unchanged. All waits that are compared with each other use it, so that the order of events
 * stays the same. The daemon's environment counts, and sbatch passes it to the nodes. */
int64_t slurm_haste(int64_t wait);

#endif
