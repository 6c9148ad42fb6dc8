/* The queue as a table. Each column names the fields of a job it needs and draws one cell
 * from them; the union of the fields is what the daemon is asked for. */
#include "cli/queue_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/connect.h"
#include "cli/render.h"
#include "cli/table.h"
#include "wire/client.h"

/* The fields of a job that columns draw from, in the order of a row. */
enum field {
    F_ID,
    F_USER,
    F_NAME,
    F_STATE,
    F_GPUS,
    F_GPUS_WANTED,
    F_VRAM,
    F_DECLARED,
    F_PEAK,
    F_NOW,
    F_RUN_MS,
    F_LIMIT_MS,
    F_PRIORITY,
    F_REASON,
    F_EXIT_CODE,
    F_SIGNAL,
    F_FILE,
    F_LINE,
    F_CWD,
    F_LOG,
    F_COMMAND,
    FIELDS,
};

static const char *const field_names[FIELDS] = {
    "id",           "user",     "name",    "state",  "gpus",     "gpus_wanted", "vram_mib",
    "declared_mib", "peak_mib", "now_mib", "run_ms", "limit_ms", "priority",    "reason",
    "exit_code",    "signal",   "file",    "line",   "cwd",      "log",         "command",
};

/* The values of one row by field; NULL: not asked for. */
struct row {
    const json_t *v[FIELDS];
};

struct queue_column {
    const char *name;
    struct column shape;
    uint32_t needs; /* bit per field */
    void (*draw)(const struct row *row, struct buf *out);
};

#define BIT(f) (1u << (f))

static const char *
row_str(const struct row *row, enum field f)
{
    const char *s = json_string_value(row->v[f]);

    return s ? s : "";
}

static void
add_value(struct buf *out, const json_t *v)
{
    if (json_is_string(v))
        buf_adds(out, json_string_value(v));
    else if (json_is_integer(v))
        buf_addf(out, "%lld", (long long)json_integer_value(v));
}

static void
add_mib(struct buf *out, const json_t *v)
{
    char size[24];

    if (json_is_integer(v))
        buf_adds(out, format_mib(json_integer_value(v), size));
}

static void
add_ms(struct buf *out, const json_t *v)
{
    char span[24];

    if (json_is_integer(v) && json_integer_value(v) > 0)
        buf_adds(out, format_duration(json_integer_value(v), span));
}

#define DRAW_VALUE(fn, field)                                                                  \
    static void fn(const struct row *row, struct buf *out)                                     \
    {                                                                                          \
        add_value(out, row->v[field]);                                                         \
    }
DRAW_VALUE(draw_id, F_ID)
DRAW_VALUE(draw_user, F_USER)
DRAW_VALUE(draw_name, F_NAME)
DRAW_VALUE(draw_state, F_STATE)
DRAW_VALUE(draw_priority, F_PRIORITY)
DRAW_VALUE(draw_file, F_FILE)
DRAW_VALUE(draw_line, F_LINE)
DRAW_VALUE(draw_cwd, F_CWD)
DRAW_VALUE(draw_log, F_LOG)

static void
draw_gpus(const struct row *row, struct buf *out)
{
    long long wanted = (long long)json_integer_value(row->v[F_GPUS_WANTED]);

    if (json_array_size(row->v[F_GPUS]))
        answer_add_gpus(out, row->v[F_GPUS]);
    else if (row->v[F_GPUS_WANTED] && wanted == 0)
        buf_adds(out, "cpu");
    else if (wanted > 1)
        buf_addf(out, "(%lld)", wanted);
}

static void
draw_vram(const struct row *row, struct buf *out)
{
    if (json_is_integer(row->v[F_VRAM]) && json_integer_value(row->v[F_VRAM]) > 0)
        add_mib(out, row->v[F_VRAM]);
    else if (json_integer_value(row->v[F_GPUS_WANTED]) > 0)
        buf_adds(out, "whole");
}

static void
draw_declared(const struct row *row, struct buf *out)
{
    add_mib(out, row->v[F_DECLARED]);
}

static void
draw_peak(const struct row *row, struct buf *out)
{
    if (json_object_size(row->v[F_PEAK]))
        answer_add_peaks(out, row->v[F_PEAK]);
}

