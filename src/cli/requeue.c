/* `berth requeue`: runs jobs again. */
#include <jansson.h>

#include "base/buf.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/opt.h"
#include "wire/client.h"

static const struct page page = {
    .usage = "berth requeue SEL...",
    .about = "Runs jobs again, with the same command, folder and environment: those that have\n"
             "ended stand in line again, those that run are stopped first.\n"
             "SEL: 12  12,14  12-20  @  name:x*  state:failed",
};

int
cmd_requeue(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    auto_json json_t *result = NULL;
    auto_buf struct buf line = BUF_INIT;
    json_t *params;
    int status;

    if (!opt_read_none(&r, cli, &page, argc, argv))
        return r.status;
    params = ask_select_or_all(&r, false,
                               "which jobs? For example: berth requeue 12, or "
                               "state:failed");
    if (!params)
        return 2;
    status = ask_daemon(cli, "requeue", params, &result);
    if (status != 0)
        return status;
    if (cli->json) {
        json_object_set_new(result, "version", json_integer(1));
        return cli_put_json(result);
    }
    buf_adds(&line, "requeued ");
    ask_add_jobs(&line, result, "ids");
    buf_addc(&line, '\n');
    return cli_put(&line);
}
