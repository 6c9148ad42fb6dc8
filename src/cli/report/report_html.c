/* A report as one self-contained page, without scripts, fonts or images from elsewhere. It
 * follows the reader's choice of light or dark and adapts to the width of the screen. All text
 * from people is escaped. Called by report_verb.c; report_plots.c draws the plots. */
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli/ask/answer.h"
#include "cli/report/report_verb.h"

#define ADVICE_OPEN 4

static const char style[] =
    ":root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--ink:#1b1f27;--dim:#5f6877;"
    "--line:#dfe3ea;--ground:#eef1f5;--asked:#b9cff5;--used:#2f66d0;--busy:#2f66d0;"
    "--over:#c77700;--within:#1f8a4c;--under:#cf2f3b;--tint:#eaf1fe}"
    "@media(prefers-color-scheme:dark){:root{--bg:#12151b;--card:#1a1f28;--ink:#e7eaf0;"
    "--dim:#9aa4b5;--line:#2c3440;--ground:#242b36;--asked:#36507f;--used:#78a7ff;"
    "--busy:#78a7ff;--over:#f0a63c;--within:#4cc47f;--under:#ff6b74;--tint:#1d2a42}}"
    "*{box-sizing:border-box}"
    "body{margin:0;background:var(--bg);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,sans-serif}"
    "main{max-width:1180px;margin:0 auto;padding:24px 20px 48px}"
    "h1{font-size:1.5rem;line-height:1.2;margin:0 0 4px}h2{font-size:1.05rem;margin:0 0 10px}"
    "header p,.axis,.none,.key,footer{color:var(--dim);margin:0 0 12px;font-size:.86rem}"
    "section{background:var(--card);border:1px solid var(--line);border-radius:10px;"
    "padding:18px 20px;margin:16px 0;min-width:0}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:12px;"
    "margin:18px 0}"
    ".tiles div{background:var(--card);border:1px solid var(--line);border-radius:10px;"
    "padding:12px 14px}.tiles b{display:block;font-size:1.45rem;line-height:1.25;"
    "font-variant-numeric:tabular-nums}.tiles span{color:var(--dim);font-size:.82rem}"
    ".two{display:grid;grid-template-columns:1fr 1fr;gap:0 16px}"
    "svg{display:block;width:100%;overflow:hidden}svg.dots{overflow:visible}"
    ".lane{display:grid;grid-template-columns:84px 1fr;gap:0 10px;margin:0 0 10px}"
    ".side{font-size:.78rem;line-height:1.35;color:var(--dim)}.side span{display:block}"
    ".side b{color:var(--ink)}"
    ".plot{display:grid;grid-template-columns:34px 1fr;gap:4px 8px}"
    ".y{display:flex;flex-direction:column;justify-content:space-between;text-align:right;"
    "margin:-.6em 0}.plot>.ticks{grid-column:2}"
    ".ticks{display:flex;justify-content:space-between;white-space:nowrap}"
    ".ticks,.y{font-size:.74rem;color:var(--dim);font-variant-numeric:tabular-nums}"
    ".ground{fill:var(--ground)}.asked{fill:var(--asked)}.used{fill:var(--used)}"
    ".busy{fill:var(--busy)}.hit{fill:transparent}.half{stroke:var(--dim);opacity:.45;"
    "stroke-dasharray:2 4}g:hover .hit{fill:var(--dim);fill-opacity:.18}"
    ".grid{stroke:var(--line)}.diagonal{stroke:var(--dim);stroke-dasharray:5 4}"
    "circle{fill-opacity:.45;stroke-width:1;stroke-opacity:.8}circle:hover{fill-opacity:1}"
    "circle.over{fill:var(--over);stroke:var(--over)}circle.within{fill:var(--within);"
    "stroke:var(--within)}circle.under{fill:var(--under);stroke:var(--under)}"
    ".key i{display:inline-block;width:11px;height:11px;border-radius:3px;"
    "margin:0 5px 0 12px;vertical-align:-1px}.key i:first-child{margin-left:0}"
    ".k-asked{background:var(--asked)}.k-used,.k-busy{background:var(--used)}"
    ".key .k-busy{height:5px;vertical-align:2px}.k-over{background:var(--over)}"
    ".k-within{background:var(--within)}.k-under{background:var(--under)}"
    ".bars{display:grid;grid-template-columns:max-content 1fr;gap:7px 12px;font-size:.86rem;"
    "align-items:center}.bars>span{color:var(--dim);text-align:right;max-width:40vw;"
    "overflow-wrap:anywhere}.bars div{display:flex;align-items:center;gap:8px;min-width:0}"
    ".bars i{display:block;height:14px;border-radius:3px;background:var(--used);min-width:1px}"
    ".bars.failed i{background:var(--over)}.bars b{font-weight:500;white-space:nowrap;"
    "font-variant-numeric:tabular-nums}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.86rem}"
    "th,td{padding:6px 10px;text-align:right;white-space:nowrap;"
    "font-variant-numeric:tabular-nums;border-bottom:1px solid var(--line)}"
    "th{color:var(--dim);font-weight:500}tr:last-child td{border-bottom:0}"
    "th:first-child,td:first-child{padding-left:0}th:last-child,td:last-child{padding-right:0}"
    ".l{text-align:left}td.c{white-space:normal;overflow-wrap:anywhere;min-width:240px;"
    "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:.8rem;text-align:left}"
    ".bad{color:var(--under)}.warn{color:var(--over)}"
    "ul{list-style:none;margin:0;padding:0}li{padding:10px 14px;border-radius:8px;"
    "background:var(--tint);margin:0 0 8px}li:last-child{margin:0}"
    "details{margin-top:8px}summary{cursor:pointer;color:var(--dim);font-size:.86rem;"
    "margin-bottom:8px}.bars+.key{margin-top:22px}"
    "li code{display:block;color:var(--dim);font-size:.8rem;overflow-wrap:anywhere}"
    "@media(max-width:760px){main{padding:16px 10px 32px}section{padding:14px 12px}"
    ".two{grid-template-columns:1fr}.lane{grid-template-columns:1fr}.side{display:flex;"
    "gap:10px;margin-bottom:3px}.ticks span:nth-child(even){display:none}"
    ".bars>span{max-width:34vw}}"
    "@media print{section{break-inside:avoid}}";

