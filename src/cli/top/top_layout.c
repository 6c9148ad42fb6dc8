/* The layout of `berth top`; see top_layout.h. GPUs get at most two fifths of the height, the
 * selected job what remains beside a list of reasonable length. */
#include "cli/top/top_layout.h"

#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/table/render.h"
#include "cli/top/top_model.h"
#include "cli/top/top_problems.h"
#include "cli/verbs/status_verb.h"

#define CLOCK_COLUMNS   10
#define VERDICT_COLUMNS 12
#define LIST_ROWS_MIN   6 /* including its titles */
#define JOB_ROWS_MIN    5

void
top_draw_rule(struct grid *g, struct area a, enum style style, const char *title)
{
    int used;

    grid_fill(g, a.row, a.column, a.columns, STYLE_DIM, "\u2500", '-');
    if (!title[0] || a.columns < 6)
        return;
    used = grid_put(g, a.row, a.column + 3, a.columns - 6, style, title);
    grid_put(g, a.row, a.column + 2, 1, STYLE_NONE, " ");
    grid_put(g, a.row, a.column + 3 + used, 1, STYLE_NONE, " ");
}

/* Where to break a line of at most `room` columns: after a word, if possible. */
static size_t
break_at(const char *s, int room)
{
    size_t word = 0;
    size_t at = 0;

    for (int used = 0; s[at];) {
        size_t len = text_utf8_len(s + at, strlen(s + at));
        auto_buf struct buf one = BUF_INIT;

        text_add_safe(&one, s + at, len ? len : 1, 0);
        used += text_columns(buf_str(&one));
        if (used > room)
            return word > at / 2 ? word : at ? at : 1;
        at += len ? len : 1;
        if (s[at] == ' ' || s[at] == '\0')
            word = at;
    }
    return at;
}

int
top_draw_wrapped(struct grid *g, struct area a, enum style style, const char *s)
{
    int row = 0;

    for (; *s && row < a.rows; row++) {
        auto_buf struct buf line = BUF_INIT;
        size_t n = row == a.rows - 1 ? strlen(s) : break_at(s, a.columns);

        buf_add(&line, s, n);
        grid_put(g, a.row + row, a.column, a.columns, style, buf_str(&line));
        s += n;
        s += strspn(s, " ");
    }
    return row;
}

/* --- head and foot --- */

static void
draw_head(const struct top *t, struct grid *g, const struct top_problems *p)
{
    const char *verdict = !t->connected            ? "no daemon"
                          : p->worst == STYLE_BAD  ? "trouble"
                          : p->worst == STYLE_WARN ? "see below"
                                                   : "all is well";
    enum style style = p->worst == STYLE_NONE && t->connected ? STYLE_GOOD : p->worst;
    auto_buf struct buf counts = BUF_INIT;
    auto_buf struct buf clock = BUF_INIT;
    char host[64] = "";
    int end;
    int used;

    (void)gethostname(host, sizeof host - 1);
    render_clock(&clock, t->now_us);
    used = grid_putf(g, 0, 0, g->columns - VERDICT_COLUMNS, STYLE_BOLD, "berth on %s", host);
    if (t->status) {
        /* The list may have room only for running jobs. */
        status_add_counts(t->status, t->first_reason[0] ? t->first_reason : NULL, &counts);
        grid_put(g, 0, used + 3, g->columns - used - 3 - VERDICT_COLUMNS - CLOCK_COLUMNS,
                 STYLE_NONE, buf_str(&counts));
    }
    end = g->columns;
    if (end >= 2 * (VERDICT_COLUMNS + CLOCK_COLUMNS)) {
        grid_put_right(g, 0, end, CLOCK_COLUMNS, STYLE_DIM, buf_str(&clock));
        end -= CLOCK_COLUMNS;
    }
    if (t->connected || t->trouble)
        grid_put_right(g, 0, end, VERDICT_COLUMNS, style, verdict);
}

/* What keys do, the most useful first: as many as fit. */
static void
draw_keys(struct grid *g, int row)
{
    static const char *const keys[][2] = {
        {"q", "quit"},      {"?", "help"},      {"c", "cancel"},    {"h", "hold"},
        {"r", "release"},   {"l", "log"},       {"/", "filter"},    {"s", "sort"},
        {"e", "explain"},   {"+-", "priority"}, {"p", "pause GPU"}, {"u", "resume GPU"},
        {"a", "ended too"},
    };
    int at = 0;

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        int need = (int)(strlen(keys[i][0]) + strlen(keys[i][1])) + 1;

        if (at + need > g->columns)
            return;
        at += grid_put(g, row, at, g->columns, STYLE_BOLD, keys[i][0]) + 1;
        at += grid_put(g, row, at, g->columns, STYLE_DIM, keys[i][1]) + 2;
    }
}

