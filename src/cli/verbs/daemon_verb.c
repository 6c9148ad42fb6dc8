/* `berth daemon`: start, stop, status, logs, log-level. Stopping waits until the daemon has
 * exited, so that the next command in a script finds no daemon. */
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/verbs/daemon_logs.h"
#include "cli/verbs/status_verb.h"
#include "wire/client.h"

enum { OPT_CANCEL, OPT_SIM, OPT_CONFIG, OPT_SYSTEM, OPT_FOLLOW, OPT_TAIL };

static const struct opt options[] = {
    {"cancel", 0, NULL, "stop: end the running jobs too (by default they continue)"},
    {"sim", 0, "SPEC", "start: simulated GPUs, 2 or 4x80G (default 24 GiB each)"},
    {"config", 0, "FILE", "start: read these settings"},
    {"system", 0, NULL, "start: for all users of this machine (root)"},
    {"follow", 'f', NULL, "logs: keep printing new lines"},
    {"tail", 'n', "N", "logs: only the last N lines"},
    {0},
};

static const struct page page = {
    .usage = "berth daemon start|stop|status|logs|log-level [LEVEL] [options]",
    .about =
        "Control the daemon that manages the queue. 'run' and 'submit' start one if there is\n"
        "none, and it exits when it has been idle; one that 'start' started stays. Jobs\n"
        "outlive it. log-level error|warn|info|debug: how much it logs from now on.",
    .options = options,
};

struct wish {
    struct daemon_args args;
    bool cancel;
    bool follow;
    int64_t tail;
    const char *level;
};

static int
say_daemon(struct cli *cli, struct client *c, const char *lead)
{
    auto_json json_t *status = NULL;
    auto_buf struct buf out = BUF_INIT;
    struct err e = {0};

    if (client_call(c, "status", NULL, &status, &e) < 0)
        return cli_fail(&e);
    if (cli->json)
        return cli_put_json(status);
    buf_adds(&out, lead);
    status_add_daemon(status, &out);
    return cli_put(&out);
}

/* Connects twice if needed: a connection to a daemon that is being stopped or killed can
 * succeed and then get no answer; the second time there is none, or its successor. */
static int
start(struct cli *cli, const struct wish *w)
{
    struct err e = {0};
    bool started;
    auto_client struct client *c = connect_or_start(cli, &w->args, &started, &e);

    if (c && !started && client_call(c, "status", NULL, NULL, &e) < 0 &&
        e.code == ERR_UNREACHABLE) {
        client_free(c);
        c = connect_or_start(cli, &w->args, &started, &e);
    }
    if (!c)
        return cli_fail(&e);
    if (!started && (w->args.sim || w->args.config))
        cli_say(
            "a daemon is running already; --sim and --config apply only when one is started");
    return say_daemon(cli, c, started ? "started\n" : "already running\n");
}

/* stopped: there was a daemon to stop. */
static int
put_stopped(const struct cli *cli, bool stopped)
{
    auto_json json_t *answer = json_pack("{s:i, s:b}", "version", 1, "stopped", stopped);

    return cli->json ? cli_put_json(answer) : 0;
}

static int
stop(struct cli *cli, const struct wish *w)
{
    struct err e = {0};
    auto_client struct client *c = connect_running(cli, &e);

    if (!c && e.code == ERR_UNREACHABLE) {
        cli_say("no daemon is running");
        return put_stopped(cli, false);
    }
    if (!c || client_call(c, "stop", json_pack("{s:b}", "cancel", w->cancel), NULL, &e) < 0)
        return cli_fail(&e);
    while (client_wait(c, -1, &e) == 0)
        continue;
    cli_say("the daemon has stopped%s",
            w->cancel ? ", and so have the jobs" : "; running jobs continue");
    return put_stopped(cli, true);
}

static int
status(struct cli *cli, const struct wish *w)
{
    struct err e = {0};
    auto_client struct client *c = connect_running(cli, &e);

    (void)w;
    return c ? say_daemon(cli, c, "") : cli_fail(&e);
}

static int
logs(struct cli *cli, const struct wish *w)
{
    if (cli->json)
        return cli_usage(
            "'berth daemon logs' has no JSON output; with the setting 'log_format: "
            "json' the log itself is JSON");
    return daemon_logs(cli, w->follow, w->tail);
}

static int
log_level(struct cli *cli, const struct wish *w)
{
    return daemon_log_level(cli, w->level);
}

static const struct {
    const char *name;
    int (*run)(struct cli *cli, const struct wish *w);
    int words_max; /* including its own name */
} actions[] = {
    {"start", start, 1}, {"stop", stop, 1},           {"status", status, 1},
    {"logs", logs, 1},   {"log-level", log_level, 2},
};

/* 0, or the exit status. */
static int
take_option(int opt, const struct opt_reader *r, struct wish *w)
{
    struct err e;

    if (opt == OPT_CANCEL)
        w->cancel = true;
    else if (opt == OPT_SYSTEM)
        w->args.system = true;
    else if (opt == OPT_SIM)
        w->args.sim = r->value;
    else if (opt == OPT_CONFIG)
        w->args.config = r->value;
    else if (opt == OPT_FOLLOW)
        w->follow = true;
    else if (parse_int(r->value, 1, INT32_MAX, &w->tail, &e) < 0)
        return cli_usage("--tail: %s", e.text);
    return 0;
}

int
cmd_daemon(struct cli *cli, int argc, char **argv)
{
    static const char *const names[] = {"start", "stop", "status", "logs", "log-level", NULL};
    struct opt_reader r;
    struct wish w = {.args.stay = true};
    const char *near;
    int opt;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0) {
        int status = take_option(opt, &r, &w);
        if (status)
            return status;
    }
    if (opt == OPT_EXIT)
        return r.status;
    if (r.n_words < 1)
        return cli_usage("use one of: berth daemon start, stop, status, logs, log-level");
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(actions[i].name, r.words[0]) != 0)
            continue;
        if (r.n_words > actions[i].words_max)
            return cli_usage("unexpected argument '%s'", r.words[actions[i].words_max]);
        w.level = r.n_words == 2 ? r.words[1] : NULL;
        return actions[i].run(cli, &w);
    }
    near = text_nearest(r.words[0], names);
    return cli_usage("use start, stop, status, logs or log-level%s%s%s",
                     near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}
