/* `berth history`: jobs that have ended, as a table, as JSON, or as a workload. */
#include "cli/history.h"

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/connect.h"
#include "cli/opt.h"
#include "cli/queue_table.h"
#include "wire/client.h"

#define SHOWN_DEFAULT 50

enum { OPT_ALL, OPT_USER, OPT_FORMAT, OPT_SORT, OPT_LIMIT, OPT_CSV };

static const struct opt options[] = {
    {"all", 'a', NULL, "all of them, not only the newest 50"},
    {"user", 'u', "NAME", "only this user's"},
    {"format", 'o', "LIST", "columns, as in berth queue"},
    {"sort", 's', "LIST", "by these columns; -COLUMN: the largest first"},
    {"limit", 'n', "N", "the newest so many"},
    {"csv", 0, NULL, "all that ran on GPUs, as a workload for berth simulate"},
    {0},
};

static const struct page page = {
    .usage = "berth history [SEL...] [options]",
    .about = "Jobs that have ended, the newest last.\n"
             "SEL: 12  12,14  12-20  name:x*  user:u  state:failed",
    .options = options,
    .notes = "What if there had been two more cards?  berth history --csv >past.csv\n"
             "                                        berth simulate past.csv --gpus 4x24G",
};

static const char usual[] = "id,user,state,gpus,vram,peak,time,ended,reason,command";

struct wish {
    struct queue_view view;
    const char *user;
    int64_t limit; /* -1: not said */
    bool all, csv;
};

static json_t *
make_params(const struct opt_reader *r, const struct wish *w)
{
    json_t *params = r->n_words ? ask_select(r->words, r->n_words) : json_object();
    bool bounded = !w->all && r->n_words == 0 && !w->csv;
    int64_t limit = w->limit > 0 ? w->limit : bounded ? SHOWN_DEFAULT : 0;

    json_object_set_new(params, "ended", json_true());
    if (w->user)
        json_object_set_new(params, "user", json_string(w->user));
    if (limit)
        json_object_set_new(params, "limit", json_integer(limit));
    return params;
}

static int
print_csv(const struct cli *cli, json_t *params)
{
    struct err e = {0};
    auto_client struct client *c = connect_daemon(cli, &e);
    auto_buf struct buf out = BUF_INIT;
    size_t left_out = 0;
    int status;

    if (!c || history_csv_add(c, params, &out, &left_out, &e) < 0)
        status = cli_fail(&e);
    else
        status = cli_put(&out);
    if (status == 0 && left_out > 0)
        cli_say("%zu job%s without a GPU, or that never ran, left out", left_out,
                left_out == 1 ? "" : "s");
    json_decref(params);
    return status;
}

static int
print_json(const struct cli *cli, json_t *params)
{
    auto_json json_t *result = NULL;
    int status = ask_daemon(cli, "jobs", params, &result);

    if (status != 0)
        return status;
    json_object_set_new(result, "version", json_integer(1));
    return cli_put_json(result);
}

static int
read_options(struct opt_reader *r, struct wish *w)
{
    struct err e = {0};
    int opt;

    while ((opt = opt_next(r)) >= 0) {
        if (opt == OPT_ALL)
            w->all = true;
        else if (opt == OPT_USER)
            w->user = r->value;
        else if (opt == OPT_FORMAT)
            w->view.format = r->value;
        else if (opt == OPT_SORT)
            w->view.sort = r->value;
        else if (opt == OPT_CSV)
            w->csv = true;
        else if (parse_int(r->value, 1, 100000000, &w->limit, &e) < 0)
            return cli_usage("--limit: %s", e.text);
    }
    if (opt == OPT_EXIT)
        return r->status;
    if (w->csv && (w->view.format || w->view.sort || r->cli->json))
        return cli_usage("--csv has its own columns and order, and is not JSON");
    return -1;
}

int
cmd_history(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct wish w = {.limit = -1, .view = {.usual = usual, .nothing = "no job has ended yet"}};
    int status;

    opt_begin(&r, cli, &page, argc, argv);
    status = read_options(&r, &w);
    if (status >= 0)
        return status;
    if (w.csv)
        return print_csv(cli, make_params(&r, &w));
    if (cli->json)
        return print_json(cli, make_params(&r, &w));
    return queue_table_print(cli, make_params(&r, &w), &w.view);
}
