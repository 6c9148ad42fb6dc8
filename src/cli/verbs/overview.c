/* Bare `berth`: the machine and the queue, or how to start. */
#include "base/buf.h"
#include "base/err.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "cli/common/term.h"
#include "cli/table/gpu_table.h"
#include "cli/table/queue_table.h"
#include "cli/verbs/status_verb.h"
#include "wire/client.h"

#define SHOWN_MAX 40

static int
add_overview(struct client *c, const struct term *term, struct buf *out, struct err *e)
{
    auto_json json_t *gpus = NULL;
    auto_json json_t *status = NULL;
    auto_buf struct buf table = BUF_INIT;
    const struct queue_view view = {0};
    size_t n = 0;
    json_t *params = json_pack("{s:s,s:i}", "order", "turn", "limit", SHOWN_MAX);

    if (client_call(c, "gpus", NULL, &gpus, e) < 0 ||
        client_call(c, "status", NULL, &status, e) < 0 ||
        queue_table_add(c, params, &view, term, &table, &n, e) < 0)
        return -1;
    gpu_table_add(gpus, term, true, out);
    if (json_array_size(json_object_get(gpus, "gpus")) == 0) {
        gpu_table_add_none(gpus, out);
        buf_addc(out, '\n');
    }
    buf_addc(out, '\n');
    if (n > 0)
        buf_add(out, table.data, table.len);
    if (n == SHOWN_MAX)
        buf_addf(out, "the first %d; 'berth queue' lists all\n", SHOWN_MAX);
    else if (n == 0)
        buf_adds(out, "the queue is empty\n");
    buf_addc(out, '\n');
    status_add_counts(status, NULL, out);
    buf_addc(out, '\n');
    return 0;
}

int
cli_overview(struct cli *cli)
{
    struct err e = {0};
    auto_client struct client *c = connect_kept(cli, &e);
    auto_buf struct buf out = BUF_INIT;
    struct term term = term_of_stdout();

    if (!c) {
        int status = cli_fail(&e);

        cli_say("'berth run jobs.txt' runs a file of commands; 'berth help' lists the verbs");
        return status;
    }
    if (cli->json) {
        auto_json json_t *status = NULL;

        return client_call(c, "status", NULL, &status, &e) < 0 ? cli_fail(&e)
                                                               : cli_put_json(status);
    }
    return add_overview(c, &term, &out, &e) < 0 ? cli_fail(&e) : cli_put(&out);
}
