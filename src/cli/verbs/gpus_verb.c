/* `berth gpus`: the GPUs, the jobs that hold them, and other programs on them. */
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "cli/ask/answer.h"
#include "cli/ask/ask.h"
#include "cli/ask/redraw.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/common/term.h"
#include "cli/table/gpu_columns.h"
#include "cli/table/gpu_table.h"
#include "wire/client.h"

enum { OPT_GPU, OPT_STATE, OPT_FORMAT, OPT_SORT, OPT_WATCH };

static const struct opt options[] = {
    {"gpu", 'g', "LIST", "only these: 0,2-3"},
    {"state", 't', "LIST", "only those in one of these states: paused,sick"},
    {"format", 'o', "LIST", "columns to show, in this order"},
    {"sort", 's', "COLUMN", "sort by this column; -COLUMN: largest first"},
    WATCH_OPTION,
    {0},
};

static const struct page page = {
    .usage = "berth gpus [options]",
    .about =
        "Show each GPU's state, memory used, held for jobs and free, load, temperature, jobs,\n"
        "and other processes. n/a: not reported by the driver.",
    .options = options,
    .notes =
        "Columns: index name state used total bar held share free load temp jobs external\n"
        "uuid cap mps vendor numa cpus cc nvlink",
};

struct wish {
    uint64_t gpus;      /* as a mask; 0: any */
    const char *states; /* NULL: any */
    bool has_format, has_sort, watch;
    struct gpu_columns columns;
    struct gpu_sort sort;
    int interval_ms;
};

/* --- selection --- */

static bool
is_listed(const char *list, const char *word)
{
    for (const char *s = list; *s;) {
        size_t n = strcspn(s, ", ");

        if (n > 0 && strlen(word) == n && strncasecmp(s, word, n) == 0)
            return true;
        s += n + (s[n] != '\0');
    }
    return false;
}

static bool
is_wanted(const struct wish *w, const json_t *gpu)
{
    int64_t index = answer_int(gpu, "index", 0);

    if (w->gpus && (index < 0 || index > 63 || !(w->gpus >> index & 1)))
        return false;
    return !w->states || is_listed(w->states, answer_str(gpu, "state"));
}

/* Keeps the selected GPUs, in the requested order. */
static void
apply(const struct wish *w, json_t *result)
{
    json_t *gpus = json_object_get(result, "gpus");

    for (size_t i = json_array_size(gpus); i-- > 0;)
        if (!is_wanted(w, json_array_get(gpus, i)))
            json_array_remove(gpus, i);
    if (w->has_sort)
        gpu_sort_apply(&w->sort, gpus);
}

static int
check_states(const char *list)
{
    static const char *const states[] = {"up",   "paused",  "draining", "lost",
                                         "sick", "unknown", NULL};
    auto_buf struct buf word = BUF_INIT;

    for (const char *s = list; *s;) {
        size_t n = strcspn(s, ", ");
        bool known = n == 0;

        buf_clear(&word);
        buf_add(&word, s, n);
        for (int i = 0; states[i]; i++)
            known = known || strcasecmp(states[i], buf_str(&word)) == 0;
        if (!known)
            return cli_usage("--state: unknown GPU state '%s'; use up, paused, draining, lost, "
                             "sick or unknown",
                             buf_str(&word));
        s += n + (s[n] != '\0');
    }
    return -1;
}

/* -1: option accepted; else the exit status. */
static int
take(struct wish *w, int opt, const char *value)
{
    struct err e;

    switch (opt) {
    case OPT_GPU:
        return parse_index_set(value, &w->gpus, &e) < 0 ? cli_usage("--gpu: %s", e.text) : -1;
    case OPT_STATE:
        w->states = value;
        return check_states(value);
    case OPT_FORMAT:
        w->has_format = true;
        return gpu_columns_read(value, &w->columns, &e) < 0 ? cli_usage("%s", e.text) : -1;
    case OPT_SORT:
        w->has_sort = true;
        return gpu_sort_read(value, &w->sort, &e) < 0 ? cli_usage("%s", e.text) : -1;
    default:
        w->watch = true;
        return watch_read_interval(value, &w->interval_ms) != 0 ? 2 : -1;
    }
}

/* --- drawing --- */

static void
add_table(const struct wish *w, const json_t *result, const struct term *term, struct buf *out)
{
    if (w->has_format)
        gpu_table_add_columns(result, &w->columns, term, out);
    else
        gpu_table_add(result, term, true, out);
}

static bool
has_none(const json_t *result)
{
    return json_array_size(json_object_get(result, "gpus")) == 0;
}

static int
draw(void *ctx, struct client *c, const struct term *term, struct buf *out, struct err *e)
{
    const struct wish *w = ctx;
    auto_json json_t *result = NULL;

    if (client_call(c, "gpus", NULL, &result, e) < 0)
        return -1;
    if (has_none(result)) {
        gpu_table_add_none(result, out);
        buf_addc(out, '\n');
    }
    apply(w, result);
    add_table(w, result, term, out);
    return 0;
}

static void
say_none(const json_t *result)
{
    auto_buf struct buf line = BUF_INIT;

    gpu_table_add_none(result, &line);
    cli_say("%s", buf_str(&line));
    cli_say("jobs that ask for no GPU can run; 'berth doctor' looks closer");
}

static int
print_once(const struct cli *cli, const struct wish *w)
{
    auto_json json_t *result = NULL;
    auto_buf struct buf out = BUF_INIT;
    struct term term = term_of_stdout();
    int status = ask_daemon(cli, "gpus", NULL, &result);
    auto_buf struct buf unknown = BUF_INIT;
    bool none;

    if (status != 0)
        return status;
    none = has_none(result);
    if (w->has_format)
        gpu_table_add_unknown(result, &unknown);
    if (!none)
        gpu_table_say_missing(json_object_get(result, "gpus"), w->gpus);
    apply(w, result);
    if (cli->json)
        return cli_put_answer(result);
    if (unknown.len) /* to standard error, as scripts read the columns */
        cli_say("%s", buf_str(&unknown));
    if (none)
        say_none(result);
    else if (has_none(result))
        cli_say("no GPU matches");
    add_table(w, result, &term, &out);
    return cli_put(&out);
}

int
cmd_gpus(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct wish w = {0};
    int opt;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0) {
        int status = take(&w, opt, r.value);
        if (status >= 0)
            return status;
    }
    if (opt == OPT_EXIT)
        return r.status;
    if (r.n_words > 0)
        return cli_usage("'berth gpus' takes no arguments; --gpu 0,2-3 selects GPUs");
    if (w.watch && cli->json)
        return cli_usage("--watch and --json exclude each other; 'berth events -f' is JSON");
    return w.watch ? watch_run(cli, w.interval_ms, draw, &w) : print_once(cli, &w);
}