static void
draw_now(const struct row *row, struct buf *out)
{
    if (json_is_object(row->v[F_NOW]) && json_object_size(row->v[F_NOW]))
        answer_add_peaks(out, row->v[F_NOW]);
    else
        add_mib(out, row->v[F_NOW]);
}

static void
draw_time(const struct row *row, struct buf *out)
{
    add_ms(out, row->v[F_RUN_MS]);
}

static void
draw_limit(const struct row *row, struct buf *out)
{
    add_ms(out, row->v[F_LIMIT_MS]);
}

static void
draw_exit(const struct row *row, struct buf *out)
{
    long long number = (long long)json_integer_value(row->v[F_SIGNAL]);

    if (number > 0)
        buf_addf(out, "signal %lld", number);
    else
        add_value(out, row->v[F_EXIT_CODE]);
}

/* Why it waits; for what has ended badly, how. */
static void
draw_reason(const struct row *row, struct buf *out)
{
    const char *reason = row_str(row, F_REASON);

    if (reason[0])
        buf_adds(out, reason);
    else if (strcmp(row_str(row, F_STATE), "FAILED") != 0)
        return;
    else if (json_integer_value(row->v[F_SIGNAL]) > 0)
        draw_exit(row, out);
    else if (json_integer_value(row->v[F_EXIT_CODE]) > 0)
        buf_addf(out, "exit %lld", (long long)json_integer_value(row->v[F_EXIT_CODE]));
}

static void
draw_command(const struct row *row, struct buf *out)
{
    answer_add_command(out, row_str(row, F_NAME), row_str(row, F_COMMAND));
}

static const struct queue_column columns[] = {
    {"id", {"ID", true, false}, BIT(F_ID), draw_id},
    {"user", {"USER", false, false}, BIT(F_USER), draw_user},
    {"name", {"NAME", false, false}, BIT(F_NAME), draw_name},
    {"state", {"STATE", false, false}, BIT(F_STATE), draw_state},
    {"gpus", {"GPU", false, false}, BIT(F_GPUS) | BIT(F_GPUS_WANTED), draw_gpus},
    {"vram", {"VRAM", true, false}, BIT(F_VRAM) | BIT(F_GPUS_WANTED), draw_vram},
    {"declared", {"DECLARED", true, false}, BIT(F_DECLARED), draw_declared},
    {"peak", {"PEAK", true, false}, BIT(F_PEAK), draw_peak},
    {"now", {"NOW", true, false}, BIT(F_NOW), draw_now},
    {"time", {"TIME", true, true}, BIT(F_RUN_MS), draw_time},
    {"limit", {"LIMIT", true, false}, BIT(F_LIMIT_MS), draw_limit},
    {"priority", {"PRIORITY", true, false}, BIT(F_PRIORITY), draw_priority},
    {"reason",
     {"WHY", false, true},
     BIT(F_REASON) | BIT(F_STATE) | BIT(F_EXIT_CODE) | BIT(F_SIGNAL),
     draw_reason},
    {"exit", {"EXIT", true, false}, BIT(F_EXIT_CODE) | BIT(F_SIGNAL), draw_exit},
    {"file", {"FILE", false, false}, BIT(F_FILE), draw_file},
    {"line", {"LINE", true, false}, BIT(F_LINE), draw_line},
    {"cwd", {"CWD", false, false}, BIT(F_CWD), draw_cwd},
    {"log", {"LOG", false, false}, BIT(F_LOG), draw_log},
    {"command", {"COMMAND", false, false}, BIT(F_COMMAND) | BIT(F_NAME), draw_command},
};
#define N_COLUMNS (sizeof columns / sizeof columns[0])

static const char usual[] = "id,user,state,gpus,vram,time,reason,command";

struct format {
    const struct queue_column *column[N_COLUMNS];
    struct column shape[N_COLUMNS];
    int n;
    uint32_t needs;
    int at[FIELDS]; /* where a field stands in a row; -1: not asked for */
};

static const struct queue_column *
find_column(const char *name, size_t n, struct err *e)
{
    const char *names[N_COLUMNS + 1] = {0};
    auto_buf struct buf word = BUF_INIT;
    const char *near;

    for (size_t i = 0; i < N_COLUMNS; i++) {
        names[i] = columns[i].name;
        if (strlen(columns[i].name) == n && memcmp(columns[i].name, name, n) == 0)
            return &columns[i];
    }
    text_add_safe(&word, name, n, 40);
    near = text_nearest(buf_str(&word), names);
    err_set(e, ERR_USAGE, "unknown column '%s'%s%s; 'berth queue --help' lists them",
            buf_str(&word), near ? "; did you mean " : "", near ? near : "");
    return NULL;
}

