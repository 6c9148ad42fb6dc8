/* The queue as a table. Each column names the fields of a job it needs and draws one cell
 * from them; the union of the fields is what the daemon is asked for. */
#include "cli/queue_table.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/connect.h"
#include "cli/render.h"
#include "cli/scan.h"
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

/* The values of one row by field; of type SCAN_NONE: not asked for. */
struct row {
    struct scan_value v[FIELDS];
};

struct queue_column {
    const char *name;
    struct column shape;
    uint32_t needs; /* bit per field */
    void (*draw)(const struct row *row, struct buf *out);
};

#define BIT(f) (1u << (f))

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

static void
add_peaks(struct buf *out, const struct scan_value *v)
{
    auto_json json_t *peaks = v->type == SCAN_OBJECT ? scan_tree(v) : NULL;

    if (json_object_size(peaks))
        answer_add_peaks(out, peaks);
}

#define DRAW(fn, field, draw)                                                                  \
    static void fn(const struct row *row, struct buf *out)                                     \
    {                                                                                          \
        draw(out, &row->v[field]);                                                             \
    }
DRAW(draw_id, F_ID, scan_add)
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

static void
draw_vram(const struct row *row, struct buf *out)
{
    if (scan_int(&row->v[F_VRAM], 0) > 0)
        add_mib(out, &row->v[F_VRAM]);
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

/* Why it waits; for what has failed, how. */
static void
draw_reason(const struct row *row, struct buf *out)
{
    if (row->v[F_REASON].type == SCAN_STRING)
        scan_add(out, &row->v[F_REASON]);
    else if (!scan_is(&row->v[F_STATE], "FAILED"))
        return;
    else if (scan_int(&row->v[F_SIGNAL], 0) > 0)
        draw_exit(row, out);
    else if (row->v[F_EXIT_CODE].type == SCAN_NULL)
        buf_adds(out, "could not start");
    else
        buf_addf(out, "exit %lld", (long long)scan_int(&row->v[F_EXIT_CODE], 1));
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
    if (near)
        err_set(e, ERR_USAGE, "unknown column '%s'; did you mean '%s'?", buf_str(&word), near);
    else
        err_set(e, ERR_USAGE, "unknown column '%s'; 'berth queue --help' lists them",
                buf_str(&word));
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

/* The fields come in the order in which they were asked for. */
static bool
read_row(const struct format *f, struct scan *rows, struct row *row)
{
    struct scan_value more;

    if (!scan_open(rows))
        return false;
    for (int i = 0; i < FIELDS; i++) {
        row->v[i] = (struct scan_value){0};
        if (f->at[i] >= 0)
            scan_next(rows, &row->v[i]);
    }
    while (scan_next(rows, &more))
        continue;
    scan_close(rows);
    return true;
}

static void
draw_row(const struct format *f, const struct row *row, struct table *t, struct buf *cell)
{
    for (int c = 0; c < f->n; c++) {
        enum style style = STYLE_NONE;

        buf_clear(cell);
        f->column[c]->draw(row, cell);
        if (f->column[c]->draw == draw_state)
            style = render_state_style(buf_str(cell));
        table_cell(t, style, buf_str(cell));
    }
}

static bool
is_own_name(const struct scan_value *user)
{
    const struct passwd *pw = getpwuid(geteuid());

    return pw && scan_is(user, pw->pw_name);
}

/* True: all rows are the caller's own. */
static bool
fill_table(const struct format *f, struct scan *rows, struct table *t)
{
    auto_buf struct buf cell = BUF_INIT;
    struct scan_value first = {0};
    bool one = true;
    struct row row;

    while (read_row(f, rows, &row)) {
        const struct scan_value *user = &row.v[F_USER];

        draw_row(f, &row, t, &cell);
        if (!first.text)
            first = *user;
        one = one && user->text && user->len == first.len &&
              memcmp(user->text, first.text, user->len) == 0;
    }
    return one && (!first.text || is_own_name(&first));
}

/* One user's queue needs no column that repeats the name. */
static void
hide_user(const struct format *f, struct table *t)
{
    for (int c = 0; c < f->n; c++) {
        if (f->column[c]->draw == draw_user)
            table_hide(t, c);
    }
}

int
queue_table_add(struct client *c, json_t *params, const char *format, const struct term *term,
                struct buf *out, size_t *n, struct err *e)
{
    struct format f;
    auto_table struct table *t = NULL;
    const char *text;
    size_t len;
    struct scan rows;

    if (read_format(format ? format : usual, &f, e) < 0) {
        json_decref(params);
        return -1;
    }
    json_object_set_new(params, "fields", list_fields(&f));
    if (client_call_raw(c, "jobs", params, &text, &len, e) < 0)
        return -1;
    rows = (struct scan){text, text + len};
    t = table_new(f.shape, f.n);
    if (scan_open(&rows) && scan_find(&rows, "rows") && scan_open(&rows) &&
        fill_table(&f, &rows, t) && !format)
        hide_user(&f, t);
    *n = table_rows(t);
    table_print(t, term, out);
    return 0;
}

int
queue_table_print(const struct cli *cli, json_t *params, const char *format)
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
    if (queue_table_add(c, params, format, &term, &out, &n, &e) < 0)
        return cli_fail(&e);
    if (n == 0 && term.tty) {
        cli_say("no jobs; 'berth queue --all' shows those that have ended");
        return 0;
    }
    return cli_put(&out);
}
