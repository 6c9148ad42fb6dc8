/* Finding Slurm's programs: see slurm_find.h. */
#include "sys/slurm_find.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Our drop-ins are links to one program, also those in the PATH of jobs. */
static bool
is_ours(const char *path)
{
    char real[PATH_MAX];
    if (!realpath(path, real))
        return true; /* not executable either */
    const char *slash = strrchr(real, '/');
    return strcmp(slash + 1, "berth-compat") == 0;
}

static char *
try_folder(const char *folder, size_t n, const char *name)
{
    auto_free char *path = xasprintf("%.*s/%s", (int)n, folder, name);
    return n > 0 && access(path, X_OK) == 0 && !is_ours(path) ? TAKE(path) : NULL;
}

char *
slurm_find(const char *folder, const char *name, struct err *e)
{
    const char *path = getenv("PATH");
    char *found = NULL;
    if (folder[0]) {
        if (!(found = try_folder(folder, strlen(folder), name)))
            err_set(e, ERR_REFUSED,
                    "%s/%s is not a program of Slurm; set slurm_commands to the "
                    "folder that has it",
                    folder, name);
        return found;
    }
    for (path = path ? path : "/usr/local/bin:/usr/bin:/bin"; path && !found;) {
        size_t n = strcspn(path, ":");
        found = try_folder(path, n, name);
        path = path[n] ? path + n + 1 : NULL;
    }
    if (!found)
        err_set(e, ERR_REFUSED,
                "Slurm's %s is not in the daemon's PATH; install Slurm's client commands, or "
                "set slurm_commands to their folder",
                name);
    return found;
}
