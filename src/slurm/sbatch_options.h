/* A request as options of sbatch, and what of it Slurm cannot do. One table in sbatch_options.c
 * has a row for each attribute (spec/attr.h). Pure; spec/sbatch.c is the other direction. */
#ifndef SLURM_SBATCH_OPTIONS_H
#define SLURM_SBATCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"

struct buf;

/* What the options depend on besides the job. All zero: a cluster of which nothing is known. */
struct sbatch_site {
    int32_t shard_mib;            /* VRAM that one shard stands for; 0: do not use shards */
    int32_t gpu_mib;              /* memory of the smallest GPU; 0: not known */
    const char *const *gpu_types; /* of gres.conf, up to NULL; NULL: not known */
    const int32_t *type_mib;      /* the memory of each of these types; NULL: not known */
    int32_t top_priority;         /* becomes --nice=0; only lower ones can be expressed */
    int32_t array_size_max;       /* MaxArraySize; 0: not known */
    int64_t kill_wait_ms;         /* KillWait; 0: as Berth's standard grace */
    const char *partition, *account, *qos; /* NULL: the user's default */
    const char *preempt_qos;               /* of preemptible jobs; NULL: there is none */
    const char *comment;                   /* in the place of the job's; NULL */
};

struct sbatch_options {
    char **options; /* "--gres=gpu:2", each one argument, up to NULL */
    char **notes; /* "max-load: ...": what is lost, equal texts for equal losses, up to NULL */
    int n_options, n_notes;
};

/* Everything but the command, its environment (env, env-setup, conda) and the dependencies,
 * which sbatch_add_dependency has. sbatch_options_free when done. */
void sbatch_options_of(const struct request *r, const struct sbatch_site *site,
                       struct sbatch_options *out);
void sbatch_options_free(struct sbatch_options *o);
/* Whether the table has a row for it, by the name that people use. */
bool sbatch_options_know(const char *attr);

/* Appends what Slurm calls the job (and task) that dep names; false: Slurm does not know it. */
typedef bool (*sbatch_add_id)(void *context, const struct dep *dep, struct buf *out);

/* Appends "afterok:12:13,afternotok:14", the value of --dependency; nothing when no job is
 * known. Returns how many are not. Slurm leaves a job pending whose condition can no longer
 * hold, unless --kill-on-invalid-dep=yes says that it is cancelled, as Berth does. */
int sbatch_add_dependency(const struct request *r, sbatch_add_id add_id, void *context,
                          struct buf *out);

/* Appends the argument as a #SBATCH line must have it. It must not contain a line break. */
void sbatch_add_quoted(const char *argument, struct buf *out);

#endif
