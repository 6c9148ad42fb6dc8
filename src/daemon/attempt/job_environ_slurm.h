/* Slurm's variables, for jobs written for Slurm; see job_environ_slurm.c. */
#ifndef DAEMON_ATTEMPT_JOB_ENVIRON_SLURM_H
#define DAEMON_ATTEMPT_JOB_ENVIRON_SLURM_H

struct buf;
struct instance;
struct job;

/* Appends SLURM_* to ours ("K=V", each terminated by a NUL) if the job is to have them.
 * theirs: the submitter's environment, which has values that only the client knows. */
void environ_add_slurm(const struct instance *inst, const struct job *job,
                       const struct buf *theirs, struct buf *ours);

/* Appends a variable of the captured environment to out, unless it is another job's Slurm
 * variable: one set by Berth for the job from which this one was submitted, or any at all if
 * this job gets its own. Variables that a real Slurm set around other jobs are kept. The
 * folder of our srun is removed from PATH. */
void environ_add_captured(const struct job *job, const struct buf *captured, const char *var,
                          struct buf *out);

#endif
