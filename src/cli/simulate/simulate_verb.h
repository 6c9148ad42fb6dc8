/* What `berth simulate` was asked and what came out, between its options (simulate_verb.c),
 * its file (simulate_read.c) and its words (simulate_report.c). */
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

/* What the command line asks for. Strings are borrowed from it. */
struct simulation {
    const char *file;
    const char *gpus;
    enum format format; /* NONE: by name */
    struct engine policies[POLICIES_MAX];
    int n_policies;
    bool compare;
    int64_t draws; /* 0: the file as it is */
    int64_t seed;  /* of the first draw; 0: not said */
    bool one_user;
    bool batch;
    double scale;
    int64_t duration_s;   /* 0: not said */
    int64_t aging_ms;     /* 0: none */
    int64_t reservations; /* -1: as suits each policy */
    int64_t horizon_ms;   /* of promises; 0: any; -1: as suits each policy */
    bool history;         /* lines of a jobs file run as the daemon remembers them */
    const char *dump;     /* NULL: no */
    const char *svg;
    struct machine machine;
    struct workload workload; /* owned */
    int64_t bound;
};

/* What one policy made of it. */
struct trial {
    const struct engine *policy;
    struct metrics metrics;
    uint64_t events;
    int64_t elapsed_us;
};

/* How many starts this policy promises at a time. */
int32_t simulate_reservations(const struct simulation *sim, const struct engine *p);
/* How near a start is when this policy promises it; 0: any. */
int64_t simulate_horizon_ms(const struct simulation *sim, const struct engine *p);

/* The file as a workload, sorted and checked against the machine, with words on standard error
 * about what was left out. The workload is empty before. */
int simulate_read(const struct cli *cli, struct simulation *sim, struct err *e);

/* Replaces the file. */
int simulate_write_file(const char *path, const struct buf *b, struct err *e);

/* Appends a line that counts the jobs without figures; nothing if there are none. `who` names
 * the policy. */
void simulate_add_never_ran(struct buf *out, const char *who, size_t never_ran, size_t jobs);

/* To standard output; the exit status. One trial for each policy. */
int simulate_print_table(const struct simulation *sim, const struct trial *trials);
int simulate_print_json(const struct simulation *sim, const struct trial *trials);

#endif
