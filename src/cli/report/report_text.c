/* A report in a terminal: each GPU's use as a line of blocks, tables of users, commands and
 * causes, waits as bars, suggestions. Called by report_verb.c. */
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/common/term.h"
#include "cli/report/report_verb.h"
#include "cli/table/table.h"

#define SPARK_MOST   64
#define SPARK_LEAST  16
#define SPARK_BESIDE 30 /* columns of the text beside the line of blocks */
#define BAR_MOST     40
#define ADVICE_SHOWN 8

static void
heading(const struct term *term, struct buf *out, const char *text)
{
    buf_addc(out, '\n');
    term_add(term, out, STYLE_BOLD, text);
    buf_addc(out, '\n');
}

/* Adds a block of the given height, in permille, as one character. */
static void
add_block(struct buf *out, int64_t permille, bool utf8)
{
    static const char *const blocks[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char ascii[] = " .:-=+*%#";
    int64_t level = permille <= 0 ? 0 : (permille * 8 + 999) / 1000;

    level = level > 8 ? 8 : level;
    if (utf8)
        buf_adds(out, blocks[level]);
    else
        buf_addc(out, ascii[level]);
}

/* Draws a GPU's bins in width columns, each the mean of its bins. */
static void
add_spark(struct buf *out, const json_t *bins, size_t width, bool utf8)
{
    size_t n = json_array_size(bins);

    for (size_t x = 0; x < width && n > 0; x++) {
        size_t from = x * n / width, to = (x + 1) * n / width;
        int64_t sum = 0;

        to = to > from ? to : from + 1;
        for (size_t i = from; i < to && i < n; i++)
            sum += json_integer_value(json_array_get(json_array_get(bins, i), 0));
        add_block(out, sum / (int64_t)(to - from), utf8);
    }
}

static void
add_summary(const json_t *r, struct buf *out)
{
    const json_t *total = json_object_get(r, "total");
    int64_t jobs = answer_int(total, "jobs", 0);
    int64_t span_us = report_span_us(r);
    char span[24];

    buf_addf(out, "%s, ", format_duration(span_us / 1000, span));
    report_add_day(out, report_bin_at(r, 0), span_us);
    buf_adds(out, " to ");
    report_add_day(out, answer_time_us(r, "until"), span_us);
    buf_addf(out, ": %lld job%s ended", (long long)jobs, jobs == 1 ? "" : "s");
    if (jobs > 0)
        buf_addf(out, ", %.0f %% completed", 100.0 * report_completed(total));
    buf_adds(out, "; ");
    report_add_hours(out, answer_int(total, "gpu_ms", 0));
    buf_adds(out, " GPU-hours");
    if (json_array_size(json_object_get(r, "gpus")))
        buf_addf(out, "; GPUs busy %.0f %%", report_busy(r) * 100);
    buf_addc(out, '\n');
}

static void
add_gpus(const json_t *r, const struct term *term, bool utf8, struct buf *out)
{
    static const struct column columns[] = {
        {"GPU", true, false}, {"BUSY", true, false}, {"RUNS", true, false}, {"", false, false}};
    auto_table struct table *t = table_new(columns, 4);
    size_t room = term->columns > SPARK_BESIDE ? (size_t)term->columns - SPARK_BESIDE : 0, i;
    size_t width = room > SPARK_MOST || term->columns == 0 ? SPARK_MOST
                   : room < SPARK_LEAST                    ? SPARK_LEAST
                                                           : room;
    const json_t *gpu;

    if (json_array_size(json_object_get(r, "gpus")) == 0)
        return;
    heading(term, out, "How busy the GPUs were");
    json_array_foreach(json_object_get(r, "gpus"), i, gpu)
    {
        auto_buf struct buf spark = BUF_INIT, busy = BUF_INIT;
        bool gone = json_is_true(json_object_get(gpu, "gone"));

        buf_addf(&busy, "%.0f %%", json_number_value(json_object_get(gpu, "busy")) * 100);
        buf_adds(&spark, "|");
        add_spark(&spark, json_object_get(gpu, "bins"), width, utf8);
        buf_addf(&spark, "|%s", gone ? " gone" : "");
        table_cell_int(t, answer_int(gpu, "index", 0));
        table_cell(t, STYLE_NONE, buf_str(&busy));
        table_cell_int(t, answer_int(gpu, "runs", 0));
        table_cell(t, STYLE_BUSY, buf_str(&spark));
    }
    table_print(t, term, out);
}

#define CELL(t, style, add)                                                                    \
    do {                                                                                       \
        auto_buf struct buf cell = BUF_INIT;                                                   \
        add;                                                                                   \
        table_cell(t, style, buf_str(&cell));                                                  \
    } while (0)

/* JOBS FAILED GPU-H WAIT P95 */
static void
add_counts(struct table *t, const json_t *sums)
{
    int64_t failed = report_failed(sums);

    table_cell_int(t, answer_int(sums, "jobs", 0));
    CELL(t, failed ? STYLE_WARN : STYLE_NONE, buf_addf(&cell, "%lld", (long long)failed));
    CELL(t, STYLE_NONE, report_add_hours(&cell, answer_int(sums, "gpu_ms", 0)));
    CELL(t, STYLE_NONE, report_add_ms(&cell, sums, "wait_mean_ms"));
    CELL(t, STYLE_NONE, report_add_ms(&cell, sums, "wait_p95_ms"));
}

static void
add_users(const json_t *r, const struct term *term, struct buf *out)
{
    static const struct column columns[] = {{"USER", false, false},  {"JOBS", true, false},
                                            {"FAILED", true, false}, {"GPU-H", true, false},
                                            {"WAIT", true, false},   {"95 %", true, false},
                                            {"WITHIN", true, false}, {"OVER", true, false},
                                            {"UNDER", true, false},  {"LOAD", true, false}};
    auto_table struct table *t = table_new(columns, 10);
    const json_t *user;
    size_t i;

    if (json_array_size(json_object_get(r, "users")) == 0)
        return;
    heading(term, out,
            "Users (WITHIN: used about the VRAM that was requested, OVER: less, "
            "UNDER: more)");
    json_array_foreach(json_object_get(r, "users"), i, user)
    {
        int64_t under = answer_int(user, "under", 0);

        table_cell(t, STYLE_NONE, answer_str(user, "user"));
        add_counts(t, user);
        table_cell_int(t, answer_int(user, "within", 0));
        table_cell_int(t, answer_int(user, "over", 0));
        CELL(t, under ? STYLE_BAD : STYLE_NONE, buf_addf(&cell, "%lld", (long long)under));
        CELL(t, STYLE_NONE, report_add_percent(&cell, user, "util"));
    }
    table_print(t, term, out);
}

static void
add_commands(const json_t *r, const struct term *term, int64_t most, struct buf *out)
{
    static const struct column columns[] = {
        {"USER", false, false}, {"JOBS", true, false}, {"FAILED", true, false},
        {"GPU-H", true, false}, {"WAIT", true, false}, {"95 %", true, false},
        {"ASKED", true, false}, {"PEAK", true, false}, {"COMMAND", false, false}};
    auto_table struct table *t = table_new(columns, 9);
    const json_t *list = json_object_get(r, "commands"), *c;
    int64_t total = answer_int(r, "commands_total", 0), shown = 0;
    size_t i;

    if (json_array_size(list) == 0)
        return;
    heading(term, out, "Commands, by GPU time");
    json_array_foreach(list, i, c)
    {
        const char *command = answer_str(c, "command");

        if (shown == most)
            break;
        shown++;
        table_cell(t, STYLE_NONE, answer_str(c, "user"));
        add_counts(t, c);
        CELL(t, STYLE_NONE, report_add_asked(&cell, c));
        CELL(t, STYLE_NONE, report_add_peak(&cell, c));
        table_cell(t, STYLE_NONE, command[0] ? command : "(private)");
    }
    table_print(t, term, out);
    if (total > shown)
        buf_addf(out, "and %lld more; --commands N lists up to 300\n",
                 (long long)(total - shown));
}

static void
add_bar(struct buf *out, int64_t n, int64_t most, bool utf8)
{
    int64_t length = most > 0 ? (n * BAR_MOST + most - 1) / most : 0;

    for (int64_t i = 0; i < length; i++)
        buf_adds(out, utf8 ? "\u2588" : "#");
}

/* below: the upper end of the class; NULL: it has none. */
static void
add_class(struct buf *out, const json_t *below)
{
    buf_adds(out, below ? "under " : "longer");
    if (below)
        report_add_edge(out, json_integer_value(below));
}

static void
add_waits(const json_t *r, const struct term *term, bool utf8, struct buf *out)
{
    static const struct column columns[] = {
        {"WAITED", true, false}, {"JOBS", true, false}, {"", false, false}};
    auto_table struct table *t = table_new(columns, 3);
    const json_t *waits = json_object_get(r, "waits");
    const json_t *below = json_object_get(waits, "below_ms"),
                 *jobs = json_object_get(waits, "jobs");
    size_t n = json_array_size(jobs);
    int64_t most = 0;

    while (n > 0 && json_integer_value(json_array_get(jobs, n - 1)) == 0)
        n--;
    for (size_t i = 0; i < n; i++)
        if (json_integer_value(json_array_get(jobs, i)) > most)
            most = json_integer_value(json_array_get(jobs, i));
    if (most == 0)
        return;
    heading(term, out, "How long jobs waited");
    for (size_t i = 0; i < n; i++) {
        int64_t here = json_integer_value(json_array_get(jobs, i));
        bool last = i == json_array_size(below);

        CELL(t, STYLE_NONE, add_class(&cell, last ? NULL : json_array_get(below, i)));
        table_cell_int(t, here);
        CELL(t, STYLE_BUSY, add_bar(&cell, here, most, utf8));
    }
    table_print(t, term, out);
}

static void
add_causes(const json_t *r, const struct term *term, bool utf8, struct buf *out)
{
    static const struct column columns[] = {{"JOBS", true, false},
                                            {"GPU-H", true, false},
                                            {"NEWEST JOB", true, false},
                                            {"", false, false},
                                            {"CAUSE", false, false}};
    auto_table struct table *t = table_new(columns, 5);
    const json_t *list = json_object_get(r, "causes"), *c;
    int64_t most = answer_int(json_array_get(list, 0), "jobs", 0);
    size_t i;

    if (json_array_size(list) == 0)
        return;
    heading(term, out, "Why jobs did not complete");
    json_array_foreach(list, i, c)
    {
        table_cell_int(t, answer_int(c, "jobs", 0));
        CELL(t, STYLE_NONE, report_add_hours(&cell, answer_int(c, "gpu_ms", 0)));
        table_cell(t, STYLE_NONE, answer_str(c, "newest_name"));
        CELL(t, STYLE_WARN, add_bar(&cell, answer_int(c, "jobs", 0), most * 2, utf8));
        table_cell(t, STYLE_NONE, answer_str(c, "text"));
    }
    table_print(t, term, out);
}

static void
add_advice(const json_t *r, const struct term *term, struct buf *out)
{
    const json_t *a;
    size_t i;

    if (json_array_size(json_object_get(r, "advice")) == 0)
        return;
    heading(term, out, "Suggestions");
    json_array_foreach(json_object_get(r, "advice"), i, a)
    {
        const char *command = answer_str(a, "command"), *user = answer_str(a, "user");
        auto_buf struct buf who = BUF_INIT;

        if (i == ADVICE_SHOWN)
            break;
        buf_adds(out, "- ");
        text_add_safe(out, answer_str(a, "text"), strlen(answer_str(a, "text")), 0);
        buf_addc(out, '\n');
        if (!command[0])
            continue;
        text_add_safe(&who, user, strlen(user), 0);
        buf_adds(&who, ": ");
        text_add_safe(&who, command, strlen(command), term->columns ? term->columns - 20 : 200);
        buf_adds(out, "  ");
        term_add(term, out, STYLE_DIM, buf_str(&who));
        buf_addc(out, '\n');
    }
}

void
report_add_text(const json_t *r, const struct term *term, bool utf8, int64_t commands,
                struct buf *out)
{
    add_summary(r, out);
    add_gpus(r, term, utf8, out);
    add_users(r, term, out);
    add_commands(r, term, commands, out);
    add_waits(r, term, utf8, out);
    add_causes(r, term, utf8, out);
    add_advice(r, term, out);
}
