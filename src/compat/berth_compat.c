/* `berth-compat`: the drop-in commands, each under its own name. `berth compat` runs this
 * program under none of these names: it then lists the commands, links them into a folder of
 * the user's choice (compat_install.c), or runs one without a link. Berth puts these names
 * nowhere else. */
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/jsonw.h"
#include "base/text.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "compat/compat.h"

#define SLURM "slurm"

const struct compat_tool compat_tools[] = {
    {"cudaq",
     {"cudaq.py"},
     "commands to the GPU with the most free memory",
     compat_cudaq,
     NULL},
    {"gpusched",
     {NULL},
     "gpusched 0.4.0: a file of commands, by free memory",
     compat_gpusched,
     NULL},
    {"gpusched.simjob", {NULL}, "gpusched's pretend GPU program", compat_simjob, NULL},
    {"mgpu_scheduler_server",
     {NULL},
     "mgpu: the server, which speaks its old protocol too",
     compat_mgpu_server,
     NULL},
    {"mgpu_srun", {NULL}, "mgpu: a command on GPUs that are named", compat_mgpu_srun, NULL},
    {"mgpu_queue", {NULL}, "mgpu: what runs and what waits", compat_mgpu_queue, NULL},
    {"mgpu_cancel", {NULL}, "mgpu: ends a job", compat_mgpu_cancel, NULL},
    {"scheduler",
     {"scheduler.py"},
     "scripts from a file of lines, by what models need",
     compat_scheduler,
     NULL},
    {"scheduler-job", {NULL}, NULL, compat_scheduler_job, NULL},
    {"scheduler_10x",
     {"scheduler_10x.py"},
     "the same with a config file, a live queue and checks",
     compat_scheduler_10x,
     NULL},
    {"sacct", {NULL}, "Slurm: jobs that have ended, and others", compat_sacct, SLURM},
    {"salloc", {NULL}, "Slurm: a shell in a job", compat_salloc, SLURM},
    {"sbatch", {NULL}, "Slurm: a script into the queue", compat_sbatch, SLURM},
    {"scancel", {NULL}, "Slurm: ends jobs", compat_scancel, SLURM},
    {"scontrol", {NULL}, "Slurm: shows and changes jobs", compat_scontrol, SLURM},
    {"sinfo", {NULL}, "Slurm: the machine and its GPUs", compat_sinfo, SLURM},
    {"squeue", {NULL}, "Slurm: what waits and runs", compat_squeue, SLURM},
    {"srun", {NULL}, "Slurm: a program in a job", compat_srun, SLURM},
    {NULL, {NULL}, NULL, NULL, NULL},
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

/* True for the name of a command or of a group. */
static bool
is_name(const char *word)
{
    for (const struct compat_tool *t = compat_tools; t->name; t++)
        if (t->group && strcmp(t->group, word) == 0)
            return true;
    return find_tool(word) != NULL;
}

static const struct page page = {
    .usage = "berth compat list | install DIR [NAME...] | remove DIR | NAME [arguments]",
    .about = "Berth under the names, options and files of other schedulers.",
    .notes = "list          the commands that there are\n"
             "install DIR   puts them into DIR, which is made; have it in your PATH. Those of\n"
             "              Slurm, which a machine may have itself, only by name: install DIR "
             "slurm\n"
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

/* {"version":1,"commands":[{"name","aliases","group","help"}]} */
static int
list_json(void)
{
    auto_buf struct buf out = BUF_INIT;
    struct jsonw w;

    jsonw_init(&w, &out);
    jsonw_object(&w);
    jsonw_kint(&w, "version", 1);
    jsonw_key(&w, "commands");
    jsonw_array(&w);
    for (const struct compat_tool *t = compat_tools; t->name; t++) {
        if (!t->help)
            continue;
        jsonw_object(&w);
        jsonw_kstr(&w, "name", t->name);
        jsonw_key(&w, "aliases");
        jsonw_array(&w);
        for (int i = 0; i < COMPAT_ALIASES_MAX && t->aliases[i]; i++)
            jsonw_str(&w, t->aliases[i]);
        jsonw_end_array(&w);
        jsonw_kstr(&w, "group", t->group);
        jsonw_kstr(&w, "help", t->help);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    buf_addc(&out, '\n');
    return cli_put(&out);
}

static int
unknown(const char *word)
{
    const char *names[48] = {"list", "install", "remove"};
    auto_buf struct buf shown = BUF_INIT;
    const char *nearest;
    size_t n = 3;

    for (const struct compat_tool *t = compat_tools; t->name && n < 47; t++)
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

    /* Ignored, so that write() reports a closed pipe as EPIPE. */
    signal(SIGPIPE, SIG_IGN);
    if (tool)
        return tool->run(argc, argv);
    tool = argc > 1 ? find_tool(argv[1]) : NULL;
    if (tool)
        return tool->run(argc - 1, argv + 1);
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return opt_print_page(&page);
    if (strcmp(argv[1], "list") == 0 && argc == 3 && strcmp(argv[2], "--json") == 0)
        return list_json();
    if (strcmp(argv[1], "list") == 0)
        return argc == 2 ? list() : cli_usage("compat list takes no arguments but --json");
    if (strcmp(argv[1], "install") == 0 || strcmp(argv[1], "remove") == 0) {
        if (argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0))
            return opt_print_page(&page);
        if (argc > 2 && strcmp(argv[argc - 1], "--json") == 0)
            return cli_usage("'berth compat %s' has no JSON output; it prints a path per line",
                             argv[1]);
        if (argc > 2 && argv[2][0] == '-')
            return cli_usage("unknown option '%s'; 'berth compat --help' says what there is",
                             argv[2]);
        bool install = argv[1][0] == 'i';

        if (argc < 3 || (!install && argc > 3))
            return cli_usage("compat %s: %s which folder? For example: berth compat %s "
                             "~/.local/bin",
                             argv[1], install ? "into" : "from", argv[1]);
        for (int i = 3; i < argc; i++)
            if (!is_name(argv[i]))
                return unknown(argv[i]);
        return install ? compat_install(argv[2], argv + 3, argc - 3) : compat_remove(argv[2]);
    }
    return unknown(argv[1]);
}
