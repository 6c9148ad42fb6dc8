/* A moment as people write it: now+1h, 16:00, tomorrow, 2026-12-24T18:30, 2026-12-24T18:30Z.
 * Pure: what time it is, and what the local clock shows then, comes from the caller. */
#ifndef SPEC_WHEN_H
#define SPEC_WHEN_H

#include <stdint.h>
#include <time.h>

struct err;

struct when_clock {
    int64_t now_us;                 /* wall time */
    struct tm local;                /* the same moment on the local clock */
    time_t (*to_time)(struct tm *); /* from the local clock, as mktime does: fields out of
                                       their range are carried over, tm_isdst is -1 */
};

/* now+1h, +90s (also Slurm's now+2hours); 16:00 (today, or tomorrow when that has passed);
 * noon, midnight, today, tomorrow, "tomorrow 16:00"; 2026-12-24, 2026-12-24T18:30[:SS] with
 * or without Z or +01:00; @1766600000. Wall time in microseconds; a moment that has passed is
 * no error. clock NULL: only what needs none. ERR_USAGE. */
int when_parse(const char *s, const struct when_clock *clock, int64_t *out, struct err *e);

#endif
