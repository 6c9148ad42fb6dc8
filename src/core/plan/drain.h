/* How long until a demand fits, if running jobs leave as expected and no new job comes. An
 * estimate for balance.c: considers each GPU by itself, by memory, share and neighbours. The
 * actual reservation is made by plan.c. */
#ifndef CORE_PLAN_DRAIN_H
#define CORE_PLAN_DRAIN_H

#include <stdint.h>

#include "base/request.h"

struct drain;
struct ledger;

#define DRAIN_NEVER INT64_MAX

struct drain *drain_new(void);
void drain_free(struct drain *d); /* NULL is fine */

/* Begin with the ledger, which is borrowed until the next drain_begin; then report in how many
 * seconds from now each job that holds resources is expected to leave; then sort. A job that
 * is not reported never leaves. */
void drain_begin(struct drain *d, const struct ledger *l);
void drain_expect(struct drain *d, uint32_t job, int64_t leaves_s);
void drain_sort(struct drain *d);

/* Seconds, at least 1 if the demand does not fit now; DRAIN_NEVER: the ends of our own jobs do
 * not make room. */
int64_t drain_time(const struct drain *d, const struct demand *want);

#endif
