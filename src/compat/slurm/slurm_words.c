/* Texts in Slurm's form; see slurm_words.h. */
#include "compat/slurm/slurm_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "cli/ask/moment.h"
#include "spec/when.h"

char *
slurm_time(int64_t wall_us, char out[SLURM_TIME])
{
    time_t at = (time_t)(wall_us / 1000000);
    struct tm local;

    localtime_r(&at, &local);
    strftime(out, SLURM_TIME, "%Y-%m-%dT%H:%M:%S", &local);
    return out;
}

void
slurm_add_time(struct buf *out, int64_t wall_us, const char *otherwise)
{
    char text[SLURM_TIME];

    buf_adds(out, wall_us ? slurm_time(wall_us, text) : otherwise);
}

static bool
is_listed(const char *list, const char *word, int (*compare)(const char *, const char *))
{
    auto_free char *copy = xstrdup(list);
    char *rest = copy, *piece;

    while ((piece = strsep(&rest, ",")))
        if (compare(piece, word) == 0)
            return true;
    return false;
}

bool
slurm_is_yes(const char *value)
{
    char *end;
    long number = strtol(value, &end, 10);

    return !value[0] || strcasecmp(value, "yes") == 0 || (number != 0 && !*end);
}

bool
slurm_is_listed(const char *list, const char *word)
{
    return is_listed(list, word, strcmp);
}

bool
slurm_is_listed_anyhow(const char *list, const char *word)
{
    return is_listed(list, word, strcasecmp);
}

struct spans {
    long long days, hours, minutes, seconds;
};

static struct spans
split(int64_t ms)
{
    long long s = ms > 0 ? (long long)(ms / 1000) : 0;

    return (struct spans){s / 86400, s / 3600 % 24, s / 60 % 60, s % 60};
}

char *
slurm_short_duration(int64_t ms, char out[SLURM_TIME])
{
    const struct spans t = split(ms);

    if (t.days)
        snprintf(out, SLURM_TIME, "%lld-%02lld:%02lld:%02lld", t.days, t.hours, t.minutes,
                 t.seconds);
    else if (t.hours)
        snprintf(out, SLURM_TIME, "%lld:%02lld:%02lld", t.hours, t.minutes, t.seconds);
    else
        snprintf(out, SLURM_TIME, "%lld:%02lld", t.minutes, t.seconds);
    return out;
}

char *
slurm_duration(int64_t ms, char out[SLURM_TIME])
{
    const struct spans t = split(ms);

    if (t.days)
        snprintf(out, SLURM_TIME, "%lld-%02lld:%02lld:%02lld", t.days, t.hours, t.minutes,
                 t.seconds);
    else
        snprintf(out, SLURM_TIME, "%02lld:%02lld:%02lld", t.hours, t.minutes, t.seconds);
    return out;
}

void
slurm_add_mib(struct buf *out, int64_t mib)
{
    if (mib > 0 && mib % 1024 == 0)
        buf_addf(out, "%lldG", (long long)(mib / 1024));
    else
        buf_addf(out, "%lldM", (long long)mib);
}

void
slurm_add_date(struct buf *out)
{
    time_t now = (time_t)(clock_wall_us() / 1000000);
    char text[SLURM_TIME];
    struct tm local;

    localtime_r(&now, &local);
    strftime(text, sizeof text, "%a %b %d %H:%M:%S %Y", &local);
    buf_addf(out, "%s\n", text);
}

int
slurm_read_time(const char *text, int64_t *out_us, struct err *e)
{
    int64_t ms = 0;

    if (strncasecmp(text, "now-", 4) == 0) {
        if (!when_span(text + 4, &ms))
            return parse_refuse(e, text + 4,
                                "is not a span of time; write 2hours, 3days or 90seconds");
        *out_us = clock_wall_us() - ms * 1000;
        return 0;
    }
    if (strcasecmp(text, "midnight") == 0)
        text = "today";
    else if (strcasecmp(text, "noon") == 0)
        text = "12:00";
    return moment_read(text, out_us, e);
}
