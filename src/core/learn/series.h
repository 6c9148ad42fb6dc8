/* What a card's samples said over time: each of the last hour, and the maxima of each minute
 * of the last day. Bounded: some 80 KiB a card, and less while there is less to keep. Times
 * are those of the boot clock, so that setting the wall clock puts nothing out of order. The
 * daemon's telemetry.c owns one per card. Pure. */
#ifndef CORE_LEARN_SERIES_H
#define CORE_LEARN_SERIES_H

#include <stddef.h>
#include <stdint.h>

struct buf;

/* -1: not reported. */
struct series_point {
    int64_t at_us;
    int32_t used_mib, held_mib, external_mib;
    int16_t util, temperature_c;
};

/* Samples that follow each other within a step are one point, their maximum. */
#define SERIES_STEP_US   INT64_C(2000000)
#define SERIES_POINTS    1800
#define SERIES_MINUTE_US INT64_C(60000000)
#define SERIES_MINUTES   1440

struct series;
struct series *series_new(void);
void series_free(struct series *s); /* NULL is fine */

/* Times never go back. */
void series_add(struct series *s, const struct series_point *p);

/* How wide the steps of a walk from since_us to now_us must be for at most max (2 or more)
 * points. */
int64_t series_step_us(int64_t since_us, int64_t now_us, int64_t max);

/* Calls cb with the maximum of each step that has samples, oldest first. step_us of
 * series_step_us or any other; times are those of a step's first sample, never before
 * since_us. */
typedef void (*series_cb)(const struct series_point *p, void *arg);
void series_walk(const struct series *s, int64_t since_us, int64_t step_us, series_cb cb,
                 void *arg);
int64_t series_oldest_us(const struct series *s); /* INT64_MAX: there is none */

/* The minutes, for the next daemon, with offset_us added to the times (wall - boot); and back.
 * Decoding fills a series that is empty with what is not later than now_us; -1 when the bytes
 * make no sense. */
void series_encode(const struct series *s, int64_t offset_us, struct buf *out);
int series_decode(struct series *s, int64_t offset_us, int64_t now_us, const void *bytes,
                  size_t n);

#endif
