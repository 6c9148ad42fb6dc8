/* Parses a time in the past: 2h or 7d ago, 16:00 (the last one), today, yesterday, 2026-11-20,
 * 2026-11-20T18:30. */
#ifndef CLI_ASK_MOMENT_H
#define CLI_ASK_MOMENT_H

#include <stdint.h>

struct err;

/* Wall time in microseconds. ERR_USAGE. */
int moment_read(const char *text, int64_t *out, struct err *e);

#endif
