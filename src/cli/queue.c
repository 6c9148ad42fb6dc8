/* `berth queue`: one line a job. The daemon is asked for rows of just the fields that are
 * shown, because ten thousand whole job objects would take longer than all the rest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/opt.h"
#include "cli/queue_table.h"
#include "cli/term.h"

enum { OPT_ALL, OPT_USER, OPT_FORMAT, OPT_LIMIT };

static const struct opt options[] = {
    {"all", 'a', NULL, "ended jobs too"},
    {"user", 'u', "NAME", "only this user's"},
    {"format", 'o', "LIST", "columns, in this order, of those below"},
    {"limit", 'n', "N", "at most so many"},
    {0},
};

static const struct page page = {
    .usage = "berth queue [SEL...] [options]",
    .about =
        "Who runs where, who waits and why. SEL: 12  12,14  12-20  @  name:x*  state:failed",
    .options = options,
    .notes = "Columns: id user name state gpus vram declared peak now time limit priority\n"
             "reason exit file line cwd log command",
};

struct wish {
    const char *user;
    const char *format;
    int64_t limit; /* 0: none */
    bool all;
};

static json_t *
make_params(const struct opt_reader *r, const struct wish *w)
{
    json_t *params = r->n_words ? ask_select(r->words, r->n_words) : json_object();

    if (w->all)
        json_object_set_new(params, "all", json_true());
    if (w->user)
        json_object_set_new(params, "user", json_string(w->user));
    if (w->limit)
        json_object_set_new(params, "limit", json_integer(w->limit));
    return params;
}

static int
print_json(const struct cli *cli, json_t *params)
{
    json_t *result;
    int status = ask_daemon(cli, "jobs", params, &result);

    if (status == 0) {
        json_object_set_new(result, "version", json_integer(1));
        status = cli_put_json(result);
    }
    json_decref(result);
    return status;
}

int
cmd_queue(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct wish w = {0};
    struct err e = {0};
    int opt;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0) {
        if (opt == OPT_ALL)
            w.all = true;
        else if (opt == OPT_USER)
            w.user = r.value;
        else if (opt == OPT_FORMAT)
            w.format = r.value;
        else if (parse_int(r.value, 1, 100000000, &w.limit, &e) < 0)
            return cli_usage("--limit: %s", e.text);
    }
    if (opt == OPT_EXIT)
        return r.status;
    if (cli->json)
        return print_json(cli, make_params(&r, &w));
    return queue_table_print(cli, make_params(&r, &w), w.format);
}
