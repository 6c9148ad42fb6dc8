/* Files that describe a workload. Each reader takes the whole text, which it may write to
 * (a NUL stands behind it), and appends to *w; an error names FILE:LINE:COLUMN. */
#ifndef SIM_WORKLOAD_READ_H
#define SIM_WORKLOAD_READ_H

#include <stddef.h>
#include <stdint.h>

#include "sim/workload/workload.h"

struct buf;
struct err;
struct when_clock;

/* What a reader left out or changed, for words to the user. */
struct read_notes {
    size_t skipped; /* records that describe no run */
    size_t capped;  /* jobs that asked for more than the machine has */
};

/* The CSV of Berth's workloads: a header names the columns, in any order. arrival_s and
 * duration_s are needed; job_id, est_s, gpus and vram_mib are the line's number, duration_s,
 * 1 and a whole GPU where there is no such column; user, a word, tells users apart; others
 * are passed over. */
int read_csv(const char *file, char *text, size_t len, struct workload *w, struct err *e);

/* The Standard Workload Format (Feitelson): processors are taken for GPUs, memory per
 * processor for VRAM; what is more than the machine has is cut to it. Records without a run
 * time or processors are passed over. */
int read_swf(const char *file, char *text, size_t len, const struct machine *m,
             struct workload *w, struct read_notes *notes, struct err *e);

/* How long lines of a jobs file run. */
struct run_times {
    /* Seconds that a line ran before, 0 if it did not; NULL: nothing is known of any. */
    int64_t (*before)(const void *arg, const struct request *r);
    const void *arg;
    const struct when_clock *clock; /* for begin=16:00; NULL: none */
    int64_t otherwise_s; /* a line without a past and without a time limit; 0: an error */
};

/* A jobs file: all its lines at time 0, higher priorities first. A line runs as it did before,
 * at most for its time limit, else for that. */
int read_jobs(const char *file, const char *text, size_t len, const struct machine *m,
              const struct run_times *times, struct workload *w, struct read_notes *notes,
              struct err *e);

#endif
