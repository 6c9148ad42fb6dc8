/* Writes the spec: what an attempt's supervisor is to do. */
#ifndef DAEMON_ATTEMPT_LAUNCH_SPEC_H
#define DAEMON_ATTEMPT_LAUNCH_SPEC_H

struct attempts;
struct err;
struct job;

/* Opens the attempt's folder and its lock, and writes the spec into the lock file. The lock is
 * held from then on, except in a folder that Slurm nodes share. The caller closes both
 * descriptors, also on failure (-1: not opened). */
int spec_fill_folder(struct attempts *a, const struct job *job, int *dir, int *lock,
                     struct err *e);

#endif
