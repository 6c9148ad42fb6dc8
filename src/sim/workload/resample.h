/* Other workloads similar to a given one, to see whether a policy's result is luck. */
#ifndef SIM_WORKLOAD_RESAMPLE_H
#define SIM_WORKLOAD_RESAMPLE_H

#include <stdint.h>

#include "sim/workload/workload.h"

#define RESAMPLE_BLOCK 40 /* consecutive jobs kept together */

/* A block bootstrap: draws blocks of consecutive jobs, with the gaps between their arrivals,
 * from base with replacement, until there are as many jobs as in base; so bursts stay bursts.
 * The first job arrives at 0, and ids are 0, 1, 2, ... base must be sorted and have no
 * requests. *out must be initialised and empty; it comes out sorted. Deterministic for a base
 * and seed. */
void workload_resample(const struct workload *base, uint32_t seed, struct workload *out);

#endif
