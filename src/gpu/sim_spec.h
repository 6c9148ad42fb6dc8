/* The GPUs of a simulated machine: "2", "4x80G", "2x24G,1x80G", "4x80G+nvlink", "2+cap",
 * "4x80G+numa0,4x80G+numa1", "2+cc8.6", "1x80G+mig7".
 * Pure; used by the simulated backend, by simjob, and by commands that reject a bad --sim
 * before they start a daemon. */
#ifndef GPU_SIM_SPEC_H
#define GPU_SIM_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"

struct err;

#define SIM_CARD_DEFAULT_MIB 24576
#define SIM_NODES_MAX        8 /* NUMA nodes of a simulated machine */

/* The MIG profile of a GPU that is divided into n equal instances, as on an A100. */
struct sim_profile {
    int32_t instances;
    int32_t slices;  /* compute, in sevenths */
    int32_t eighths; /* memory, in eighths */
};

struct sim_spec {
    int n; /* 1..GPU_MAX; counts instances, but not the GPUs divided into them */
    int32_t total_mib[GPU_MAX]; /* per GPU or instance */
    bool linked[GPU_MAX];       /* GPU i is joined with GPU i + 1 by NVLink */
    bool capped[GPU_MAX];       /* it can cap jobs at their declared VRAM */
    int32_t numa[GPU_MAX];      /* its NUMA node; -1: not simulated */
    int32_t cc[GPU_MAX];        /* compute capability in tenths; 0: not reported */
    int32_t gpu[GPU_MAX];       /* number of the GPU, or of the one it is an instance of */
    const struct sim_profile *profile[GPU_MAX]; /* of an instance; NULL: a whole GPU */
};

/* Groups separated by commas: COUNT or COUNTxSIZE, followed by any of "+nvlink" (the group's
 * GPUs are joined in pairs), "+cap" (they can cap jobs), "+numaN" (they are on node N), "+ccN"
 * (compute capability) and "+migN" (each is replaced by N instances). 0, or -1 (ERR_USAGE)
 * with e. */
int sim_spec_parse(const char *text, struct sim_spec *out, struct err *e);

#endif
