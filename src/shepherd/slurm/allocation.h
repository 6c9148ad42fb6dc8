/* The batch script of a Slurm job that is an allocation for packed jobs. */
#ifndef SHEPHERD_SLURM_ALLOCATION_H
#define SHEPHERD_SLURM_ALLOCATION_H

#define ALLOCATION_OPTION "--slurm-allocation"

/* Runs attempts out of the backlog beside this folder until there are none, or its time is
 * over; returns what the process exits with. */
int allocation_run(const char *folder);

#endif