static void
tile(struct buf *out, const char *value, const char *what)
{
    buf_addf(out, "<div><b>%s</b><span>%s</span></div>", value, what);
}

/* GiB-hours requested but not used */
static double
wasted(const json_t *sums)
{
    return json_number_value(json_object_get(sums, "wasted_mib_ms")) / 1024 / 3600000;
}

static void
add_tiles(const json_t *r, struct buf *out)
{
    const json_t *total = json_object_get(r, "total");
    int64_t jobs = answer_int(total, "jobs", 0);
    auto_buf struct buf v = BUF_INIT;

    buf_adds(out, "<div class=\"tiles\">");
    buf_addf(&v, "%lld", (long long)jobs);
    tile(out, buf_str(&v), jobs == 1 ? "job ended" : "jobs ended");
    buf_clear(&v);
    if (jobs)
        buf_addf(&v, "%.0f %%", 100.0 * report_completed(total));
    tile(out, v.len ? buf_str(&v) : "n/a", "completed");
    buf_clear(&v);
    report_add_hours(&v, answer_int(total, "gpu_ms", 0));
    tile(out, buf_str(&v), "GPU-hours");
    buf_clear(&v);
    buf_addf(&v, "%.0f %%", report_busy(r) * 100);
    tile(out, json_array_size(json_object_get(r, "gpus")) ? buf_str(&v) : "n/a",
         "of the time GPUs were held");
    buf_clear(&v);
    report_add_ms(&v, total, "wait_mean_ms");
    tile(out, buf_str(&v), "mean wait");
    buf_clear(&v);
    report_add_ms(&v, total, "wait_p95_ms");
    tile(out, buf_str(&v), "95 % waited no longer");
    buf_clear(&v);
    buf_addf(&v, wasted(total) < 100 ? "%.1f" : "%.0f", wasted(total));
    tile(out, buf_str(&v), "GiB-hours requested and unused");
    buf_adds(out, "</div>\n");
}

static void
add_one_advice(const json_t *a, struct buf *out)
{
    buf_adds(out, "<li>");
    report_add_escaped(out, answer_str(a, "text"));
    if (answer_str(a, "command")[0]) {
        buf_adds(out, "<code>");
        report_add_escaped(out, answer_str(a, "user"));
        buf_adds(out, ": ");
        report_add_escaped(out, answer_str(a, "command"));
        buf_adds(out, "</code>");
    }
    buf_adds(out, "</li>");
}

