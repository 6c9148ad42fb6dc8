/* The timeline as a picture. In a GPU's lane, jobs that run at the same time are stacked, each
 * as high as its VRAM. A job that finds no gap of its height is drawn in pieces, so that the
 * filled area is always the VRAM held. Colours only tell neighbours apart; a dark edge means
 * several GPUs. Hovering over a box names the job. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "sim/schedule_output.h"
#include "sim/svg_page.h"

#define WIDTH      1400
#define LEFT       SVG_LEFT
#define RIGHT      20
#define TOP        56
#define LANE_GAP   6
#define WAIT_LANE  70
#define PLOT_WIDTH (WIDTH - LEFT - RIGHT)

struct drawing {
    const struct workload *w;
    const struct machine *m;
    const struct schedule *s;
    struct buf *out;
    int64_t from, to; /* range of the time axis */
    double lane;      /* height of a lane */
};

/* A part of a lane held by a job, in MiB from the bottom. */
struct piece {
    int64_t low, high, until;
};

struct lane {
    struct piece *pieces; /* sorted by low */
    size_t n, cap;
};

static double
x_of(const struct drawing *d, int64_t t)
{
    return LEFT + (double)(t - d->from) / (double)(d->to - d->from) * PLOT_WIDTH;
}

static double
lane_top(const struct drawing *d, int card)
{
    return TOP + card * (d->lane + LANE_GAP);
}

static double
lanes_bottom(const struct drawing *d)
{
    return lane_top(d, d->m->n);
}

static void
lane_insert(struct lane *lane, size_t at, struct piece piece)
{
    lane->pieces = xgrow(lane->pieces, lane->n, &lane->cap, sizeof *lane->pieces);
    for (size_t i = lane->n++; i > at; i--)
        lane->pieces[i] = lane->pieces[i - 1];
    lane->pieces[at] = piece;
}

static void
lane_expire(struct lane *lane, int64_t now)
{
    size_t kept = 0;
    for (size_t i = 0; i < lane->n; i++) {
        if (lane->pieces[i].until > now)
            lane->pieces[kept++] = lane->pieces[i];
    }
    lane->n = kept;
}

/* The gap below piece number `at`. */
static struct piece
gap_at(const struct lane *lane, size_t at, int64_t total)
{
    return (struct piece){.low = at ? lane->pieces[at - 1].high : 0,
                          .high = at < lane->n ? lane->pieces[at].low : total};
}

static void
draw_box(const struct drawing *d, size_t job, int card, int64_t low, int64_t high)
{
    const struct sim_job *j = &d->w->jobs[job];
    const struct sim_run *run = &d->s->runs[job];
    double scale = d->lane / (double)d->m->total_mib[card];
    double x = x_of(d, run->start), width = x_of(d, run->start + j->duration) - x;
    double y = lane_top(d, card) + d->lane - (double)high * scale;
    double height = (double)(high - low) * scale;
    if (width < 0.4)
        width = 0.4;
    if (height < 0.6)
        height = 0.6;
    buf_addf(d->out,
             "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
             "fill=\"hsl(%d,%d%%,%d%%)\"/>",
             x, y, width, height, (int)((uint64_t)j->id * 137 % 360),
             45 + (int)(j->id % 3) * 12, 62 + (int)(j->id % 4) * 4);
    if (width > 26 && height > 11)
        buf_addf(d->out, "<text class=\"b\" x=\"%.2f\" y=\"%.2f\">%" PRId64 "</text>",
                 x + width / 2, y + height / 2 + 3, j->id);
}

/* Draws the job into one gap that is high enough, else into all gaps from the bottom up. */
static void
draw_on_card(const struct drawing *d, size_t job, int card, struct lane *lane)
{
    const struct shape *s = &d->w->shapes[d->w->jobs[job].shape];
    int64_t total = d->m->total_mib[card], until = d->s->runs[job].start;
    int64_t want = shape_takes_mib(s, total);
    lane_expire(lane, until);
    until += d->w->jobs[job].duration;
    for (size_t i = 0; i <= lane->n; i++) {
        struct piece gap = gap_at(lane, i, total);
        if (gap.high - gap.low < want)
            continue;
        draw_box(d, job, card, gap.low, gap.low + want);
        lane_insert(lane, i, (struct piece){gap.low, gap.low + want, until});
        return;
    }
    for (size_t i = 0; i <= lane->n && want > 0; i++) {
        struct piece gap = gap_at(lane, i, total);
        int64_t part = gap.high - gap.low < want ? gap.high - gap.low : want;
        if (part <= 0)
            continue;
        draw_box(d, job, card, gap.low, gap.low + part);
        lane_insert(lane, i, (struct piece){gap.low, gap.low + part, until});
        want -= part;
    }
}

