/* Reading /proc. The shepherd uses it to end everything a job started, its sweep to end what a
 * dead shepherd left, and the daemon to find the job of a process on a GPU. Every reader copes
 * with a process that exits meanwhile. */
#include "sys/procs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/nsfs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"

/* The kernel's upper bound on arguments plus environment, whatever the stack limit
 * (fs/exec.c). */
#define ENVIRON_MAX_BYTES (6 * 1024 * 1024)

void
procs_free(struct procs *ps)
{
    free(ps->v);
    *ps = (struct procs)PROCS_INIT;
}

void
procs_add(struct procs *ps, const struct proc *p)
{
    ps->v = xgrow(ps->v, ps->n, &ps->cap, sizeof *ps->v);
    ps->v[ps->n++] = *p;
}

/* Appends the whole of /proc/PID/NAME to out; -1 if it cannot be read. */
static int
read_proc_file(pid_t pid, const char *name, size_t max, struct buf *out)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    for (;;) {
        char part[4096];
        ssize_t n = read(fd, part, sizeof part);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            return 0;
        buf_add(out, part, (size_t)n);
        if (out->len > max)
            return -1;
    }
}

/* /proc/PID/stat: "pid (name) state ppid pgrp session ...", with the start time in field 22.
 * The name may contain blanks and brackets, so fields are counted from the last bracket. */
static int
parse_stat(const char *text, struct proc *out)
{
    const char *after_name = strrchr(text, ')');
    unsigned long long start;
    int ppid, pgid, sid;
    if (!after_name ||
        sscanf(after_name,
               ") %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
               "%*d %*d %llu",
               &out->state, &ppid, &pgid, &sid, &start) != 5)
        return -1;
    out->ppid = ppid;
    out->pgid = pgid;
    out->sid = sid;
    out->start_ticks = start;
    return 0;
}

int64_t
proc_began_us(const struct proc *p)
{
    int64_t ticks = sysconf(_SC_CLK_TCK);

    return (int64_t)p->start_ticks * 1000000 / ticks + clock_wall_us() - clock_boot_us();
}

int
proc_read(pid_t pid, struct proc *out)
{
    auto_buf struct buf text = BUF_INIT;
    if (read_proc_file(pid, "stat", 16384, &text) < 0)
        return -1;
    out->pid = pid;
    return parse_stat(buf_str(&text), out);
}

bool
proc_mark(pid_t pid, char *out, size_t size)
{
    static const char KEY[] = "BERTH_MARK=";
    auto_buf struct buf env = BUF_INIT;
    if (read_proc_file(pid, "environ", ENVIRON_MAX_BYTES, &env) < 0)
        return false;
    for (size_t at = 0; at < env.len; at += strlen(env.data + at) + 1) {
        const char *entry = env.data + at;
        if (strncmp(entry, KEY, sizeof KEY - 1) != 0)
            continue;
        const char *value = entry + sizeof KEY - 1;
        if (strlen(value) >= size)
            return false;
        memcpy(out, value, strlen(value) + 1);
        return true;
    }
    return false;
}

static bool
is_empty(pid_t pid, const char *name)
{
    auto_buf struct buf text = BUF_INIT;
    return read_proc_file(pid, name, ENVIRON_MAX_BYTES, &text) == 0 && text.len == 0;
}

/* A kernel thread and a zombie have neither file content, but no memory either. */
bool
proc_is_in_exec(pid_t pid)
{
    auto_buf struct buf text = BUF_INIT;
    return is_empty(pid, "environ") && is_empty(pid, "cmdline") &&
           read_proc_file(pid, "statm", 4096, &text) == 0 &&
           strncmp(buf_str(&text), "0 ", 2) != 0;
}

/* The process's real, effective and saved user id. */
static bool
read_uids(pid_t pid, uid_t ids[3])
{
    auto_buf struct buf text = BUF_INIT;
    if (read_proc_file(pid, "status", 65536, &text) < 0)
        return false;
    const char *line = strstr(buf_str(&text), "\nUid:\t");
    return line && sscanf(line, "\nUid:\t%u\t%u\t%u", &ids[0], &ids[1], &ids[2]) == 3;
}

