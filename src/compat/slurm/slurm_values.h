/* Values of a job in Slurm's form, shared by squeue, sacct and scontrol. The add functions
 * append to out. Pure. */
#ifndef COMPAT_SLURM_SLURM_VALUES_H
#define COMPAT_SLURM_SLURM_VALUES_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct slurm_job;

/* "12", "12_3", "12_[4-9%2]". */
void slurm_add_job_id(struct buf *out, const struct slurm_job *job);
/* Why a job is pending, such as "JobHeldUser", or why it failed; else "None". */
const char *slurm_reason(const struct slurm_job *job);
/* The exit code and the signal of "3:0", "0:9". */
void slurm_exit(const struct slurm_job *job, int *code, int *signal);
/* Exit for accounting: 0:0 for a job that did not end by itself. */
void slurm_account_exit(const struct slurm_job *job, int *code, int *signal);
int slurm_cpus(const struct slurm_job *job);
int64_t slurm_cpu_number(const struct slurm_job *job); /* for a column */
int64_t slurm_mem_mib(const struct slurm_job *job);
/* "4G"; "0" if none was requested. */
void slurm_add_memory(struct buf *out, const struct slurm_job *job);
int slurm_gpus(const struct slurm_job *job); /* in use, or requested */
/* "cpu=1,mem=4G,node=1,billing=1,gres/gpu=1". */
void slurm_add_tres(struct buf *out, const struct slurm_job *job);
/* "gres:gpu:2", "gres:gpu:a100:2"; empty without GPUs. */
void slurm_add_gres(struct buf *out, const struct slurm_job *job);
/* "afterok:12(unfulfilled),afterany:13_2(unfulfilled)"; empty without dependencies. */
void slurm_add_dependency(struct buf *out, const struct slurm_job *job);
/* Number of restarts. */
int64_t slurm_restarts(const struct slurm_job *job);
/* File of the standard error. */
const char *slurm_error_file(const struct slurm_job *job);
/* Time from which the job could start; 0: held, or waiting for a dependency. */
int64_t slurm_eligible_us(const struct slurm_job *job);
/* End time, or time at which the limit ends the job; 0: unknown. */
int64_t slurm_end_us(const struct slurm_job *job);
/* Start time, or expected start; 0: unknown. */
int64_t slurm_start_us(const struct slurm_job *job);
/* True if the job's user is in the list of names or numbers. */
bool slurm_is_of(const struct slurm_job *job, const char *users);
int64_t slurm_uid(const struct slurm_job *job);
int64_t slurm_gid(const struct slurm_job *job); /* group of its user; 0: unknown */
/* Name of that group; "": unknown. */
const char *slurm_group(const struct slurm_job *job);
/* What was submitted: the original script and its arguments, not the copy that runs; "": no
 * script (--wrap, salloc). */
const char *slurm_command(const struct slurm_job *job);
const char *slurm_name(const struct slurm_job *job);
int slurm_nice(const struct slurm_job *job);
/* Berth's priority on Slurm's scale, where Berth's 0 is in the middle. */
int64_t slurm_priority(const struct slurm_job *job);
bool slurm_is_waiting(const struct slurm_job *job);

#endif
