/* Time. Durations and limits use CLOCK_BOOTTIME, which clock changes do not affect and which
 * counts through suspend; wall time is for display. Pure code takes times as arguments. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

int64_t clock_boot_us(void);   /* microseconds since boot */
int64_t clock_wall_us(void);   /* microseconds since 1970 UTC */
int64_t clock_thread_us(void); /* CPU time of this thread in microseconds */

/* The kernel's boot id (36 characters), read once; "unknown" where /proc is missing. */
const char *clock_boot_id(void);

/* "2026-03-01T14:02:10Z" into out (at least 32 bytes); returns out. */
char *clock_rfc3339(int64_t wall_us, char *out);

#endif