/* Shows the first few; the reader can unfold the rest. */
static void
add_advice(const json_t *r, struct buf *out)
{
    const json_t *list = json_object_get(r, "advice"), *a;
    size_t i, n = json_array_size(list);

    if (n == 0)
        return;
    buf_adds(out, "<section><h2>What would help</h2><ul>");
    json_array_foreach(list, i, a)
    {
        if (i == ADVICE_OPEN)
            buf_addf(out, "</ul><details><summary>%zu more</summary><ul>", n - i);
        add_one_advice(a, out);
    }
    buf_adds(out, n > ADVICE_OPEN ? "</ul></details></section>\n" : "</ul></section>\n");
}

static void
cell_int(struct buf *out, const char *class, int64_t v)
{
    buf_addf(out, "<td class=\"%s\">%lld</td>", v ? class : "", (long long)v);
}

/* jobs, failed, GPU-hours, mean wait, 95 % */
static void
add_counts(const json_t *sums, struct buf *out)
{
    cell_int(out, "", answer_int(sums, "jobs", 0));
    cell_int(out, "warn", report_failed(sums));
    buf_adds(out, "<td>");
    report_add_hours(out, answer_int(sums, "gpu_ms", 0));
    buf_adds(out, "</td><td>");
    report_add_ms(out, sums, "wait_mean_ms");
    buf_adds(out, "</td><td>");
    report_add_ms(out, sums, "wait_p95_ms");
    buf_adds(out, "</td>");
}

static void
add_users(const json_t *r, struct buf *out)
{
    const json_t *list = json_object_get(r, "users"), *u;
    size_t i;

    if (json_array_size(list) == 0)
        return;
    buf_adds(out,
             "<section><h2>Users</h2><div class=\"wide\"><table><tr><th class=\"l\">User<th>"
             "Jobs<th>Failed<th>GPU-hours<th>Mean wait<th>95 %<th>Within<th>Over"
             "<th>Under<th>GiB-hours unused<th>GPU load</tr>");
    json_array_foreach(list, i, u)
    {
        buf_adds(out, "<tr><td class=\"l\">");
        report_add_escaped(out, answer_str(u, "user"));
        buf_adds(out, "</td>");
        add_counts(u, out);
        cell_int(out, "", answer_int(u, "within", 0));
        cell_int(out, "warn", answer_int(u, "over", 0));
        cell_int(out, "bad", answer_int(u, "under", 0));
        buf_addf(out, wasted(u) < 100 ? "<td>%.1f</td><td>" : "<td>%.0f</td><td>", wasted(u));
        report_add_percent(out, u, "util");
        buf_adds(out, "</td></tr>\n");
    }
    buf_adds(out, "</table></div><p class=\"axis\">Completed jobs: within 10 % of the VRAM "
                  "that they requested, over-declared, under-declared.</p></section>\n");
}

/* GPU-hours by user, as bars. */
static void
add_user_bars(const json_t *r, struct buf *out)
{
    const json_t *list = json_object_get(r, "users"), *u;
    int64_t most = answer_int(json_array_get(list, 0), "gpu_ms", 0);
    size_t i;

    buf_adds(out, "<div class=\"bars\">");
    json_array_foreach(list, i, u)
    {
        if (i == 12)
            break;
        buf_adds(out, "<span>");
        report_add_escaped(out, answer_str(u, "user"));
        buf_addf(out, "</span><div><i style=\"width:%.2f%%\"></i><b>",
                 most ? 80.0 * (double)answer_int(u, "gpu_ms", 0) / (double)most : 0);
        report_add_hours(out, answer_int(u, "gpu_ms", 0));
        buf_adds(out, " h</b></div>");
    }
    buf_adds(out, "</div>");
}

static void
add_causes(const json_t *r, struct buf *out)
{
    const json_t *list = json_object_get(r, "causes"), *c;
    int64_t most = answer_int(json_array_get(list, 0), "jobs", 0);
    size_t i;

    if (json_array_size(list) == 0) {
        buf_adds(out, "<p class=\"none\">Every job completed.</p>");
        return;
    }
    buf_adds(out, "<div class=\"bars failed\">");
    json_array_foreach(list, i, c)
    {
        if (i == 12)
            break;
        buf_adds(out, "<span>");
        report_add_escaped(out, answer_str(c, "text"));
        buf_addf(out, "</span><div><i style=\"width:%.2f%%\"></i><b>%lld</b></div>",
                 80.0 * (double)answer_int(c, "jobs", 0) / (double)(most ? most : 1),
                 (long long)answer_int(c, "jobs", 0));
    }
    buf_adds(out, "</div>");
}

