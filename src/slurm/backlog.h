/* The lines of the files through which the daemon and its allocations speak (docs/slurm.md,
 * "Packed"). Pure. */
#ifndef SLURM_BACKLOG_H
#define SLURM_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"

struct buf;

#define ALLOCATION_KEY_SIZE 20

enum backlog_word {
    BACKLOG_JOB,   /* an attempt that any allocation may start */
    BACKLOG_STOP,  /* one that is to end: its folder says how */
    BACKLOG_LEAVE, /* an allocation is to start nothing more */
};

/* A line of the backlog. Plain value. */
struct backlog_line {
    enum backlog_word word;
    uint32_t job; /* of JOB and STOP */
    int32_t attempt;
    int32_t times;                 /* STOP: how often it was asked for */
    char key[ALLOCATION_KEY_SIZE]; /* LEAVE */
    struct demand demand;          /* JOB: what it takes of an allocation */
    int64_t limit_ms;              /* 0: none */
    int64_t grace_ms;
    int64_t span_ms; /* how long it is expected to take; 0: not known */
};

void backlog_add(const struct backlog_line *line, struct buf *out); /* with its end */
/* Without its end. False: it says nothing that is known here. */
bool backlog_read(const char *text, struct backlog_line *out);

/* What an allocation is: durable in its folder before it is asked for. Plain value. */
struct allocation_spec {
    int32_t gpus;
    int32_t cpus;    /* 0: as many as Slurm gives */
    int32_t mem_mib; /* 0: the same */
    int64_t limit_ms;
    int64_t idle_ms;
    int32_t gpu_mib;         /* of each GPU, where the node cannot tell; 0: not known */
    char type[GPU_TYPE_MAX]; /* as Slurm calls it; "": any */
};

void allocation_spec_add(const struct allocation_spec *spec, struct buf *out);
bool allocation_spec_read(const char *text, struct allocation_spec *out);

#define ALLOCATION_GRACE_MS 60000 /* behind its limit, in which what runs there ends */
/* So much later than the allocation a time limit may reach: one that is as long as the
 * allocation's needs a moment to begin. */
#define ALLOCATION_SLACK_MS 60000

/* The part of an allocation's time from which an attempt of unknown length is not started any
 * more: it would be cut off, and its work lost. */
#define ALLOCATION_LATE(limit_ms) ((limit_ms) / 4)

/* The milliseconds before an allocation's end at which an attempt is asked to end, so that its
 * grace fits: what is longer than the allocation's own. */
int64_t allocation_early_ms(const struct backlog_line *line);
/* Whether an attempt is to start in an allocation that ends in so many milliseconds. */
bool allocation_has_time(const struct allocation_spec *spec, const struct backlog_line *line,
                         int64_t left_ms);
/* Whether the allocation is large enough for it, and of its type, at all. */
bool allocation_is_fit(const struct allocation_spec *spec, const struct backlog_line *line);

#endif
