/* The folder of simulated GPUs: `cards` describes them, `usage` records which process uses how
 * much of them. berth-probe creates and reads it; every `berth simjob` writes its own part
 * under a flock, so that together they can never use more than a GPU has. */
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

/* Creates the folder if it is missing and writes the spec into it (NULL: the folder must
 * contain one, which stays). Processes that use memory of the GPUs keep it. */
struct sim_table *sim_table_create(const char *dir, const char *spec, struct err *e);

/* Opens a folder that sim_table_create made. NULL with e if there is none. */
struct sim_table *sim_table_open(const char *dir, struct err *e);

void sim_table_close(struct sim_table *t); /* NULL is fine */

const struct sim_spec *sim_table_spec(const struct sim_table *t);
/* The spec as text, for display. */
const char *sim_table_spec_text(const struct sim_table *t);
/* Writes "SIM-<12 hex digits of the folder's SHA-1>-<index>" to out (SIM_UUID_MAX bytes). */
void sim_table_uuid(const struct sim_table *t, int card, char *out);

/* Sets this process's use of the GPUs in `cards` (bit i: GPU i): mib on each of them, shown
 * busy at util percent. Replaces its earlier use, so growing and shrinking are the same call.
 * 0; 1 if GPU *full has no room (then nothing has changed and *free_mib is what was free); -1
 * with e. */
int sim_table_take(struct sim_table *t, uint64_t cards, int32_t mib, int32_t util, int *full,
                   int32_t *free_mib, struct err *e);

/* From now on this process's use counts for the group with this name: "job-7.1", or a path
 * that ends so. Any other name: for none. */
void sim_table_join(struct sim_table *t, const char *name);
/* What the process can use of the GPU: all of it, or its group's cap. Valid after
 * sim_table_take. */
int32_t sim_table_capacity_mib(const struct sim_table *t, int card);
/* Caps the group's use of the GPU at mib; -1: removes the cap. */
int sim_table_cap(struct sim_table *t, int card, const char *name, int64_t mib, struct err *e);
/* The use of the GPU by living processes of the group; -1: unreadable. */
int64_t sim_table_group_mib(struct sim_table *t, int card, const char *name);

/* Frees all of this process's memory and removes its records. */
int sim_table_leave(struct sim_table *t, struct err *e);

/* Adds the use by every living process to the sample. Costs one fstat if there is none. */
int sim_table_sample(struct sim_table *t, struct backend_sample *out, struct err *e);

/* Reads the folder's file `fault`; all zero if it does not exist. */
int sim_table_faults(struct sim_table *t, struct sim_faults *out, struct err *e);

#endif
