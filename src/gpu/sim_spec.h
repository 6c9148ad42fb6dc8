/* What cards a simulated machine has: "2", "4x80G", "2x24G,1x80G", "4x80G+nvlink", "2+cap",
 * "4x80G+numa0,4x80G+numa1", "2+cc8.6", "1x80G+mig7".
 * Pure; read by the simulated backend, by simjob, and by commands that refuse a bad --sim
 * before they start a daemon. */
#ifndef GPU_SIM_SPEC_H
#define GPU_SIM_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"

struct err;

#define SIM_CARD_DEFAULT_MIB 24576
#define SIM_NODES_MAX        8 /* NUMA nodes of a simulated machine */

/* What MIG makes of a GPU that is divided into so many equal instances, as on an A100. */
struct sim_profile {
    int32_t instances;
    int32_t slices;  /* of the compute, in sevenths */
    int32_t eighths; /* of the memory */
};

struct sim_spec {
    int n; /* 1..GPU_MAX; instances count, and GPUs divided into such do not */
    int32_t total_mib[GPU_MAX]; /* per card */
    bool linked[GPU_MAX];       /* card i is joined with card i + 1 by NVLink */
    bool capped[GPU_MAX];       /* it holds a job to what it declared, where that is wanted */
    int32_t numa[GPU_MAX];      /* its NUMA node; -1: none is simulated */
    int32_t cc[GPU_MAX];        /* compute capability in tenths; 0: not reported */
    int32_t gpu[GPU_MAX];       /* number of the GPU that it is, or is an instance of */
    const struct sim_profile *profile[GPU_MAX]; /* of an instance; NULL: it is a whole GPU */
};

/* Groups divided by commas: COUNT or COUNTxSIZE, each with "+nvlink" behind it where the
 * group's cards are joined two by two, "+cap" where they can cap jobs, "+numaN" for cards of
 * node N, "+ccN" for those of a compute capability, "+migN" for N instances in the place of
 * each. 0, or -1 (ERR_USAGE) with e. */
int sim_spec_parse(const char *text, struct sim_spec *out, struct err *e);

#endif