static void
add_command(const json_t *c, struct buf *out)
{
    const char *command = answer_str(c, "command");

    buf_adds(out, "<tr><td class=\"c\">");
    report_add_escaped(out, command[0] ? command : "(private)");
    buf_adds(out, "</td><td class=\"l\">");
    report_add_escaped(out, answer_str(c, "user"));
    buf_adds(out, "</td>");
    add_counts(c, out);
    buf_adds(out, "<td>");
    report_add_asked(out, c);
    buf_adds(out, "</td><td>");
    report_add_peak(out, c);
    buf_adds(out, "</td><td>");
    report_add_percent(out, c, "util");
    buf_adds(out, "</td></tr>\n");
}

static void
add_commands(const json_t *r, struct buf *out)
{
    const json_t *list = json_object_get(r, "commands"), *c;
    int64_t total = answer_int(r, "commands_total", 0);
    size_t i;

    if (json_array_size(list) == 0)
        return;
    buf_adds(out, "<section><h2>Commands, by GPU time</h2><div class=\"wide\"><table><tr>"
                  "<th class=\"l\">Command<th class=\"l\">User<th>Jobs<th>Failed<th>"
                  "GPU-hours<th>Mean wait<th>95 %<th>Requested<th>Peak<th>GPU load</tr>");
    json_array_foreach(list, i, c) add_command(c, out);
    buf_adds(out, "</table></div>");
    if (total > (int64_t)json_array_size(list))
        buf_addf(out, "<p class=\"axis\">%lld of %lld commands.</p>",
                 (long long)json_array_size(list), (long long)total);
    buf_adds(out, "</section>\n");
}

static void
add_head(const json_t *r, struct buf *out)
{
    int64_t span = report_span_us(r), until = answer_time_us(r, "until");

    buf_addf(out,
             "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
             "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
             "style-src 'unsafe-inline'\"><title>GPU report</title><style>%s</style></head>\n"
             "<body><main><header><h1>GPU report</h1><p>",
             style);
    report_add_day(out, report_bin_at(r, 0), span);
    buf_adds(out, " to ");
    report_add_day(out, until, span);
    buf_adds(out, "</p></header>\n");
}

static void
add_foot(const json_t *r, struct buf *out)
{
    char at[32];

    buf_addf(out,
             "<footer>Made by Berth " BERTH_VERSION
             " from jobs that had ended by %s.</footer>\n"
             "</main></body></html>\n",
             clock_rfc3339(answer_time_us(r, "until"), at));
}

void
report_add_html(const json_t *r, struct buf *out)
{
    const json_t *total = json_object_get(r, "total");
    bool ran = answer_int(total, "ran", 0) > 0, ended = answer_int(total, "jobs", 0) > 0;

    add_head(r, out);
    add_tiles(r, out);
    if (json_array_size(json_object_get(r, "gpus"))) {
        buf_adds(out, "<section><h2>GPUs over time</h2>");
        report_plot_gpus(r, out);
        buf_adds(out, "</section>\n");
    }
    if (!ended)
        buf_adds(out,
                 "<section><p class=\"none\">No job ended in this period.</p></section>\n");
    add_advice(r, out);
    if (ended)
        buf_adds(out, "<div class=\"two\">");
    if (ran) {
        buf_adds(out, "<section><h2>VRAM: requested and used</h2>");
        report_plot_scatter(r, out);
        buf_adds(out, "</section><section><h2>Waits</h2>");
        report_plot_wait_classes(r, out);
        report_plot_waits_over_time(r, out);
        buf_adds(out, "</section><section><h2>GPU-hours by user</h2>");
        add_user_bars(r, out);
        buf_adds(out, "</section>");
    }
    if (ended) {
        buf_adds(out, "<section><h2>Why jobs did not complete</h2>");
        add_causes(r, out);
        buf_adds(out, "</section></div>\n");
        add_users(r, out);
        add_commands(r, out);
    }
    add_foot(r, out);
}
