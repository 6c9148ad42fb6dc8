/* cgroup v2 through its files. The nursery finds the base once; each shepherd makes, limits,
 * kills and removes its attempt's group. Outcomes are correct without any of this: callers
 * tolerate every failure. */
#include "sys/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "sys/procs.h"

#define CPU_PERIOD_US  100000
#define PROC_MAX_BYTES (4 * 1024 * 1024)
#define DEPTH_MAX      64

static int
write_at(int dirfd, const char *name, const char *text)
{
    auto_close int fd = openat(dirfd, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    return file_write_all(fd, text, strlen(text));
}

/* Reads the start of a control file as a string; false if it cannot be read. */
static bool
read_at(int dirfd, const char *name, char *out, size_t size)
{
    auto_close int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, out, size - 1);
    out[n > 0 ? n : 0] = '\0';
    return n >= 0;
}

/* The number after "key " at the start of a line; -1 if there is none. */
static int64_t
number_of_key(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        int64_t v;
        if (strncmp(line, key, n) == 0 && sscanf(line + n, " %" SCNd64, &v) == 1)
            return v;
    }
    return -1;
}

bool
cgroup_has_word(const char *list, size_t len, const char *word)
{
    size_t n = strlen(word);
    for (size_t at = 0; at < len;) {
        size_t end = at;
        while (end < len && list[end] != ',')
            end++;
        if (end - at == n && memcmp(list + at, word, n) == 0)
            return true;
        at = end + 1;
    }
    return false;
}

/* True if this end of a mountinfo line is of the v2 tree, or of a v1 tree with this
 * controller. */
static bool
is_of_tree(const char *type, const char *controller)
{
    char words[512];
    if (!controller)
        return strncmp(type, " - cgroup2 ", 11) == 0;
    return sscanf(type, " - cgroup %*s %511s", words) == 1 &&
           cgroup_has_word(words, strlen(words), controller);
}

/* The fields of a line of mountinfo: id parent dev root MOUNTPOINT options... - TYPE source
 * options. */
char *
cgroup_find_mount(const char *controller)
{
    auto_buf struct buf text = BUF_INIT;
    if (file_read("/proc/self/mountinfo", PROC_MAX_BYTES, &text, NULL) < 0)
        return NULL;
    char *rest = text.data, *line;
    while (rest && (line = strsep(&rest, "\n")) != NULL) {
        char point[4096];
        const char *type = strstr(line, " - ");
        if (type && is_of_tree(type, controller) &&
            sscanf(line, "%*s %*s %*s %*s %4095s", point) == 1)
            return xstrdup(point);
    }
    return NULL;
}

/* Enables the available controllers for the groups below, one at a time: a single missing one
 * would make the kernel refuse them all. */
static void
enable_controllers(int dirfd)
{
    static const char *const WANTED[] = {"+memory", "+pids", "+cpu", "+dmem"};
    for (size_t i = 0; i < sizeof WANTED / sizeof *WANTED; i++)
        (void)write_at(dirfd, "cgroup.subtree_control", WANTED[i]);
}

/* Service managers delegate only the controllers they know and leave others alone. dmem is
 * newer than most of them, so root enables it itself, from the root group down to the parent
 * of our own. */
