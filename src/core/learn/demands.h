/* The VRAM that a command needs, learned from its last runs per user, command and number of
 * GPUs. A completed run shows how much was needed. A run that ended out of memory shows that
 * more was needed, until a completed run had more than that, or enough completed runs did with
 * less. Pure; rows are kept by the store and used by the daemon. */
#ifndef CORE_LEARN_DEMANDS_H
#define CORE_LEARN_DEMANDS_H

#include <stdint.h>

#define LEARN_RUNS     32 /* completed runs kept */
#define LEARN_OOM_RUNS 20 /* runs that must use less before an out of memory is forgotten */

struct learned {
    int32_t peaks_mib[LEARN_RUNS]; /* newest last */
    int32_t n;
    int32_t oom_mib;  /* an amount seen to be too little; 0: none */
    int32_t oom_runs; /* runs completed since then with less */
};

void learn_completed(struct learned *l, int32_t peak_mib);
void learn_oom(struct learned *l, int32_t mib); /* the demand, or the peak if higher */

/* What to request: the 95th percentile of the peaks (nearest rank) plus a tenth, rounded up,
 * and more than what was too little. 0: nothing is known. */
int32_t learn_demand_mib(const struct learned *l);

#endif
