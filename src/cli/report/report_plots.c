/* The plots of a report, as SVG within a page: report_html.c frames them and defines their
 * colours as CSS variables. Positions are percentages of the width, so that plots fit phones
 * and screens while text keeps its size. Pointing at a drawn item shows its numbers. */
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "cli/ask/answer.h"
#include "cli/report/report_verb.h"

#define TICKS        5
#define CARD_HEIGHT  58
#define BUSY_HEIGHT  5
#define WAITS_HEIGHT 150
#define SCATTER_HIGH 320

/* Times at the quarters of a plot, below it. */
static void
add_time_axis(const json_t *r, struct buf *out)
{
    int64_t span = report_span_us(r), from = report_bin_at(r, 0);

    buf_adds(out, "<div class=\"ticks\">");
    for (int i = 0; i < TICKS; i++) {
        buf_adds(out, "<span>");
        report_add_day(out, from + span * i / (TICKS - 1), span);
        buf_adds(out, "</span>");
    }
    buf_adds(out, "</div>");
}

static void
add_bin_time(const json_t *r, size_t i, struct buf *out)
{
    int64_t span = report_span_us(r) < INT64_C(86400) * 1000000 ? report_span_us(r)
                                                                : INT64_C(86400) * 2000000;

    report_add_day(out, report_bin_at(r, i), span);
    buf_adds(out, " to ");
    report_add_day(out, report_bin_at(r, i + 1), span);
}

static void
add_rect(struct buf *out, const char *class, double x, double width, double y, double height)
{
    if (height <= 0)
        return;
    buf_addf(out,
             "<rect class=\"%s\" x=\"%.3f%%\" width=\"%.3f%%\" y=\"%.1f\" height=\"%.1f\"/>",
             class, x, width, y, height);
}

/* --- GPUs over time --- */

static int64_t
at(const json_t *list, size_t i)
{
    return json_integer_value(json_array_get(list, i));
}

static void
add_card_bin(const json_t *r, const json_t *bin, size_t i, size_t n, int64_t scale,
             struct buf *out)
{
    double x = 100.0 * (double)i / (double)n, width = 100.0 / (double)n;
    double asked = (double)at(bin, 1) / (double)scale,
           used = (double)at(bin, 2) / (double)scale;
    char size[2][24];

    asked = asked > 1 ? 1 : asked;
    used = used > 1 ? 1 : used;
    if (at(bin, 0) == 0)
        return;
    buf_adds(out, "<g><title>");
    add_bin_time(r, i, out);
    buf_addf(out, ": busy %.0f %%, requested %s, peaks %s</title>", (double)at(bin, 0) / 10,
             format_mib(at(bin, 1), size[0]), format_mib(at(bin, 2), size[1]));
    add_rect(out, "hit", x, width, 0, CARD_HEIGHT + BUSY_HEIGHT + 2);
    add_rect(out, "asked", x, width, CARD_HEIGHT * (1 - asked), CARD_HEIGHT * asked);
    add_rect(out, "used", x, width, CARD_HEIGHT * (1 - used), CARD_HEIGHT * used);
    buf_addf(out,
             "<rect class=\"busy\" x=\"%.3f%%\" width=\"%.3f%%\" y=\"%d\" height=\"%d\" "
             "opacity=\"%.2f\"/></g>",
             x, width, CARD_HEIGHT + 2, BUSY_HEIGHT, .15 + .85 * (double)at(bin, 0) / 1000);
}

/* The largest total that was requested, for a GPU whose size is no longer known. */
static int64_t
most_asked(const json_t *bins)
{
    const json_t *bin;
    int64_t most = 1;
    size_t i;

    json_array_foreach(bins, i, bin) most = at(bin, 1) > most ? at(bin, 1) : most;
    return most;
}

static void
add_card(const json_t *r, const json_t *gpu, struct buf *out)
{
    const json_t *bins = json_object_get(gpu, "bins"), *bin;
    int64_t total = answer_int(gpu, "total_mib", 0);
    size_t i, n = json_array_size(bins);
    char size[24];

    buf_addf(out,
             "<div class=\"lane\"><div class=\"side\"><b>GPU %lld</b><span>%s</span>"
             "<span>busy %.0f %%</span></div><svg height=\"%d\" role=\"img\" aria-label=\"GPU "
             "%lld, busy %.0f %% of the time\">",
             (long long)answer_int(gpu, "index", 0),
             json_is_true(json_object_get(gpu, "gone"))
                 ? "gone"
                 : format_mib(total > 0 ? total : -1, size),
             json_number_value(json_object_get(gpu, "busy")) * 100,
             CARD_HEIGHT + BUSY_HEIGHT + 2, (long long)answer_int(gpu, "index", 0),
             json_number_value(json_object_get(gpu, "busy")) * 100);
    buf_addf(out, "<rect class=\"ground\" width=\"100%%\" height=\"%d\"/>", CARD_HEIGHT);
    json_array_foreach(bins, i, bin)
        add_card_bin(r, bin, i, n, total > 0 ? total : most_asked(bins), out);
    buf_addf(out,
             "<line class=\"half\" x1=\"0\" x2=\"100%%\" y1=\"%d\" y2=\"%d\"/></svg></div>\n",
             CARD_HEIGHT / 2, CARD_HEIGHT / 2);
}

