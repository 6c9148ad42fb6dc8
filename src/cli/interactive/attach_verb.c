/* `berth attach`: connects to an interactive job again, after a detach or a lost connection,
 * or in addition to another attached client. */
#include <string.h>

#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/ask/ask.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/interactive/interactive.h"
#include "cli/table/render.h"
#include "wire/client.h"

#define TAIL_BYTES 4096 /* about one screen */

enum { OPT_FROM_START, OPT_READ_ONLY };

static const struct opt options[] = {
    {"from-start", 0, NULL, "show everything it has written (default: only the end)"},
    {"read-only", 'r', NULL, "only watch; ignore what is typed"},
    {0},
};

static const struct page page = {
    .usage = "berth attach SEL [options]",
    .about = "Return to a job with --interactive, --pty or --screen, or to a `berth shell`:\n"
             "show its output, send it what is typed, and exit with its status.",
    .options = options,
    .notes =
        "Ctrl-] detaches from a job on a terminal, Ctrl-C from others; the job continues.\n"
        "Several clients can be attached; the job gets the input of all.",
    .no_json = "it prints what the job writes; use 'berth show SEL --json'",
};

static int
attach(const struct cli *cli, struct client **c, const json_t *job, int64_t tail, bool watch)
{
    const struct interactive what = {
        .cli = cli, .job = answer_int(job, "id", 0), .tail = tail, .read_only = watch};

    if (!answer_bool(job, "interactive") && !answer_bool(job, "screen"))
        return cli_usage("job %lld was not submitted with --interactive; 'berth logs %lld -f' "
                         "follows its output",
                         (long long)what.job, (long long)what.job);
    if (!render_state_is_final(answer_str(job, "state")))
        return interactive_follow(&what, c);
    cli_say("job %lld has ended: %s; 'berth logs %lld' shows its output", (long long)what.job,
            answer_str(job, "text"), (long long)what.job);
    return (int)answer_int(job, "exit_status", 1);
}

int
cmd_attach(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct err e = {0};
    auto_client struct client *c = NULL;
    auto_json json_t *result = NULL;
    int64_t tail = TAIL_BYTES;
    bool watch = false;
    json_t *params, *jobs;
    int opt;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0) {
        if (opt == OPT_FROM_START)
            tail = -1;
        else
            watch = true;
    }
    if (opt == OPT_EXIT)
        return r.status;
    params = ask_select_or_all(&r, false,
                               "which job? For example: berth attach 12, or @ for your last");
    if (!params)
        return 2;
    json_object_set_new(params, "all", json_true());
    c = connect_daemon(cli, &e);
    if (!c)
        json_decref(params);
    if (!c || client_call(c, "jobs", params, &result, &e) < 0)
        return cli_fail(&e);
    jobs = json_object_get(result, "jobs");
    if (json_array_size(jobs) != 1)
        return cli_usage("'berth attach' takes one job; that selects %zu",
                         json_array_size(jobs));
    return attach(cli, &c, json_array_get(jobs, 0), tail, watch);
}
