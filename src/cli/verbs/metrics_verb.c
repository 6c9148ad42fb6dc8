/* `berth metrics`: the daemon's numbers, for people, for Prometheus and for programs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/ask/answer.h"
#include "cli/ask/ask.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/table/table.h"
#include "wire/client.h"

enum { OPT_PROMETHEUS };

static const struct opt options[] = {
    {"prometheus", 0, NULL, "print in the text format of Prometheus and node_exporter"},
    {0},
};

static const struct page page = {
    .usage = "berth metrics [--prometheus]",
    .about =
        "Print counters and measurements of jobs, users, GPUs and the daemon, in bytes, "
        "seconds\n"
        "and fractions from 0 to 1. Counters of jobs continue across restarts; buckets of\n"
        "histograms are only in --prometheus and --json.",
    .options = options,
    .notes = "As a textfile: berth metrics --prometheus >berth.tmp && mv berth.tmp berth.prom",
};

static const struct column columns[] = {
    {"METRIC", false, false},
    {"VALUE", true, false},
};

static const char *
number(double v, char out[40])
{
    if (v == floor(v) && fabs(v) < 1e15)
        snprintf(out, 40, "%.0f", v);
    else
        snprintf(out, 40, fabs(v) < 1 ? "%.6f" : "%.3f", v);
    return out;
}

/* True for values that people need not see: the parts of a distribution, and states that a GPU
 * is not in. */
static bool
is_for_machines(const char *name, double v)
{
    static const char states[] = "berth_gpu_state{";

    return strstr(name, "_bucket{") || (v == 0 && strncmp(name, states, strlen(states)) == 0);
}

static int
print_table(const json_t *metrics)
{
    auto_table struct table *t = table_new(columns, 2);
    auto_buf struct buf out = BUF_INIT;
    struct term term = term_of_stdout();
    const char *name;
    const json_t *value;
    char text[40];

    json_object_foreach((json_t *)metrics, name, value)
    {
        if (is_for_machines(name, json_number_value(value)))
            continue;
        table_cell(t, STYLE_NONE, name);
        table_cell(t, STYLE_NONE, number(json_number_value(value), text));
    }
    table_print(t, &term, &out);
    return cli_put(&out);
}

int
cmd_metrics(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    auto_json json_t *answer = NULL;
    bool prometheus = false;
    int opt, status;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0)
        prometheus = true;
    if (opt == OPT_EXIT)
        return r.status;
    if (r.n_words > 0)
        return cli_usage("'berth metrics' takes no arguments");
    if (prometheus && cli->json)
        return cli_usage("--prometheus and --json exclude each other");
    status = ask_daemon(cli, "metrics", NULL, &answer);
    if (status != 0)
        return status;
    if (prometheus) {
        const char *text = answer_str(answer, "text");
        return cli_write(text, strlen(text));
    }
    if (!cli->json)
        return print_table(json_object_get(answer, "metrics"));
    json_object_del(answer, "text"); /* the same values as text */
    return cli_put_json(answer);
}
