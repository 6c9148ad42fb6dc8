/* `berth requeue`: runs jobs again. */
#include <jansson.h>

#include "cli/ask/ask.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"

enum { OPT_FAILED };

static const struct opt options[] = {
    {"failed", 0, NULL, "only jobs and tasks that failed"},
    {0},
};

static const struct page page = {
    .usage = "berth requeue SEL... [options]",
    .about =
        "Run jobs again, with the same command, folder and environment. Jobs that have\n"
        "ended return to the queue; running jobs are stopped first. An array runs all its\n"
        "tasks again; with --failed or state:NAME only its tasks in such a state.",
    .options = options,
};

int
cmd_requeue(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    json_t *params;
    bool failed = false;
    int opt;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0)
        failed |= opt == OPT_FAILED;
    if (opt == OPT_EXIT)
        return r.status;
    params = ask_select_or_all(&r, false,
                               "which jobs? For example: berth requeue 12, or "
                               "state:failed");
    if (!params)
        return 2;
    if (failed)
        json_object_set_new(params, "failed", json_true());
    return ask_change(cli, "requeue", params, "requeued");
}
