/* The selected job in `berth top`: its properties and use, why it waits, and the end of its
 * log. */
#include <string.h>

#include "base/buf.h"
#include "cli/ask/answer.h"
#include "cli/table/render.h"
#include "cli/top/top_layout.h"
#include "cli/top/top_model.h"

static void
add_cell(const struct row *row, const char *name, const char *label, struct buf *out)
{
    auto_buf struct buf cell = BUF_INIT;

    queue_column_draw(name, row, &cell);
    if (cell.len)
        buf_addf(out, "%s%s %s", out->len ? "  " : "", label, buf_str(&cell));
}

static void
add_title(const struct top *t, const struct row *row, struct buf *out)
{
    buf_adds(out, "job ");
    top_add_selected(t, out);
    buf_addc(out, ' ');
    scan_add(out, &row->v[F_STATE]);
    if (row->v[F_GPUS].len > 2)
        add_cell(row, "gpus", "on gpu", out);
    add_cell(row, "user", "of", out);
}

static void
add_times(const struct top *t, const struct row *row, struct buf *out)
{
    auto_buf struct buf ran = BUF_INIT;

    add_cell(row, "submitted", "submitted", out);
    add_cell(row, "started", "started", out);
    add_cell(row, "ended", "ended", out);
    top_add_run_time(t, row, &ran);
    if (ran.len)
        buf_addf(out, "  runs %s", buf_str(&ran));
    else
        add_cell(row, "time", "ran", out);
    add_cell(row, "limit", "limit", out);
    if (scan_int(&row->v[F_PRIORITY], 0) != 0)
        add_cell(row, "priority", "priority", out);
    add_cell(row, "after", "after", out);
    add_cell(row, "tags", "tags", out);
}

static void
add_memory(const struct top *t, const struct row *row, struct buf *out)
{
    bool several = scan_int(&row->v[F_GPUS_WANTED], 0) > 1;
    auto_buf struct buf now = BUF_INIT;

    add_cell(row, "vram", several ? "VRAM requested per GPU" : "VRAM requested", out);
    top_add_use(t, row, &now);
    if (now.len)
        buf_addf(out, "  uses %s%s", buf_str(&now), several ? " in all" : "");
    add_cell(row, "peak", several ? "peak on one" : "peak", out);
    add_cell(row, "share", "share", out);
}

/* True if the last explanation is about this job. */
static bool
is_explained(const struct top *t)
{
    return t->explain && t->selected && answer_int(t->explain, "id", 0) == t->selected;
}

static struct area
below(struct area a, int rows)
{
    rows = rows < a.rows ? rows : a.rows;
    return (struct area){a.row + rows, a.column, a.rows - rows, a.columns};
}

static struct area
draw_line(struct grid *g, struct area a, enum style style, const char *text)
{
    if (a.rows < 1 || !text[0])
        return a;
    grid_put(g, a.row, a.column, a.columns, style, text);
    return below(a, 1);
}

static struct area
draw_wrapped(struct grid *g, struct area a, int rows, enum style style, const char *text)
{
    struct area some = a;

    some.rows = rows < a.rows ? rows : a.rows;
    return below(a, top_draw_wrapped(g, some, style, text));
}

/* Draws why it waits, or how it ended, and what would help. */
static struct area
draw_why(const struct top *t, struct grid *g, struct area a)
{
    const char *state = is_explained(t) ? answer_str(t->explain, "state") : "";
    const char *help = answer_str(t->explain, "help");
    auto_buf struct buf text = BUF_INIT;

    if (!state[0] || render_state_is_active(state) || strcmp(state, "COMPLETED") == 0)
        return a;
    buf_adds(&text, answer_str(t->explain, "text"));
    if (answer_int(t->explain, "position", 0) > 0)
        buf_addf(&text, "; position %lld of %lld",
                 (long long)answer_int(t->explain, "position", 0),
                 (long long)answer_int(t->explain, "waiting", 0));
    a = draw_wrapped(g, a, 2, render_state_is_final(state) ? STYLE_BAD : STYLE_WARN,
                     buf_str(&text));
    if (!help[0])
        return a;
    buf_clear(&text);
    buf_addf(&text, "would help: %s", help);
    return draw_wrapped(g, a, 2, STYLE_GOOD, buf_str(&text));
}

void
top_draw_job(const struct top *t, struct grid *g, struct area a)
{
    auto_buf struct buf text = BUF_INIT;
    struct row row;

    if (a.rows < 2)
        return;
    if (!top_selected(t, &row)) {
        top_draw_rule(g, a, STYLE_DIM, "");
        return;
    }
    add_title(t, &row, &text);
    top_draw_rule(g, a, STYLE_BOLD, buf_str(&text));
    a = below(a, 1);
    buf_clear(&text);
    queue_column_draw("command", &row, &text);
    a = draw_wrapped(g, a, a.rows > 8 ? 3 : 1, STYLE_NONE, buf_str(&text));
    a = draw_why(t, g, a);
    buf_clear(&text);
    add_times(t, &row, &text);
    a = draw_line(g, a, STYLE_DIM, buf_str(&text));
    buf_clear(&text);
    add_memory(t, &row, &text);
    a = draw_line(g, a, STYLE_DIM, buf_str(&text));
    if (a.rows < 2)
        return;
    buf_clear(&text);
    buf_addf(&text, "log %s", t->log.path ? t->log.path : "");
    if (t->log.path && t->log.n > 0) {
        top_draw_rule(g, a, STYLE_DIM, buf_str(&text));
        a = below(a, 1);
    }
    top_draw_log(t, g, a);
}

void
top_draw_log(const struct top *t, struct grid *g, struct area a)
{
    const struct top_log *log = &t->log;
    size_t off = t->page == TOP_LOG && t->scroll > 0 ? (size_t)t->scroll : 0;
    size_t n;
    size_t first;

    if (t->page == TOP_LOG && a.rows > 1) {
        auto_buf struct buf title = BUF_INIT;

        buf_adds(&title, "job ");
        top_add_selected(t, &title);
        buf_addf(&title, "  log %s", log->path ? log->path : "");
        top_draw_rule(g, a, STYLE_BOLD, buf_str(&title));
        a = below(a, 1);
    }
    if (a.rows < 1)
        return;
    if (log->n == 0) {
        grid_put(g, a.row, a.column, a.columns, STYLE_DIM, log->why ? log->why : "");
        return;
    }
    if (off + (size_t)a.rows > log->n)
        off = log->n > (size_t)a.rows ? log->n - (size_t)a.rows : 0;
    n = log->n - off;
    first = n > (size_t)a.rows ? n - (size_t)a.rows : 0;
    for (size_t i = first; i < n; i++)
        grid_put(g, a.row + (int)(i - first), a.column, a.columns, STYLE_NONE, log->lines[i]);
}
