/* How long it takes until a demand fits, if those that run leave as expected and no new job
 * comes. An estimate for balance.c: each card by itself, by memory, share and neighbours. The
 * reservation that a job gets is plan.c's. */
#ifndef CORE_PLAN_DRAIN_H
#define CORE_PLAN_DRAIN_H

#include <stdint.h>

#include "base/request.h"

struct drain;
struct ledger;

#define DRAIN_NEVER INT64_MAX

struct drain *drain_new(void);
void drain_free(struct drain *d); /* NULL is fine */

/* The ledger as it stands, borrowed until the next drain_begin; then what is expected of each
 * job that holds something in it, in seconds from now; then drain_sort. A holder without an
 * expected end stays. */
void drain_begin(struct drain *d, const struct ledger *l);
void drain_expect(struct drain *d, uint32_t job, int64_t leaves_s);
void drain_sort(struct drain *d);

/* Seconds, at least 1 when it does not fit now; DRAIN_NEVER: our own jobs' ends do not do. */
int64_t drain_time(const struct drain *d, const struct demand *want);

#endif
