/* Readers of workload files. Each gets the whole text, which it may modify (it must end with a
 * NUL), and appends to *w; errors name FILE:LINE:COLUMN. */
#ifndef SIM_WORKLOAD_READ_H
#define SIM_WORKLOAD_READ_H

#include <stddef.h>
#include <stdint.h>

#include "sim/workload/workload.h"

struct buf;
struct err;
struct when_clock;

/* What a reader left out or changed, to be reported to the user. */
struct read_notes {
    size_t skipped; /* records that do not describe a run */
    size_t capped;  /* jobs that requested more than the machine has */
};

/* The CSV of Berth's workloads: a header names the columns, in any order. arrival_s and
 * duration_s are required. Without their column, job_id, est_s, gpus and vram_mib default to
 * the line number, duration_s, 1 and a whole GPU; user is a word that distinguishes users.
 * Other columns are ignored. */
int read_csv(const char *file, char *text, size_t len, struct workload *w, struct err *e);

/* The Standard Workload Format (Feitelson): processors count as GPUs, memory per processor as
 * VRAM; requests larger than the machine are clamped to it. Records without a run time or
 * processors are skipped. */
int read_swf(const char *file, char *text, size_t len, const struct machine *m,
             struct workload *w, struct read_notes *notes, struct err *e);

/* Run times for the lines of a jobs file. */
struct run_times {
    /* Seconds that a line ran before, 0 if it did not; NULL: unknown for all. */
    int64_t (*before)(const void *arg, const struct request *r);
    const void *arg;
    const struct when_clock *clock; /* for begin=16:00; NULL: not supported */
    int64_t otherwise_s; /* for lines that never ran and have no time limit; 0: an error */
};

/* A jobs file: all its lines arrive at time 0, higher priorities first. A line runs as long as
 * it did before, at most its time limit; if it never ran, for its time limit. */
int read_jobs(const char *file, const char *text, size_t len, const struct machine *m,
              const struct run_times *times, struct workload *w, struct read_notes *notes,
              struct err *e);

#endif
