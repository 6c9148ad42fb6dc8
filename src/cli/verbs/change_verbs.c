/* `berth cancel`, `berth hold` and `berth release`: take a selector and print the affected
 * jobs. */
#include <ctype.h>
#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "cli/ask/answer.h"
#include "cli/ask/ask.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/table/render.h"
#include "wire/client.h"

#define SAID_MAX 10

static int
report(const json_t *result, const char *method, const char *done)
{
    const json_t *ids = json_object_get(result, "ids");
    const json_t *ended = json_object_get(result, "ended");

    if (json_array_size(ended)) {
        auto_buf struct buf line = BUF_INIT;

        ask_add_jobs(&line, result, "ended");
        cli_say("%s %s ended already", buf_str(&line),
                json_array_size(ended) == 1 ? "has" : "have");
    }
    if (json_array_size(ids) == 0) {
        if (json_array_size(ended) == 0)
            cli_say("nothing to %s", method);
        return 0;
    }
    return ask_put_done(result, done);
}

static bool
are_numbers(const struct opt_reader *r)
{
    for (int i = 0; i < r->n_words; i++)
        if (r->words[i][0] != '@' && !isdigit((unsigned char)r->words[i][0]))
            return false;
    return r->n_words > 0;
}

/* hold and release select only jobs that have not ended. If jobs named by id have ended,
 * prints how. False: none has, or this is unknown; nothing was printed. */
static bool
say_ended(struct client *c, const struct opt_reader *r)
{
    auto_json json_t *result = NULL;
    json_t *params;
    size_t said = 0;
    size_t i;
    json_t *job;

    if (!are_numbers(r))
        return false;
    params = ask_select(r->words, r->n_words);
    json_object_set_new(params, "all", json_true());
    if (client_call(c, "jobs", params, &result, NULL) < 0)
        return false;
    json_array_foreach(json_object_get(result, "jobs"), i, job)
    {
        if (render_state_is_final(answer_str(job, "state")) && said++ < SAID_MAX)
            cli_say("job %lld has ended (%s)", (long long)answer_int(job, "id", 0),
                    answer_str(job, "state"));
    }
    if (said > SAID_MAX)
        cli_say("and %zu more have ended too", said - SAID_MAX);
    return said > 0;
}

/* Calls method for the jobs that the words of r select (all: every job of the user's that has
 * not ended) and prints the result, "cancelled job 3". grace_ms: -1: the job's own. Returns
 * the exit status. */
static int
change_jobs(const struct cli *cli, const struct opt_reader *r, bool all, const char *method,
            int64_t grace_ms, const char *done)
{
    auto_json json_t *result = NULL;
    auto_buf struct buf nothing = BUF_INIT;
    auto_client struct client *c = NULL;
    struct err e = {0};
    json_t *params;

    buf_addf(&nothing, "which jobs? For example: berth %s 12, 12-20, name:x*, or --all",
             method);
    params = ask_select_or_all(r, all, buf_str(&nothing));
    if (!params)
        return 2;
    if (grace_ms >= 0)
        json_object_set_new(params, "grace_ms", json_integer(grace_ms));
    c = connect_daemon(cli, &e);
    if (!c) {
        json_decref(params);
        return cli_fail(&e);
    }
    connect_keep(cli, c, NULL);
    if (client_call(c, method, params, &result, &e) < 0) {
        if (e.code == ERR_NO_JOB && say_ended(c, r))
            return err_exit_status(ERR_FAILED);
        return cli_fail(&e);
    }
    if (cli->json)
        return cli_put_answer(result);
    if (all)
        json_object_del(result, "ended"); /* the user did not select these */
    return report(result, method, done);
}

#define ALL_OPTION                                                                             \
    {                                                                                          \
        "all", 'a', NULL, "all of your jobs that have not ended"                               \
    }

enum { OPT_ALL, OPT_GRACE };

static const struct opt cancel_options[] = {
    ALL_OPTION,
    {"grace", 'g', "TIME", "time between TERM and KILL (default: the job's own, 10s)"},
    {0},
};

static const struct opt all_options[] = {
    ALL_OPTION,
    {0},
};

static const struct page cancel_page = {
    .usage = "berth cancel SEL... | --all",
    .about = "Stop jobs and every process they have started; pending jobs never start.",
    .options = cancel_options,
};

static const struct page hold_page = {
    .usage = "berth hold SEL... | --all",
    .about = "Keep pending jobs from starting until `berth release`. Running ones continue.",
    .options = all_options,
};

static const struct page release_page = {
    .usage = "berth release SEL... | --all",
    .about = "Return held jobs to their place in the queue.",
    .options = all_options,
};

static int
run_change(struct cli *cli, const struct page *page, int argc, char **argv, const char *method,
           const char *done)
{
    struct opt_reader r;
    struct err e = {0};
    bool all = false;
    int64_t grace_ms = -1;
    int opt;

    opt_begin(&r, cli, page, argc, argv);
    while ((opt = opt_next(&r)) >= 0) {
        if (opt == OPT_ALL)
            all = true;
        else if (parse_duration_ms(r.value, 1000, &grace_ms, &e) < 0)
            return cli_usage("--grace: %s", e.text);
    }
    return opt == OPT_EXIT ? r.status : change_jobs(cli, &r, all, method, grace_ms, done);
}

int
cmd_cancel(struct cli *cli, int argc, char **argv)
{
    return run_change(cli, &cancel_page, argc, argv, "cancel", "cancelled");
}

int
cmd_hold(struct cli *cli, int argc, char **argv)
{
    return run_change(cli, &hold_page, argc, argv, "hold", "held");
}

int
cmd_release(struct cli *cli, int argc, char **argv)
{
    return run_change(cli, &release_page, argc, argv, "release", "released");
}