bool
proc_is_of(pid_t pid, uid_t uid)
{
    uid_t ids[3];
    return read_uids(pid, ids) && (ids[0] == uid || ids[1] == uid || ids[2] == uid);
}

bool
proc_is_only_of(pid_t pid, uid_t uid)
{
    uid_t ids[3];
    return read_uids(pid, ids) && ids[0] == uid && ids[1] == uid && ids[2] == uid;
}

/* "NSpid:" lists the process's pids from our namespace to the innermost one. */
pid_t
proc_pid_inside(pid_t pid)
{
    auto_buf struct buf text = BUF_INIT;
    if (read_proc_file(pid, "status", 65536, &text) < 0)
        return 0;
    const char *line = strstr(buf_str(&text), "\nNSpid:\t");
    if (!line)
        return 0;
    line += strlen("\nNSpid:\t");
    line += strcspn(line, "\t\n"); /* skip ours; deeper namespaces are the job's own */
    return *line == '\t' ? (pid_t)strtol(line + 1, NULL, 10) : 0;
}

/* Opens the user namespace of a process; -1: no permission. */
static int
open_user_space(const char *pid, struct stat *st)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/ns/user", pid);
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && fstat(fd, st) == 0 ? TAKE_FD(fd) : -1;
}

bool
proc_speaks_for(pid_t pid, uid_t uid)
{
    struct stat its, own;
    char number[16];
    uid_t owner;
    if (proc_is_of(pid, uid))
        return true;
    snprintf(number, sizeof number, "%d", (int)pid);
    auto_close int theirs = open_user_space(number, &its);
    auto_close int ours = open_user_space("self", &own);
    if (theirs < 0 || ours < 0)
        return false;
    if (its.st_ino == own.st_ino) /* setuid programs make pid namespaces for any user */
        return proc_pid_inside(pid) > 0 && proc_is_only_of(pid, 0);
    return ioctl(theirs, NS_GET_OWNER_UID, &owner) == 0 && owner == uid;
}

bool
proc_cgroup(pid_t pid, char *out, size_t size)
{
    auto_buf struct buf text = BUF_INIT;
    if (read_proc_file(pid, "cgroup", 65536, &text) < 0)
        return false;
    const char *line = buf_str(&text);
    while (line && strncmp(line, "0::", 3) != 0) {
        line = strchr(line, '\n');
        if (line)
            line++;
    }
    if (!line)
        return false;
    size_t n = strcspn(line + 3, "\n");
    if (n >= size)
        return false;
    memcpy(out, line + 3, n);
    out[n] = '\0';
    return true;
}

bool
proc_catches(pid_t pid, int sig)
{
    auto_buf struct buf text = BUF_INIT;
    if (sig < 1 || sig > 64 || read_proc_file(pid, "status", 65536, &text) < 0)
        return false;
    const char *mask = strstr(buf_str(&text), "\nSigCgt:\t");
    uint64_t caught;
    return mask && sscanf(mask, "\nSigCgt:\t%" SCNx64, &caught) == 1 &&
           (caught >> (sig - 1) & 1);
}

