/* `berth`: reads the global options, finds the verb and runs it. It opens and requests nothing
 * that the verb does not need, because start-up time is part of every submit's latency. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/common/opt.h"

static const struct verb *
find_verb(const char *name)
{
    for (const struct verb *v = cli_verbs; v->name; v++) {
        if (strcmp(v->name, name) == 0)
            return v;
    }
    return NULL;
}

int
main(int argc, char **argv)
{
    struct cli cli = {.socket = getenv("BERTH_SOCKET"), .verbs = cli_verbs};
    int status = 0;
    int at;
    const struct verb *verb;

    /* write reports a closed pipe instead; the default action would kill us while we drive a
     * file's queue, with the terminal's last line half drawn. */
    signal(SIGPIPE, SIG_IGN);
    if (argc > 0 && cli_is_drop_in(argv[0]))
        return cli_run_drop_in(argv);
    if (cli.socket && !cli.socket[0])
        cli.socket = NULL;
    at = opt_read_global(&cli, argc, argv, &status);
    if (at == OPT_EXIT)
        return status;
    if (at == OPT_HELP)
        return cmd_help(&cli, 1, argv);
    if (at == OPT_VERSION)
        return cmd_version(&cli, 1, argv);
    if (at >= argc)
        return cli_overview(&cli);
    verb = find_verb(argv[at]);
    return verb ? verb->run(&cli, argc - at, argv + at) : cli_unknown_verb(&cli, argv[at]);
}
