/* Draws the columns of the queue. Called by queue_table.c for every row; a row holds the
 * requested fields, as the daemon sent them. */
#include "cli/table/queue_columns.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/table/render.h"
#include "wire/client.h"

const char *const queue_field_names[FIELDS] = {
    "id",
    "array_job",
    "array_task",
    "array",
    "user",
    "name",
    "state",
    "gpus",
    "gpus_wanted",
    "vram_mib",
    "share",
    "declared_mib",
    "peak_mib",
    "now_mib",
    "run_ms",
    "limit_ms",
    "priority",
    "reason",
    "exit_code",
    "signal",
    "file",
    "line",
    "cwd",
    "log",
    "command",
    "submitted",
    "started",
    "ended",
    "expected_start",
    "latest_start",
    "tags",
    "after",
    "vram_auto",
    "wait_ms",
    "verdict",
    "util",
    "text",
    "cancelled_by",
};

static void
add_mib(struct buf *out, const struct scan_value *v)
{
    char size[24];

    if (v->type == SCAN_NUMBER)
        buf_adds(out, format_mib(scan_int(v, -1), size));
}

static void
add_ms(struct buf *out, const struct scan_value *v)
{
    char span[24];

    if (scan_int(v, -1) >= 0)
        buf_adds(out, format_duration(scan_int(v, 0), span));
}

int64_t
queue_time_us(const struct scan_value *v)
{
    struct scan inside = {v->text, v->text ? v->text + v->len : NULL};
    struct scan_value unix_s;

    if (v->type != SCAN_OBJECT || !scan_open(&inside) || !scan_find(&inside, "unix") ||
        !scan_next(&inside, &unix_s) || unix_s.type != SCAN_NUMBER)
        return 0;
    return (int64_t)(strtod(unix_s.text, NULL) * 1e6);
}

/* Adds "14:31" for a time today, else with its date. */
static void
add_time(struct buf *out, const struct scan_value *v)
{
    int64_t at_us = queue_time_us(v);

    if (at_us)
        render_day_clock(out, at_us, clock_wall_us());
}

static void
add_peaks(struct buf *out, const struct scan_value *v)
{
    auto_json json_t *peaks = v->type == SCAN_OBJECT ? scan_tree(v) : NULL;

    char size[24];

    if (json_object_size(peaks)) /* the largest of several GPUs; `show` lists each */
        buf_adds(out, format_mib(answer_peak(peaks), size));
}

#define DRAW(fn, field, draw)                                                                  \
    static void fn(const struct row *row, struct buf *out)                                     \
    {                                                                                          \
        draw(out, &row->v[field]);                                                             \
    }
DRAW(draw_user, F_USER, scan_add)
DRAW(draw_name, F_NAME, scan_add)
DRAW(draw_state, F_STATE, scan_add)
DRAW(draw_priority, F_PRIORITY, scan_add)
DRAW(draw_file, F_FILE, scan_add)
DRAW(draw_line, F_LINE, scan_add)
DRAW(draw_cwd, F_CWD, scan_add)
DRAW(draw_log, F_LOG, scan_add)
DRAW(draw_declared, F_DECLARED, add_mib)
DRAW(draw_now, F_NOW, add_mib)
DRAW(draw_peak, F_PEAK, add_peaks)
DRAW(draw_time, F_RUN_MS, add_ms)
DRAW(draw_limit, F_LIMIT_MS, add_ms)
DRAW(draw_wait, F_WAIT_MS, add_ms)
DRAW(draw_verdict, F_VERDICT, scan_add)
DRAW(draw_submitted, F_SUBMITTED, add_time)
DRAW(draw_started, F_STARTED, add_time)
DRAW(draw_ended, F_ENDED, add_time)
DRAW(draw_expected, F_EXPECTED, add_time)
DRAW(draw_promised, F_LATEST, add_time)

/* "12_3" for a task; "12_[40-99%8]" for an array's pending tasks. */
static void
draw_id(const struct row *row, struct buf *out)
{
    if (row->v[F_ARRAY_JOB].type == SCAN_NUMBER) {
        scan_add(out, &row->v[F_ARRAY_JOB]);
        buf_addc(out, '_');
        scan_add(out, &row->v[F_ARRAY_TASK]);
        return;
    }
    scan_add(out, &row->v[F_ID]);
    if (row->v[F_ARRAY].type == SCAN_OBJECT) {
        auto_json json_t *array = scan_tree(&row->v[F_ARRAY]);

        answer_add_array(out, array);
    }
}

DRAW(draw_share, F_SHARE, scan_add)

static void
draw_tags(const struct row *row, struct buf *out)
{
    auto_json json_t *tags = row->v[F_TAGS].len > 2 ? scan_tree(&row->v[F_TAGS]) : NULL;

    answer_add_words(out, tags);
}

static void
draw_after(const struct row *row, struct buf *out)
{
    auto_json json_t *after = row->v[F_AFTER].len > 2 ? scan_tree(&row->v[F_AFTER]) : NULL;

    answer_add_after(out, after);
}

