/* `berth history`: ended jobs as a table, as JSON, or as a workload. */
#include "cli/table/history_verb.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "cli/ask/answer_pages.h"
#include "cli/ask/ask.h"
#include "cli/ask/connect.h"
#include "cli/ask/moment.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/table/queue_table.h"
#include "wire/client.h"

#define SHOWN_DEFAULT 50

enum {
    OPT_ALL,
    OPT_LIMIT,
    OPT_USER,
    OPT_SINCE,
    OPT_UNTIL,
    OPT_STATE,
    OPT_NAME,
    OPT_SEARCH,
    OPT_FORMAT,
    OPT_SORT,
    OPT_NO_HEADER,
    OPT_CSV
};

static const struct opt options[] = {
    {"all", 'a', NULL, "show all, not only the newest 50"},
    {"limit", 'n', "N", "show the newest N"},
    {"user", 'u', "NAME", "only this user's jobs"},
    {"since", 0, "WHEN", "ended then or later: 2h, 7d, 16:00, yesterday, 2026-11-20"},
    {"until", 0, "WHEN", "ended before"},
    {"state", 0, "LIST", "ended in one of these states: failed,timeout"},
    {"name", 0, "NAME", "with this name; * and ? are wildcards"},
    {"search", '/', "TEXT", "with this in the name, the command or the tags"},
    {"format", 'o', "LIST", "columns, as in berth queue"},
    {"sort", 's', "LIST", "sort by these columns; -COLUMN: largest first"},
    {"no-header", 'H', NULL, "omit the header line"},
    {"csv", 0, NULL, "print jobs that ran on GPUs, as a workload for berth simulate"},
    {0},
};

static const struct page page = {
    .usage = "berth history [SEL...] [options]",
    .about = "List ended jobs, newest last.",
    .options = options,
    .notes = "With two more GPUs:   berth history --csv >past.csv\n"
             "                                        berth simulate past.csv --gpus 4x24G",
};

static const char usual[] =
    "id,user,state,gpus,vram,peak,verdict,wait,time,ended,why:40,command";

struct wish {
    struct queue_view view;
    const char *user, *name, *search, *state;
    int64_t since_us, until_us; /* 0: not given */
    bool all, csv, limited;
};

/* Splits "failed,timeout" into a list. */
static json_t *
split(const char *text)
{
    json_t *list = json_array();

    while (*text) {
        size_t n = strcspn(text, ", ");

        if (n)
            json_array_append_new(list, json_stringn(text, n));
        text += n + (text[n] != '\0');
    }
    return list;
}

static void
add_text(json_t *params, const char *key, const char *text)
{
    if (text)
        json_object_set_new(params, key, json_string(text));
}

static json_t *
make_params(const struct opt_reader *r, const struct wish *w)
{
    json_t *params = r->n_words ? ask_select(r->words, r->n_words) : json_object();

    add_text(params, "user", w->user);
    add_text(params, "search", w->search);
    if (w->since_us)
        json_object_set_new(params, "since_us", json_integer(w->since_us));
    if (w->until_us)
        json_object_set_new(params, "until_us", json_integer(w->until_us));
    if (w->state)
        json_object_set_new(params, "state", split(w->state));
    if (w->name) {
        auto_buf struct buf word = BUF_INIT;

        buf_addf(&word, "name:%s", w->name);
        json_object_set_new(params, "select", json_pack("[s]", buf_str(&word)));
    }
    return params;
}

static int
print_csv(const struct cli *cli, json_t *params, int64_t limit)
{
    struct err e = {0};
    auto_client struct client *c = connect_kept(cli, &e);
    auto_buf struct buf out = BUF_INIT;
    size_t left_out = 0;
    int status;

    if (!c || history_csv_add(c, params, limit, &out, &left_out, &e) < 0)
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
print_json(const struct cli *cli, json_t *params, int64_t limit)
{
    struct err e = {0};
    auto_client struct client *c = connect_kept(cli, &e);
    auto_buf struct buf out = BUF_INIT;

    if (!c) {
        json_decref(params);
        return cli_fail(&e);
    }
    buf_adds(&out, "{\"version\":1,");
    size_t at = out.len;
    if (pages_ask(c, params, limit, &out, &e) < 0)
        return cli_fail(&e);
    out.data[at] = ' '; /* replaces the brace of the object that is now nested */
    buf_addc(&out, '\n');
    return cli_put(&out);
}

static int
take_option(const struct opt_reader *r, int opt, struct wish *w, struct err *e)
{
    switch (opt) {
    case OPT_ALL:
        w->all = true;
        return 0;
    case OPT_LIMIT:
        w->limited = true;
        return parse_int(r->value, 1, 100000000, &w->view.limit, e);
    case OPT_USER:
        w->user = w->view.user = r->value;
        return 0;
    case OPT_SINCE:
        return moment_read(r->value, &w->since_us, e);
    case OPT_UNTIL:
        return moment_read(r->value, &w->until_us, e);
    case OPT_STATE:
        w->state = r->value;
        return 0;
    case OPT_NAME:
        w->name = r->value;
        return 0;
    case OPT_SEARCH:
        w->search = r->value;
        return 0;
    case OPT_FORMAT:
        w->view.format = r->value;
        return 0;
    case OPT_SORT:
        w->view.sort = r->value;
        return 0;
    case OPT_NO_HEADER:
        w->view.no_header = true;
        return 0;
    default:
        w->csv = true;
        return 0;
    }
}

/* -1: continue; else the exit status. */
static int
read_options(struct opt_reader *r, struct wish *w)
{
    struct err e = {0};
    int opt;

    while ((opt = opt_next(r)) >= 0)
        if (take_option(r, opt, w, &e) < 0)
            return cli_usage("--%s: %s", options[opt].name, e.text);
    if (opt == OPT_EXIT)
        return r->status;
    if (w->csv && (w->view.format || w->view.sort || r->cli->json))
        return cli_usage("--csv cannot be combined with --format, --sort or --json");
    if (w->name && r->n_words)
        return cli_usage(
            "--name NAME and selectors exclude each other; name:NAME is a selector");
    return -1;
}

int
cmd_history(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct wish w = {.view = {.usual = usual, .past = true, .nothing = "no ended job matches"}};
    int status;

    opt_begin(&r, cli, &page, argc, argv);
    status = read_options(&r, &w);
    if (status >= 0)
        return status;
    if (!w.limited && !w.all && !w.csv && r.n_words == 0 && !w.since_us)
        w.view.limit = SHOWN_DEFAULT;
    if (w.csv)
        return print_csv(cli, make_params(&r, &w), w.view.limit);
    if (cli->json)
        return print_json(cli, make_params(&r, &w), w.view.limit);
    return queue_table_print(cli, make_params(&r, &w), &w.view);
}
