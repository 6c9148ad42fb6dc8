/* Small multiples: all panels have the same axes, so that a policy that does well on one base
 * and badly on another is obvious. Values beyond the axes, or infinite, are drawn on the edge;
 * hovering over a point shows its numbers. */
#include "sim/svg_compare.h"

#include <math.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "sim/svg_page.h"

#define TOP        56
#define PANEL_W    400 /* including the margins around the plot */
#define PANEL_H    330
#define MARGIN_L   48
#define MARGIN_R   16
#define MARGIN_T   28
#define MARGIN_B   46
#define PLOT_W     (PANEL_W - MARGIN_L - MARGIN_R)
#define PLOT_H     (PANEL_H - MARGIN_T - MARGIN_B)
#define COLUMNS    3
#define TICKS      6
#define LATE       1.15 /* a ratio above this counts as late, as in the table */
#define RATIO_MAX  5    /* upper bound on the axes */
#define LABEL_H    12
#define LABEL_W    72
#define LABEL_MOVE 6 /* places tried for a label, above and below its point */

struct axis {
    double from, to, step;
};

/* The labels placed in a panel, so that none covers another. */
struct labels {
    double *x, *y; /* owned */
    size_t n;
};

/* 1, 2 or 5 times a power of ten, for about TICKS ticks. */
static double
step_of(double span)
{
    double power = pow(10, floor(log10(span / TICKS))), rest = span / TICKS / power;
    return power * (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10);
}

static void
widen(struct axis *a, double v)
{
    v = v > RATIO_MAX ? RATIO_MAX : v;
    a->from = v < a->from ? v : a->from;
    a->to = v > a->to ? v : a->to;
}

static void
round_axis(struct axis *a)
{
    a->step = step_of(a->to - a->from);
    a->from = floor(a->from / a->step + 1e-9) * a->step;
    a->to = ceil(a->to / a->step - 1e-9) * a->step;
}

/* Position from 0 to 1; values beyond the axis are put on its edge. */
static double
part_of(const struct axis *a, double v)
{
    double part = (v - a->from) / (a->to - a->from);
    return part < 0 ? 0 : part > 1 ? 1 : part;
}

static double
x_at(const struct axis *a, double left, double v)
{
    return left + MARGIN_L + part_of(a, v) * PLOT_W;
}

static double
y_at(const struct axis *a, double top, double v)
{
    return top + MARGIN_T + (1 - part_of(a, v)) * PLOT_H;
}

static void
add_line(struct buf *out, const char *class, double x1, double y1, double x2, double y2)
{
    buf_addf(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
             class, x1, y1, x2, y2);
}

static void
add_axes(struct buf *out, const struct axis *wait, const struct axis *multi, double left,
         double top)
{
    double right = left + MARGIN_L + PLOT_W, bottom = top + MARGIN_T + PLOT_H;
    int n_x = (int)lround((wait->to - wait->from) / wait->step);
    int n_y = (int)lround((multi->to - multi->from) / multi->step);
    for (int i = 0; i <= n_x; i++) {
        double v = wait->from + i * wait->step, x = x_at(wait, left, v);
        add_line(out, "t", x, top + MARGIN_T, x, bottom);
        buf_addf(out, "<text class=\"x\" x=\"%.1f\" y=\"%.1f\">%+.0f%%</text>\n", x,
                 bottom + 14, (v - 1) * 100);
    }
    for (int i = 0; i <= n_y; i++) {
        double v = multi->from + i * multi->step, y = y_at(multi, top, v);
        add_line(out, "t", left + MARGIN_L, y, right, y);
        buf_addf(out, "<text class=\"s\" x=\"%.1f\" y=\"%.1f\">%.4g</text>\n",
                 left + MARGIN_L - 6, y + 3, v);
    }
    add_line(out, "one", x_at(wait, left, 1), top + MARGIN_T, x_at(wait, left, 1), bottom);
    add_line(out, "one", left + MARGIN_L, y_at(multi, top, 1), right, y_at(multi, top, 1));
    add_line(out, "late", left + MARGIN_L, y_at(multi, top, LATE), right,
             y_at(multi, top, LATE));
    buf_addf(out,
             "<text class=\"x\" x=\"%.1f\" y=\"%.1f\">mean wait against greedy, median</text>\n"
             "<text class=\"x\" transform=\"translate(%.1f %.1f) rotate(-90)\">longest "
             "multi-GPU wait over easy-e, 90th percentile</text>\n",
             left + MARGIN_L + PLOT_W / 2.0, bottom + 32, left + 12,
             top + MARGIN_T + PLOT_H / 2.0);
}

