/* The lines of the files through which the daemon and its allocations communicate
 * (docs/slurm.md, "Packed"). Pure. */
#ifndef SLURM_BACKLOG_H
#define SLURM_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"

struct buf;

#define ALLOCATION_KEY_SIZE 20

enum backlog_word {
    BACKLOG_JOB,   /* an attempt that any allocation may start */
    BACKLOG_STOP,  /* an attempt must end: its folder says how */
    BACKLOG_LEAVE, /* an allocation must start nothing more */
};

/* A line of the backlog. Plain value. */
struct backlog_line {
    enum backlog_word word;
    uint32_t job; /* JOB and STOP */
    int32_t attempt;
    int32_t times;                 /* STOP: how often it was requested */
    char key[ALLOCATION_KEY_SIZE]; /* LEAVE */
    struct demand demand;          /* JOB: what it needs of an allocation */
    int64_t limit_ms;              /* 0: none */
    int64_t grace_ms;
    int64_t span_ms; /* expected duration; 0: unknown */
};

void backlog_add(const struct backlog_line *line, struct buf *out); /* with newline */
/* Reads a line without newline. False: unknown contents. */
bool backlog_read(const char *text, struct backlog_line *out);

/* The specification of an allocation: made durable in its folder before it is requested. Plain
 * value. */
struct allocation_spec {
    int32_t gpus;
    int32_t cpus;    /* 0: as many as Slurm gives */
    int32_t mem_mib; /* 0: Slurm's default */
    int64_t limit_ms;
    int64_t idle_ms;
    int32_t gpu_mib;         /* per GPU, where the node cannot read it; 0: unknown */
    char type[GPU_TYPE_MAX]; /* as Slurm names it; "": any */
};

void allocation_spec_add(const struct allocation_spec *spec, struct buf *out);
bool allocation_spec_read(const char *text, struct allocation_spec *out);

#define ALLOCATION_GRACE_MS 60000 /* after its limit, for what runs there to end */
/* By this much a job's time limit may exceed the allocation's remaining time: otherwise a job
 * whose limit equals the allocation's would not fit, because it needs a moment to begin. */
#define ALLOCATION_SLACK_MS 60000

/* If less of an allocation's time remains, an attempt of unknown length is not started: it
 * would be cut off and its work lost. */
#define ALLOCATION_LATE(limit_ms) ((limit_ms) / 4)

/* How many ms before an allocation's end an attempt is asked to end, so that its grace fits:
 * the excess of its grace over the allocation's own. */
int64_t allocation_early_ms(const struct backlog_line *line);
/* True if the attempt should be started in an allocation that ends in left_ms. */
bool allocation_has_time(const struct allocation_spec *spec, const struct backlog_line *line,
                         int64_t left_ms);
/* True if the allocation, when empty, is large enough for the line and of its GPU type. */
bool allocation_is_fit(const struct allocation_spec *spec, const struct backlog_line *line);

#endif
