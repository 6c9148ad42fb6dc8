/* cancel, hold and release; see change.h. */
#include "cli/change.h"

#include <jansson.h>

#include "base/buf.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/opt.h"
#include "wire/client.h"

static int
report(const json_t *result, const char *method, const char *done)
{
    const json_t *ids = json_object_get(result, "ids");
    const json_t *ended = json_object_get(result, "ended");
    auto_buf struct buf line = BUF_INIT;

    if (json_array_size(ended)) {
        ask_add_jobs(&line, ended);
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
    ask_add_jobs(&line, ids);
    buf_addc(&line, '\n');
    return cli_put(&line);
}

int
change_jobs(const struct cli *cli, const struct opt_reader *r, bool all, const char *method,
            long long grace_ms, const char *done)
{
    static char everything[] = "--all";
    char *all_word[] = {everything};
    auto_json json_t *result = NULL;
    json_t *params;
    int status;

    if (all && r->n_words > 0)
        return cli_usage("--all and a selection exclude each other");
    if (!all && r->n_words == 0)
        return cli_usage("which jobs? For example: berth %s 12, 12-20, name:x*, or --all",
                         method);
    params = all ? ask_select(all_word, 1) : ask_select(r->words, r->n_words);
    if (grace_ms >= 0)
        json_object_set_new(params, "grace_ms", json_integer(grace_ms));
    status = ask_daemon(cli, method, params, &result);
    if (status != 0)
        return status;
    if (cli->json) {
        json_object_set_new(result, "version", json_integer(1));
        return cli_put_json(result);
    }
    if (all)
        json_object_del(result, "ended"); /* nobody meant those */
    return report(result, method, done);
}
