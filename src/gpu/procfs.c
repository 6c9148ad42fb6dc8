/* Reads /proc/PID/stat and /proc/PID/status. Used for the processes that hold simulated
 * memory, and for the users in a sample. */
#include "gpu/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Reads the beginning of /proc/PID/NAME, NUL-terminated. Returns the bytes read, or -1. */
static ssize_t
read_head(int32_t pid, const char *name, char *out, size_t size)
{
    char path[48];

    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, out, size - 1);
    out[n > 0 ? n : 0] = '\0';
    return n;
}

enum procfs_state
procfs_start(int32_t pid, uint64_t *start)
{
    char text[1024];

    if (read_head(pid, "stat", text, sizeof text) <= 0)
        return kill(pid, 0) < 0 && errno == EPERM ? PROCFS_HIDDEN : PROCFS_DEAD;
    /* The name in brackets may contain anything, even brackets and blanks. */
    char *p = strrchr(text, ')');
    if (!p || p[1] != ' ' || p[2] == 'Z' || p[2] == 'X')
        return PROCFS_DEAD;
    /* Field 3 is the state, field 22 the start time. */
    p += 2;
    for (int field = 3; field < 22; field++) {
        p = strchr(p, ' ');
        if (!p)
            return PROCFS_DEAD;
        p++;
    }
    *start = strtoull(p, NULL, 10);
    return PROCFS_ALIVE;
}

int64_t
procfs_uid(int32_t pid)
{
    char text[2048];

    if (read_head(pid, "status", text, sizeof text) <= 0)
        return -1;
    const char *line = strstr(text, "\nUid:\t");
    return line ? strtoll(line + 6, NULL, 10) : -1;
}
