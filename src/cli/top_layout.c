/* The picture of `berth top`: what stands where; see top_layout.h. Cards get two fifths of the
 * height at most, the selected job what is left beside a list of some length. */
#include "cli/top_layout.h"

#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/answer.h"
#include "cli/gpu_table.h"
#include "cli/render.h"
#include "cli/status.h"
#include "cli/top_model.h"

#define SILENT_MS       3000 /* an answer may take so long */
#define CLOCK_COLUMNS   10
#define VERDICT_COLUMNS 12
#define PROBLEMS_MAX    4
#define LIST_ROWS_MIN   6 /* with its titles */
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

/* Where a line of at most `room` columns may end: behind a word, if one ends in it. */
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

/* ------------------------------------------------------------------ what is wrong */

struct problems {
    struct buf text[PROBLEMS_MAX];
    enum style style[PROBLEMS_MAX];
    int n;
    enum style worst;
};

static struct buf *
add_problem(struct problems *p, enum style style)
{
    if (style == STYLE_BAD || p->worst == STYLE_NONE)
        p->worst = style;
    if (p->n == PROBLEMS_MAX)
        return NULL;
    p->style[p->n] = style;
    return &p->text[p->n++];
}

static void
say_problem(struct problems *p, enum style style, const char *words)
{
    struct buf *line = add_problem(p, style);

    if (line)
        buf_adds(line, words);
}

static void
find_daemon_problems(const struct top *t, struct problems *p)
{
    const json_t *daemon = json_object_get(t->status, "daemon");
    const json_t *unknown = json_object_get(t->gpus, "unknown_since");
    struct buf *line;
    char span[24];

    if (!t->connected && t->trouble && (line = add_problem(p, STYLE_BAD)))
        buf_addf(line, "trying again: %s", t->trouble);
    if (t->silent_ms >= SILENT_MS && (line = add_problem(p, STYLE_BAD)))
        buf_addf(line, "the daemon has not answered for %s",
                 format_duration(t->silent_ms, span));
    if (json_is_object(unknown) && (line = add_problem(p, STYLE_BAD)))
        buf_addf(line,
                 "the GPUs have not answered since %s%s%s; these are the last figures, and new "
                 "work for them waits",
                 answer_str(unknown, "rfc3339"),
                 answer_str(t->gpus, "probe_error")[0] ? ": " : "",
                 answer_str(t->gpus, "probe_error"));
    if (!t->health && answer_str(daemon, "disk_trouble")[0] &&
        (line = add_problem(p, STYLE_BAD)))
        buf_addf(line, "nothing new starts: %s", answer_str(daemon, "disk_trouble"));
    if (answer_bool(daemon, "stopping"))
        say_problem(p, STYLE_WARN, "the daemon is stopping: nothing new starts");
}

/* What has no place of its own on the screen. Cards and the probe have one. */
static void
find_ailments(const struct top *t, struct problems *p)
{
    size_t i;
    json_t *check;

    json_array_foreach(json_object_get(t->health, "checks"), i, check)
    {
        const char *name = answer_str(check, "name");
        const char *state = answer_str(check, "state");
        struct buf *line;

        if (strcmp(state, "ok") == 0 || strcmp(name, "gpu") == 0 || strcmp(name, "probe") == 0)
            continue;
        line = add_problem(p, strcmp(state, "bad") == 0 ? STYLE_BAD : STYLE_WARN);
        if (line)
            buf_addf(line, "%s: %s", name, answer_str(check, "text"));
    }
}

static void
find_excess(const json_t *gpu, struct problems *p)
{
    auto_buf struct buf words = BUF_INIT;
    struct buf *line;

    gpu_table_add_excess(gpu, &words);
    for (const char *s = buf_str(&words); *s; s += strcspn(s, "\n") + 1) {
        if ((line = add_problem(p, STYLE_WARN)))
            buf_add(line, s, strcspn(s, "\n"));
    }
}

static void
find_problems(const struct top *t, struct problems *p)
{
    size_t i;
    json_t *gpu;

    *p = (struct problems){0};
    find_daemon_problems(t, p);
    find_ailments(t, p);
    json_array_foreach(json_object_get(t->gpus, "gpus"), i, gpu)
    {
        const char *state = answer_str(gpu, "state");
        bool is_out = strcmp(state, "lost") == 0 || strcmp(state, "sick") == 0;
        auto_buf struct buf words = BUF_INIT;
        struct buf *line;

        gpu_table_add_state(gpu, &words);
        if (words.len && (line = add_problem(p, is_out ? STYLE_BAD : STYLE_WARN)))
            buf_add(line, words.data, strcspn(words.data, "\n"));
    }
    json_array_foreach(json_object_get(t->gpus, "gpus"), i, gpu) find_excess(gpu, p);
}

static void
free_problems(struct problems *p)
{
    for (int i = 0; i < p->n; i++)
        buf_free(&p->text[i]);
}

/* ------------------------------------------------------------------ head and foot */

static void
draw_head(const struct top *t, struct grid *g, const struct problems *p)
{
    const char *verdict = !t->connected            ? "no daemon"
                          : p->worst == STYLE_BAD  ? "trouble"
                          : p->worst == STYLE_WARN ? "look below"
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
        /* The list may have room only for those that run. */
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

/* What a key does, the most wanted first: as many as there is room for. */
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

/* ------------------------------------------------------------------ pages */

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

/* Lines of any length, from the one to which was scrolled. */
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
    struct problems p;
    int row = 1;

    grid_clear(g);
    find_problems(t, &p);
    draw_head(t, g, &p);
    for (int i = 0; i < p.n && row < g->rows / 4; i++, row++)
        grid_put(g, row, 0, g->columns, p.style[i], buf_str(&p.text[i]));
    free_problems(&p);
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
    buf_adds(
        out,
        "Moving    Up Down j k PgUp PgDn Home End   through the jobs\n"
        "Looking   l Enter   follow the log          e   explain the selected job\n"
        "          /   show only some: words, user:ann, state:run, gpu:0\n"
        "          s   sort by something else        a   show ended jobs too\n"
        "Doing     c   cancel the job (asks)         h   hold   r   release\n"
        "          + -   priority up and down        p   pause GPUs   u   resume them\n"
        "          ?   this page                     q   leave\n"
        "\n"
        "A card's bar shows who has what of its memory. A job's number stands where its part "
        "begins. "
        "There are ");
    top_bar_legend(out, ascii);
    buf_adds(out, ".\nThe steps beside it are its load in the last five minutes.\n");
}
