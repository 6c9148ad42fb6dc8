/* The folder of simulated cards: `cards` describes them, `usage` says which process uses how
 * much of them. berth-probe makes it and reads it; every `berth simjob` writes its own part of
 * it, under a flock, so that together they can never use more than a card has. */
#ifndef GPU_SIM_TABLE_H
#define GPU_SIM_TABLE_H

#include <stdint.h>

#include "base/request.h"
#include "gpu/sim_faults.h"
#include "gpu/sim_spec.h"

struct err;
struct sim_table;
struct backend_sample;

#define SIM_UUID_MAX 32

/* Makes the folder if it is missing and writes the spec into it (NULL: it must be there
 * already, and keeps what it says). Processes with memory on the cards keep it. */
struct sim_table *sim_table_create(const char *dir, const char *spec, struct err *e);

/* Opens a folder that sim_table_create made. NULL with e when there is none. */
struct sim_table *sim_table_open(const char *dir, struct err *e);

void sim_table_close(struct sim_table *t); /* NULL is fine */

const struct sim_spec *sim_table_spec(const struct sim_table *t);
/* "SPEC" as text, for people. */
const char *sim_table_spec_text(const struct sim_table *t);
/* "SIM-<12 hex of the folder's SHA-1>-<index>" into out (SIM_UUID_MAX bytes). */
void sim_table_uuid(const struct sim_table *t, int card, char *out);

/* What a process asks of the cards in `cards` (bit i: card i): mib on each of them, shown
 * busy at util percent. Sets its whole share, so growing and shrinking are the same call.
 * 0, or 1 when card *full has no room for it (then nothing has changed and *free_mib is what
 * there was), or -1 with e. */
int sim_table_take(struct sim_table *t, uint64_t cards, int32_t mib, int32_t util, int *full,
                   int32_t *free_mib, struct err *e);

/* What a process takes from now on is the group's of this name: "job-7.1", or a path that ends
 * so. Another name: of none. */
void sim_table_join(struct sim_table *t, const char *name);
/* What the process can have of the card, all of it or its group's cap; after sim_table_take. */
int32_t sim_table_capacity_mib(const struct sim_table *t, int card);
/* Holds the group to so much of the card; -1: to nothing any more. */
int sim_table_cap(struct sim_table *t, int card, const char *name, int64_t mib, struct err *e);
/* What living processes of the group have of the card; -1: that cannot be read. */
int64_t sim_table_group_mib(struct sim_table *t, int card, const char *name);

/* Returns all of this process's memory and forgets the process. */
int sim_table_leave(struct sim_table *t, struct err *e);

/* Adds every living process's share to the sample. Costs one fstat when there are none. */
int sim_table_sample(struct sim_table *t, struct backend_sample *out, struct err *e);

/* What the folder's `fault` says, read now; all zero without one. */
int sim_table_faults(struct sim_table *t, struct sim_faults *out, struct err *e);

#endif
