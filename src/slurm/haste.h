/* Waits that tests shorten. */
#ifndef SLURM_HASTE_H
#define SLURM_HASTE_H

#include <stdint.h>

/* A wait, of any unit, divided by BERTH_SLURM_HASTE (1 to 100) of the environment; unset: as it
 * is. All that is measured against another goes through here, so that the order in which things
 * happen remains. The daemon's environment counts, and reaches the nodes with sbatch. */
int64_t slurm_haste(int64_t wait);

#endif
