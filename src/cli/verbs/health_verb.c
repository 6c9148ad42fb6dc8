/* `berth health`: the daemon's checks, for people, cron and monitoring: one line per check,
 * and an exit status. A daemon that is missing or does not answer is a result too. */
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/table/table.h"
#include "wire/client.h"

enum { OPT_STRICT };

static const struct opt options[] = {
    {"strict", 0, NULL, "treat warnings as failures: exit status 1"},
    {0},
};

static const struct page page = {
    .usage = "berth health [--strict]",
    .about = "Check the daemon and what it needs, and print one check per line.\n"
             "Exit status: 0 ok, or warnings only; 1 something is bad; 4 no daemon answers.",
    .options = options,
    .notes = "'berth doctor' checks the machine itself, and needs no daemon.",
};

static const struct column columns[] = {
    {"STATE", false, false},
    {"CHECK", false, false},
    {"FINDING", false, false},
};

/* In display order. */
static const struct state {
    const char *name;
    enum style style;
} states[] = {{"bad", STYLE_BAD}, {"warn", STYLE_WARN}, {"ok", STYLE_GOOD}};

static void
add_checks(struct table *t, const json_t *checks, const struct state *state)
{
    size_t i;
    const json_t *check;

    json_array_foreach(checks, i, check)
    {
        if (strcmp(answer_str(check, "state"), state->name) != 0)
            continue;
        table_cell(t, state->style, state->name);
        table_cell(t, STYLE_NONE, answer_str(check, "name"));
        table_cell(t, STYLE_NONE, answer_str(check, "text"));
    }
}

static int
print_table(const json_t *checks)
{
    auto_table struct table *t = table_new(columns, 3);
    auto_buf struct buf out = BUF_INIT;
    struct term term = term_of_stdout();

    term.columns = 0; /* do not truncate a finding */
    for (size_t s = 0; s < sizeof states / sizeof states[0]; s++)
        add_checks(t, checks, &states[s]);
    table_print(t, &term, &out);
    return cli_put(&out);
}

static json_t *
ask(const struct cli *cli, struct err *e)
{
    auto_client struct client *c = connect_daemon(cli, e);
    json_t *result = NULL;

    if (c && client_call(c, "health", NULL, &result, e) == 0)
        return result;
    return NULL;
}

/* The answer if no daemon answers, for --json. */
static json_t *
answer_for_nobody(const struct err *e)
{
    return json_pack("{s:i, s:s, s:[{s:s, s:s, s:s}]}", "version", 1, "state", "bad", "checks",
                     "name", "daemon", "state", "bad", "text", e->text);
}

static int
exit_status(const json_t *answer, bool strict)
{
    const char *state = answer_str(answer, "state");

    return strcmp(state, "ok") != 0 && (strict || strcmp(state, "warn") != 0);
}

int
cmd_health(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct err e = {0};
    bool strict = false;
    int opt, status, put;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0)
        strict = true;
    if (opt == OPT_EXIT)
        return r.status;
    if (r.n_words > 0)
        return cli_usage("'berth health' takes no arguments");
    auto_json json_t *answer = ask(cli, &e);
    status = answer ? exit_status(answer, strict) : err_exit_status(e.code);
    if (!answer)
        answer = answer_for_nobody(&e);
    put = cli->json ? cli_put_json(answer) : print_table(json_object_get(answer, "checks"));
    return status ? status : put;
}
