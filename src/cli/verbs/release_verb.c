/* `berth release`: lets held jobs start. */
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/verbs/change_verbs.h"

static const struct opt options[] = {
    {"all", 'a', NULL, "all of your jobs that have not ended"},
    {0},
};

static const struct page page = {
    .usage = "berth release SEL... | --all",
    .about = "Return held jobs to their place in the queue.\n"
             "SEL: 12  12,14  12-20  @  name:x*  user:u",
    .options = options,
};

int
cmd_release(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    bool all = false;
    int opt;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0)
        all = true;
    return opt == OPT_EXIT ? r.status : change_jobs(cli, &r, all, "release", -1, "released");
}
