/* Options and results of `berth simulate`, shared by simulate_verb.c (options),
 * simulate_read.c (file) and simulate_report.c (output). */
#ifndef CLI_SIMULATE_SIMULATE_VERB_H
#define CLI_SIMULATE_SIMULATE_VERB_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/engine.h"
#include "sim/schedule_figures.h"
#include "sim/workload/workload.h"

#define POLICIES_MAX 64

struct buf;
struct cli;
struct err;

enum format { FORMAT_CSV, FORMAT_SWF, FORMAT_JOBS, FORMAT_NONE };

/* The command line; strings are borrowed from it. */
struct simulation {
    const char *file;
    const char *gpus;
    enum format format; /* NONE: by the file's name */
    struct engine policies[POLICIES_MAX];
    int n_policies;
    bool compare;
    int64_t draws; /* 0: the file unchanged */
    int64_t seed;  /* of the first draw; 0: not given */
    bool one_user;
    bool batch;
    double scale;
    int64_t duration_s;   /* 0: not given */
    int64_t aging_ms;     /* 0: none */
    int64_t reservations; /* -1: each policy's default */
    int64_t horizon_ms;   /* of promises; 0: any; -1: each policy's default */
    bool history;         /* durations of a jobs file come from the daemon's history */
    const char *dump;     /* NULL: none */
    const char *svg;
    struct machine machine;
    struct workload workload; /* owned */
    int64_t bound;
};

/* The result of one policy. */
struct trial {
    const struct engine *policy;
    struct metrics metrics;
    uint64_t events;
    int64_t elapsed_us;
};

/* Number of starts that this policy promises at a time. */
int32_t simulate_reservations(const struct simulation *sim, const struct engine *p);
/* How near a start must be for this policy to promise it; 0: any. */
int64_t simulate_horizon_ms(const struct simulation *sim, const struct engine *p);

/* Reads the file as a workload, sorted and checked against the machine, and prints to standard
 * error what was omitted. The workload must be empty before. */
int simulate_read(const struct cli *cli, struct simulation *sim, struct err *e);

/* Writes the file, replacing its content. */
int simulate_write_file(const char *path, const struct buf *b, struct err *e);

/* Appends a line with the number of jobs without figures; nothing if there are none. `who`
 * names the policy. */
void simulate_add_never_ran(struct buf *out, const char *who, size_t never_ran, size_t jobs);

/* Print to standard output, one trial per policy; return the exit status. */
int simulate_print_table(const struct simulation *sim, const struct trial *trials);
int simulate_print_json(const struct simulation *sim, const struct trial *trials);

#endif
