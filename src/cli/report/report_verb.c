/* `berth report`: summarises past jobs in the terminal, as JSON, or as a page of plots. The
 * daemon computes the numbers (method `report`). */
#include "cli/report/report_verb.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/parse.h"
#include "cli/ask/answer.h"
#include "cli/ask/ask.h"
#include "cli/ask/moment.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/common/term.h"
#include "wire/client.h"

#define DAYS_DEFAULT   30
#define DAY_US         (INT64_C(86400) * 1000000)
#define PAGE_BINS      120
#define COMMANDS_SHOWN 12 /* in a terminal */

enum { OPT_SINCE, OPT_UNTIL, OPT_USER, OPT_HTML, OPT_COMMANDS };

static const struct opt options[] = {
    {"since", 0, "WHEN", "jobs that ended then or later: 7d, today, 2026-11-01, all (30d)"},
    {"until", 0, "WHEN", "jobs that ended before"},
    {"user", 'u', "NAME", "only this user's jobs"},
    {"html", 0, "FILE", "write a self-contained page with plots; -: standard output"},
    {"commands", 0, "N", "commands to list, by GPU time (12; 50 with --html, --json)"},
    {0},
};

static const struct page page = {
    .usage = "berth report [--since WHEN] [--user NAME] [--html FILE]",
    .about =
        "Compare requests with use, and show what each user used, how long jobs waited, why\n"
        "they failed, how busy the GPUs were, and what would help.",
    .options = options,
    .notes = "berth report --since 7d --html week.html && xdg-open week.html",
};

struct wish {
    int64_t since_us, until_us; /* 0: not given */
    int64_t commands;
    const char *user, *html;
};

static json_t *
make_params(const struct wish *w)
{
    json_t *params = json_object();

    if (w->since_us > 0)
        json_object_set_new(params, "since_us", json_integer(w->since_us));
    if (w->until_us > 0)
        json_object_set_new(params, "until_us", json_integer(w->until_us));
    if (w->user)
        json_object_set_new(params, "user", json_string(w->user));
    if (w->commands)
        json_object_set_new(params, "commands", json_integer(w->commands));
    if (w->html)
        json_object_set_new(params, "bins", json_integer(PAGE_BINS));
    return params;
}

static int
take_option(const struct opt_reader *r, int opt, struct wish *w, struct err *e)
{
    switch (opt) {
    case OPT_SINCE:
        if (strcmp(r->value, "all") == 0) {
            w->since_us = -1;
            return 0;
        }
        return moment_read(r->value, &w->since_us, e);
    case OPT_UNTIL:
        return moment_read(r->value, &w->until_us, e);
    case OPT_USER:
        w->user = r->value;
        return 0;
    case OPT_HTML:
        w->html = r->value;
        return 0;
    default:
        return parse_int(r->value, 1, 300, &w->commands, e);
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
    if (r->n_words)
        return cli_usage(
            "'berth report' takes no arguments; --user NAME selects a user's jobs");
    if (w->html && r->cli->json)
        return cli_usage("--html writes a page and --json prints JSON; choose one");
    if (w->since_us == 0)
        w->since_us = (w->until_us ? w->until_us : clock_wall_us()) - DAYS_DEFAULT * DAY_US;
    return -1;
}

static int
write_page(const json_t *report, const char *path)
{
    auto_buf struct buf out = BUF_INIT;
    struct err e = {0};

    report_add_html(report, &out);
    if (strcmp(path, "-") == 0)
        return cli_put(&out);
    if (file_write_atomic_at(AT_FDCWD, path, out.data, out.len, 0644, false, &e) < 0) {
        err_prefix(&e, "--html %s", path);
        return cli_fail(&e);
    }
    return 0;
}

/* True if the terminal, or the reader of a pipe, accepts more than ASCII. */
static bool
is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *value = NULL;

    for (size_t i = 0; i < 3 && (!value || !*value); i++)
        value = getenv(names[i]);
    return value && (strcasestr(value, "utf-8") || strcasestr(value, "utf8"));
}

int
cmd_report(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct wish w = {0};
    auto_json json_t *report = NULL;
    auto_buf struct buf out = BUF_INIT;
    struct term term = term_of_stdout();
    int status;

    opt_begin(&r, cli, &page, argc, argv);
    status = read_options(&r, &w);
    if (status >= 0)
        return status;
    status = ask_daemon(cli, "report", make_params(&w), &report);
    if (status != 0)
        return status;
    if (answer_int(json_object_get(report, "total"), "jobs", 0) == 0)
        ask_say_no_user(w.user);
    if (w.html)
        return write_page(report, w.html);
    if (cli->json) {
        json_object_set_new(report, "version", json_integer(1));
        return cli_put_json(report);
    }
    report_add_text(report, &term, is_utf8(), w.commands ? w.commands : COMMANDS_SHOWN, &out);
    return cli_put(&out);
}
