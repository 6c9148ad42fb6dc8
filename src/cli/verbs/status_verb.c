/* `berth status`: the daemon, counts of jobs, and the GPUs. */
#include "cli/verbs/status_verb.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/ask/ask.h"
#include "cli/ask/redraw.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/common/term.h"
#include "cli/table/gpu_table.h"
#include "wire/client.h"

static const struct opt options[] = {
    WATCH_OPTION,
    {0},
};

static const struct page page = {
    .usage = "berth status [--watch[=SECONDS]]",
    .about = "Show the daemon, the number of jobs in each state, and the GPUs.",
    .options = options,
};

static void
add_fact(struct buf *out, const char *label, const char *s)
{
    if (!s[0])
        return;
    buf_addf(out, "%-8s ", label);
    text_add_safe(out, s, strlen(s), 0);
    buf_addc(out, '\n');
}

/* Running jobs come first, then pending ones, then the rest. */
void
status_add_counts(const json_t *status, const char *reason, struct buf *out)
{
    static const char *const order[] = {"RUNNING",   "STARTING", "COMPLETING",
                                        "SUSPENDED", "PENDING",  "HELD"};
    const json_t *counts = json_object_get(status, "counts");
    bool any = false;

    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        int64_t n = answer_int(counts, order[i], 0);

        if (n == 0)
            continue;
        buf_addf(out, "%s%lld ", any ? ", " : "", (long long)n);
        for (const char *s = order[i]; *s; s++)
            buf_addc(out, (char)tolower((unsigned char)*s));
        if (reason && strcmp(order[i], "PENDING") == 0)
            buf_addf(out, " (%s)", reason);
        any = true;
    }
    if (!any)
        buf_adds(out, "no pending or running jobs");
}

void
status_add_daemon(const json_t *status, struct buf *out)
{
    const json_t *d = json_object_get(status, "daemon");
    auto_buf struct buf line = BUF_INIT;
    char span[24];

    add_fact(out, "trouble", answer_str(d, "disk_trouble"));
    add_fact(out, "trouble", answer_str(d, "start_trouble"));
    buf_addf(&line, "pid %lld, version %s, %s mode, up %s", (long long)answer_int(d, "pid", 0),
             answer_str(d, "version"), answer_str(d, "mode"),
             format_duration(answer_int(d, "uptime_s", 0) * 1000, span));
    add_fact(out, "daemon", buf_str(&line));
    add_fact(out, "folder", answer_str(d, "dir"));
    add_fact(out, "socket", answer_str(d, "socket"));
    buf_clear(&line);
    status_add_counts(status, NULL, &line);
    add_fact(out, "jobs", buf_str(&line));
}

static void
add_status(const json_t *status, const struct term *term, struct buf *out)
{
    status_add_daemon(status, out);
    gpu_table_add(status, term, false, out);
}

static int
draw(void *ctx, struct client *c, const struct term *term, struct buf *out, struct err *e)
{
    auto_json json_t *status = NULL;

    (void)ctx;
    if (client_call(c, "status", NULL, &status, e) < 0)
        return -1;
    add_status(status, term, out);
    return 0;
}

static int
print_once(const struct cli *cli)
{
    auto_json json_t *result = NULL;
    auto_buf struct buf out = BUF_INIT;
    struct term term = term_of_stdout();
    int status = ask_daemon(cli, "status", NULL, &result);

    if (status != 0)
        return status;
    if (cli->json)
        return cli_put_json(result);
    add_status(result, &term, &out);
    return cli_put(&out);
}

int
cmd_status(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    bool watch = false;
    int interval_ms;
    int opt;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0) {
        watch = true;
        if (watch_read_interval(r.value, &interval_ms) != 0)
            return 2;
    }
    if (opt == OPT_EXIT)
        return r.status;
    if (r.n_words > 0)
        return cli_usage("'berth status' takes no arguments; 'berth show 12' shows a job");
    if (watch && cli->json)
        return cli_usage("--watch and --json exclude each other; 'berth events -f' is JSON");
    return watch ? watch_run(cli, interval_ms, draw, NULL) : print_once(cli);
}
