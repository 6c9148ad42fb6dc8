/* What one attempt used over its run: VRAM on each of its cards and their load, in at most
 * TRACE_POINTS points. Time is divided into steps; the samples of a step become their maximum,
 * and if there are too many points the step is doubled until half of the room is free again.
 * So a minute and a week take the same space, and no peak is lost. Pure; the daemon's
 * telemetry.c owns the traces of running attempts, the store keeps encoded ones. */
#ifndef CORE_LEARN_TRACE_H
#define CORE_LEARN_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/request.h"

struct buf;

#define TRACE_POINTS  240
#define TRACE_STEP_MS 100 /* the initial step */

struct trace;
/* n_gpus 1..GPU_MAX; start_us: wall clock at the start of the run, from which steps count. */
struct trace *trace_new(int n_gpus, int64_t start_us);
void trace_free(struct trace *t); /* NULL is fine */

int trace_n_gpus(const struct trace *t);
int trace_n(const struct trace *t);
int64_t trace_start_us(const struct trace *t);
int64_t trace_step_ms(const struct trace *t);

/* Adds a sample after_ms after the start: mib of each card (-1: not attributed) and the cards'
 * mean load (-1: not reported). A sample that goes back in time counts for the newest step.
 * True: the step was doubled, which is a good moment to save the trace. */
bool trace_add(struct trace *t, int64_t after_ms, const int32_t *mib, int util);

/* Reduces the trace to at most max (2 or more) points. */
void trace_thin(struct trace *t, int max);

struct trace_point {
    int64_t at_us; /* wall clock: start of the step */
    int util;
    const int32_t *mib;
};
struct trace_point trace_at(const struct trace *t, int i);

/* A few hundred bytes, at most about 20 KiB for 64 cards. Decoding: NULL if the bytes are
 * malformed. */
void trace_encode(const struct trace *t, struct buf *out);
struct trace *trace_decode(const void *bytes, size_t n);

#endif
