/* The table of drop-in commands. A new one is a file with a compat_ function, its prototype in
 * compat.h and a row here; `berth compat` (compat.c) lists and installs what stands here. */
#include <stddef.h>
#include <string.h>

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

const char *
compat_name(const char *argv0)
{
    const char *slash = strrchr(argv0, '/');

    return slash ? slash + 1 : argv0;
}

const struct compat_tool *
compat_find(const char *argv0)
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
