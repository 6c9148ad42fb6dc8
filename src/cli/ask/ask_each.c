/* Runs verbs that print selected jobs one after another; see ask_each.h. */
#include "cli/ask/ask_each.h"

#include <stdbool.h>

#include "base/buf.h"
#include "cli/ask/ask.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/common/term.h"
#include "wire/client.h"

int
tell_jobs(struct cli *cli, int argc, char **argv, const struct tell *what)
{
    struct opt_reader r;
    auto_json json_t *result = NULL;
    auto_buf struct buf out = BUF_INIT;
    struct term term = term_of_stdout();
    json_t *params;
    json_t *job;
    bool all = false;
    size_t i;
    int status;
    int opt;

    opt_begin(&r, cli, what->page, argc, argv);
    while ((opt = opt_next(&r)) >= 0)
        all = true;
    if (opt == OPT_EXIT)
        return r.status;
    params = ask_select_or_all(&r, all, what->nothing);
    if (!params)
        return 2;
    json_object_set_new(params, "all", json_true()); /* ended jobs too */
    status = ask_daemon(cli, what->method, params, &result);
    if (status != 0)
        return status;
    if (cli->json)
        return cli_put_answer(result);
    json_array_foreach(json_object_get(result, "jobs"), i, job)
    {
        if (i > 0)
            buf_adds(&out, what->between);
        what->add(&term, &out, job);
    }
    return cli_put(&out);
}
