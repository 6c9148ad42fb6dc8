/* How much VRAM attempts use on a node, as berth-probe says. */
#ifndef SHEPHERD_SLURM_MEASURE_H
#define SHEPHERD_SLURM_MEASURE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/request.h"
#include "wire/frame.h"

/* One that is measured. */
struct measured {
    pid_t root;       /* whose descendants count */
    int32_t peak_mib; /* the most on one GPU; -1: nothing was seen */
    int64_t sum_mib;  /* on the GPU that is being looked at; -1: nothing */
    struct measured *next;
};

/* A GPU as the driver numbers it. */
struct measured_gpu {
    char uuid[80];
    int32_t total_mib; /* 0: not known */
    int64_t used_mib;  /* in the first sample; -1: not known */
};

struct measure {
    int fd;      /* to the probe; -1: nothing is measured */
    pid_t probe; /* this process's child; 0: there is none */
    struct frame in;
    int64_t seq, samples; /* asked for, and seen */
    int64_t next_us;      /* boot clock: the next question */
    struct measured *list;
    struct measured_gpu gpus[GPU_MAX];
    int n_gpus;
};

/* Nothing is measured where the job has no GPU, or the probe cannot be started. */
void measure_begin(struct measure *m);
void measure_end(struct measure *m);
/* m keeps a pointer to it until measure_drop. */
void measure_add(struct measure *m, struct measured *x, pid_t root);
void measure_drop(struct measure *m, const struct measured *x);
void measure_read(struct measure *m); /* fd is readable */
/* Asks when it is time; the milliseconds until it is again, -1: never. */
int measure_ask(struct measure *m);

#endif
