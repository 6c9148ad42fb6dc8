/* Small sysfs files for the DRM backend: see drm.h. An unreadable file is a value that is not
 * reported. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "gpu/drm/drm.h"

bool
drm_find_value(const char *text, const char *key, char between, char *out, size_t size)
{
    size_t n = strlen(key);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += line[0] == '\n';
        if (strncmp(line, key, n) != 0 || line[n] != between)
            continue;
        int length = (int)strcspn(line + n + 1, "\n");
        int written = snprintf(out, size, "%.*s", length, line + n + 1);
        return written >= 0 && (size_t)written < size;
    }
    return false;
}

char *
drm_first_entry(const char *dir, const char *name, const char *prefix)
{
    auto_free char *path = xasprintf("%s/%s", dir, name);
    auto_dir DIR *d = opendir(path);
    auto_free char *first = NULL;
    const struct dirent *entry;

    while (d && (entry = readdir(d))) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
            (first && strcmp(entry->d_name, first) >= 0))
            continue;
        cleanup_free(&first);
        first = xstrdup(entry->d_name);
    }
    return first ? xasprintf("%s/%s", path, first) : NULL;
}