static void
hand_down_dmem(const char *mount, const char *path)
{
    auto_free char *capacity = xasprintf("%s/dmem.capacity", mount);
    auto_free char *copy = xstrdup(path);
    if (geteuid() != 0 || access(capacity, R_OK) < 0)
        return;
    for (char *slash = strchr(copy, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        auto_free char *group = xasprintf("%s%s", mount, copy);
        *slash = '/';
        auto_close int fd = cgroup_open(group);
        if (fd >= 0)
            (void)write_at(fd, "cgroup.subtree_control", "+dmem");
    }
}

/* True if the group's only processes are this one and its parent. */
static bool
is_ours_alone(const char *pids)
{
    char *end;
    for (const char *at = pids; *at; at = end + 1) {
        long pid = strtol(at, &end, 10);
        if (end == at || *end != '\n' || (pid != getpid() && pid != getppid()))
            return false;
    }
    return *pids != '\0';
}

int
cgroup_make_folder(int at, const char *path)
{
    if (mkdirat(at, path, 0755) < 0)
        return errno == EEXIST ? 0 : -1;
    (void)!fchmodat(at, path, 0755, 0);
    return 0;
}

/* A group with processes cannot delegate controllers. If ours holds only this process and its
 * parent (a service or a scope with Delegate=yes), both move into a leaf. */
static void
step_aside(int own)
{
    char pids[64], pid[16];
    if (!read_at(own, "cgroup.procs", pids, sizeof pids) || !is_ours_alone(pids))
        return;
    if (cgroup_make_folder(own, "supervisors") < 0)
        return;
    for (const char *at = pids; sscanf(at, "%15[0-9]", pid) == 1; at += strlen(pid) + 1)
        (void)write_at(own, "supervisors/cgroup.procs", pid);
}

int
cgroup_find_base(const char *name, char **out, struct err *e)
{
    char path[4096];
    auto_free char *mount = cgroup_find_mount(NULL);
    if (!mount)
        return err_set(e, ERR_FAILED, "no cgroup v2 tree is mounted here");
    if (!proc_cgroup(getpid(), path, sizeof path))
        return err_set(e, ERR_FAILED, "this process is in no cgroup v2 group");
    auto_free char *own_path = xasprintf("%s%s", mount, strcmp(path, "/") == 0 ? "" : path);
    auto_close int own = open(own_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (own < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the cgroup %s", own_path);
    if (cgroup_make_folder(own, name) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make groups in the cgroup %s", own_path);
    auto_close int base = openat(own, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (base < 0 || faccessat(base, "cgroup.procs", W_OK, AT_EACCESS) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot use the cgroup %s/%s", own_path, name);
    step_aside(own);
    hand_down_dmem(mount, path);
    enable_controllers(own);
    enable_controllers(base);
    *out = xasprintf("%s/%s", own_path, name);
    return 0;
}

int
cgroup_base_again(const char *base)
{
    if (access(base, F_OK) == 0)
        return 0;
    if (cgroup_make_folder(AT_FDCWD, base) < 0)
        return -1;
    auto_close int fd = cgroup_open(base);
    if (fd >= 0)
        enable_controllers(fd); /* v1 has no such file */
    return 1;
}

int
cgroup_adopt(const char *path, const char *base, const char *name,
             bool (*keep)(void *ctx, pid_t pid), void *ctx)
{
    auto_buf struct buf pids = BUF_INIT;
    auto_free char *mount = cgroup_find_mount(NULL);
    auto_free char *from = xasprintf("%s%s/cgroup.procs", mount ? mount : "", path);
    auto_free char *leaf = xasprintf("%.*s/%s", (int)(strrchr(base, '/') - base), base, name);
    int n = 0;
    if (!mount || file_read(from, 1 << 20, &pids, NULL) < 0)
        return 0;
    char *rest = pids.data, *line;
    while (rest && (line = strsep(&rest, "\n")) != NULL) {
        if (!*line || keep(ctx, (pid_t)strtol(line, NULL, 10)))
            continue;
        if (cgroup_make_folder(AT_FDCWD, leaf) < 0)
            return n;
        auto_close int to = cgroup_open(leaf);
        n += to >= 0 && write_at(to, "cgroup.procs", line) == 0;
    }
    return n;
}

int
cgroup_claim(const char *base)
{
    auto_close int fd = cgroup_open(base);
    struct stat held, named;
    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0)
        return -1;
    /* Another daemon may have removed the base between our making and claiming it. */
    if (fstat(fd, &held) < 0 || stat(base, &named) < 0 || held.st_ino != named.st_ino)
        return -1;
    return TAKE_FD(fd);
}

void
cgroup_disclaim(const char *base, int claim)
{
    if (claim < 0)
        return;
    if (flock(claim, LOCK_EX | LOCK_NB) == 0)
        (void)rmdir(base);
    close(claim);
}

static bool
is_base_name(const char *name)
{
    static const char PREFIX[] = "berth-";
    size_t n = sizeof PREFIX - 1;
    return strncmp(name, PREFIX, n) == 0 && strlen(name) == n + 8 &&
           strspn(name + n, "0123456789abcdef") == 8;
}

void
cgroup_remove_abandoned(const char *base)
{
    const char *own = strrchr(base, '/') + 1;
    auto_free char *folder = xstrndup(base, (size_t)(own - 1 - base));
    auto_dir DIR *dir = opendir(folder);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)) != NULL) {
        if (!is_base_name(entry->d_name) || strcmp(entry->d_name, own) == 0)
            continue;
        auto_close int fd =
            openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            (void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
    }
}

/* 0, or an errno value if memory can be limited here but the limit could not be set. */
static int
set_limits(int fd, const struct cgroup_limits *l)
{
    char text[64];
    int why = 0;
    if (l->mem_mib > 0) {
        snprintf(text, sizeof text, "%" PRId64, (int64_t)l->mem_mib * 1024 * 1024);
        (void)write_at(fd, "memory.swap.max", "0"); /* no evading into swap */
        if (write_at(fd, "memory.max", text) < 0 && errno != ENOENT)
            why = errno;
        (void)write_at(fd, "memory.oom.group", "1"); /* half a killed job is useless */
    }
    if (l->pids > 0) {
        snprintf(text, sizeof text, "%d", l->pids);
        (void)write_at(fd, "pids.max", text);
    }
    if (l->cpus > 0) {
        snprintf(text, sizeof text, "%" PRId64 " %d", (int64_t)l->cpus * CPU_PERIOD_US,
                 CPU_PERIOD_US);
        (void)write_at(fd, "cpu.max", text);
    }
    return why;
}

int
cgroup_open(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int
cgroup_create(const char *path, const struct cgroup_limits *limits, struct err *e)
{
    if (cgroup_make_folder(AT_FDCWD, path) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make the cgroup %s", path);
    int fd = cgroup_open(path);
    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the cgroup %s", path);
    /* Do not write into a folder that is not a cgroup. */
    if (faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) < 0) {
        int why = errno;
        close(fd);
        return err_errno(e, ERR_FAILED, why, "cannot use the cgroup %s", path);
    }
    int why = set_limits(fd, limits);
    if (why == 0)
        return fd;
    close(fd);
    return err_errno(e, ERR_FAILED, why, "cannot bound the memory of the cgroup %s", path);
}

int
cgroup_enter_below(int fd, const char *name)
{
    if (cgroup_make_folder(fd, name) < 0)
        return -1;
    auto_close int below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return below < 0 ? -1 : write_at(below, "cgroup.procs", "0");
}

/* Adds the group's processes that are still readable. Returns how many the group lists; -1 on
 * error. */
static int
read_members(int fd, struct procs *out)
{
    auto_buf struct buf pids = BUF_INIT;
    int n = 0;
    if (file_read_at(fd, "cgroup.procs", PROC_MAX_BYTES, &pids, NULL) < 0)
        return -1;
    char *rest = pids.data, *line;
    while (rest && (line = strsep(&rest, "\n")) != NULL) {
        struct proc p;
        long pid = strtol(line, NULL, 10);
        if (pid <= 1)
            continue;
        n++;
        if (proc_read((pid_t)pid, &p) == 0)
            procs_add(out, &p);
    }
    return n;
}

static int
by_pid(const void *a, const void *b)
{
    const struct proc *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* A pid may be reused before it is signalled. A process that was read between two lists that
 * both contain its pid, and still has the same start time, was in the group. */
int
cgroup_signal(int fd, int sig)
{
    auto_procs struct procs first = PROCS_INIT, second = PROCS_INIT;
    int n = read_members(fd, &first);
    if (n <= 0 || sig == 0 || read_members(fd, &second) < 0)
        return n;
    if (second.n > 0)
        qsort(second.v, second.n, sizeof *second.v, by_pid);
    for (size_t i = 0; i < first.n; i++)
        if (second.n > 0 && bsearch(&first.v[i], second.v, second.n, sizeof *second.v, by_pid))
            (void)proc_signal(&first.v[i], sig);
    return n;
}

typedef void (*group_visit)(int parent, const char *name, int fd);

/* Visits the groups below fd, deepest first. */
static void
walk_below(int fd, int depth, group_visit visit)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *entry;
    while (dir && depth < DEPTH_MAX && (entry = readdir(dir)) != NULL) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        auto_close int sub = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (sub >= 0)
            walk_below(sub, depth + 1, visit);
        visit(fd, entry->d_name, sub);
    }
}

static void
kill_group(int parent, const char *name, int fd)
{
    (void)parent;
    (void)name;
    (void)cgroup_signal(fd, SIGKILL);
}

/* For kernels before 5.14: frozen processes cannot fork, and KILL still reaches them. */
void
cgroup_kill(int fd)
{
    if (write_at(fd, "cgroup.kill", "1") == 0)
        return;
    (void)write_at(fd, "cgroup.freeze", "1");
    walk_below(fd, 0, kill_group);
    (void)cgroup_signal(fd, SIGKILL);
    (void)write_at(fd, "cgroup.freeze", "0");
}

int
cgroup_is_populated(int fd)
{
    char text[256];
    if (!read_at(fd, "cgroup.events", text, sizeof text))
        return -1;
    return (int)number_of_key(text, "populated");
}

int64_t
cgroup_oom_kills(int fd, bool *own)
{
    char text[512];
    *own = false;
    if (!read_at(fd, "memory.events", text, sizeof text))
        return 0;
    int64_t n = number_of_key(text, "oom_kill");
    *own = number_of_key(text, "oom") > 0;
    return n > 0 ? n : 0;
}

/* A group's control files need no removal. */
static void
remove_group(int parent, const char *name, int fd)
{
    (void)fd;
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

int
cgroup_remove(const char *path)
{
    if (rmdir(path) == 0 || errno == ENOENT)
        return 0;
    auto_close int fd = cgroup_open(path);
    if (fd < 0)
        return -1;
    walk_below(fd, 0, remove_group);
    return rmdir(path);
}
