/* Whole-file reads with a bound, atomic writes, folders and flocks. Called by the programs and
 * by store; never by core and spec. Descriptors opened here are O_CLOEXEC. An atomic write
 * leaves the old content or the new, never a part. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"

#define READ_CHUNK    (64 * 1024)
#define LOCK_TRIES    4
#define LOCK_RETRY_NS 500000 /* four retries, half a millisecond apart */
#define POLL_RETRY_NS 10000000

static int
read_all(int fd, const char *path, size_t max, struct buf *out, struct err *e)
{
    for (;;) {
        buf_reserve(out, READ_CHUNK);
        ssize_t n = read(fd, out->data + out->len, out->cap - out->len - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, ERR_FAILED, errno, "cannot read %s", path);
        out->len += (size_t)n;
        out->data[out->len] = '\0';
        if (out->len > max)
            return err_set(e, ERR_FAILED, "%s is larger than the maximum of %zu bytes", path,
                           max);
        if (n == 0)
            return 0;
    }
}

/* Opening a pipe waits for its writer, as cat does; a socket cannot be opened at all. */
static int
read_opened(int fd, const char *path, size_t max, struct buf *out, struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot read %s", path);
    if (S_ISDIR(st.st_mode))
        return err_set(e, ERR_FAILED, "%s is a directory, not a file", path);
    if (S_ISREG(st.st_mode) && st.st_size > 0 && (size_t)st.st_size <= max)
        buf_reserve(out, (size_t)st.st_size + 1);
    return read_all(fd, path, max, out, e);
}

int
file_read_at(int dirfd, const char *name, size_t max, struct buf *out, struct err *e)
{
    auto_close int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    buf_clear(out);
    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open %s", name);
    return read_opened(fd, name, max, out, e);
}

int
file_read(const char *path, size_t max, struct buf *out, struct err *e)
{
    if (strcmp(path, "-") != 0)
        return file_read_at(AT_FDCWD, path, max, out, e);
    buf_clear(out);
    return read_opened(STDIN_FILENO, "standard input", max, out, e);
}

