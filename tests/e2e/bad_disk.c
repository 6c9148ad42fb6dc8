/* LD_PRELOAD library, a disk that fails and recovers: while the file $BAD_DISK exists, every
 * write below the folder $BAD_DISK_BELOW fails with the error number in that file. Reading
 * works, as on a full or read-only disk. While $BAD_FOLDERS exists, folders below it cannot be
 * opened, as with a damaged block. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* The error number in the file named by this variable; 0 while the disk works. */
static int
trouble(const char *name)
{
    const char *path = getenv(name);
    char text[16] = "";
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return 0;
    if (syscall(SYS_read, fd, text, sizeof text - 1) < 0)
        text[0] = '\0';
    syscall(SYS_close, fd);
    return atoi(text);
}

static int
is_below(const char *path)
{
    const char *below = getenv("BAD_DISK_BELOW");
    return below && strncmp(path, below, strlen(below)) == 0;
}

/* Sets errno if an operation on fd is to fail. */
static int
fails_by(const char *name, int fd)
{
    char link[64], path[PATH_MAX];
    int error = trouble(name);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = error ? readlink(link, path, sizeof path - 1) : -1;
    if (n < 0)
        return 0;
    path[n] = '\0';
    if (!is_below(path))
        return 0;
    errno = error;
    return 1;
}

static int
fails(int fd)
{
    return fails_by("BAD_DISK", fd);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t
pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
    return fails(fd) ? -1 : NEXT(pwrite64)(fd, bytes, n, at);
}

ssize_t
write(int fd, const void *bytes, size_t n)
{
    return fails(fd) ? -1 : NEXT(write)(fd, bytes, n);
}

int
fdatasync(int fd)
{
    return fails(fd) ? -1 : NEXT(fdatasync)(fd);
}

int
fsync(int fd)
{
    return fails(fd) ? -1 : NEXT(fsync)(fd);
}

int
ftruncate64(int fd, off64_t n)
{
    return fails(fd) ? -1 : NEXT(ftruncate64)(fd, n);
}

int
posix_fallocate64(int fd, off64_t at, off64_t n)
{
    return fails(fd) ? errno : NEXT(posix_fallocate64)(fd, at, n);
}

int
mkdirat(int dir, const char *path, mode_t mode)
{
    return fails(dir) ? -1 : NEXT(mkdirat)(dir, path, mode);
}

int
openat64(int dir, const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    if (flags & O_DIRECTORY && strcmp(path, ".") != 0 && fails_by("BAD_FOLDERS", dir))
        return -1;
    return NEXT(openat64)(dir, path, flags, mode);
}
