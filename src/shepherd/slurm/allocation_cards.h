/* The GPUs of an allocation, and what attempts hold of them. */
#ifndef SHEPHERD_SLURM_ALLOCATION_CARDS_H
#define SHEPHERD_SLURM_ALLOCATION_CARDS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/place/place.h"

struct buf;
struct demand;
struct err;
struct ledger;
struct measure;

struct allocation_cards {
    struct ledger *ledger;
    int n;
    int32_t mib[GPU_MAX]; /* 0: not known, so it is not shared */
};

/* Finds the GPUs that Slurm named in our environment. -1: their number is not the one
 * requested. gpu_mib: size of each GPU for which the probe reported none to m; 0: not
 * known. */
int allocation_cards_find(struct allocation_cards *c, int wanted, int32_t gpu_mib,
                          const struct measure *m, struct err *e);
void allocation_cards_free(struct allocation_cards *c);

/* Finds room; false: there is none. held: what the attempt will hold, which is the whole GPU
 * if its size is not known. */
bool allocation_cards_place(const struct allocation_cards *c, const struct demand *wanted,
                            struct demand *held, struct placement *out);
/* True if there would be room with nothing running. */
bool allocation_cards_could(const struct allocation_cards *c, const struct demand *wanted);

/* "CUDA_VISIBLE_DEVICES=0,3" and the like for an attempt on these GPUs; free with
 * allocation_vars_free. */
char **allocation_cards_vars(const struct placement *p);
void allocation_vars_free(char **vars);

#endif
