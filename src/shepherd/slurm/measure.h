/* Measures the VRAM of attempts on a node, through berth-probe. */
#ifndef SHEPHERD_SLURM_MEASURE_H
#define SHEPHERD_SLURM_MEASURE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/request.h"
#include "wire/frame.h"

/* An attempt being measured. */
struct measured {
    pid_t root;       /* its descendants count */
    int32_t peak_mib; /* maximum on one GPU; -1: not seen */
    int64_t sum_mib;  /* sum on the GPU being examined; -1: nothing */
    struct measured *next;
};

/* A GPU by the driver's numbering. */
struct measured_gpu {
    char uuid[80];
    int32_t total_mib; /* 0: not known */
    int64_t used_mib;  /* in the first sample; -1: not known */
};

struct measure {
    int fd;      /* connection to the probe; -1: no measuring */
    pid_t probe; /* a child of this process; 0: none */
    struct frame in;
    int64_t seq, samples; /* requested, and received */
    int64_t next_us;      /* boot clock: time of the next request */
    struct measured *list;
    struct measured_gpu gpus[GPU_MAX];
    int n_gpus;
};

/* Without a GPU, or if the probe cannot be started, nothing is measured. */
void measure_begin(struct measure *m);
void measure_end(struct measure *m);
/* m keeps a pointer to x until measure_drop. */
void measure_add(struct measure *m, struct measured *x, pid_t root);
void measure_drop(struct measure *m, const struct measured *x);
void measure_read(struct measure *m); /* call when fd is readable */
/* Sends a request if one is due. Returns the milliseconds until the next; -1: never. */
int measure_ask(struct measure *m);

#endif
