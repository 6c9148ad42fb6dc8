/* `berth resume`: allows new work on a GPU, and clears its faults. */
#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/ask/ask.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "wire/client.h"

static const struct page page = {
    .usage = "berth resume GPU...",
    .about =
        "Start work on paused GPUs again, and clear the fault of sick ones: use it after they\n"
        "were reset or repaired. GPU: 0  0,2  0-3  a UUID  all",
};

int
cmd_resume(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    auto_json json_t *result = NULL;
    auto_buf struct buf out = BUF_INIT;
    json_t *gpu;
    size_t i;
    int status;

    if (!opt_read_none(&r, cli, &page, argc, argv))
        return r.status;
    if (r.n_words == 0)
        return cli_usage("which GPUs? For example: berth resume 0, or all");
    status = ask_daemon(cli, "gpu.resume",
                        json_pack("{s:o}", "gpus", ask_words(r.words, r.n_words)), &result);
    if (status != 0)
        return status;
    if (cli->json)
        return cli_put_answer(result);
    json_array_foreach(json_object_get(result, "gpus"), i, gpu)
    {
        const char *state = answer_str(gpu, "state");

        buf_addf(&out, "gpu %lld: ", (long long)answer_int(gpu, "index", 0));
        text_add_safe(&out, state, strlen(state), 0);
        buf_addc(&out, '\n');
    }
    return cli_put(&out);
}