void
report_plot_gpus(const json_t *r, struct buf *out)
{
    const json_t *gpu;
    size_t i;

    buf_adds(out, "<p class=\"key\"><i class=\"k-asked\"></i>VRAM requested <i "
                  "class=\"k-used\"></i>peak VRAM <i class=\"k-busy\"></i>GPU allocated; the "
                  "height of a lane is the GPU's VRAM, the line half of it</p>\n");
    json_array_foreach(json_object_get(r, "gpus"), i, gpu) add_card(r, gpu, out);
    buf_adds(out, "<div class=\"lane\"><div class=\"side\"></div>");
    add_time_axis(r, out);
    buf_adds(out, "</div>\n");
}

/* --- requested against used --- */

/* The next round number of GiB. */
static int64_t
round_gib(int64_t mib)
{
    static const int64_t steps[] = {1,  2,  4,  8,  12,  16,  24,  32,
                                    48, 64, 80, 96, 128, 160, 192, 256};

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (mib <= steps[i] * 1024)
            return steps[i];
    return (mib + 1024 * 256 - 1) / (1024 * 256) * 256;
}

static void
add_point(const json_t *p, double scale, struct buf *out)
{
    double asked = (double)at(p, 0), peak = (double)at(p, 1);
    const char *class = peak > asked * 1.1 ? "under" : peak < asked * .9 ? "over" : "within";
    char size[2][24];

    buf_addf(out, "<circle class=\"%s\" cx=\"%.2f%%\" cy=\"%.2f%%\" r=\"4\"><title>job %lld (",
             class, asked / scale * 100, 100 - peak / scale * 100, (long long)at(p, 2));
    report_add_escaped(out, json_string_value(json_array_get(p, 3))
                                ? json_string_value(json_array_get(p, 3))
                                : "?");
    buf_addf(out, "): requested %s, used %s</title></circle>", format_mib(at(p, 0), size[0]),
             format_mib(at(p, 1), size[1]));
}

static void
add_grid(struct buf *out)
{
    for (int i = 0; i <= 4; i++)
        buf_addf(out,
                 "<line class=\"grid\" x1=\"0\" x2=\"100%%\" y1=\"%d%%\" y2=\"%d%%\"/>"
                 "<line class=\"grid\" y1=\"0\" y2=\"100%%\" x1=\"%d%%\" x2=\"%d%%\"/>",
                 i * 25, i * 25, i * 25, i * 25);
}

static void
add_numbers(struct buf *out, const char *class, double most, const char *unit, bool down)
{
    buf_addf(out, "<div class=\"%s\">", class);
    for (int i = 0; i < TICKS; i++) {
        double v = most * (down ? TICKS - 1 - i : i) / (TICKS - 1);
        buf_addf(out, "<span>%.*f%s</span>",
                 fabs(v * 10 - round(v * 10)) > .01 ? 2
                 : fabs(v - round(v)) > .01         ? 1
                                                    : 0,
                 v, unit);
    }
    buf_adds(out, "</div>");
}

void
report_plot_scatter(const json_t *r, struct buf *out)
{
    const json_t *points = json_object_get(r, "scatter"), *p;
    int64_t most = 1024;
    size_t i;

    json_array_foreach(points, i, p)
    {
        most = at(p, 0) > most ? at(p, 0) : most;
        most = at(p, 1) > most ? at(p, 1) : most;
    }
    if (json_array_size(points) == 0) {
        buf_adds(out, "<p class=\"none\">No job that declared its VRAM has completed.</p>\n");
        return;
    }
    double gib = (double)round_gib(most);
    buf_adds(out, "<p class=\"key\"><i class=\"k-over\"></i>requested more <i "
                  "class=\"k-within\"></i>within 10 % <i class=\"k-under\"></i>used more than "
                  "requested</p>\n<div class=\"plot\">");
    add_numbers(out, "y", gib, "", true);
    buf_addf(out,
             "<svg class=\"dots\" height=\"%d\" role=\"img\" aria-label=\"VRAM requested and "
             "used, one dot per job\">",
             SCATTER_HIGH);
    add_grid(out);
    buf_adds(out, "<line class=\"diagonal\" x1=\"0\" y1=\"100%\" x2=\"100%\" y2=\"0\"/>");
    json_array_foreach(points, i, p) add_point(p, gib * 1024, out);
    buf_adds(out, "</svg>");
    add_numbers(out, "ticks", gib, "", false);
    buf_adds(out,
             "</div>\n<p class=\"axis\">requested, GiB (x axis); peak, GiB (y axis)</p>\n");
}

