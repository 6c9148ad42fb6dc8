/* The daemon behind Slurm's commands. An idle user daemon exits, so a new one may be started
 * just to answer for the same queue. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "compat/slurm/slurm.h"
#include "wire/client.h"

struct cli
slurm_cli(void)
{
    const char *socket = getenv("BERTH_SOCKET");

    return (struct cli){.socket = socket && socket[0] ? socket : NULL};
}

struct client *
slurm_connect(const char *what)
{
    static struct cli cli;
    struct err e = {0};
    struct client *c;

    cli = slurm_cli();
    c = connect_or_start(&cli, NULL, NULL, &e);
    if (!c)
        (void)slurm_fail(1, "%s: Unable to contact the daemon: %s", what, e.text);
    else
        connect_keep(&cli, c, NULL);
    return c;
}

const char *
slurm_own_name(void)
{
    static char name[256];
    const struct passwd *pw = getpwuid(geteuid());

    if (pw)
        snprintf(name, sizeof name, "%s", pw->pw_name);
    else
        snprintf(name, sizeof name, "%u", geteuid());
    return name;
}

bool
slurm_is_user(const char *word)
{
    int64_t uid;
    struct err e;

    return getpwnam(word) ||
           (parse_int(word, 0, UINT32_MAX - 1, &uid, &e) == 0 && getpwuid((uid_t)uid));
}

const char *
slurm_node(void)
{
    static char name[256];

    if (!name[0])
        gethostname(name, sizeof name - 1);
    name[strcspn(name, ".")] = '\0';
    return name;
}

bool
slurm_is_here(const char *nodes)
{
    auto_free char *copy = xstrdup(nodes);
    char *rest = copy, *word;

    while ((word = strsep(&rest, ",")))
        if (script_node_is(word, slurm_node()))
            return true;
    return false;
}
