/* cgroup v1 through its files: see cgroup_v1.h. The nursery finds the bases; each shepherd
 * makes and removes its attempt's groups; the command's process joins them before it changes
 * to its user. A missing controller is not an error: that resource is not limited. */
#include "sys/cgroup_v1.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "sys/cgroup.h"

#define PROC_MAX_BYTES (4 * 1024 * 1024)
#define CPU_PERIOD_US  100000

const char *const cgroup_v1_names[CGROUP_V1_N] = {"memory", "pids", "cpu"};

/* This process's group for the controller: "N:LIST:PATH" in /proc/self/cgroup. */
static char *
find_own(const char *controller)
{
    auto_buf struct buf text = BUF_INIT;
    if (file_read("/proc/self/cgroup", PROC_MAX_BYTES, &text, NULL) < 0)
        return NULL;
    char *rest = text.data, *line;
    while (rest && (line = strsep(&rest, "\n")) != NULL) {
        const char *list = strchr(line, ':');
        const char *path = list ? strchr(list + 1, ':') : NULL;
        if (path && cgroup_has_word(list + 1, (size_t)(path - list - 1), controller))
            return xstrdup(strcmp(path + 1, "/") == 0 ? "" : path + 1);
    }
    return NULL;
}

static char *
find_base(const char *controller, const char *name)
{
    auto_free char *mount = cgroup_find_mount(controller);
    auto_free char *own = mount ? find_own(controller) : NULL;
    if (!own)
        return NULL;
    auto_free char *base = xasprintf("%s%s/%s", mount, own, name);
    auto_free char *procs = xasprintf("%s/cgroup.procs", base);
    if (cgroup_make_folder(AT_FDCWD, base) < 0 ||
        faccessat(AT_FDCWD, procs, W_OK, AT_EACCESS) < 0)
        return NULL;
    return TAKE(base);
}

int
cgroup_v1_find_bases(const char *name, char *out[CGROUP_V1_N])
{
    int n = 0;
    for (int i = 0; i < CGROUP_V1_N; i++) {
        out[i] = find_base(cgroup_v1_names[i], name);
        n += out[i] != NULL;
    }
    return n;
}

/* 0 or an errno value. */
static int
write_number(int dirfd, const char *name, int64_t v)
{
    char text[32];
    auto_close int fd = openat(dirfd, name, O_WRONLY | O_CLOEXEC);
    int n = snprintf(text, sizeof text, "%" PRId64, v);
    return fd < 0 || file_write_all(fd, text, (size_t)n) < 0 ? errno : 0;
}

/* 0, or the errno value of the memory limit. Failures of other limits are ignored. */
static int
set_limits(enum cgroup_v1 which, int fd, const struct cgroup_limits *l)
{
    int64_t bytes = (int64_t)l->mem_mib * 1024 * 1024;
    switch (which) {
    case CGROUP_V1_MEMORY:
        if (bytes > 0) {
            int why = write_number(fd, "memory.limit_in_bytes", bytes);
            /* Also limit swap, where the kernel accounts for it. */
            (void)write_number(fd, "memory.memsw.limit_in_bytes", bytes);
            return why;
        }
        return 0;
    case CGROUP_V1_PIDS:
        if (l->pids > 0)
            (void)write_number(fd, "pids.max", l->pids);
        return 0;
    case CGROUP_V1_CPU:
        if (l->cpus > 0) {
            (void)write_number(fd, "cpu.cfs_period_us", CPU_PERIOD_US);
            (void)write_number(fd, "cpu.cfs_quota_us", (int64_t)l->cpus * CPU_PERIOD_US);
        }
        return 0;
    case CGROUP_V1_N:
        return 0;
    }
    return 0;
}

static int
make_group(enum cgroup_v1 which, const char *path, const struct cgroup_limits *limits)
{
    if (cgroup_make_folder(AT_FDCWD, path) < 0)
        return -errno;
    auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int why = set_limits(which, fd, limits);
    return why != 0 ? -why : TAKE_FD(fd);
}

void
cgroup_v1_create(const char *const paths[CGROUP_V1_N], const struct cgroup_limits *limits,
                 int fds[CGROUP_V1_N])
{
    for (int i = 0; i < CGROUP_V1_N; i++)
        fds[i] = paths[i] ? make_group((enum cgroup_v1)i, paths[i], limits) : -1;
}

int
cgroup_v1_join(const int fds[CGROUP_V1_N])
{
    int why = 0;
    for (int i = 0; i < CGROUP_V1_N; i++) {
        if (fds[i] < 0)
            continue;
        auto_close int fd = openat(fds[i], "cgroup.procs", O_WRONLY | O_CLOEXEC);
        if ((fd < 0 || file_write_all(fd, "0\n", 2) < 0) && i == CGROUP_V1_MEMORY)
            why = errno;
    }
    return why;
}

static int64_t
number_in(int dirfd, const char *file, const char *key)
{
    auto_buf struct buf text = BUF_INIT;
    int64_t n;
    if (file_read_at(dirfd, file, 4096, &text, NULL) < 0)
        return 0;
    const char *at = strstr(buf_str(&text), key);
    return at && sscanf(at + strlen(key), "%" SCNd64, &n) == 1 && n > 0 ? n : 0;
}

/* True if the group has been as full as its limit allows. The allocation that failed was at
 * most a huge page plus what a CPU holds in its per-CPU stock. */
static bool
was_full(int memory_fd)
{
    int64_t limit = number_in(memory_fd, "memory.limit_in_bytes", "");
    int64_t peak = number_in(memory_fd, "memory.max_usage_in_bytes", "");
    return limit > 0 && peak > 0 && peak >= limit - 4 * 1024 * 1024;
}

/* failcnt also counts failures that reclaim resolved; together with an OOM kill it shows whose
 * limit was hit. Newer kernels do not count failures at the limit of memory plus swap. */
int64_t
cgroup_v1_oom_kills(int memory_fd, bool *own)
{
    *own = false;
    if (memory_fd < 0)
        return 0;
    *own = number_in(memory_fd, "memory.failcnt", "") > 0 ||
           number_in(memory_fd, "memory.memsw.failcnt", "") > 0 || was_full(memory_fd);
    return number_in(memory_fd, "memory.oom_control", "\noom_kill ");
}

int
cgroup_v1_signal(const int fds[CGROUP_V1_N], int sig)
{
    int i = 0;
    while (i < CGROUP_V1_N && fds[i] < 0)
        i++;
    return i < CGROUP_V1_N ? cgroup_signal(fds[i], sig) : -1;
}

void
cgroup_v1_open(const char *const paths[CGROUP_V1_N], int fds[CGROUP_V1_N])
{
    for (int i = 0; i < CGROUP_V1_N; i++)
        fds[i] = paths[i] ? open(paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

void
cgroup_v1_remove(const char *const paths[CGROUP_V1_N])
{
    for (int i = 0; i < CGROUP_V1_N; i++)
        if (paths[i])
            (void)rmdir(paths[i]);
}
