/* Slurm's variables for jobs that were written for it; see environ_slurm.c. */
#ifndef DAEMON_ENVIRON_SLURM_H
#define DAEMON_ENVIRON_SLURM_H

#include <stdbool.h>

struct buf;
struct daemon;
struct job;

/* Appends SLURM_* to ours ("K=V", each with a NUL), if the job is to have them. theirs is the
 * submitter's environment, which says what only the client knows. */
void environ_add_slurm(const struct daemon *d, const struct job *job, const struct buf *theirs,
                       struct buf *ours);

/* Whether a variable of theirs was Slurm's of another job: one of ours, from within which this
 * one was submitted. What a real Slurm had set there stays. */
bool environ_was_slurm(const struct job *job, const struct buf *theirs, const char *var);

#endif