static bool
is_covered(const struct labels *labels, double x, double y)
{
    for (size_t i = 0; i < labels->n; i++) {
        if (fabs(labels->x[i] - x) < LABEL_W && fabs(labels->y[i] - y) < LABEL_H)
            return true;
    }
    return false;
}

/* Beside the point, or as near to it as other labels allow. */
static double
label_y(struct labels *labels, double x, double y)
{
    double at = y;
    for (int i = 1; is_covered(labels, x, at) && i <= 2 * LABEL_MOVE; i++) {
        int lines = (i + 1) / 2;
        at = y + (i % 2 ? LABEL_H : -LABEL_H) * lines;
    }
    labels->x[labels->n] = x;
    labels->y[labels->n++] = at;
    return at;
}

static void
add_point(struct buf *out, const struct compared *p, int hue, double x, double y,
          struct labels *labels, bool to_left)
{
    double label_x = to_left ? x - 8 : x + 8;
    buf_addf(out, "<g><title>");
    svg_add_text(out, p->policy);
    buf_addf(out,
             ": mean wait %+.0f%%, longest multi-GPU wait %.2f</title><circle cx=\"%.1f\" "
             "cy=\"%.1f\" r=\"5\" fill=\"hsl(%d,60%%,48%%)\"/><text class=\"p\" x=\"%.1f\" "
             "y=\"%.1f\"%s>",
             (p->wait - 1) * 100, p->multi, x, y, hue, label_x,
             label_y(labels, to_left ? label_x - LABEL_W : label_x, y) + 4,
             to_left ? " text-anchor=\"end\"" : "");
    svg_add_text(out, p->policy);
    buf_adds(out, "</text></g>\n");
}

static void
add_panel(struct buf *out, const struct compared *points, const char *base, size_t n,
          const struct axis *wait, const struct axis *multi, double left, double top)
{
    auto_free double *x = xmalloc(n * sizeof *x), *y = xmalloc(n * sizeof *y);
    struct labels labels = {.x = x, .y = y};
    buf_addf(out, "<text class=\"f\" x=\"%.1f\" y=\"%.1f\">", left + MARGIN_L,
             top + MARGIN_T - 9);
    svg_add_text(out, base);
    buf_adds(out, "</text>\n");
    add_axes(out, wait, multi, left, top);
    for (size_t i = 0; i < n; i++)
        add_point(out, &points[i], (int)(i * 137 % 360), x_at(wait, left, points[i].wait),
                  y_at(multi, top, points[i].multi), &labels,
                  part_of(wait, points[i].wait) > .7);
}

void
svg_compare(const struct compared *points, const char *const *bases, size_t n_bases,
            size_t n_policies, const char *title, struct buf *out)
{
    struct axis wait = {.from = .9, .to = 1.1}, multi = {.from = .9, .to = 1.2};
    size_t columns = n_bases < COLUMNS ? n_bases : COLUMNS;
    size_t rows = (n_bases + columns - 1) / columns;
    for (size_t i = 0; i < n_bases * n_policies; i++) {
        widen(&wait, points[i].wait);
        widen(&multi, points[i].multi);
    }
    round_axis(&wait);
    round_axis(&multi);
    svg_begin(out, (int)columns * PANEL_W + SVG_LEFT, (int)rows * PANEL_H + TOP,
              ".f{font-size:13px;font-weight:bold;fill:#222}.p{font-size:11px;fill:#111}"
              ".one{stroke:#444;stroke-width:.8}"
              ".late{stroke:#b22;stroke-width:.8;stroke-dasharray:5 3}",
              title,
              "one point for each policy, better to the left and below; red: 1.15 times "
              "easy-e; hover for the numbers");
    for (size_t i = 0; i < n_bases; i++) {
        size_t row = i / columns, column = i % columns;
        add_panel(out, &points[i * n_policies], bases[i], n_policies, &wait, &multi,
                  SVG_LEFT / 2.0 + (double)column * PANEL_W, TOP + (double)row * PANEL_H);
    }
    buf_adds(out, "</svg>\n");
}
