/* The numbers of a report as text; see report_verb.h. */
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/report/report_verb.h"

#define HOUR_MS INT64_C(3600000)
#define DAY_US  (INT64_C(86400) * 1000000)

void
report_add_hours(struct buf *out, int64_t ms)
{
    buf_addf(out, "%.2f", (double)ms / (double)HOUR_MS);
}

void
report_add_ms(struct buf *out, const json_t *o, const char *key)
{
    char span[24];
    int64_t ms = answer_int(o, key, -1);

    buf_adds(out, ms < 0 ? "n/a" : ms < 1000 ? "0s" : format_duration(ms, span));
}

void
report_add_edge(struct buf *out, int64_t ms)
{
    if (ms < 60000)
        buf_addf(out, "%lld s", (long long)(ms / 1000));
    else if (ms < HOUR_MS)
        buf_addf(out, "%lld min", (long long)(ms / 60000));
    else if (ms < 24 * HOUR_MS)
        buf_addf(out, "%lld h", (long long)(ms / HOUR_MS));
    else
        buf_addf(out, "%lld d", (long long)(ms / (24 * HOUR_MS)));
}

static void
add_mib(struct buf *out, const json_t *o, const char *key)
{
    char size[24];

    buf_adds(out, format_mib(answer_int(o, key, -1), size));
}

void
report_add_asked(struct buf *out, const json_t *sums)
{
    if (answer_int(sums, "asked_mib", 0) > 0)
        add_mib(out, sums, "asked_mib");
    else
        buf_adds(out, answer_int(sums, "undeclared", 0) > 0 ? "whole" : "-");
}

/* The sums contain requests and peaks only of completed jobs. */
void
report_add_peak(struct buf *out, const json_t *sums)
{
    if (answer_int(json_object_get(sums, "states"), "COMPLETED", 0) > 0)
        add_mib(out, sums, "peak_mib");
    else
        buf_addc(out, '-');
}

void
report_add_percent(struct buf *out, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    if (json_is_number(v))
        buf_addf(out, "%.0f %%", json_number_value(v));
    else
        buf_adds(out, "n/a");
}

void
report_add_day(struct buf *out, int64_t wall_us, int64_t span_us)
{
    time_t at = (time_t)(wall_us / 1000000);
    struct tm tm;
    char text[32];

    localtime_r(&at, &tm);
    strftime(text, sizeof text,
             span_us > 20 * DAY_US    ? "%b %d"
             : span_us > DAY_US       ? "%b %d %H:%M"
             : span_us > DAY_US / 400 ? "%H:%M"
                                      : "%H:%M:%S",
             &tm);
    buf_adds(out, text);
}

int64_t
report_failed(const json_t *sums)
{
    const json_t *states = json_object_get(sums, "states");

    return answer_int(sums, "jobs", 0) - answer_int(states, "COMPLETED", 0) -
           answer_int(states, "CANCELLED", 0);
}

double
report_completed(const json_t *total)
{
    return (double)answer_int(json_object_get(total, "states"), "COMPLETED", 0) /
           (double)answer_int(total, "jobs", 1);
}

double
report_busy(const json_t *report)
{
    const json_t *gpus = json_object_get(report, "gpus"), *gpu;
    double sum = 0;
    size_t i, n = 0;

    json_array_foreach(gpus, i, gpu)
    {
        if (json_is_true(json_object_get(gpu, "gone")))
            continue;
        sum += json_number_value(json_object_get(gpu, "busy"));
        n++;
    }
    return n ? sum / (double)n : 0;
}

int64_t
report_bin_at(const json_t *report, size_t i)
{
    const json_t *bins = json_object_get(report, "bins");

    return answer_int(bins, "from_us", 0) + (int64_t)i * answer_int(bins, "width_us", 1);
}

int64_t
report_span_us(const json_t *report)
{
    int64_t n = answer_int(json_object_get(report, "bins"), "n", 0);
    int64_t span = report_bin_at(report, (size_t)n) - report_bin_at(report, 0);

    return span > 0 ? span : 1;
}

void
report_add_escaped(struct buf *out, const char *text)
{
    auto_buf struct buf safe = BUF_INIT;

    text_add_safe(&safe, text, strlen(text), 0);
    for (const char *c = buf_str(&safe); *c; c++) {
        if (strchr("<>&\"'", *c))
            buf_addf(out, "&#%d;", *c);
        else
            buf_addc(out, *c);
    }
}
