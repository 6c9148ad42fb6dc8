/* `berth version`. */
#include "base/buf.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"

static const struct page page = {
    .usage = "berth version",
    .about = "Print the version.",
};

int
cmd_version(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    auto_buf struct buf out = BUF_INIT;

    if (!opt_read_nothing(&r, cli, &page, argc, argv))
        return r.status;
    if (cli->json)
        buf_adds(&out, "{\"version\":1,\"berth\":\"" BERTH_VERSION "\"}\n");
    else
        buf_adds(&out, "berth " BERTH_VERSION "\n");
    return cli_put(&out);
}
