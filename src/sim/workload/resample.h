/* Other workloads like a given one, to see whether what a policy does for the one is luck. */
#ifndef SIM_WORKLOAD_RESAMPLE_H
#define SIM_WORKLOAD_RESAMPLE_H

#include <stdint.h>

#include "sim/workload/workload.h"

#define RESAMPLE_BLOCK 40 /* jobs that stay together */

/* A block bootstrap: blocks of consecutive jobs, with the gaps between their arrivals, are
 * drawn from base with replacement until there are as many jobs as in base, so bursts stay
 * bursts. The first arrives at 0, and ids are 0, 1, 2, ... base is sorted and has no requests
 * of its own. *out is initialised and empty; it comes sorted. The same base and seed always
 * give the same. */
void workload_resample(const struct workload *base, uint32_t seed, struct workload *out);

#endif