static void
draw_foot(const struct top *t, struct grid *g)
{
    int row = g->rows - 1;

    if (t->prompt) {
        int used = grid_put(g, row, 0, g->columns, STYLE_BOLD, t->prompt);

        used += 1 + grid_put(g, row, used + 1, g->columns, STYLE_NONE, buf_str(&t->input));
        grid_put(g, row, used, 1, STYLE_NONE, "_");
    } else if (t->message && t->message[0] && t->now_us < t->message_until_us) {
        grid_put(g, row, 0, g->columns, t->message_is_bad ? STYLE_BAD : STYLE_GOOD, t->message);
    } else if (t->page == TOP_MAIN) {
        draw_keys(g, row);
    } else {
        grid_put(g, row, 0, g->columns, STYLE_DIM,
                 "q, Esc or Left: back   Up and Down: scroll   End: the newest");
    }
}

/* Draws as many problems as fit, the most severe first, then the number of the others. Returns
 * the rows used. */
static int
draw_problems(struct grid *g, int row, int rows, const struct top_problems *p)
{
    int shown = p->total <= rows ? p->n : rows - 1;
    int at = 0;

    shown = shown < p->n ? shown : p->n;
    for (int i = 0; i < shown; i++, at++)
        grid_put(g, row + at, 0, g->columns, p->style[i], buf_str(&p->text[i]));
    if (p->total <= shown || rows <= 0)
        return at;
    grid_putf(g, row + at, 0, g->columns, p->worst,
              "and %d more: berth health, berth gpus and berth history say which",
              p->total - shown);
    return at + 1;
}

/* --- pages --- */

static void
draw_main(struct top *t, struct grid *g, int top)
{
    int n = (int)json_array_size(json_object_get(t->gpus, "gpus"));
    int left = g->rows - top - 1;
    struct top_cards fit = top_cards_fit(n, g->columns, g->rows * 2 / 5);
    struct area a = {top, 0, fit.height, g->columns};
    int job;

    if (fit.height > left - LIST_ROWS_MIN / 2) {
        fit = top_cards_fit(n, g->columns, left / 2);
        a.rows = fit.height;
    }
    top_draw_cards(t, g, a, &fit);
    left -= a.rows;
    job = left - LIST_ROWS_MIN < JOB_ROWS_MIN ? 0 : left * 9 / 20;
    if (job > 0 && job < JOB_ROWS_MIN)
        job = JOB_ROWS_MIN;
    a = (struct area){top + a.rows, 0, left - job, g->columns};
    top_draw_list(t, g, a);
    top_draw_job(t, g, (struct area){a.row + a.rows, 0, job, g->columns});
}

/* Draws lines of any length, starting at the scroll position. */
static void
draw_text(struct top *t, struct grid *g, struct area a)
{
    const char *s = buf_str(&t->text);

    for (int skip = t->scroll; skip > 0 && strchr(s, '\n'); skip--)
        s = strchr(s, '\n') + 1;
    while (a.rows > 0 && *s) {
        auto_buf struct buf line = BUF_INIT;
        size_t n = strcspn(s, "\n");
        int used;

        buf_add(&line, s, n);
        used = top_draw_wrapped(g, a, STYLE_NONE, buf_str(&line));
        a.row += used ? used : 1;
        a.rows -= used ? used : 1;
        s += n + (s[n] != '\0');
    }
}

void
top_draw(struct top *t, struct grid *g)
{
    struct top_problems p;
    int row = 1;

    grid_clear(g);
    top_problems_find(t, &p);
    draw_head(t, g, &p);
    row += draw_problems(g, row, g->rows / 4 - row, &p);
    top_problems_free(&p);
    if (t->page == TOP_MAIN)
        draw_main(t, g, row);
    else if (t->page == TOP_LOG)
        top_draw_log(t, g, (struct area){row, 0, g->rows - row - 1, g->columns});
    else
        draw_text(t, g, (struct area){row, 0, g->rows - row - 1, g->columns});
    grid_fill(g, g->rows - 1, 0, g->columns, STYLE_NONE, " ", ' ');
    draw_foot(t, g);
}

void
top_help_text(struct buf *out, bool ascii)
{
    buf_adds(out,
             "Moving    Up Down j k PgUp PgDn Home End   select a job\n"
             "Looking   l Enter   follow the log          e   explain the selected job\n"
             "          /   filter: words, user:ann, state:run, gpu:0\n"
             "          s   sort by another column         a   show ended jobs too\n"
             "Doing     c   cancel the job (asks)         h   hold   r   release\n"
             "          + -   priority up and down        p   pause GPUs   u   resume them\n"
             "          ?   this page                     q   leave\n"
             "\n"
             "A GPU's bar shows its memory, with each job's number at the start of the job's "
             "part: ");
    top_bar_legend(out, ascii);
    buf_adds(out, ".\nThe graph beside it is the load of the last five minutes.\n");
}
