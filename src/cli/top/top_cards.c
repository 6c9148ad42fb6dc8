/* The GPUs in `berth top`: one bar each with the parts of its memory that jobs hold, and its
 * load in the last minutes. Three rows per GPU if there is room, else two, else one. */
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "cli/ask/answer.h"
#include "cli/table/render.h"
#include "cli/top/top_layout.h"
#include "cli/top/top_model.h"

#define GAP             2
#define WIDE_COLUMNS    78 /* of a GPU with its own rows */
#define COMPACT_COLUMNS 39
#define COMPACT_SPARK   76 /* from this width on, the history fits */
#define PAST_US         INT64_C(300000000)

struct top_cards
top_cards_fit(int n, int columns, int height_max)
{
    int across = columns / WIDE_COLUMNS;
    struct top_cards fit = {.rows = 1, .shown = n};
    int lines;

    if (n == 0)
        return (struct top_cards){.rows = 1, .across = 1, .height = 1};
    if (height_max < 1)
        height_max = 1;
    fit.across = across < 1 ? 1 : across > n ? n : across;
    for (int rows = 3; rows > 1; rows--) {
        fit.height = (n + fit.across - 1) / fit.across * rows;
        fit.rows = rows;
        if (fit.height <= height_max)
            return fit;
    }
    fit.rows = 1;
    for (; fit.across < columns / COMPACT_COLUMNS; fit.across++) {
        if ((n + fit.across - 1) / fit.across <= height_max)
            break;
    }
    lines = (n + fit.across - 1) / fit.across;
    fit.height = lines < height_max ? lines : height_max;
    fit.shown = lines <= height_max ? n : height_max * fit.across - 1; /* and how many more */
    return fit;
}

/* --- the bar --- */

enum part { PART_USED, PART_HELD, PART_OTHERS, PART_FREE };

static const struct {
    const char *glyph;
    char ascii;
    const char *meaning;
} parts[] = {
    [PART_USED] = {"\u2588", '#', "used by the job"},
    [PART_HELD] = {"\u2592", '=', "reserved for the job"},
    [PART_OTHERS] = {"\u2593", 'x', "used by other processes"},
    [PART_FREE] = {"\u00b7", '.', "free"},
};

void
top_bar_legend(struct buf *out, bool ascii)
{
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char mark[] = {parts[i].ascii, '\0'};

        for (int n = 0; n < 3; n++)
            buf_adds(out, ascii ? mark : parts[i].glyph);
        buf_addf(out, " %s%s", parts[i].meaning,
                 i + 1 < sizeof parts / sizeof parts[0] ? ", " : "");
    }
}

struct bar {
    struct grid *g;
    int row, column, columns;
    int64_t total;
    int64_t at; /* MiB drawn so far */
    int drawn;  /* columns drawn so far */
};

/* Draws a small part one column wide, as long as a column is left. */
static void
add_part(struct bar *b, int64_t mib, enum part part, enum style style)
{
    int to;

    if (mib <= 0)
        return;
    b->at += mib;
    to = (int)((b->at * b->columns + b->total / 2) / b->total);
    if (to <= b->drawn)
        to = b->drawn + 1;
    if (to > b->columns)
        to = b->columns;
    grid_fill(b->g, b->row, b->column + b->drawn, to - b->drawn, style, parts[part].glyph,
              parts[part].ascii);
    b->drawn = to;
}

static void
add_hold(struct bar *b, const json_t *hold, int64_t size, int64_t now, enum style style)
{
    int from = b->drawn;
    auto_buf struct buf label = BUF_INIT;

    answer_add_holder(&label, hold);
    add_part(b, now, PART_USED, style);
    add_part(b, size - now, PART_HELD, style);
    if ((int)label.len > b->drawn - from)
        return;
    grid_put(b->g, b->row, b->column + from, (int)label.len, style, buf_str(&label));
    grid_reverse(b->g, b->row, b->column + from, (int)label.len);
}

static int64_t
or_zero(int64_t v)
{
    return v < 0 ? 0 : v;
}

/* A job with a whole GPU holds what no other program uses. */
static int64_t
size_of_hold(const json_t *hold, int64_t now, int64_t all_of_it)
{
    int64_t size = answer_int(hold, "vram_mib", -1);

    if (size < 0)
        size = all_of_it;
    return size > now ? size : now;
}

