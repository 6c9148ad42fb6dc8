/* `berth gpus`: the cards, what holds them, and who else is on them. */
#include <string.h>

#include "base/buf.h"
#include "cli/answer.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/gpu_table.h"
#include "cli/opt.h"
#include "cli/term.h"
#include "wire/client.h"

static const struct page page = {
    .usage = "berth gpus",
    .about =
        "Per card: state, memory used, held for jobs and free, load, temperature, jobs, and\n"
        "processes that are not Berth's. n/a: the driver does not say.",
};

int
cmd_gpus(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    auto_json json_t *result = NULL;
    auto_buf struct buf out = BUF_INIT;
    struct term term = term_of_stdout();
    int status;

    if (!opt_read_none(&r, cli, &page, argc, argv))
        return r.status;
    if (r.n_words > 0)
        return cli_usage("'berth gpus' takes no words; it shows every card");
    status = ask_daemon(cli, "gpus", NULL, &result);
    if (status != 0)
        return status;
    if (cli->json) {
        json_object_set_new(result, "version", json_integer(1));
        return cli_put_json(result);
    }
    if (json_is_object(json_object_get(result, "unknown_since")))
        cli_say("the GPUs have not answered since %s; these are the last figures",
                answer_str(json_object_get(result, "unknown_since"), "rfc3339"));
    if (json_array_size(json_object_get(result, "gpus")) == 0)
        cli_say("no GPUs; jobs that ask for none can run. 'berth doctor' looks why");
    gpu_table_add(result, &term, true, &out);
    return cli_put(&out);
}