static void
draw_job(const struct drawing *d, size_t job, struct lane *lanes)
{
    const struct sim_job *j = &d->w->jobs[job];
    const struct sim_run *run = &d->s->runs[job];
    const struct shape *s = &d->w->shapes[j->shape];
    char ran[24], vram[24], waited[24] = "0s";
    int64_t takes_mib = shape_takes_mib(s, d->m->total_mib[__builtin_ctzll(run->cards)]);
    if (run->start > j->arrival)
        format_duration((run->start - j->arrival) * 1000, waited);
    buf_addf(d->out, "<g%s><title>job %" PRId64 ": %d GPU%s, %s; waited %s, ran %s</title>",
             s->n > 1 ? " class=\"m\"" : "", j->id, s->n, s->n > 1 ? "s" : "",
             s->alone && s->vram_mib == 0 ? "whole" : format_mib(takes_mib, vram), waited,
             format_duration(j->duration * 1000, ran));
    for (uint64_t cards = run->cards; cards; cards &= cards - 1) {
        int card = __builtin_ctzll(cards);
        draw_on_card(d, job, card, &lanes[card]);
    }
    buf_adds(d->out, "</g>\n");
}

static int
compare_starts(const void *a, const void *b, void *arg)
{
    const struct sim_run *runs = arg;
    const uint32_t *i = a, *j = b;
    if (runs[*i].start != runs[*j].start)
        return runs[*i].start < runs[*j].start ? -1 : 1;
    return *i < *j ? -1 : *i > *j;
}

static void
draw_jobs(const struct drawing *d)
{
    struct lane lanes[GPU_MAX] = {0};
    auto_free uint32_t *order = xmalloc((d->w->n + 1) * sizeof *order);
    for (size_t i = 0; i < d->w->n; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, d->w->n, sizeof *order, compare_starts, d->s->runs);
    for (size_t i = 0; i < d->w->n; i++) {
        if (d->s->runs[order[i]].start >= 0)
            draw_job(d, order[i], lanes);
    }
    for (int i = 0; i < GPU_MAX; i++)
        free(lanes[i].pieces);
}

static void
draw_lanes(const struct drawing *d)
{
    char total[24];
    for (int i = 0; i < d->m->n; i++) {
        double top = lane_top(d, i);
        buf_addf(d->out, "<rect class=\"l\" x=\"%d\" y=\"%.2f\" width=\"%d\" height=\"%.2f\"/>",
                 LEFT, top, PLOT_WIDTH, d->lane);
        buf_addf(d->out, "<text class=\"g\" x=\"%d\" y=\"%.2f\">GPU %d</text>", LEFT - 8,
                 top + d->lane / 2 + (d->lane > 26 ? -2 : 4), i);
        if (d->lane > 26)
            buf_addf(d->out, "<text class=\"s\" x=\"%d\" y=\"%.2f\">%s</text>\n", LEFT - 8,
                     top + d->lane / 2 + 11, format_mib(d->m->total_mib[i], total));
    }
}

/* Seconds between marks: 10 to 20 marks, at round times. */
static int64_t
tick_step(int64_t span)
{
    static const int64_t steps[] = {1,     2,     5,      10,     15,     30,     60,    120,
                                    300,   600,   900,    1800,   3600,   7200,   10800, 21600,
                                    43200, 86400, 172800, 432000, 864000, 1728000};
    size_t n = sizeof steps / sizeof *steps;
    for (size_t i = 0; i < n; i++) {
        if (span / steps[i] <= 14)
            return steps[i];
    }
    return (span / 12 / 864000 + 1) * 864000;
}

static void
add_time(struct buf *out, int64_t t)
{
    int64_t days = t / 86400, hours = t / 3600 % 24, minutes = t / 60 % 60;
    if (days)
        buf_addf(out, "%" PRId64 "d", days);
    if (hours || (days == 0 && t >= 3600))
        buf_addf(out, "%s%" PRId64 "h", days ? " " : "", hours);
    if (minutes && days == 0)
        buf_addf(out, "%02" PRId64 "m", minutes);
    if (t < 3600 && t % 60)
        buf_addf(out, "%" PRId64 "s", t % 60);
    if (t == 0)
        buf_adds(out, "0");
}