static void
draw_bar(struct grid *g, const json_t *gpu, int row, int column, int columns)
{
    static const enum style hues[] = {STYLE_HUE_A, STYLE_HUE_B, STYLE_HUE_C};
    struct bar b = {.g = g, .row = row, .column = column + 1, .columns = columns - 2};
    int64_t used = or_zero(answer_int(gpu, "used_mib", 0));
    int64_t others = or_zero(answer_int(gpu, "external_mib", 0));
    int64_t attributed = 0;
    size_t i;
    json_t *hold;

    b.total = answer_int(gpu, "total_mib", 0);
    grid_put(g, row, column, 1, STYLE_DIM, "[");
    grid_put(g, row, column + columns - 1, 1, STYLE_DIM, "]");
    if (b.total <= 0 || b.columns <= 0)
        return;
    json_array_foreach(json_object_get(gpu, "holds"), i, hold) attributed +=
        or_zero(answer_int(hold, "now_mib", 0));
    if (used - attributed > others)
        others = used - attributed; /* by whatever process, it is in use */
    json_array_foreach(json_object_get(gpu, "holds"), i, hold)
    {
        int64_t now = or_zero(answer_int(hold, "now_mib", 0));

        add_hold(&b, hold, size_of_hold(hold, now, b.total - others), now, hues[i % 3]);
    }
    add_part(&b, others, PART_OTHERS, STYLE_WARN);
    add_part(&b, b.total - b.at, PART_FREE, STYLE_DIM);
}

/* --- the history --- */

static const struct top_past *
find_past(const struct top *t, const char *uuid)
{
    for (int i = 0; i < t->n_past; i++) {
        if (strcmp(t->past[i].uuid, uuid) == 0)
            return &t->past[i];
    }
    return NULL;
}

/* The largest value in each of n slices of the last minutes, in percent; -1: unknown. Load or,
 * if that is never reported, memory in use. */
static void
slice_past(const struct top_past *p, int64_t now_us, int *slice, int n)
{
    bool has_load = false;

    for (int i = 0; i < p->n; i++)
        has_load |= p->points[i].util >= 0;
    for (int i = 0; i < p->n; i++) {
        const struct top_point *x = &p->points[i];
        int64_t age_us = now_us - x->at_us;
        int v = has_load ? x->util : x->used_permille < 0 ? -1 : x->used_permille / 10;
        int at = (int)((PAST_US - 1 - age_us) * n / PAST_US);

        if (age_us >= 0 && age_us < PAST_US && v > slice[at])
            slice[at] = v;
    }
}

