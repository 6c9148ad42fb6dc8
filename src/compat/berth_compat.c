/* `berth-compat`: the drop-in commands, each under its own name. `berth compat` is this
 * program too, under none of them: it lists them, puts their names into a folder that the user
 * names (compat_install.c), and runs one without its name. No system gets surprising names
 * otherwise. */
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "compat/compat.h"

const struct compat_tool compat_tools[] = {
    {"cudaq", {"cudaq.py"}, "commands to the GPU with the most free memory", compat_cudaq},
    {"gpusched", {NULL}, "gpusched 0.4.0: a file of commands, by free memory", compat_gpusched},
    {"gpusched.simjob", {NULL}, "gpusched's pretend GPU program", compat_simjob},
    {"mgpu_scheduler_server",
     {NULL},
     "mgpu: the server, which speaks its old protocol too",
     compat_mgpu_server},
    {"mgpu_srun", {NULL}, "mgpu: a command on GPUs that are named", compat_mgpu_srun},
    {"mgpu_queue", {NULL}, "mgpu: what runs and what waits", compat_mgpu_queue},
    {"mgpu_cancel", {NULL}, "mgpu: ends a job", compat_mgpu_cancel},
    {"scheduler",
     {"scheduler.py"},
     "scripts from a file of lines, by what models need",
     compat_scheduler},
    {"scheduler-job", {NULL}, NULL, compat_scheduler_job},
    {"scheduler_10x",
     {"scheduler_10x.py"},
     "the same with a config file, a live queue and checks",
     compat_scheduler_10x},
    {NULL, {NULL}, NULL, NULL},
};

static const struct compat_tool *
find_tool(const char *argv0)
{
    const char *name = compat_name(argv0);

    for (const struct compat_tool *t = compat_tools; t->name; t++) {
        if (strcmp(name, t->name) == 0)
            return t;
        for (int i = 0; i < COMPAT_ALIASES_MAX && t->aliases[i]; i++) {
            if (strcmp(name, t->aliases[i]) == 0)
                return t;
        }
    }
    return NULL;
}

static const struct page page = {
    .usage = "berth compat list | install DIR | remove DIR | NAME [arguments]",
    .about = "Berth under the names, options and files of other schedulers.",
    .notes = "list          the commands that there are\n"
             "install DIR   puts them into DIR, which is made; have it in your PATH\n"
             "remove DIR    takes them out again\n"
             "NAME ...      one of them as it is: berth compat gpusched jobs.txt",
};

static int
list(void)
{
    auto_buf struct buf out = BUF_INIT;

    for (const struct compat_tool *t = compat_tools; t->name; t++) {
        if (!t->help)
            continue;
        buf_addf(&out, "%-22s  %s\n", t->name, t->help);
        for (int i = 0; i < COMPAT_ALIASES_MAX && t->aliases[i]; i++)
            buf_addf(&out, "%-22s  the same\n", t->aliases[i]);
    }
    return cli_put(&out);
}

static int
unknown(const char *word)
{
    const char *names[32] = {"list", "install", "remove"};
    auto_buf struct buf shown = BUF_INIT;
    const char *nearest;
    size_t n = 3;

    for (const struct compat_tool *t = compat_tools; t->name && n < 31; t++)
        names[n++] = t->name;
    nearest = text_nearest(word, names);
    text_add_safe(&shown, word, strlen(word), 60);
    if (nearest)
        return cli_usage("compat: there is no '%s'; did you mean '%s'?", buf_str(&shown),
                         nearest);
    return cli_usage("compat: there is no '%s'; 'berth compat list' says what there is",
                     buf_str(&shown));
}

int
main(int argc, char **argv)
{
    const struct compat_tool *tool = argc > 0 ? find_tool(argv[0]) : NULL;

    /* write reports a closed pipe. */
    signal(SIGPIPE, SIG_IGN);
    if (tool)
        return tool->run(argc, argv);
    tool = argc > 1 ? find_tool(argv[1]) : NULL;
    if (tool)
        return tool->run(argc - 1, argv + 1);
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return opt_print_page(&page);
    if (strcmp(argv[1], "list") == 0)
        return argc == 2 ? list() : cli_usage("compat list takes no arguments");
    if (strcmp(argv[1], "install") == 0 || strcmp(argv[1], "remove") == 0) {
        bool install = argv[1][0] == 'i';

        if (argc != 3)
            return cli_usage("compat %s: %s which folder? For example: berth compat %s "
                             "~/.local/bin",
                             argv[1], install ? "into" : "from", argv[1]);
        return install ? compat_install(argv[2]) : compat_remove(argv[2]);
    }
    return unknown(argv[1]);
}