static void
draw_axis(const struct drawing *d)
{
    double bottom = lanes_bottom(d) + WAIT_LANE;
    int64_t step = tick_step(d->to - d->from);
    for (int64_t t = 0; t <= d->to - d->from; t += step) {
        double x = x_of(d, d->from + t);
        buf_addf(d->out, "<line class=\"t\" x1=\"%.2f\" y1=\"%d\" x2=\"%.2f\" y2=\"%.2f\"/>", x,
                 TOP, x, bottom);
        buf_addf(d->out, "<text class=\"x\" x=\"%.2f\" y=\"%.2f\">", x, bottom + 14);
        add_time(d->out, t);
        buf_adds(d->out, "</text>\n");
    }
}

/* Counts +1 (arrival) and -1 (start) by column, then adds up: the highest number waiting in
 * each. */
static void
draw_waiting(const struct drawing *d)
{
    int change[PLOT_WIDTH + 1] = {0}, in[PLOT_WIDTH + 1] = {0};
    int waiting = 0, most = 0, peaks[PLOT_WIDTH];
    double bottom = lanes_bottom(d) + WAIT_LANE, height = WAIT_LANE - 16;
    for (size_t i = 0; i < d->w->n; i++) {
        if (d->s->runs[i].start < 0)
            continue;
        int a = (int)(x_of(d, d->w->jobs[i].arrival) - LEFT);
        int b = (int)(x_of(d, d->s->runs[i].start) - LEFT);
        if (d->s->runs[i].start == d->w->jobs[i].arrival)
            continue;
        in[a]++;
        change[b]--;
    }
    for (int x = 0; x < PLOT_WIDTH; x++) {
        waiting += in[x];
        peaks[x] = waiting;
        most = waiting > most ? waiting : most;
        waiting += change[x];
    }
    buf_addf(d->out, "<text class=\"g\" x=\"%d\" y=\"%.2f\">waiting</text>", LEFT - 8,
             bottom - height / 2);
    buf_addf(d->out, "<text class=\"s\" x=\"%d\" y=\"%.2f\">%d at most</text>\n", LEFT - 8,
             bottom - height / 2 + 13, most);
    buf_addf(d->out, "<path class=\"w\" d=\"M%d %.2f", LEFT, bottom);
    for (int x = 0; x < PLOT_WIDTH; x++)
        buf_addf(d->out, "V%.1fh1", bottom - (most ? height * peaks[x] / most : 0));
    buf_addf(d->out, "V%.2fz\"/>\n", bottom);
}

int
svg_schedule(const struct workload *w, const struct machine *m, const struct schedule *s,
             const char *title, struct buf *out, struct err *e)
{
    struct drawing d = {.w = w, .m = m, .s = s, .out = out, .from = INT64_MAX, .to = 0};
    if (w->n > SVG_JOBS_MAX)
        return err_set(e, ERR_REFUSED, "too many jobs for a picture: %zu; the maximum is %d",
                       w->n, SVG_JOBS_MAX);
    for (size_t i = 0; i < w->n; i++) {
        int64_t end = s->runs[i].start + w->jobs[i].duration;
        if (s->runs[i].start < 0)
            continue;
        d.from = w->jobs[i].arrival < d.from ? w->jobs[i].arrival : d.from;
        d.to = end > d.to ? end : d.to;
    }
    if (d.from > d.to)
        d.from = d.to;
    if (d.to == d.from)
        d.to++;
    d.lane = m->n <= 8 ? 64 : m->n <= 16 ? 36 : 18;
    svg_begin(out, WIDTH, (int)(lanes_bottom(&d) + WAIT_LANE + 26),
              ".l{fill:#f1f1f1}"
              ".b{font-size:9px;text-anchor:middle;fill:#111;pointer-events:none}"
              "rect{stroke:#fff;stroke-width:.3}.m rect{stroke:#222;stroke-width:.9}"
              ".w{fill:#c96;stroke:none}",
              title,
              "each box is a job, as high as its part of the GPU's VRAM; dark edge: several "
              "GPUs; hover for the name");
    draw_lanes(&d);
    draw_jobs(&d);
    draw_waiting(&d);
    draw_axis(&d);
    buf_adds(out, "</svg>\n");
    return 0;
}
