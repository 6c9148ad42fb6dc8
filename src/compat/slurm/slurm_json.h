/* --json of squeue, sacct and sinfo, in the schema of Slurm's OpenAPI v0.0.38 (22.05). */
#ifndef COMPAT_SLURM_SLURM_JSON_H
#define COMPAT_SLURM_SLURM_JSON_H

#include <jansson.h>
#include <stdbool.h>

struct slurm_job;
struct slurm_jobs;

/* Print {"meta":..,"errors":[],name:list}; takes over list. Returns the exit status. */
int slurm_put_json(const char *name, json_t *list);
/* Print squeue --json. Returns the exit status. */
int slurm_put_jobs(const struct slurm_jobs *jobs);
/* Print sacct --json, with steps for jobs where has_step returns true. Returns the exit
 * status. */
int slurm_put_accounts(const struct slurm_jobs *jobs,
                       bool (*has_step)(const struct slurm_job *job, const void *arg),
                       const void *arg);

#endif
