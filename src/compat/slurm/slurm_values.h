/* What Slurm's commands say of a job, piece by piece: shared by squeue, sacct and scontrol.
 * Each appends. Pure. */
#ifndef COMPAT_SLURM_SLURM_VALUES_H
#define COMPAT_SLURM_SLURM_VALUES_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct slurm_job;

/* "12", "12_3", "12_[4-9%2]". */
void slurm_add_job_id(struct buf *out, const struct slurm_job *job);
/* "JobHeldUser" while it waits, what ended it when that was no success; "None". */
const char *slurm_reason(const struct slurm_job *job);
/* The exit code and the signal of "3:0", "0:9". */
void slurm_exit(const struct slurm_job *job, int *code, int *signal);
/* As scripts for accounting see it: an end by somebody else's hand is 0:0. */
void slurm_account_exit(const struct slurm_job *job, int *code, int *signal);
int slurm_cpus(const struct slurm_job *job);
int64_t slurm_cpu_number(const struct slurm_job *job); /* the same, for a column */
int64_t slurm_mem_mib(const struct slurm_job *job);
/* "4G"; "0" where it asks for none. */
void slurm_add_memory(struct buf *out, const struct slurm_job *job);
int slurm_gpus(const struct slurm_job *job); /* that it has, or asks for */
/* "cpu=1,mem=4G,node=1,billing=1,gres/gpu=1". */
void slurm_add_tres(struct buf *out, const struct slurm_job *job);
/* "gres:gpu:2", "gres:gpu:a100:2"; nothing: no GPUs. */
void slurm_add_gres(struct buf *out, const struct slurm_job *job);
/* "afterok:12(unfulfilled),afterany:13_2(unfulfilled)"; nothing: none. */
void slurm_add_dependency(struct buf *out, const struct slurm_job *job);
/* How often it was run again. */
int64_t slurm_restarts(const struct slurm_job *job);
/* Where its standard error goes. */
const char *slurm_error_file(const struct slurm_job *job);
/* Since when it could start; 0: it is held, or waits for others. */
int64_t slurm_eligible_us(const struct slurm_job *job);
/* When its limit ends it, or when it ended; 0: nothing says so. */
int64_t slurm_end_us(const struct slurm_job *job);
/* When it started, or is expected to; 0: nothing says so. */
int64_t slurm_start_us(const struct slurm_job *job);
/* Whether it is of one of these users, by name or number. */
bool slurm_is_of(const struct slurm_job *job, const char *users);
int64_t slurm_uid(const struct slurm_job *job);
int64_t slurm_gid(const struct slurm_job *job); /* of its user's group; 0: not known */
/* That group's name, "" where none has that number. */
const char *slurm_group(const struct slurm_job *job);
/* What was submitted: a script and its arguments, not the copy of it that runs; "": nothing has
 * a name (--wrap, salloc). */
const char *slurm_command(const struct slurm_job *job);
const char *slurm_name(const struct slurm_job *job);
int slurm_nice(const struct slurm_job *job);
/* Slurm's priority of a job with Berth's: 0 is in the middle of Slurm's numbers. */
int64_t slurm_priority(const struct slurm_job *job);
bool slurm_is_waiting(const struct slurm_job *job);

#endif
