/* Recent GPU use by user. A job is charged its part of each card (1 for a whole one, else its
 * share, else its VRAM over the card's) times the seconds it held them; what was charged
 * halves with every half-life. Only ended attempts are kept here; the caller adds what is
 * running (fair_part and the same integral), so a crash loses nothing and adds nothing. */
#ifndef CORE_PLAN_FAIR_H
#define CORE_PLAN_FAIR_H

#include <stdint.h>

#include "base/request.h"

struct fair;
struct ledger;

struct fair *fair_new(int64_t half_life_ms);   /* 0: nothing is ever forgotten */
struct fair *fair_clone(const struct fair *f); /* for a look ahead */
void fair_free(struct fair *f);                /* NULL is fine */
/* A weight of 2 entitles to twice the use. Default 1; must be above 0. */
void fair_set_weight(struct fair *f, uint32_t uid, double weight);

/* Cards' worth that a job with this demand holds on these cards. Alone on a card counts as a
 * whole one. Without cards: its cores over the machine's (0 where those are not known), so all
 * cores weigh as much as one card. */
double fair_part(const struct ledger *l, const struct demand *d, const uint8_t *gpus, int n);

/* GPU-seconds, as of to_us, of holding part cards from from_us to to_us. */
double fair_integral(const struct fair *f, double part, int64_t from_us, int64_t to_us);

void fair_charge(struct fair *f, uint32_t uid, double part, int64_t from_us, int64_t to_us);
/* Decayed GPU-seconds of ended attempts. fair_weight divides them. */
double fair_usage(const struct fair *f, uint32_t uid, int64_t now_us);
double fair_weight(const struct fair *f, uint32_t uid);

/* The clock has been set by so much: what was used is as old as it was. */
void fair_shift(struct fair *f, int64_t by_us);

/* As the store keeps it: the usage as it stood at at_us. */
void fair_restore(struct fair *f, uint32_t uid, double gpu_seconds, int64_t at_us);

#endif
