/* A moment as people write it: now+1h, 16:00, tomorrow, 2026-12-24T18:30, 2026-12-24T18:30Z.
 * Pure: what time it is, and what the local clock shows then, comes from the caller. */
#ifndef SPEC_WHEN_H
#define SPEC_WHEN_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct err;

struct when_clock {
    int64_t now_us;                 /* wall time */
    struct tm local;                /* the same moment on the local clock */
    bool past;                      /* a day without a year, or a time without a day, is the
                                       last one, not the next */
    time_t (*to_time)(struct tm *); /* from the local clock, as mktime does: fields out of
                                       their range are carried over, tm_isdst is -1 */
};

/* now+1h, +90s (also Slurm's now+2hours, now + 1day); 16:00, 4:00PM (today, or tomorrow when
 * that has passed); noon, midnight, elevenses, fika, teatime, today, tomorrow,
 * "tomorrow 16:00"; 2026-12-24, 2026-12-24T18:30[:SS] with or without Z or +01:00; 12/24,
 * 12/24/26, 122426, with a time behind - or T; @1766600000, uts1766600000. Wall time in
 * microseconds; a moment that has passed is no error. clock NULL: only what needs none.
 * ERR_USAGE. */
int when_parse(const char *s, const struct when_clock *clock, int64_t *out, struct err *e);

/* Slurm's count and unit, 2days or 90 (seconds), in ms. False: it is none. */
bool when_span(const char *s, int64_t *ms);

#endif
