/* The batch script of a Slurm job that is an attempt of ours: the daemon's stand-in on a
 * cluster's node. */
#ifndef SHEPHERD_SLURM_STAND_IN_H
#define SHEPHERD_SLURM_STAND_IN_H

#include <stdbool.h>

struct err;

#define SLURM_OPTION "--slurm"

/* Exit statuses where the command did not run: 72, what is to run cannot be read, or its
 * mark cannot be made; 75, another Slurm job has this attempt. */
#define SLURM_UNREADABLE 72
#define SLURM_TAKEN      75

/* Runs the attempt in this folder; returns what the process exits with. */
int slurm_run(const char *folder);

/* From now on TERM and ends of children are read from the descriptor that this returns;
 * -1 where that cannot be had. */
int stand_in_signals(struct err *e);
/* Reads it: whether there was a TERM. */
bool stand_in_was_told(int sig_fd);

#endif
