/* Recent GPU use per user. A job is charged its part of each GPU (1 for a whole one, else its
 * share, else its VRAM over the GPU's) times the seconds it held them; charges decay with the
 * half-life. Only ended attempts are stored here; the caller adds running ones (fair_part and
 * the same integral), so a crash neither loses nor adds use. */
#ifndef CORE_PLAN_FAIR_H
#define CORE_PLAN_FAIR_H

#include <stdint.h>

#include "base/request.h"

struct fair;
struct ledger;

struct fair *fair_new(int64_t half_life_ms);   /* 0: no decay */
struct fair *fair_clone(const struct fair *f); /* for a look ahead */
void fair_free(struct fair *f);                /* NULL is fine */
/* Default 1; must be above 0. A weight of 2 entitles to twice the use. */
void fair_set_weight(struct fair *f, uint32_t uid, double weight);

/* The number of GPUs that a job with this demand holds on these cards. Exclusive use counts as
 * the whole card. Without GPUs: its cores over the machine's, so that all cores together weigh
 * as much as one GPU (0 if the machine's are unknown). */
double fair_part(const struct ledger *l, const struct demand *d, const uint8_t *gpus, int n);

/* GPU-seconds, decayed to to_us, of holding `part` GPUs from from_us to to_us. */
double fair_integral(const struct fair *f, double part, int64_t from_us, int64_t to_us);

void fair_charge(struct fair *f, uint32_t uid, double part, int64_t from_us, int64_t to_us);
/* Decayed GPU-seconds of ended attempts, to be divided by fair_weight. */
double fair_usage(const struct fair *f, uint32_t uid, int64_t now_us);
double fair_weight(const struct fair *f, uint32_t uid);

/* The clock was adjusted by by_us: use keeps its age. */
void fair_shift(struct fair *f, int64_t by_us);

/* From the store: the use as of at_us. */
void fair_restore(struct fair *f, uint32_t uid, double gpu_seconds, int64_t at_us);

#endif
