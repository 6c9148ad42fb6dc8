/* dmem through its files, which have one line "KEY BYTES" per region: see dmem.h. The probe
 * finds regions and reads their use; the shepherd limits its attempt's group. */
#include "sys/dmem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

#define FILE_MAX_BYTES 65536

/* The next line's key and the text after it; NULL at the end. Modifies the text. */
static char *
next_key(char **rest, const char **value)
{
    char *line;
    while (*rest && (line = strsep(rest, "\n"))) {
        char *space = strchr(line, ' ');
        if (!space)
            continue;
        *space = '\0';
        *value = space + 1;
        return line;
    }
    return NULL;
}

int
dmem_find_region(const char *root, const char *bus_id, char *out, size_t size, int64_t *bytes)
{
    auto_buf struct buf text = BUF_INIT;
    auto_free char *path = xasprintf("%s/dmem.capacity", root);
    auto_free char *wanted = xasprintf("drm/%s/vram", bus_id);
    const char *value, *key;
    int n = 0;
    *bytes = 0;
    if (file_read(path, FILE_MAX_BYTES, &text, NULL) < 0 || text.len == 0)
        return 0;
    char *rest = text.data;
    while ((key = next_key(&rest, &value))) {
        /* "vram", or "vram0", "vram1" on a GPU with several regions. */
        if (strncmp(key, wanted, strlen(wanted)) != 0 || strlen(key) >= size)
            continue;
        if (n++ == 0)
            snprintf(out, size, "%s", key);
        *bytes += strtoll(value, NULL, 10);
    }
    return n;
}

int
dmem_set_max(int group_fd, const char *key, int64_t bytes)
{
    char text[256];
    auto_close int fd = openat(group_fd, "dmem.max", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int n = bytes < 0 ? snprintf(text, sizeof text, "%s max\n", key)
                      : snprintf(text, sizeof text, "%s %" PRId64 "\n", key, bytes);
    if (n < 0 || (size_t)n >= sizeof text) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return file_write_all(fd, text, (size_t)n);
}

int64_t
dmem_read_bytes(const char *path, const char *file, const char *key)
{
    auto_buf struct buf text = BUF_INIT;
    auto_free char *name = xasprintf("%s/%s", path, file);
    const char *value, *found;
    if (file_read(name, FILE_MAX_BYTES, &text, NULL) < 0 || text.len == 0)
        return -1;
    char *rest = text.data;
    while ((found = next_key(&rest, &value))) {
        char *end;
        if (strcmp(found, key) != 0)
            continue;
        errno = 0;
        long long bytes = strtoll(value, &end, 10);
        return end == value || errno || bytes < 0 ? -1 : bytes;
    }
    return -1;
}
