/* Translates a request into options of sbatch, and notes what Slurm cannot do. One table in
 * sbatch_options.c has a row for each attribute (spec/attr.h). Pure; spec/sbatch.c is the
 * other direction. */
#ifndef SLURM_SBATCH_OPTIONS_H
#define SLURM_SBATCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"

struct buf;

/* What the options depend on besides the job. All zero: an unknown cluster. */
struct sbatch_site {
    int32_t shard_mib;            /* VRAM per shard; 0: do not use shards */
    int32_t gpu_mib;              /* memory of the smallest GPU; 0: unknown */
    const char *const *gpu_types; /* from gres.conf, NULL-terminated; NULL: unknown */
    const int32_t *type_mib;      /* memory of each of these types; NULL: unknown */
    int32_t top_priority;         /* becomes --nice=0; only lower ones can be expressed */
    int32_t array_size_max;       /* MaxArraySize; 0: unknown */
    int64_t kill_wait_ms;         /* KillWait; 0: equal to Berth's standard grace */
    const char *partition, *account, *qos; /* NULL: the user's default */
    const char *preempt_qos;               /* for preemptible jobs; NULL: none */
    const char *comment;                   /* replaces the job's comment; or NULL */
};

struct sbatch_options {
    char **options; /* one argument each, such as "--gres=gpu:2"; NULL-terminated */
    char **notes; /* lost features, "max-load: ..."; same text for same loss; NULL-terminated */
    int n_options, n_notes;
};

/* Translates everything but the command, its environment (env, env-setup, conda) and the
 * dependencies, for which there is sbatch_add_dependency. Release with sbatch_options_free. */
void sbatch_options_of(const struct request *r, const struct sbatch_site *site,
                       struct sbatch_options *out);
void sbatch_options_free(struct sbatch_options *o);
/* True if the table has a row for the attribute with this user-visible name. */
bool sbatch_options_know(const char *attr);

/* Appends Slurm's id of the job (and task) that dep names; false: unknown to Slurm. */
typedef bool (*sbatch_add_id)(void *context, const struct dep *dep, struct buf *out);

/* Appends the value of --dependency, such as "afterok:12:13,afternotok:14"; nothing if no job
 * is known. Returns the number of unknown jobs. If a condition can no longer hold, Slurm
 * leaves the job pending; --kill-on-invalid-dep=yes cancels it, as Berth does. */
int sbatch_add_dependency(const struct request *r, sbatch_add_id add_id, void *context,
                          struct buf *out);

/* Appends the argument quoted for a #SBATCH line. It must not contain a line break. */
void sbatch_add_quoted(const char *argument, struct buf *out);

#endif
