/* `berth cancel`: stops running jobs (TERM, then KILL after the grace), and takes waiting
 * ones out of the queue. */
#include <stdint.h>

#include "base/err.h"
#include "base/parse.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/verbs/change_verbs.h"

enum { OPT_ALL, OPT_GRACE };

static const struct opt options[] = {
    {"all", 'a', NULL, "all of your jobs that have not ended"},
    {"grace", 'g', "TIME", "time between TERM and KILL (default: the job's own, 10s)"},
    {0},
};

static const struct page page = {
    .usage = "berth cancel SEL... | --all",
    .about = "Stop jobs and every process they have started; pending jobs never start.\n"
             "SEL: 12  12,14  12-20  @  name:x*  user:u  state:running",
    .options = options,
};

int
cmd_cancel(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct err e = {0};
    bool all = false;
    int64_t grace_ms = -1;
    int opt;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0) {
        if (opt == OPT_ALL)
            all = true;
        else if (parse_duration_ms(r.value, 1000, &grace_ms, &e) < 0)
            return cli_usage("--grace: %s", e.text);
    }
    if (opt == OPT_EXIT)
        return r.status;
    return change_jobs(cli, &r, all, "cancel", grace_ms, "cancelled");
}
