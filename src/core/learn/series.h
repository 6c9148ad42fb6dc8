/* A card's samples over time: all of the last hour, and the maximum of each minute of the last
 * day. Bounded: about 80 KiB per card, and less while there is less to keep. Times are on the
 * boot clock, so that clock changes do not disturb the order. The daemon's telemetry.c owns
 * one per card. Pure. */
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

/* Successive samples within one step become one point, their maximum. */
#define SERIES_STEP_US   INT64_C(2000000)
#define SERIES_POINTS    1800
#define SERIES_MINUTE_US INT64_C(60000000)
#define SERIES_MINUTES   1440

struct series;
struct series *series_new(void);
void series_free(struct series *s); /* NULL is fine */

/* Times must not decrease. */
void series_add(struct series *s, const struct series_point *p);

/* The step of a walk from since_us to now_us that yields at most max (2 or more) points. */
int64_t series_step_us(int64_t since_us, int64_t now_us, int64_t max);

/* Calls cb with the maximum of each step that has samples, oldest first. step_us is from
 * series_step_us or any other. The time of a point is that of its step's first sample, never
 * before since_us. */
typedef void (*series_cb)(const struct series_point *p, void *arg);
void series_walk(const struct series *s, int64_t since_us, int64_t step_us, series_cb cb,
                 void *arg);
int64_t series_oldest_us(const struct series *s); /* INT64_MAX: empty */

/* Encodes the minutes for the next daemon, with offset_us added to the times (wall - boot),
 * and decodes them. Decoding fills an empty series with points not later than now_us; -1 if
 * the bytes are malformed. */
void series_encode(const struct series *s, int64_t offset_us, struct buf *out);
int series_decode(struct series *s, int64_t offset_us, int64_t now_us, const void *bytes,
                  size_t n);

#endif