static void
draw_gpus(const struct row *row, struct buf *out)
{
    int64_t wanted = scan_int(&row->v[F_GPUS_WANTED], -1);

    if (row->v[F_GPUS].len > 2) {
        auto_json json_t *gpus = scan_tree(&row->v[F_GPUS]);

        answer_add_gpus(out, gpus);
    } else if (wanted == 0) {
        buf_adds(out, "cpu");
    } else if (wanted > 1) {
        buf_addf(out, "(%lld)", (long long)wanted);
    }
}

/* Marks learned values with a word in front. */
static void
draw_vram(const struct row *row, struct buf *out)
{
    if (row->v[F_AUTO].type == SCAN_BOOL && row->v[F_AUTO].text[0] == 't')
        buf_adds(out, "auto ");
    if (scan_int(&row->v[F_VRAM], 0) > 0)
        add_mib(out, &row->v[F_VRAM]);
    else if (row->v[F_SHARE].type == SCAN_NUMBER)
        scan_add(out, &row->v[F_SHARE]); /* that share of the GPU's VRAM */
    else if (scan_int(&row->v[F_GPUS_WANTED], 0) > 0)
        buf_adds(out, "whole");
}

static void
draw_exit(const struct row *row, struct buf *out)
{
    if (scan_int(&row->v[F_SIGNAL], 0) > 0)
        buf_addf(out, "signal %lld", (long long)scan_int(&row->v[F_SIGNAL], 0));
    else
        scan_add(out, &row->v[F_EXIT_CODE]);
}

static void
draw_failed_tasks(const struct row *row, struct buf *out)
{
    auto_json json_t *array = scan_tree(&row->v[F_ARRAY]);
    int64_t n = answer_int(json_object_get(array, "ended"), "FAILED", 0);

    buf_addf(out, "%lld task%s", (long long)n, n == 1 ? "" : "s");
}

/* True while a cancelled job has not ended: its processes may be slow to exit, or ignore TERM,
 * as an interactive shell does. */
static bool
is_being_cancelled(const struct row *row)
{
    return row->v[F_CANCELLED_BY].type == SCAN_STRING &&
           (scan_is(&row->v[F_STATE], "RUNNING") || scan_is(&row->v[F_STATE], "SUSPENDED") ||
            scan_is(&row->v[F_STATE], "STARTING"));
}

/* Why the job waits; for failed jobs, how it failed. */
static void
draw_reason(const struct row *row, struct buf *out)
{
    if (is_being_cancelled(row))
        buf_adds(out, "Cancelled");
    else if (row->v[F_REASON].type == SCAN_STRING)
        scan_add(out, &row->v[F_REASON]);
    else if (!scan_is(&row->v[F_STATE], "FAILED"))
        return;
    else if (row->v[F_ARRAY].type == SCAN_OBJECT)
        draw_failed_tasks(row, out);
    else if (scan_int(&row->v[F_SIGNAL], 0) > 0)
        draw_exit(row, out);
    else if (row->v[F_EXIT_CODE].type == SCAN_NULL)
        buf_adds(out, "could not start");
    else
        buf_addf(out, "exit %lld", (long long)scan_int(&row->v[F_EXIT_CODE], 1));
}

static void
draw_util(const struct row *row, struct buf *out)
{
    if (row->v[F_UTIL].type == SCAN_NUMBER)
        buf_addf(out, "%lld %%", (long long)scan_int(&row->v[F_UTIL], 0));
}

/* Why a job did not complete, in words. */
static void
draw_why(const struct row *row, struct buf *out)
{
    if (!scan_is(&row->v[F_STATE], "COMPLETED"))
        scan_add(out, &row->v[F_TEXT]);
}

/* For narrow screens: the run time, or the reason for waiting and the expected start. */
static void
draw_note(const struct row *row, struct buf *out)
{
    size_t before = out->len;

    if (row->v[F_REASON].type != SCAN_STRING)
        draw_time(row, out);
    if (out->len > before)
        buf_addc(out, ' ');
    draw_reason(row, out);
    if (row->v[F_EXPECTED].type == SCAN_OBJECT) {
        buf_adds(out, " ~");
        draw_expected(row, out);
    }
    if (out->len > before && out->data[out->len - 1] == ' ')
        out->data[--out->len] = '\0';
}

static void
draw_command(const struct row *row, struct buf *out)
{
    if (row->v[F_NAME].type == SCAN_STRING && row->v[F_NAME].len > 2) {
        buf_addc(out, '[');
        scan_add(out, &row->v[F_NAME]);
        buf_adds(out, "] ");
    }
    if (row->v[F_COMMAND].type == SCAN_NULL)
        buf_adds(out, "(private)");
    else
        scan_add(out, &row->v[F_COMMAND]);
}

