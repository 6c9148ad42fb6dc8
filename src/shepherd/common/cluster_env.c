/* The environment of a command on a node: see cluster_env.h. Which GPUs it may use only Slurm
 * knows. Frameworks take most SLURM_* variables for a sign that srun started them, so a job
 * gets those only where it asked for them. Called by attempt_spec.c. */
#include "shepherd/common/cluster_env.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"

static const char *const always[] = {
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",     "GPU_DEVICE_ORDINAL",     "SLURM_JOB_ID",
    "SLURM_JOB_GPUS",       "SLURM_ARRAY_JOB_ID",     "SLURM_CLUSTER_NAME",
    "SLURM_CONF",           "SLURMD_NODENAME",        NULL};
/* Of the submitting machine, where they mean nothing here. */
static const char *const ours[] = {"CUDA_VISIBLE_DEVICES",
                                   "NVIDIA_VISIBLE_DEVICES",
                                   "ROCR_VISIBLE_DEVICES",
                                   "BERTH_GPUS",
                                   "BERTH_GPU_UUIDS",
                                   "BERTH_SOCKET",
                                   NULL};

static bool
is_among(const char *var, const char *const *names)
{
    size_t n = strcspn(var, "=");
    for (; *names; names++)
        if (strlen(*names) == n && strncmp(var, *names, n) == 0)
            return true;
    return false;
}

static bool
is_of_slurm(const char *var, bool all)
{
    return is_among(var, always) || (all && strncmp(var, "SLURM_", 6) == 0);
}

char **
cluster_env(char *const *env, bool all)
{
    char **out = xcalloc(text_list_len(env) + text_list_len(environ) + 1, sizeof *out);
    size_t n = 0;
    for (; *env; env++)
        if (!is_among(*env, ours) && !is_of_slurm(*env, all))
            out[n++] = *env;
    for (char **e = environ; *e; e++)
        if (is_of_slurm(*e, all))
            out[n++] = *e;
    return out;
}
