/* See self.h. */
#include "sys/self.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/install_paths.h"

static int64_t
resident_bytes(void)
{
    auto_buf struct buf text = BUF_INIT;
    struct err ignored;
    if (file_read("/proc/self/statm", 4096, &text, &ignored) < 0)
        return -1;
    const char *pages = strchr(buf_str(&text), ' ');
    return pages ? strtoll(pages, NULL, 10) * sysconf(_SC_PAGESIZE) : -1;
}

static int
count_fds(void)
{
    auto_dir DIR *dir = opendir("/proc/self/fd");
    int n = 0;
    if (!dir)
        return -1;
    for (const struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    return n - 1; /* without the descriptor used for listing */
}

static int64_t
time_us(struct timeval t)
{
    return (int64_t)t.tv_sec * 1000000 + t.tv_usec;
}

void
self_read(struct self *out)
{
    struct rusage use;
    struct rlimit fds;
    *out = (struct self){.resident_bytes = resident_bytes(),
                         .cpu_us = -1,
                         .open_fds = count_fds(),
                         .max_fds = -1};
    if (getrusage(RUSAGE_SELF, &use) == 0)
        out->cpu_us = time_us(use.ru_utime) + time_us(use.ru_stime);
    if (getrlimit(RLIMIT_NOFILE, &fds) == 0)
        out->max_fds = (int64_t)fds.rlim_cur;
}

char *
self_sibling(const char *name)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    return xasprintf("%s/%s", slash ? self : BERTH_LIBEXECDIR, name);
}

/* A value of /proc/meminfo, which is in KiB there. */
static int64_t
meminfo_bytes(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    return line ? strtoll(line + strlen(name), NULL, 10) * 1024 : -1;
}

void
self_read_memory(int64_t *available_bytes, int64_t *total_bytes)
{
    auto_buf struct buf text = BUF_INIT;
    struct err ignored;
    *available_bytes = *total_bytes = -1;
    if (file_read("/proc/meminfo", 65536, &text, &ignored) < 0)
        return;
    *available_bytes = meminfo_bytes(buf_str(&text), "MemAvailable:");
    *total_bytes = meminfo_bytes(buf_str(&text), "MemTotal:");
}