const struct queue_column queue_columns[] = {
    {"id",
     {"ID", true, false},
     F_ID,
     FIELD_BIT(F_ARRAY_JOB) | FIELD_BIT(F_ARRAY_TASK) | FIELD_BIT(F_ARRAY),
     draw_id},
    {"user", {"USER", false, false}, F_USER, 0, draw_user},
    {"name", {"NAME", false, false}, F_NAME, 0, draw_name},
    {"state", {"STATE", false, false}, F_STATE, 0, draw_state},
    {"gpus", {"GPU", false, false}, F_GPUS_WANTED, FIELD_BIT(F_GPUS), draw_gpus},
    {"vram",
     {"VRAM", true, false},
     F_VRAM,
     FIELD_BIT(F_GPUS_WANTED) | FIELD_BIT(F_SHARE) | FIELD_BIT(F_AUTO),
     draw_vram},
    {"share", {"SHARE", true, false}, F_SHARE, 0, draw_share},
    {"declared", {"DECLARED", true, false}, F_DECLARED, 0, draw_declared},
    {"peak", {"PEAK", true, false}, F_PEAK, 0, draw_peak},
    {"now", {"NOW", true, false}, F_NOW, 0, draw_now},
    {"time", {"TIME", true, true}, F_RUN_MS, 0, draw_time},
    {"limit", {"LIMIT", true, false}, F_LIMIT_MS, 0, draw_limit},
    {"priority", {"PRIORITY", true, false}, F_PRIORITY, 0, draw_priority},
    {"reason",
     {"WHY", false, true},
     F_REASON,
     FIELD_BIT(F_STATE) | FIELD_BIT(F_EXIT_CODE) | FIELD_BIT(F_SIGNAL) | FIELD_BIT(F_ARRAY) |
         FIELD_BIT(F_CANCELLED_BY),
     draw_reason},
    {"expected", {"EXPECTED", false, true}, F_EXPECTED, 0, draw_expected},
    {"promised", {"PROMISED", false, true}, F_LATEST, 0, draw_promised},
    {"note",
     {"TIME / WHY", false, false},
     F_RUN_MS,
     FIELD_BIT(F_REASON) | FIELD_BIT(F_EXPECTED) | FIELD_BIT(F_STATE) | FIELD_BIT(F_EXIT_CODE) |
         FIELD_BIT(F_SIGNAL) | FIELD_BIT(F_ARRAY) | FIELD_BIT(F_CANCELLED_BY),
     draw_note},
    {"exit", {"EXIT", true, false}, F_EXIT_CODE, FIELD_BIT(F_SIGNAL), draw_exit},
    {"submitted", {"SUBMITTED", false, false}, F_SUBMITTED, 0, draw_submitted},
    {"started", {"STARTED", false, false}, F_STARTED, 0, draw_started},
    {"ended", {"ENDED", false, false}, F_ENDED, 0, draw_ended},
    {"wait", {"WAIT", true, true}, F_WAIT_MS, 0, draw_wait},
    {"verdict", {"VERDICT", false, true}, F_VERDICT, 0, draw_verdict},
    {"util", {"LOAD", true, true}, F_UTIL, 0, draw_util},
    {"why", {"WHY", false, true}, F_TEXT, FIELD_BIT(F_STATE), draw_why},
    {"tags", {"TAGS", false, false}, F_TAGS, 0, draw_tags},
    {"after", {"AFTER", false, false}, F_AFTER, 0, draw_after},
    {"file", {"FILE", false, false}, F_FILE, 0, draw_file},
    {"line", {"LINE", true, false}, F_LINE, 0, draw_line},
    {"cwd", {"CWD", false, false}, F_CWD, 0, draw_cwd},
    {"log", {"LOG", false, false}, F_LOG, 0, draw_log},
    {"command", {"COMMAND", false, false}, F_COMMAND, FIELD_BIT(F_NAME), draw_command},
    {0},
};

void
queue_column_draw(const char *name, const struct row *row, struct buf *out)
{
    for (const struct queue_column *c = queue_columns; c->name; c++) {
        if (strcmp(c->name, name) == 0)
            c->draw(row, out);
    }
}

const struct queue_column *
queue_column_find(const char *name, size_t n, struct err *e)
{
    const char *names[QUEUE_COLUMNS_MAX + 1] = {0};
    auto_buf struct buf word = BUF_INIT;
    auto_buf struct buf all = BUF_INIT;
    const char *near;

    for (size_t i = 0; queue_columns[i].name; i++) {
        names[i] = queue_columns[i].name;
        if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
            return &queue_columns[i];
    }
    text_add_safe(&word, name, n, 40);
    near = text_nearest(buf_str(&word), names);
    for (int i = 0; names[i]; i++)
        buf_addf(&all, " %s", names[i]);
    return err_set(e, ERR_USAGE, "unknown column '%s'%s%s%s; the columns are:%s",
                   buf_str(&word), near ? ", did you mean '" : "", near ? near : "",
                   near ? "'?" : "", buf_str(&all)),
           NULL;
}
