/* Slurm's variables for jobs that were written for it; see job_environ_slurm.c. */
#ifndef DAEMON_ATTEMPT_JOB_ENVIRON_SLURM_H
#define DAEMON_ATTEMPT_JOB_ENVIRON_SLURM_H

struct buf;
struct instance;
struct job;

/* Appends SLURM_* to ours ("K=V", each with a NUL), if the job is to have them. theirs is the
 * submitter's environment, which says what only the client knows. */
void environ_add_slurm(const struct instance *inst, const struct job *job,
                       const struct buf *theirs, struct buf *ours);

/* Appends a variable of the captured environment to out, unless it is Slurm's of another job:
 * one of ours, from within which this one was submitted, or any if this one has its own. What
 * a real Slurm had set around other jobs stays. PATH loses the folder of our srun. */
void environ_add_captured(const struct job *job, const struct buf *captured, const char *var,
                          struct buf *out);

#endif
