/* `berth compat`: replaces this process by berth-compat, which contains the drop-in commands
 * and parses its own arguments. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/common/cli.h"
#include "wire/places.h"

bool
cli_is_drop_in(const char *argv0)
{
    /* Commands for which earlier versions made links. */
    static const char *const names[] = {
        "cudaq",
        "cudaq.py",
        "gpusched",
        "gpusched.simjob",
        "mgpu_scheduler_server",
        "mgpu_srun",
        "mgpu_queue",
        "mgpu_cancel",
        "scheduler",
        "scheduler.py",
        "scheduler_10x",
        "scheduler_10x.py",
    };
    const char *slash = strrchr(argv0, '/');

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(slash ? slash + 1 : argv0, names[i]) == 0)
            return true;
    }
    return false;
}

int
cli_run_drop_in(char **argv)
{
    struct err e = {0};
    auto_free char *program = places_program("berth-compat", &e);

    if (program) {
        execv(program, argv);
        err_errno(&e, ERR_FAILED, errno, "cannot run %s", program);
    }
    return cli_fail(&e);
}

int
cmd_compat(struct cli *cli, int argc, char **argv)
{
    static char name[] = "berth-compat"; /* no command's name: the next word is */
    static char list[] = "list", json[] = "--json";
    char *list_json[] = {name, list, json, NULL};

    argv[0] = name;
    if (!cli->json)
        return cli_run_drop_in(argv);
    if (argc == 2 && strcmp(argv[1], list) == 0)
        return cli_run_drop_in(list_json);
    return cli_usage("--json before 'compat' is only for 'berth compat list'; give a command's "
                     "own options after its name");
}
