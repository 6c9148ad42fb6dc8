/* `berth pause`: starts no new work on a GPU; running jobs continue. With --drain it returns
 * when the GPU is empty, which an event of the daemon reports. */
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/ask/ask.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "wire/client.h"

enum { OPT_DRAIN, OPT_REASON };

static const struct opt options[] = {
    {"drain", 'd', NULL, "wait until no job is left there"},
    {"reason", 'r', "TEXT", "the reason, shown to other users"},
    {0},
};

static const struct page page = {
    .usage = "berth pause GPU... [--drain] [--reason TEXT]",
    .about =
        "Keep new work off GPUs; running jobs continue. It lasts until 'berth resume', even\n"
        "across restarts. GPU: 0  0,2  0-3  a UUID or its beginning  all",
    .options = options,
    .notes =
        "Ctrl-C while it waits for --drain leaves the GPU as it is: draining, then paused.",
};

/* GPUs that are not empty yet. */
struct drain {
    uint64_t waiting;
    uint64_t resumed; /* by another user, in the meantime */
};

static uint64_t
bit_of(const json_t *gpu, const char *key)
{
    int64_t index = answer_int(gpu, key, -1);

    return index < 0 || index > 63 ? 0 : UINT64_C(1) << index;
}

static void
on_event(void *ctx, const char *method, json_t *event)
{
    struct drain *drain = ctx;
    const char *state = answer_str(event, "state");
    uint64_t bit = bit_of(event, "gpu");

    if (strcmp(method, "event") != 0 || strcmp(answer_str(event, "kind"), "gpu") != 0 ||
        !(drain->waiting & bit))
        return;
    if (strcmp(state, "paused") == 0) {
        drain->waiting &= ~bit;
    } else if (strcmp(state, "up") == 0) {
        drain->waiting &= ~bit;
        drain->resumed |= bit;
    }
}

/* "gpu 0: draining; job 3 is still there" */
static int
say_states(const json_t *result)
{
    auto_buf struct buf out = BUF_INIT;
    size_t i;
    json_t *gpu;

    json_array_foreach(json_object_get(result, "gpus"), i, gpu)
    {
        const json_t *jobs = json_object_get(gpu, "jobs");
        const char *state = answer_str(gpu, "state");
        size_t n = json_array_size(jobs);

        buf_addf(&out, "gpu %lld: ", (long long)answer_int(gpu, "index", 0));
        text_add_safe(&out, state, strlen(state), 0);
        /* The state of a lost or sick GPU takes precedence. */
        if (strcmp(state, "paused") != 0 && strcmp(state, "draining") != 0)
            buf_adds(&out, ", and paused");
        if (n > 0) {
            buf_adds(&out, "; ");
            ask_add_jobs(&out, gpu, "jobs");
            buf_adds(&out, n == 1 ? " continues there" : " continue there");
        }
        buf_addc(&out, '\n');
    }
    return cli_put(&out);
}

static int
await_empty(struct client *c, struct drain *drain, struct err *e)
{
    uint64_t before = drain->waiting;

    while (drain->waiting)
        if (client_wait(c, -1, e) < 0)
            return -1;
    for (int i = 0; i < 64; i++) {
        auto_buf struct buf line = BUF_INIT;

        if (!(before >> i & 1))
            continue;
        if (drain->resumed >> i & 1)
            return err_set(e, ERR_FAILED, "gpu %d was resumed before it was empty", i);
        buf_addf(&line, "gpu %d: empty\n", i);
        if (cli_put(&line) != 0)
            return 0;
    }
    return 0;
}

static int
pause_gpus(const struct cli *cli, struct client *c, json_t *params, struct err *e)
{
    auto_json json_t *result = NULL;
    struct drain drain = {0};
    bool wait = json_is_true(json_object_get(params, "drain"));
    json_t *gpu;
    size_t i;

    client_listen(c, on_event, NULL, &drain);
    /* Follows events from before the pause, so that no end of a job is missed. */
    if (wait && client_call(c, "events", json_pack("{s:i, s:b}", "since", 0, "follow", 1), NULL,
                            e) < 0) {
        json_decref(params);
        return -1;
    }
    if (client_call(c, "gpu.pause", params, &result, e) < 0)
        return -1;
    json_array_foreach(json_object_get(result, "gpus"), i, gpu)
    {
        if (wait && json_array_size(json_object_get(gpu, "jobs")) > 0)
            drain.waiting |= bit_of(gpu, "index");
    }
    if (!cli->json)
        say_states(result);
    if (wait && await_empty(c, &drain, e) < 0)
        return -1;
    if (cli->json)
        cli_put_answer(result);
    return 0;
}

int
cmd_pause(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct err e = {0};
    auto_client struct client *c = NULL;
    const char *reason = NULL;
    bool drain = false;
    int opt;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0) {
        if (opt == OPT_DRAIN)
            drain = true;
        else
            reason = r.value;
    }
    if (opt == OPT_EXIT)
        return r.status;
    if (r.n_words == 0)
        return cli_usage("which GPUs? For example: berth pause 0, or all");
    c = connect_daemon(cli, &e);
    if (!c)
        return cli_fail(&e);
    json_t *params = json_pack("{s:o, s:b, s:s?}", "gpus", ask_words(r.words, r.n_words),
                               "drain", drain, "reason", reason);
    if (!params)
        return cli_usage("--reason: that is not UTF-8 text");
    return pause_gpus(cli, c, params, &e) < 0 ? cli_fail(&e) : cli_output_status();
}
