/* LD_PRELOAD library, a disk that seems to take an hour for each flush: after each such call
 * the program's time since boot is an hour later. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_llong waited_s;

int
clock_gettime(clockid_t id, struct timespec *out)
{
    int rc = (int)syscall(SYS_clock_gettime, id, out);
    if (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE)
        out->tv_sec += waited_s;
    return rc;
}

int
fdatasync(int fd)
{
    waited_s += 3600;
    return (int)syscall(SYS_fdatasync, fd);
}

int
fsync(int fd)
{
    waited_s += 3600;
    return (int)syscall(SYS_fsync, fd);
}
