/* --json of squeue, sacct and sinfo, in the form of Slurm's OpenAPI v0.0.38 (22.05). */
#ifndef COMPAT_SLURM_SLURM_JSON_H
#define COMPAT_SLURM_SLURM_JSON_H

#include <jansson.h>
#include <stdbool.h>

struct slurm_job;
struct slurm_jobs;

/* {"meta":..,"errors":[],name:list} to standard output; takes list over. The exit status. */
int slurm_put_json(const char *name, json_t *list);
/* squeue --json. The exit status. */
int slurm_put_jobs(const struct slurm_jobs *jobs);
/* sacct --json, with the steps of the jobs of which has_step says so. The exit status. */
int slurm_put_accounts(const struct slurm_jobs *jobs,
                       bool (*has_step)(const struct slurm_job *job, const void *arg),
                       const void *arg);

#endif
