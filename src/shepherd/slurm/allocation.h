/* The batch script of a Slurm job that is an allocation for packed jobs. */
#ifndef SHEPHERD_SLURM_ALLOCATION_H
#define SHEPHERD_SLURM_ALLOCATION_H

#define ALLOCATION_OPTION "--slurm-allocation"

/* Runs attempts from the backlog beside this folder until there are none or the allocation's
 * time is over. Returns the exit status. */
int allocation_run(const char *folder);

#endif
