/* `berth simjob` alone, so that its tests need no other verb: what the option reader knows
 * of other verbs is not there. */
#include "cli/cli.h"
#include "cli/simjob.h"

int
cmd_help(struct cli *cli, int argc, char **argv)
{
    (void)cli;
    (void)argc;
    return cli_usage("%s: there is only simjob here", argv[0]);
}

int
cmd_version(struct cli *cli, int argc, char **argv)
{
    return cmd_help(cli, argc, argv);
}

int
main(int argc, char **argv)
{
    return cmd_simjob(argc, argv);
}
