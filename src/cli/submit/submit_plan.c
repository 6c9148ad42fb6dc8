/* Prints a submission as it was understood, and what would happen to it: the daemon plans it
 * as a line of an unknown file (file.plan). */
#include "cli/submit/submit_plan.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "base/request.h"
#include "cli/ask/answer.h"
#include "cli/ask/connect.h"
#include "cli/ask/request_write.h"
#include "cli/ask/sim_match.h"
#include "cli/common/cli.h"
#include "cli/submit/submit_options.h"
#include "cli/table/render.h"
#include "spec/attr.h"
#include "wire/client.h"

/* Writes it as a line of a file: one task of the array, since all tasks request the same. */
static void
write_params(const struct request *req, const struct submit_words *words, struct buf *out)
{
    struct request one = *req; /* shallow copy, borrows all pointers */
    struct jsonw w;

    one.array.n = one.array_max = 0;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "path", "/dev/null");
    jsonw_kbool(&w, "fresh", true);
    jsonw_karray(&w, "jobs");
    jsonw_object(&w);
    jobreq_add_fields(&w, &one);
    jsonw_kstr(&w, "key", "000000000000#0");
    jsonw_kint(&w, "line", 1);
    jsonw_end_object(&w);
    jsonw_end_array(&w);
    jobreq_add_context(&w, words->cwd, &words->env);
    jsonw_end_object(&w);
}

/* Removes the line from the message, as there is no file. */
static int
fail_without_line(struct err *e)
{
    static const char prefix[] = "line 1: ";
    size_t n = sizeof prefix - 1;

    if (strncmp(e->text, prefix, n) == 0)
        memmove(e->text, e->text + n, strlen(e->text + n) + 1);
    return cli_fail(e);
}

/* "would start now on gpu 0", "would be sent to Slurm now", "would wait: GpuBusy: ...". */
static void
add_verdict(const json_t *line, struct buf *out)
{
    const char *state = answer_str(line, "state");
    const char *text = answer_str(line, "text");
    auto_buf struct buf gpus = BUF_INIT;

    answer_add_gpus(&gpus, json_object_get(line, "gpus"));
    if (strcmp(state, "STARTING") == 0 && json_object_get(line, "sbatch"))
        buf_adds(out, "would be sent to Slurm now");
    else if (strcmp(state, "STARTING") == 0)
        buf_addf(out, "would start now%s%s", gpus.len ? " on gpu " : "", buf_str(&gpus));
    else
        buf_addf(out, "would %s%s%s",
                 strcmp(state, "INFEASIBLE") == 0 || strcmp(state, "CANCELLED") == 0
                     ? "be refused"
                 : strcmp(state, "HELD") == 0 ? "be held"
                                              : "wait",
                 text[0] ? ": " : "", text);
    render_expected_start(out, line);
    buf_addc(out, '\n');
}

/* The amount that vram=auto means now. */
static void
add_learned(const struct request *req, const json_t *line, struct buf *out)
{
    int64_t mib = answer_int(line, "vram_mib", 0);
    char size[24];

    if (!req->vram_auto)
        return;
    if (mib > 0)
        buf_addf(out, "%-14s%s of each GPU\n", "learned", format_mib(mib, size));
    else
        buf_addf(out, "%-14snothing about this command yet: it gets whole GPUs\n", "learned");
}

/* The options that sbatch would get. */
static void
add_sbatch(const json_t *line, struct buf *out)
{
    auto_buf struct buf options = BUF_INIT;

    answer_add_options(&options, json_object_get(line, "sbatch"));
    if (options.len)
        buf_addf(out, "%-14s%s\n", answer_bool(line, "packed") ? "allocation" : "sbatch",
                 buf_str(&options));
}

/* Removes the daemon's name for the line, which is useless to the caller. */
static void
drop_line(json_t *line)
{
    json_object_del(line, "key");
    json_object_del(line, "line");
}

int
submit_plan(struct cli *cli, const struct request *req, const struct submit_words *words)
{
    struct daemon_args args = {.sim = words->sim};
    struct err e = {0};
    auto_client struct client *c = sim_match_connect(cli, &args, &e);
    auto_buf struct buf params = BUF_INIT, out = BUF_INIT;
    auto_json json_t *result = NULL;
    json_t *line;

    if (!c)
        return cli_fail(&e);
    write_params(req, words, &params);
    if (client_call_text(c, "file.plan", params.data, params.len, &result, &e) < 0)
        return fail_without_line(&e);
    line = json_array_get(json_object_get(result, "lines"), 0);
    if (words->plan) {
        *words->plan = json_incref(line);
        return 0;
    }
    drop_line(line);
    if (cli->json)
        return cli_put_answer(result);
    request_describe(req, &out);
    add_learned(req, line, &out);
    add_sbatch(line, &out);
    add_verdict(line, &out);
    return cli_put(&out);
}
