/* `berth status`: the daemon, the counts, the cards. */
#include "cli/status.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/answer.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/gpu_table.h"
#include "cli/opt.h"
#include "cli/term.h"
#include "wire/client.h"

static const struct page page = {
    .usage = "berth status",
    .about = "The daemon that answers, how many jobs stand where, and the cards.",
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

/* What runs first, then what waits, whatever else there is behind it. */
void
status_add_counts(const json_t *status, struct buf *out)
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
        any = true;
    }
    if (!any)
        buf_adds(out, "no jobs waiting or running");
}

void
status_add_daemon(const json_t *status, struct buf *out)
{
    const json_t *d = json_object_get(status, "daemon");
    auto_buf struct buf line = BUF_INIT;
    char span[24];

    buf_addf(&line, "pid %lld, version %s, %s mode, up %s", (long long)answer_int(d, "pid", 0),
             answer_str(d, "version"), answer_str(d, "mode"),
             format_duration(answer_int(d, "uptime_s", 0) * 1000, span));
    add_fact(out, "daemon", buf_str(&line));
    add_fact(out, "folder", answer_str(d, "dir"));
    add_fact(out, "socket", answer_str(d, "socket"));
    add_fact(out, "trouble", answer_str(d, "disk_trouble"));
    buf_clear(&line);
    status_add_counts(status, &line);
    add_fact(out, "jobs", buf_str(&line));
}

int
cmd_status(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    auto_json json_t *result = NULL;
    auto_buf struct buf out = BUF_INIT;
    struct term term = term_of_stdout();
    int status;

    if (!opt_read_nothing(&r, cli, &page, argc, argv))
        return r.status;
    status = ask_daemon(cli, "status", NULL, &result);
    if (status != 0)
        return status;
    if (cli->json)
        return cli_put_json(result);
    status_add_daemon(result, &out);
    gpu_table_add(result, &term, false, &out);
    return cli_put(&out);
}