static int
read_format(const char *text, struct format *f, struct err *e)
{
    *f = (struct format){0};
    for (const char *s = text; *s;) {
        size_t n = strcspn(s, ", ");
        const struct queue_column *c = n ? find_column(s, n, e) : NULL;

        if (n && !c)
            return -1;
        if (c && f->n < (int)N_COLUMNS) {
            f->column[f->n] = c;
            f->shape[f->n++] = c->shape;
            f->needs |= c->needs;
        }
        s += n + (s[n] != '\0');
    }
    if (f->n == 0)
        return err_set(e, ERR_USAGE, "--format names no column; for example: --format %s",
                       usual);
    return 0;
}

static json_t *
list_fields(struct format *f)
{
    json_t *list = json_array();

    for (int i = 0; i < FIELDS; i++) {
        f->at[i] = -1;
        if (f->needs & BIT(i)) {
            f->at[i] = (int)json_array_size(list);
            json_array_append_new(list, json_string(field_names[i]));
        }
    }
    return list;
}

static void
read_row(const struct format *f, const json_t *values, struct row *row)
{
    for (int i = 0; i < FIELDS; i++)
        row->v[i] = f->at[i] < 0 ? NULL : json_array_get(values, (size_t)f->at[i]);
}

/* One user's queue needs no column that repeats the name. */
static void
drop_single_user(struct format *f, const json_t *rows)
{
    const char *first = NULL;
    size_t i;
    json_t *values;

    json_array_foreach(rows, i, values)
    {
        const char *user = json_string_value(json_array_get(values, (size_t)f->at[F_USER]));

        if (!first)
            first = user;
        else if (user && strcmp(user, first) != 0)
            return;
    }
    for (int c = 0; c < f->n; c++) {
        if (f->column[c]->draw != draw_user)
            continue;
        f->n--;
        memmove(&f->column[c], &f->column[c + 1], (size_t)(f->n - c) * sizeof f->column[0]);
        memmove(&f->shape[c], &f->shape[c + 1], (size_t)(f->n - c) * sizeof f->shape[0]);
    }
}

static void
fill_table(const struct format *f, const json_t *rows, struct table *t)
{
    auto_buf struct buf cell = BUF_INIT;
    size_t i;
    json_t *values;

    json_array_foreach(rows, i, values)
    {
        struct row row;

        read_row(f, values, &row);
        for (int c = 0; c < f->n; c++) {
            enum style style = STYLE_NONE;

            buf_clear(&cell);
            f->column[c]->draw(&row, &cell);
            if (f->column[c]->draw == draw_state)
                style = render_state_style(buf_str(&cell));
            table_cell(t, style, buf_str(&cell));
        }
    }
}

int
queue_add(struct client *c, json_t *params, const char *format, const struct term *term,
          struct buf *out, size_t *n, struct err *e)
{
    struct format f;
    auto_json json_t *result = NULL;
    auto_table struct table *t = NULL;
    json_t *rows;

    if (read_format(format ? format : usual, &f, e) < 0) {
        json_decref(params);
        return -1;
    }
    json_object_set_new(params, "fields", list_fields(&f));
    if (client_call(c, "jobs", params, &result, e) < 0)
        return -1;
    rows = json_object_get(result, "rows");
    if (!format)
        drop_single_user(&f, rows);
    *n = json_array_size(rows);
    t = table_new(f.shape, f.n);
    fill_table(&f, rows, t);
    table_print(t, term, out);
    return 0;
}

int
queue_print(const struct cli *cli, json_t *params, const char *format)
{
    struct err e = {0};
    auto_client struct client *c = connect_daemon(cli, &e);
    auto_buf struct buf out = BUF_INIT;
    struct term term = term_of_stdout();
    size_t n = 0;

    if (!c) {
        json_decref(params);
        return cli_fail(&e);
    }
    if (queue_add(c, params, format, &term, &out, &n, &e) < 0)
        return cli_fail(&e);
    if (n == 0 && term.tty) {
        cli_say("no jobs; 'berth queue --all' shows those that have ended");
        return 0;
    }
    return cli_put(&out);
}
