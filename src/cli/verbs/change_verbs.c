/* cancel, hold and release; see change_verbs.h. */
#include "cli/verbs/change_verbs.h"

#include <ctype.h>
#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/ask/ask.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/table/render.h"
#include "wire/client.h"

#define SAID_MAX 10

static int
report(const json_t *result, const char *method, const char *done)
{
    const json_t *ids = json_object_get(result, "ids");
    const json_t *ended = json_object_get(result, "ended");
    auto_buf struct buf line = BUF_INIT;

    if (json_array_size(ended)) {
        ask_add_jobs(&line, result, "ended");
        cli_say("%s %s ended already", buf_str(&line),
                json_array_size(ended) == 1 ? "has" : "have");
        buf_clear(&line);
    }
    if (json_array_size(ids) == 0) {
        if (json_array_size(ended) == 0)
            cli_say("nothing to %s", method);
        return 0;
    }
    buf_addf(&line, "%s ", done);
    ask_add_jobs(&line, result, "ids");
    buf_addc(&line, '\n');
    return cli_put(&line);
}

static bool
are_numbers(const struct opt_reader *r)
{
    for (int i = 0; i < r->n_words; i++)
        if (r->words[i][0] != '@' && !isdigit((unsigned char)r->words[i][0]))
            return false;
    return r->n_words > 0;
}

/* hold and release know only jobs that have not ended; the daemon may know that those which
 * were named by number have, and how. False: it does not, and nothing was said. */
static bool
say_ended(struct client *c, const struct opt_reader *r)
{
    auto_json json_t *result = NULL;
    json_t *params;
    size_t said = 0;
    size_t i;
    json_t *job;

    if (!are_numbers(r))
        return false;
    params = ask_select(r->words, r->n_words);
    json_object_set_new(params, "all", json_true());
    if (client_call(c, "jobs", params, &result, NULL) < 0)
        return false;
    json_array_foreach(json_object_get(result, "jobs"), i, job)
    {
        if (render_state_is_final(answer_str(job, "state")) && said++ < SAID_MAX)
            cli_say("job %lld has ended (%s)", (long long)answer_int(job, "id", 0),
                    answer_str(job, "state"));
    }
    if (said > SAID_MAX)
        cli_say("and %zu more have ended too", said - SAID_MAX);
    return said > 0;
}

int
change_jobs(const struct cli *cli, const struct opt_reader *r, bool all, const char *method,
            long long grace_ms, const char *done)
{
    auto_json json_t *result = NULL;
    auto_buf struct buf nothing = BUF_INIT;
    auto_client struct client *c = NULL;
    struct err e = {0};
    json_t *params;

    buf_addf(&nothing, "which jobs? For example: berth %s 12, 12-20, name:x*, or --all",
             method);
    params = ask_select_or_all(r, all, buf_str(&nothing));
    if (!params)
        return 2;
    if (grace_ms >= 0)
        json_object_set_new(params, "grace_ms", json_integer(grace_ms));
    c = connect_daemon(cli, &e);
    if (!c) {
        json_decref(params);
        return cli_fail(&e);
    }
    connect_keep(cli, c, NULL);
    if (client_call(c, method, params, &result, &e) < 0) {
        if (e.code == ERR_NO_JOB && say_ended(c, r))
            return err_exit_status(ERR_FAILED);
        return cli_fail(&e);
    }
    if (cli->json) {
        json_object_set_new(result, "version", json_integer(1));
        return cli_put_json(result);
    }
    if (all)
        json_object_del(result, "ended"); /* nobody meant those */
    return report(result, method, done);
}
