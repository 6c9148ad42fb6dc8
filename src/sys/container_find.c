/* Finding the container programs: see container_find.h. */
#include "sys/container_find.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"

/* Searched after PATH, for a daemon that was started with a short PATH. */
#define USUAL_FOLDERS "/usr/local/bin:/usr/bin:/bin"

static char *
find_in(const char *folders, const char *name)
{
    while (folders && *folders) {
        size_t n = strcspn(folders, ":");
        auto_free char *path = xasprintf("%.*s/%s", (int)n, folders, name);
        if (path[0] == '/' && n > 0 && access(path, X_OK) == 0)
            return TAKE(path);
        folders += n + (folders[n] == ':');
    }
    return NULL;
}

char *
container_find(const char *name)
{
    char *path = find_in(getenv("PATH"), name);
    return path ? path : find_in(USUAL_FOLDERS, name);
}

char *
container_find_podman(void)
{
    return container_find("podman");
}

char *
container_find_apptainer(void)
{
    char *path = container_find("apptainer");
    return path ? path : container_find("singularity");
}

bool
container_is_image_file(const char *image)
{
    static const char *const BEFORE[] = {"/",       "./",      "../", "library://",
                                         "oras://", "shub://", NULL};
    size_t n = strlen(image);
    return text_begins_with(image, BEFORE) || (n > 4 && strcmp(image + n - 4, ".sif") == 0);
}
