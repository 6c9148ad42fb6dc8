/* Times as people write them: now+1h, 16:00, tomorrow, 2026-12-24T18:30, 2026-12-24T18:30Z.
 * Pure: the caller provides the current time and the local clock. */
#ifndef SPEC_WHEN_H
#define SPEC_WHEN_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct err;

struct when_clock {
    int64_t now_us;                 /* wall time */
    struct tm local;                /* the same moment on the local clock */
    bool past;                      /* a day without a year, or a time without a day, means the
                                       last one, not the next */
    time_t (*to_time)(struct tm *); /* converts from the local clock as mktime does: fields out
                                       of range carry over, tm_isdst is -1 */
};

/* now+1h, +90s (also Slurm's now+2hours, now + 1day); 16:00, 4:00PM (today, or tomorrow if
 * that has passed); noon, midnight, elevenses, fika, teatime, today, tomorrow, "tomorrow
 * 16:00"; 2026-12-24, 2026-12-24T18:30[:SS] with or without Z or +01:00; 12/24, 12/24/26,
 * 122426, followed by - or T and a time; @1766600000, uts1766600000. *out is wall time in
 * microseconds; a time in the past is valid. clock NULL: only forms that need no clock.
 * ERR_USAGE. */
int when_parse(const char *s, const struct when_clock *clock, int64_t *out, struct err *e);

/* Parses Slurm's count and unit, 2days or 90 (seconds), into ms. False: not of this form. */
bool when_span(const char *s, int64_t *ms);

#endif
