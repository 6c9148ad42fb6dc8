/* `berth shell`: a lease on GPUs with a shell: a job on a terminal whose command is the user's
 * shell. All its options are those of submit; leaving the shell ends the lease. */
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/submit/submit_verb.h"
#include "spec/attr.h"
#include "wire/account.h"

static const struct page page = {
    .usage = "berth shell [options]",
    .about = "Open a shell on GPUs that are reserved until you exit it, or until its time\n"
             "limit, with a warning before (5 minutes, or the last tenth). Ctrl-] detaches,\n"
             "and the shell keeps its GPUs; `berth attach` returns to it. For example:\n"
             "berth shell -G 1 -t 2h",
    .no_json = "it opens a shell on this terminal",
};

/* From the account. */
static char *
find_shell(void)
{
    auto_account struct account account;
    const char *shell = account_by_uid(getuid(), &account) ? account.shell : NULL;

    if (!shell || !shell[0])
        shell = getenv("SHELL");
    return xstrdup(shell && shell[0] ? shell : "/bin/sh");
}

static int
lease(struct cli *cli, struct submission *s)
{
    s->req.pty = true;
    s->req.argv = xcalloc(2, sizeof *s->req.argv);
    s->req.argv[0] = find_shell();
    if (!s->req.name)
        s->req.name = xstrdup("shell");
    return submit_send(cli, s);
}

int
cmd_shell(struct cli *cli, int argc, char **argv)
{
    struct submission s = {0};
    struct opt_reader r = {0};
    int status;

    request_begin(&s.req);
    status = submit_read_options(&r, cli, &page, argc, argv, &s.req, &s.words);
    if (status == OPT_EXIT)
        status = r.status;
    else if (r.n_words > 0)
        status = cli_usage(
            "'berth shell' takes no command; 'berth submit --pty -- %s' runs one on a terminal",
            r.words[0]);
    else
        status = lease(cli, &s);
    submission_free(&s);
    return status;
}
