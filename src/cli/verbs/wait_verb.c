/* `berth wait`: blocks until the jobs have ended and exits with the highest of their exit
 * statuses. The daemon answers at that time; nothing is polled. */
#include "cli/verbs/wait_verb.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "cli/ask/answer.h"
#include "cli/ask/ask.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "wire/client.h"

enum { OPT_TIMEOUT, OPT_QUIET, OPT_ALL };

static const struct opt options[] = {
    {"timeout", 't', "TIME", "stop waiting after this time, with exit status 7"},
    {"quiet", 'q', NULL, "print nothing"},
    {"all", 'a', NULL, "all of your jobs that have not ended"},
    {0},
};

static const struct page page = {
    .usage = "berth wait SEL... [options]",
    .about =
        "Wait for jobs to end and exit with their status: the exit code, 128+N for signal\n"
        "N, 124 for the time limit, 130 when cancelled; the highest of several jobs.\n"
        "--all, user:NAME and state:NAME mean jobs that have not ended; with none, the\n"
        "status is 0.",
    .options = options,
};

struct waiter {
    json_t *meant; /* the selected jobs; NULL: not known yet */
    json_t *result;
    struct err error;
    bool done;
};

static void
on_answer(void *ctx, int64_t id, json_t *result, const struct err *error)
{
    struct waiter *w = ctx;

    (void)id;
    w->done = true;
    w->error = *error;
    w->result = json_incref(result);
}

int
wait_highest(const json_t *result)
{
    size_t i;
    json_t *job;
    int64_t most = 0;

    json_array_foreach(json_object_get(result, "jobs"), i, job)
    {
        int64_t status = answer_int(job, "exit_status", 1);

        most = status > most ? status : most;
    }
    return most > 255 ? 255 : (int)most;
}

void
wait_tell_end(const json_t *job)
{
    const char *state = answer_str(job, "state"), *text = answer_str(job, "text");
    bool by_itself = json_is_integer(json_object_get(job, "exit_code")) &&
                     (strcmp(state, "COMPLETED") == 0 || strcmp(state, "FAILED") == 0);

    if (!by_itself)
        cli_say("job %lld: %s", (long long)answer_int(job, "id", 0), text[0] ? text : state);
}

/* A job's failure takes precedence over an output error. */
static int
worse(int status)
{
    return status ? status : cli_output_status();
}

static int
report(const struct cli *cli, json_t *result, bool quiet)
{
    auto_buf struct buf out = BUF_INIT;
    size_t i;
    json_t *job;

    if (cli->json) {
        cli_put_answer(result);
        return worse(wait_highest(result));
    }
    json_array_foreach(json_object_get(result, "jobs"), i, job)
    {
        answer_add_id(&out, job);
        buf_addf(&out, "  %s  %lld\n", answer_str(job, "state"),
                 (long long)answer_int(job, "exit_status", 1));
    }
    if (!quiet)
        cli_put(&out);
    return worse(wait_highest(result));
}

/* until_us: on the boot clock; 0: no limit. */
static int
await(struct client *c, struct waiter *w, int64_t until_us, struct err *e)
{
    while (!w->done) {
        int64_t left_ms = until_us ? (until_us - clock_boot_us() + 999) / 1000 : -1;

        if (until_us && left_ms <= 0)
            return -1;
        if (client_wait(c, left_ms > 1000000 ? 1000000 : (int)left_ms, e) < 0)
            return w->done ? 0 : -1;
    }
    return 0;
}

/* Resolves the selection to ids: if another daemon must be asked later, some jobs have ended
 * by then, and `all` would mean only the others. params is stolen. NULL: e. */
static json_t *
find_meant(struct client *c, json_t *params, struct err *e)
{
    json_t *meant = NULL;

    json_object_set_new(params, "resolve", json_true());
    return client_call(c, "wait", params, &meant, e) < 0 ? NULL : meant;
}

/* Waits for the end of the jobs that params (stolen) select; `all` and the like may select
 * none. 0: w holds the answer, or why there is none. */
static int
ask(struct client *c, json_t *params, int64_t until_us, struct waiter *w, struct err *e)
{
    json_t *meant = find_meant(c, params, e);

    if (!meant)
        return -1;
    if (json_array_size(json_object_get(meant, "select")) == 0) {
        json_decref(meant);
        w->result = json_pack("{s:[]}", "jobs");
        return 0;
    }
    w->meant = json_incref(json_object_get(meant, "select"));
    client_listen(c, NULL, on_answer, w);
    return client_send(c, "wait", meant, e) < 0 ? -1 : await(c, w, until_us, e);
}

/* {"version":1,"timed_out":true,"waited_for":["12","13_4"]}; null if the daemon never resolved
 * the selection. */
static int
report_timeout(const struct cli *cli, const struct waiter *w)
{
    auto_json json_t *answer =
        json_pack("{s:i, s:b, s:O?}", "version", 1, "timed_out", 1, "waited_for", w->meant);
    struct err e;

    if (cli->json)
        cli_put_json(answer);
    err_set(&e, ERR_TIMED_OUT, "time is up, and not all jobs have ended");
    return cli_fail(&e);
}

/* The time limit applies also to a daemon that is silent or away. */
static struct keeping
keep_until(struct client *c, int64_t timeout_ms)
{
    if (timeout_ms < 0)
        return (struct keeping){0};
    if (timeout_ms < CONNECT_PATIENCE_MS)
        client_set_patience(c, (int)timeout_ms + 1);
    return (struct keeping){.until_us = clock_boot_us() + timeout_ms * 1000};
}

int
cmd_wait(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct err e = {0};
    struct waiter w = {0};
    auto_client struct client *c = NULL;
    int64_t timeout_ms = -1;
    bool quiet = false;
    bool all = false;
    json_t *params;
    int opt;
    int status;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0) {
        if (opt == OPT_QUIET)
            quiet = true;
        else if (opt == OPT_ALL)
            all = true;
        else if (parse_duration_ms(r.value, 1000, &timeout_ms, &e) < 0)
            return cli_usage("--timeout: %s", e.text);
    }
    if (opt == OPT_EXIT)
        return r.status;
    params = ask_select_or_all(&r, all,
                               "which jobs? For example: berth wait 12, or @ for your "
                               "last");
    if (!params)
        return 2;
    c = connect_daemon(cli, &e);
    if (!c) {
        json_decref(params);
        return cli_fail(&e);
    }
    const struct keeping how = keep_until(c, timeout_ms);
    connect_keep(cli, c, &how);
    if (ask(c, params, how.until_us, &w, &e) < 0) {
        status = how.until_us && clock_boot_us() >= how.until_us ? report_timeout(cli, &w)
                                                                 : cli_fail(&e);
    } else {
        status = w.result ? report(cli, w.result, quiet) : cli_fail(&w.error);
    }
    json_decref(w.meant);
    json_decref(w.result);
    return status;
}
