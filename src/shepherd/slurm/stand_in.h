/* The batch script of a Slurm job that is one of our attempts: the daemon's stand-in on a
 * cluster's node. */
#ifndef SHEPHERD_SLURM_STAND_IN_H
#define SHEPHERD_SLURM_STAND_IN_H

#include <stdbool.h>

struct err;

#define SLURM_OPTION "--slurm"

/* Exit statuses if the command did not run. 72: the spec is unreadable, or the mark cannot be
 * made; 75: another Slurm job has this attempt. */
#define SLURM_UNREADABLE 72
#define SLURM_TAKEN      75

/* Runs the attempt in this folder. Returns the exit status. */
int slurm_run(const char *folder);

/* Makes TERM and ends of children readable from the returned descriptor; -1 if that fails. */
int stand_in_signals(struct err *e);
/* Reads it; true if there was a TERM. */
bool stand_in_was_told(int sig_fd);

#endif