static void
draw_past(const struct top *t, struct grid *g, const json_t *gpu, int row, int column, int n)
{
    static const char *const glyphs[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char ascii[] = "_.:-=+*#";
    const struct top_past *p = find_past(t, answer_str(gpu, "uuid"));
    int slice[64];

    if (n > (int)(sizeof slice / sizeof slice[0]))
        n = (int)(sizeof slice / sizeof slice[0]);
    for (int i = 0; i < n; i++)
        slice[i] = -1;
    if (p)
        slice_past(p, t->now_us, slice, n);
    for (int i = 0; i < n; i++) {
        int level = slice[i] > 99 ? 7 : slice[i] * 8 / 100;

        if (slice[i] >= 0)
            grid_fill(g, row, column + i, 1, STYLE_GOOD, glyphs[level], ascii[level]);
    }
}

/* --- words --- */

static void
add_percent(const json_t *gpu, struct buf *out, const char *key, const char *unit)
{
    int64_t v = answer_int(gpu, key, -1);

    if (v < 0)
        buf_addf(out, "%7s", "n/a");
    else
        buf_addf(out, "%4lld %-2s", (long long)v, unit);
}

static void
add_holders(const json_t *gpu, struct buf *out)
{
    size_t i;
    json_t *hold;
    char size[24];

    json_array_foreach(json_object_get(gpu, "holds"), i, hold)
    {
        int64_t now = answer_int(hold, "now_mib", -1);
        int64_t demand = answer_int(hold, "vram_mib", -1);

        buf_adds(out, out->len ? "  " : "");
        answer_add_holder(out, hold);
        buf_addf(out, " %s ", answer_str(hold, "user"));
        if (demand < 0)
            buf_addf(out, "%s of the GPU", format_mib(now, size));
        else
            render_pair(out, now, " of ", demand, false);
    }
}

static void
add_strangers(const json_t *gpu, struct buf *out)
{
    size_t i;
    json_t *p;
    char size[24];

    json_array_foreach(json_object_get(gpu, "strangers"), i, p)
    {
        const char *user = answer_str(p, "user");

        buf_addf(out, "%spid %lld (%s) %s",
                 out->len ? "  " : "not Berth's: ", (long long)answer_int(p, "pid", 0),
                 user[0] ? user : "n/a", format_mib(answer_int(p, "mib", -1), size));
    }
}

/* The holders; foreign processes in another colour. */
static void
draw_who(struct grid *g, const json_t *gpu, int row, int column, int columns)
{
    auto_buf struct buf ours = BUF_INIT;
    auto_buf struct buf others = BUF_INIT;
    int64_t free_mib = answer_int(gpu, "free_mib", -1);
    char size[24];
    int used;

    add_holders(gpu, &ours);
    add_strangers(gpu, &others);
    if (ours.len == 0 && others.len == 0)
        buf_adds(&ours, "idle");
    used = grid_put(g, row, column, columns, STYLE_NONE, buf_str(&ours));
    used += used ? 2 : 0;
    used += grid_put(g, row, column + used, columns - used, STYLE_WARN, buf_str(&others));
    if (free_mib >= 0 && used + 20 < columns) {
        auto_buf struct buf text = BUF_INIT;

        buf_addf(&text, "free %s", format_mib(free_mib, size));
        grid_put_right(g, row, column + columns, 20, STYLE_DIM, buf_str(&text));
    }
}

/* --- a GPU --- */

static void
draw_full(const struct top *t, struct grid *g, const json_t *gpu, struct area a)
{
    const char *state = answer_str(gpu, "state");
    auto_buf struct buf figures = BUF_INIT;
    auto_buf struct buf memory = BUF_INIT;
    int spark = a.columns / 5;
    int end = a.column + a.columns;
    int used;

    used = grid_putf(g, a.row, a.column, a.columns, STYLE_BOLD, "GPU %lld",
                     (long long)answer_int(gpu, "index", 0));
    used += 2 + grid_put(g, a.row, a.column + used + 2, a.columns - used - spark - 26,
                         STYLE_NONE, answer_str(gpu, "name"));
    grid_put(g, a.row, a.column + used + 2, 10, render_gpu_style(state), state);
    buf_adds(&figures, "load");
    add_percent(gpu, &figures, "util", "%");
    add_percent(gpu, &figures, "temperature_c", "C");
    grid_put_right(g, a.row, end - spark - 1, 24, STYLE_NONE, buf_str(&figures));
    draw_past(t, g, gpu, a.row, end - spark, spark);
    render_pair(&memory, answer_int(gpu, "used_mib", -1), " of ",
                answer_int(gpu, "total_mib", -1), false);
    draw_bar(g, gpu, a.row + 1, a.column, a.columns - 19);
    grid_put_right(g, a.row + 1, end, 18, STYLE_NONE, buf_str(&memory));
    if (a.rows > 2)
        draw_who(g, gpu, a.row + 2, a.column, a.columns);
}

static void
draw_compact(const struct top *t, struct grid *g, const json_t *gpu, struct area a)
{
    const char *state = answer_str(gpu, "state");
    bool up = strcmp(state, "up") == 0;
    auto_buf struct buf figures = BUF_INIT;
    int spark = a.columns >= COMPACT_SPARK ? a.columns / 5 : 0;
    int end = a.column + a.columns - (spark ? spark + 1 : 0);
    int used = grid_putf(g, a.row, a.column, 3, STYLE_BOLD, "%2lld ",
                         (long long)answer_int(gpu, "index", 0));
    int64_t util = answer_int(gpu, "util", -1);
    int64_t free_mib = answer_int(gpu, "free_mib", -1);

    if (!up)
        used += 1 + grid_put(g, a.row, a.column + used, 8, render_gpu_style(state), state);
    if (free_mib < 0)
        buf_adds(&figures, " n/a free");
    else
        buf_addf(&figures, "%5.1fG free", (double)free_mib / 1024);
    if (util < 0)
        buf_adds(&figures, "  n/a");
    else
        buf_addf(&figures, "%4lld%%", (long long)util);
    if (answer_int(gpu, "temperature_c", -1) >= 0)
        buf_addf(&figures, "%3lldC", (long long)answer_int(gpu, "temperature_c", 0));
    draw_bar(g, gpu, a.row, a.column + used, end - a.column - used - (int)figures.len - 1);
    grid_put_right(g, a.row, end, 24, STYLE_NONE, buf_str(&figures));
    if (spark)
        draw_past(t, g, gpu, a.row, end + 1, spark);
}

void
top_draw_cards(const struct top *t, struct grid *g, struct area a, const struct top_cards *fit)
{
    const json_t *gpus = json_object_get(t->gpus, "gpus");
    int n = (int)json_array_size(gpus);
    int width = (a.columns - GAP * (fit->across - 1)) / fit->across;
    int i;

    if (n == 0 && t->gpus) {
        grid_put(g, a.row, a.column, a.columns, STYLE_WARN,
                 "no GPUs; jobs that request none can run ('berth doctor' says why)");
        return;
    }
    for (i = 0; i < fit->shown && i < n; i++) {
        const json_t *gpu = json_array_get(gpus, (size_t)i);
        struct area one = {a.row + i / fit->across * fit->rows,
                           a.column + i % fit->across * (width + GAP), fit->rows, width};

        if (fit->rows > 1)
            draw_full(t, g, gpu, one);
        else
            draw_compact(t, g, gpu, one);
    }
    if (i < n)
        grid_putf(g, a.row + i / fit->across, a.column + i % fit->across * (width + GAP), width,
                  STYLE_WARN, "and %d more; enlarge the window to see them", n - i);
}
