/* `berth queue`: one line per job. It requests rows with only the fields that are shown,
 * because ten thousand complete job objects would take longer than everything else. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "cli/ask/ask.h"
#include "cli/ask/connect.h"
#include "cli/ask/redraw.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/common/term.h"
#include "cli/table/gpu_table.h"
#include "cli/table/queue_json.h"
#include "cli/table/queue_table.h"
#include "wire/client.h"

enum {
    OPT_ALL,
    OPT_USER,
    OPT_STATE,
    OPT_GPU,
    OPT_FORMAT,
    OPT_SORT,
    OPT_LIMIT,
    OPT_NO_HEADER,
    OPT_WATCH
};

static const struct opt options[] = {
    {"all", 'a', NULL, "show ended jobs too"},
    {"user", 'u', "NAME", "only this user's jobs"},
    {"state", 't', "LIST", "only in one of these states: running,pending"},
    {"gpu", 'g', "LIST", "only on one of these GPUs: 0,2-3"},
    {"format", 'o', "LIST", "columns to show, in this order; reason:40 cuts at 40"},
    {"sort", 's', "LIST", "sort by these columns; -COLUMN: the largest first"},
    {"limit", 'n', "N", "at most this many"},
    {"no-header", 'H', NULL, "omit the header line"},
    WATCH_OPTION,
    {0},
};

static const struct page page = {
    .usage = "berth queue [SEL...] [options]",
    .about = "Show running jobs with their GPUs, and pending jobs with the reason.",
    .options = options,
    .notes =
        "Columns: id user name state gpus vram share declared peak now time limit priority\n"
        "reason expected promised note exit submitted started ended wait verdict util why "
        "tags\n"
        "after file line cwd log command",
};

struct wish {
    const char *user;
    const char *states; /* NULL: any */
    uint64_t gpus;      /* as a mask; 0: any */
    struct queue_view view;
    int64_t limit; /* 0: no limit */
    bool all, watch;
    int interval_ms;
};

/* Converts "running,pending" to ["RUNNING","PENDING"]; the daemon rejects unknown states. */
static json_t *
list_states(const char *text)
{
    json_t *list = json_array();

    for (const char *s = text; *s;) {
        size_t n = strcspn(s, ", ");
        auto_buf struct buf name = BUF_INIT;

        for (size_t i = 0; i < n; i++)
            buf_addc(&name, (char)toupper((unsigned char)s[i]));
        if (n > 0)
            json_array_append_new(list, json_string(buf_str(&name)));
        s += n + (s[n] != '\0');
    }
    return list;
}

static json_t *
list_gpus(uint64_t gpus)
{
    json_t *list = json_array();

    for (int i = 0; i < 64; i++) {
        if (gpus >> i & 1)
            json_array_append_new(list, json_integer(i));
    }
    return list;
}

static json_t *
make_params(const struct opt_reader *r, const struct wish *w)
{
    json_t *params = r->n_words ? ask_select(r->words, r->n_words) : json_object();

    json_object_set_new(params, "order", json_string("turn"));
    if (w->all)
        json_object_set_new(params, "all", json_true());
    if (w->user)
        json_object_set_new(params, "user", json_string(w->user));
    if (w->states)
        json_object_set_new(params, "state", list_states(w->states));
    if (w->gpus)
        json_object_set_new(params, "gpu", list_gpus(w->gpus));
    if (w->limit)
        json_object_set_new(params, "limit", json_integer(w->limit));
    return params;
}

struct watched {
    const struct opt_reader *r;
    const struct wish *w;
};

static int
draw(void *ctx, struct client *c, const struct term *term, struct buf *out, struct err *e)
{
    const struct watched *x = ctx;
    auto_json json_t *gpus = NULL;
    auto_buf struct buf table = BUF_INIT;
    size_t n;

    if (client_call(c, "gpus", NULL, &gpus, e) < 0 ||
        queue_table_add(c, make_params(x->r, x->w), &x->w->view, term, &table, &n, e) < 0)
        return -1;
    gpu_table_add_states(gpus, out);
    if (n > 0)
        buf_add(out, table.data, table.len);
    else
        buf_adds(out, "no jobs\n");
    return 0;
}

static int
watch_queue(struct cli *cli, const struct opt_reader *r, const struct wish *w)
{
    struct watched x = {r, w};

    return watch_run(cli, w->interval_ms, draw, &x);
}

/* Lists GPUs that accept no work, as users at a terminal may wonder why nothing starts. */
static void
say_gpus_out(const struct cli *cli)
{
    auto_client struct client *c = isatty(STDOUT_FILENO) ? connect_daemon(cli, NULL) : NULL;
    auto_json json_t *gpus = NULL;
    auto_buf struct buf out = BUF_INIT;

    if (!c || client_call(c, "gpus", NULL, &gpus, NULL) < 0)
        return;
    gpu_table_add_states(gpus, &out);
    (void)cli_put(&out);
}

/* -1: continue; else the exit status. */
static int
take_option(struct wish *w, int opt, const char *value)
{
    struct err e;

    switch (opt) {
    case OPT_ALL:
        w->all = true;
        return -1;
    case OPT_USER:
        w->user = w->view.user = value;
        return -1;
    case OPT_STATE:
        w->states = value;
        return value[0] ? -1
                        : cli_usage("--state needs at least one state; for example: --state "
                                    "running,pending");
    case OPT_GPU:
        if (parse_index_set(value, &w->gpus, &e) < 0)
            return cli_usage("--gpu: %s", e.text);
        w->view.gpus = w->gpus;
        return -1;
    case OPT_FORMAT:
        w->view.format = value;
        return -1;
    case OPT_SORT:
        w->view.sort = value;
        return -1;
    case OPT_NO_HEADER:
        w->view.no_header = true;
        return -1;
    case OPT_WATCH:
        w->watch = true;
        return watch_read_interval(value, &w->interval_ms) == 0 ? -1 : 2;
    default:
        return parse_int(value, 1, 100000000, &w->limit, &e) < 0
                   ? cli_usage("--limit: %s", e.text)
                   : -1;
    }
}

int
cmd_queue(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct wish w = {0};
    int opt;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0) {
        int status = take_option(&w, opt, r.value);

        if (status >= 0)
            return status;
    }
    if (opt == OPT_EXIT)
        return r.status;
    if (w.watch && cli->json)
        return cli_usage("--watch and --json exclude each other; 'berth events -f' is JSON");
    if (cli->json)
        return queue_json_print(cli, make_params(&r, &w));
    if (w.watch)
        return watch_queue(cli, &r, &w);
    say_gpus_out(cli);
    return queue_table_print(cli, make_params(&r, &w), &w.view);
}
