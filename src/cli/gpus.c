/* `berth gpus`: the cards, what holds them, and who else is on them. */
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "cli/answer.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/gpu_table.h"
#include "cli/opt.h"
#include "cli/term.h"
#include "cli/watch.h"
#include "wire/client.h"

enum { OPT_WATCH };

static const struct opt options[] = {
    WATCH_OPTION,
    {0},
};

static const struct page page = {
    .usage = "berth gpus [--watch[=SECONDS]]",
    .about =
        "Per card: state, memory used, held for jobs and free, load, temperature, jobs, and\n"
        "processes that are not Berth's. n/a: the driver does not say.",
    .options = options,
};

static void
add_gpus(const json_t *result, const struct term *term, struct buf *out)
{
    gpu_table_add(result, term, true, out);
    if (json_array_size(json_object_get(result, "gpus")) == 0)
        buf_adds(out, "no GPUs\n");
}

static int
draw(void *ctx, struct client *c, const struct term *term, struct buf *out, struct err *e)
{
    auto_json json_t *result = NULL;

    (void)ctx;
    if (client_call(c, "gpus", NULL, &result, e) < 0)
        return -1;
    if (json_is_object(json_object_get(result, "unknown_since")))
        buf_addf(out, "not answered since %s\n",
                 answer_str(json_object_get(result, "unknown_since"), "rfc3339"));
    add_gpus(result, term, out);
    return 0;
}

static int
print_once(const struct cli *cli)
{
    auto_json json_t *result = NULL;
    auto_buf struct buf out = BUF_INIT;
    struct term term = term_of_stdout();
    int status = ask_daemon(cli, "gpus", NULL, &result);

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

int
cmd_gpus(struct cli *cli, int argc, char **argv)
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
        return cli_usage("'berth gpus' takes no words; it shows every card");
    if (watch && cli->json)
        return cli_usage("--watch and --json exclude each other; 'berth events -f' is JSON");
    return watch ? watch_run(cli, interval_ms, draw, NULL) : print_once(cli);
}
