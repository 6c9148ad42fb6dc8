/* `berth signal`: sends a signal to the processes of running jobs. */
#include <jansson.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "cli/ask/ask.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"

static const struct page page = {
    .usage = "berth signal SEL... NAME",
    .about =
        "Send a signal (USR1, TERM, 10 ...) to every process of running jobs. To end a job\n"
        "even if it resists, use berth cancel.",
};

int
cmd_signal(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct err e = {0};
    json_t *params;
    int sig;

    if (!opt_read_none(&r, cli, &page, argc, argv))
        return r.status;
    if (r.n_words < 2)
        return cli_usage("which job, and which signal? For example: berth signal 12 USR1");
    if (parse_signal(r.words[r.n_words - 1], &sig, &e) < 0)
        return cli_usage("%s", e.text);
    params = ask_select(r.words, r.n_words - 1);
    json_object_set_new(params, "signal", json_integer(sig));
    auto_free char *done = xasprintf("sent %s to", r.words[r.n_words - 1]);
    return ask_change(cli, "signal", params, done);
}