/* --- waits --- */

void
report_plot_wait_classes(const json_t *r, struct buf *out)
{
    const json_t *waits = json_object_get(r, "waits");
    const json_t *below = json_object_get(waits, "below_ms"),
                 *jobs = json_object_get(waits, "jobs");
    size_t n = json_array_size(jobs);
    int64_t most = 1;

    while (n > 1 && at(jobs, n - 1) == 0)
        n--;
    for (size_t i = 0; i < n; i++)
        most = at(jobs, i) > most ? at(jobs, i) : most;
    buf_adds(out, "<div class=\"bars\">");
    for (size_t i = 0; i < n; i++) {
        bool last = i == json_array_size(below);

        buf_adds(out, last ? "<span>longer than " : "<span>under ");
        report_add_edge(out, at(below, last ? i - 1 : i));
        buf_addf(out, "</span><div><i style=\"width:%.2f%%\"></i><b>%lld</b></div>",
                 80.0 * (double)at(jobs, i) / (double)most, (long long)at(jobs, i));
    }
    buf_adds(out, "</div>\n");
}

/* Chooses the unit that fits the longest wait. */
static double
wait_unit(int64_t most_ms, const char **name)
{
    *name = most_ms > 3 * 3600000 ? "h" : most_ms > 3 * 60000 ? "min" : "s";
    return most_ms > 3 * 3600000 ? 3600000 : most_ms > 3 * 60000 ? 60000 : 1000;
}

/* The next round number: 1, 2 or 5 times a power of ten. */
static double
round_up(double v)
{
    double power = pow(10, floor(log10(v > 1 ? v : 1)));

    return v <= power       ? power
           : v <= 2 * power ? 2 * power
           : v <= 4 * power ? 4 * power
           : v <= 6 * power ? 6 * power
           : v <= 8 * power ? 8 * power
                            : 10 * power;
}

void
report_plot_waits_over_time(const json_t *r, struct buf *out)
{
    const json_t *bins = json_object_get(json_object_get(r, "waits"), "bins"), *bin;
    size_t i, n = json_array_size(bins);
    const char *unit;
    int64_t longest = 0;
    char span[2][24];

    json_array_foreach(bins, i, bin) longest = at(bin, 2) > longest ? at(bin, 2) : longest;
    double one = wait_unit(longest, &unit), most = round_up((double)longest / one);
    buf_addf(out,
             "<p class=\"key\"><i class=\"k-used\"></i>mean <i class=\"k-asked\"></i>longest "
             "wait, in %s, of the jobs that started then</p>\n<div class=\"plot\">",
             unit);
    add_numbers(out, "y", most, "", true);
    buf_addf(out, "<svg height=\"%d\" role=\"img\" aria-label=\"waits over time\">",
             WAITS_HEIGHT);
    add_grid(out);
    json_array_foreach(bins, i, bin)
    {
        double x = 100.0 * (double)i / (double)n, width = 100.0 / (double)n;
        double mean = (double)at(bin, 1) / one / most * WAITS_HEIGHT;
        double max = (double)at(bin, 2) / one / most * WAITS_HEIGHT;

        if (at(bin, 0) == 0)
            continue;
        buf_adds(out, "<g><title>");
        add_bin_time(r, i, out);
        buf_addf(out, ": %lld started, mean wait %s, longest %s</title>", (long long)at(bin, 0),
                 format_duration(at(bin, 1), span[0]), format_duration(at(bin, 2), span[1]));
        add_rect(out, "hit", x, width, 0, WAITS_HEIGHT);
        add_rect(out, "asked", x, width, WAITS_HEIGHT - max, max);
        add_rect(out, "used", x, width, WAITS_HEIGHT - mean, mean);
        buf_adds(out, "</g>");
    }
    buf_adds(out, "</svg>");
    add_time_axis(r, out);
    buf_adds(out, "</div>\n");
}