int
proc_pidfd(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

bool
proc_has_ended(pid_t child)
{
    siginfo_t si = {0};
    return waitid(P_PID, (id_t)child, &si, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           si.si_pid == child;
}

int
proc_signal(const struct proc *p, int sig)
{
    struct proc now;
    auto_close int fd = proc_pidfd(p->pid);
    if (fd < 0 && errno != ENOSYS && errno != EPERM)
        return -1;
    /* Read after the pidfd was opened: if the start time matches, the pidfd is of that
     * process. */
    if (proc_read(p->pid, &now) < 0 || now.start_ticks != p->start_ticks)
        return -1;
    if (fd < 0)
        return kill(p->pid, sig);
    return (int)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
}

static pid_t
pid_of_name(const char *name)
{
    pid_t pid = 0;
    if (!*name)
        return 0;
    for (; *name; name++) {
        if (*name < '0' || *name > '9' || pid > 100000000)
            return 0;
        pid = pid * 10 + (*name - '0');
    }
    return pid;
}

/* A process that is gone or hidden (hidepid) is skipped; but without descriptors or memory,
 * the process was not examined at all. */
static bool
is_no_answer(int errnum)
{
    return errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM;
}

int
procs_read_all(struct procs *out)
{
    auto_dir DIR *dir = opendir("/proc");
    if (!dir)
        return -1;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        struct proc p;
        pid_t pid = pid_of_name(entry->d_name);
        if (pid <= 0)
            continue;
        if (proc_read(pid, &p) == 0)
            procs_add(out, &p);
        else if (is_no_answer(errno))
            return -1;
    }
    return 0;
}

/* Adds the children of one thread. -1 if the kernel does not list children. */
static int
add_children_of_thread(pid_t pid, pid_t tid, struct procs *out)
{
    auto_buf struct buf text = BUF_INIT;
    char name[64];
    snprintf(name, sizeof name, "task/%d/children", (int)tid);
    if (read_proc_file(pid, name, SIZE_MAX - 1, &text) < 0)
        return errno == ESRCH || (!is_no_answer(errno) && kill(pid, 0) < 0) ? 0 : -1;
    const char *at = buf_str(&text);
    char *end;
    for (long child = strtol(at, &end, 10); end != at; child = strtol(at, &end, 10)) {
        struct proc p;
        if (proc_read((pid_t)child, &p) == 0)
            procs_add(out, &p);
        else if (is_no_answer(errno))
            return -1;
        at = end;
    }
    return 0;
}

static int
add_children(pid_t pid, struct procs *out)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    auto_dir DIR *dir = opendir(path);
    if (!dir)
        return is_no_answer(errno) ? -1 : 0;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        pid_t tid = pid_of_name(entry->d_name);
        if (tid > 0 && add_children_of_thread(pid, tid, out) < 0)
            return -1;
    }
    return 0;
}

static void
drop_zombies(struct procs *ps)
{
    size_t kept = 0;
    for (size_t i = 0; i < ps->n; i++)
        if (ps->v[i].state != 'Z' && ps->v[i].state != 'X')
            ps->v[kept++] = ps->v[i];
    ps->n = kept;
}

int
procs_read_children(pid_t pid, struct procs *out)
{
    auto_procs struct procs all = PROCS_INIT;
    out->n = 0;
    if (add_children(pid, out) == 0)
        return 0;
    out->n = 0;
    if (procs_read_all(&all) < 0)
        return -1;
    for (size_t i = 0; i < all.n; i++)
        if (all.v[i].ppid == pid)
            procs_add(out, &all.v[i]);
    return 0;
}

/* As procs_read_descendants, from a list of all processes: repeatedly adds those whose parent
 * was added. */
static int
find_descendants_by_scan(pid_t root, struct procs *out)
{
    auto_procs struct procs all = PROCS_INIT;
    if (procs_read_all(&all) < 0)
        return -1;
    out->n = 0;
    for (size_t i = 0; i < all.n; i++)
        if (all.v[i].ppid == root)
            procs_add(out, &all.v[i]);
    for (size_t k = 0; k < out->n; k++) {
        pid_t parent = out->v[k].pid;
        for (size_t i = 0; i < all.n; i++)
            if (all.v[i].ppid == parent)
                procs_add(out, &all.v[i]);
    }
    drop_zombies(out);
    return 0;
}

int
procs_read_descendants(pid_t root, struct procs *out)
{
    out->n = 0;
    if (add_children(root, out) < 0)
        return find_descendants_by_scan(root, out);
    /* A zombie leader may still have threads with children, so zombies are examined too. */
    for (size_t k = 0; k < out->n; k++)
        if (add_children(out->v[k].pid, out) < 0)
            return find_descendants_by_scan(root, out);
    drop_zombies(out);
    return 0;
}

uint64_t
procs_ticks_of_boot_us(int64_t boot_us)
{
    int64_t per_second = sysconf(_SC_CLK_TCK);
    int64_t tick_us = 1000000 / per_second;
    return (uint64_t)((boot_us + tick_us - 1) / tick_us);
}
