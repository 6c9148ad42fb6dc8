/* What a command is known to need of a card, from its last runs: of a user, a command and a
 * number of cards. Only runs that completed say how much it was; one that ended out of
 * memory says that it was more, until a run that completed has had more than that, or enough
 * of them have done with less. Pure; rows are kept by the store, and used by the daemon. */
#ifndef CORE_LEARN_DEMANDS_H
#define CORE_LEARN_DEMANDS_H

#include <stdint.h>

#define LEARN_RUNS     32 /* the last that completed */
#define LEARN_OOM_RUNS 20 /* runs that must use less before an out of memory is forgotten */

struct learned {
    int32_t peaks_mib[LEARN_RUNS]; /* the newest last */
    int32_t n;
    int32_t oom_mib;  /* too little, as was seen; 0: nothing was */
    int32_t oom_runs; /* completed since, with less */
};

void learn_completed(struct learned *l, int32_t peak_mib);
void learn_oom(struct learned *l, int32_t mib); /* the demand, or the peak if that was more */

/* What to ask for: the 95th percentile of the peaks (nearest rank) and a tenth, rounded up;
 * more than was too little. 0: nothing is known. */
int32_t learn_demand_mib(const struct learned *l);

#endif
