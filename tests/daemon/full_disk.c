/* See full_disk.h. SQLite calls the system through a table in which a test may replace
 * entries. */
#include "full_disk.h"

#include <errno.h>
#include <sqlite3.h>
#include <sys/types.h>
#include <unistd.h>

static bool is_full;

static ssize_t
write_if_room(int fd, const void *data, size_t n)
{
    if (!is_full)
        return write(fd, data, n);
    errno = ENOSPC;
    return -1;
}

static ssize_t
pwrite_if_room(int fd, const void *data, size_t n, off_t at)
{
    if (!is_full)
        return pwrite(fd, data, n, at);
    errno = ENOSPC;
    return -1;
}

void
disk_set_full(bool full)
{
    static bool is_there;
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    is_full = full;
    if (is_there)
        return;
    vfs->xSetSystemCall(vfs, "write", (sqlite3_syscall_ptr)write_if_room);
    vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr)pwrite_if_room);
    vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)pwrite_if_room);
    is_there = true;
}