int
file_write_all(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;

    while (n > 0) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return -1;
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

int
file_write_all_at(int fd, const void *bytes, size_t n, off_t offset)
{
    const char *p = bytes;

    while (n > 0) {
        ssize_t w = pwrite(fd, p, n, offset);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return -1;
        p += w;
        offset += w;
        n -= (size_t)w;
    }
    return 0;
}

/* fsyncs the folder that holds name, to make a rename durable. */
static int
sync_folder_of(int dirfd, const char *name)
{
    const char *slash = strrchr(name, '/');
    auto_free char *dir =
        slash ? xstrndup(name, slash == name ? 1 : (size_t)(slash - name)) : xstrdup(".");
    auto_close int fd = openat(dirfd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -1 : fsync(fd);
}

static int
write_temp(int dirfd, const char *temp, const void *bytes, size_t n, mode_t mode, bool sync)
{
    auto_close int fd =
        openat(dirfd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);

    if (fd < 0 || file_write_all(fd, bytes, n) < 0 || (sync && fsync(fd) < 0))
        return -1;
    return close(TAKE_FD(fd)); /* some file systems report an exceeded quota only here */
}

static int
give_up_temp(int dirfd, const char *name, struct err *e)
{
    auto_free char *temp = xasprintf("%s.tmp", name);
    int why = errno;

    unlinkat(dirfd, temp, 0);
    return err_errno(e, ERR_FAILED, why, "cannot write %s", name);
}

int
file_write_temp_at(int dirfd, const char *name, const void *bytes, size_t n, mode_t mode,
                   bool sync, struct err *e)
{
    auto_free char *temp = xasprintf("%s.tmp", name);

    return write_temp(dirfd, temp, bytes, n, mode, sync) < 0 ? give_up_temp(dirfd, name, e) : 0;
}

int
file_rename_temp_at(int dirfd, const char *name, bool sync, struct err *e)
{
    auto_free char *temp = xasprintf("%s.tmp", name);

    if (renameat(dirfd, temp, dirfd, name) < 0)
        return give_up_temp(dirfd, name, e);
    if (sync && sync_folder_of(dirfd, name) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make %s durable", name);
    return 0;
}

int
file_write_atomic_at(int dirfd, const char *name, const void *bytes, size_t n, mode_t mode,
                     bool sync, struct err *e)
{
    if (file_write_temp_at(dirfd, name, bytes, n, mode, sync, e) < 0)
        return -1;
    return file_rename_temp_at(dirfd, name, sync, e);
}

/* The name of a new folder is in its parent, which must survive a power loss like the content.
 * Best effort: some file systems cannot sync a folder. */
static int
make_folder(char *path, mode_t mode)
{
    if (mkdir(path, mode) < 0)
        return -1;
    char *slash = strrchr(path, '/');
    const char *around = !slash ? "." : slash == path ? "/" : path;
    if (slash && slash != path)
        *slash = '\0';
    auto_close int fd = open(around, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        (void)fsync(fd);
    if (slash && slash != path)
        *slash = '/';
    return 0;
}

int
file_mkdirs(const char *path, mode_t mode, struct err *e)
{
    auto_free char *part = xstrdup(path);
    struct stat st;

    for (char *p = part + (part[0] == '/'); *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (part[0] && make_folder(part, mode) < 0 && errno != EEXIST)
            return err_errno(e, ERR_FAILED, errno, "cannot make the folder %s", part);
        *p = '/';
    }
    if (make_folder(part, mode) == 0)
        return 0;
    if (errno != EEXIST)
        return err_errno(e, ERR_FAILED, errno, "cannot make the folder %s", path);
    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        return err_set(e, ERR_FAILED, "%s exists and is not a folder", path);
    return 0;
}

int
file_lock(const char *path, bool *held, struct err *e)
{
    auto_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);

    *held = false;
    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the lock %s", path);
    /* file_is_locked_at in another process holds the lock for an instant: retry. */
    for (int tries = 0; tries < LOCK_TRIES; tries++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return TAKE_FD(fd);
        if (errno != EWOULDBLOCK)
            return err_errno(e, ERR_FAILED, errno, "cannot lock %s", path);
        nanosleep(&(struct timespec){.tv_nsec = LOCK_RETRY_NS}, NULL);
    }
    *held = true;
    return err_set(e, ERR_FAILED, "%s is locked by another process", path);
}

/* Returns 1 if another process holds the lock. Must not block on a FIFO either, in a folder
 * where any user may create files. */
static int
open_locked(int dirfd, const char *name, int *fd, struct err *e)
{
    struct stat st;

    *fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
    if (*fd < 0 && errno == ENOENT)
        return 0;
    if (*fd < 0 || fstat(*fd, &st) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the lock %s", name);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_FAILED, "the lock %s is not a regular file", name);
    /* A shared lock for an instant shows whether it is refused; closing releases it. */
    if (flock(*fd, LOCK_SH | LOCK_NB) == 0)
        return 0;
    if (errno == EWOULDBLOCK)
        return 1;
    return err_errno(e, ERR_FAILED, errno, "cannot inspect the lock %s", name);
}

int
file_is_locked_at(int dirfd, const char *name, struct err *e)
{
    auto_close int fd = -1;

    return open_locked(dirfd, name, &fd, e);
}

int
file_read_locked_at(int dirfd, const char *name, size_t max, struct buf *out, struct err *e)
{
    auto_close int fd = -1;
    int held = open_locked(dirfd, name, &fd, e);

    buf_clear(out);
    return held > 0 && read_opened(fd, name, max, out, e) < 0 ? -1 : held;
}

int
file_open_regular(const char *path)
{
    auto_close int seen = open(path, O_PATH | O_CLOEXEC);
    char name[40];
    struct stat st;
    if (seen < 0 || fstat(seen, &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    snprintf(name, sizeof name, "/proc/self/fd/%d", seen);
    return open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

int
file_look(int fd, struct stat *out)
{
    struct statx x;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_SIZE, &x) < 0)
        return -1;
    *out = (struct stat){.st_mode = x.stx_mode,
                         .st_size = (off_t)x.stx_size,
                         .st_dev = makedev(x.stx_dev_major, x.stx_dev_minor)};
    return 0;
}

bool
file_is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The kernel grants a read lease only while no process has the file open for writing. */
bool
file_has_writers(int fd)
{
    (void)fcntl(fd, F_SETSIG, SIGURG); /* a broken lease sends it: ignored */
    if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
        return errno == EAGAIN;
    (void)fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
}

int
file_in_memory(const char *name, const void *bytes, size_t n)
{
    auto_close int fd = memfd_create(name, MFD_CLOEXEC);

    if (fd < 0 || file_write_all(fd, bytes, n) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return -1;
    return TAKE_FD(fd);
}

bool
file_await(int fd, int patience_ms)
{
    int64_t until_us = clock_boot_us() + patience_ms * INT64_C(1000);

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left_ms = (until_us - clock_boot_us() + 999) / 1000;
        if (left_ms <= 0)
            return false;
        int n = poll(&p, 1, (int)left_ms);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR) /* the kernel is out of memory */
            nanosleep(&(struct timespec){.tv_nsec = POLL_RETRY_NS}, NULL);
    }
}
