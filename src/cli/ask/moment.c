/* Times in the past: see moment.h. spec/when.c parses them; there a time of day means the next
 * one, here the last. */
#include "cli/ask/moment.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "spec/when.h"

/* The midnight that began the day this many days ago. */
static int64_t
midnight_us(const struct tm *now, int days_before)
{
    struct tm day = *now;

    day.tm_hour = day.tm_min = day.tm_sec = 0;
    day.tm_mday -= days_before;
    day.tm_isdst = -1;
    return (int64_t)mktime(&day) * 1000000;
}

/* True for "7d", but not for "16:00", which would be minutes and seconds. */
static bool
is_span(const char *text)
{
    return isdigit((unsigned char)text[0]) && isalpha((unsigned char)text[strlen(text) - 1]) &&
           !strpbrk(text, ":-T");
}

int
moment_read(const char *text, int64_t *out, struct err *e)
{
    struct when_clock clock = {.now_us = clock_wall_us(), .past = true, .to_time = mktime};
    time_t now = (time_t)(clock.now_us / 1000000);
    int64_t ms;

    localtime_r(&now, &clock.local);
    if (strcmp(text, "now") == 0) {
        *out = clock.now_us;
    } else if (strcmp(text, "today") == 0 || strcmp(text, "yesterday") == 0) {
        *out = midnight_us(&clock.local, text[0] == 'y');
    } else if (is_span(text)) {
        if (parse_duration_ms(text, 1000, &ms, e) < 0)
            return -1;
        *out = clock.now_us - ms * 1000;
    } else {
        if (when_parse(text, &clock, out, NULL) < 0)
            return parse_refuse(
                e, text,
                "is not a time; write 2h or 7d (ago), 16:00, today, yesterday or "
                "2026-12-24T18:30");
    }
    return 0;
}
