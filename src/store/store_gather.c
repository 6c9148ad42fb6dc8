/* The VFS that gathers SQLite's writes to its log: see store_gather.h. store.c opens the
 * database with it.
 *
 * SQLite writes each page of a commit, and the 24-byte header before it, with a separate call.
 * Apart from the disk, that is most of the cost of a commit: starting a job writes some 14
 * pages. They are contiguous, so they are buffered here and written at once before the log is
 * flushed, read, truncated or closed. Nothing else reads the log before the flush, because
 * only one process opens the database (locking_mode EXCLUSIVE). A write error shows at the
 * flush instead, which is still inside the commit. All other files use SQLite's default VFS
 * directly. */
#include "store/store_gather.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"

#define GATHER_MAX_BYTES 131071 /* SQLite's default VFS writes no more at once */

struct log_file {
    sqlite3_file base;
    sqlite3_int64 at; /* file offset of the buffered bytes */
    struct buf kept;
    sqlite3_file *real; /* stored right after this struct */
};

/* The buffer is emptied even on error: a failed commit writes all of it again. */
static int
write_kept(struct log_file *f)
{
    size_t n = f->kept.len;
    if (n == 0)
        return SQLITE_OK;
    f->kept.len = 0;
    return f->real->pMethods->xWrite(f->real, f->kept.data, (int)n, f->at);
}

static int
log_close(sqlite3_file *file)
{
    struct log_file *f = (struct log_file *)file;
    int rc = write_kept(f), closed = f->real->pMethods->xClose(f->real);
    buf_free(&f->kept);
    return rc == SQLITE_OK ? closed : rc;
}

static int
log_read(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
    struct log_file *f = (struct log_file *)file;
    int rc = write_kept(f);
    return rc == SQLITE_OK ? f->real->pMethods->xRead(f->real, out, n, at) : rc;
}

static int
log_write(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at)
{
    struct log_file *f = (struct log_file *)file;
    bool follows = at == f->at + (sqlite3_int64)f->kept.len;
    bool fits = f->kept.len + (size_t)n <= GATHER_MAX_BYTES;
    int rc = follows && fits ? SQLITE_OK : write_kept(f);
    if (rc != SQLITE_OK)
        return rc;
    if (f->kept.len == 0)
        f->at = at;
    buf_add(&f->kept, bytes, (size_t)n);
    return SQLITE_OK;
}

static int
log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct log_file *f = (struct log_file *)file;
    int rc = write_kept(f);
    return rc == SQLITE_OK ? f->real->pMethods->xTruncate(f->real, size) : rc;
}

static int
log_sync(sqlite3_file *file, int flags)
{
    struct log_file *f = (struct log_file *)file;
    int rc = write_kept(f);
    return rc == SQLITE_OK ? f->real->pMethods->xSync(f->real, flags) : rc;
}

static int
log_size(sqlite3_file *file, sqlite3_int64 *size)
{
    struct log_file *f = (struct log_file *)file;
    int rc = write_kept(f);
    return rc == SQLITE_OK ? f->real->pMethods->xFileSize(f->real, size) : rc;
}

static int
log_lock(sqlite3_file *file, int level)
{
    struct log_file *f = (struct log_file *)file;
    return f->real->pMethods->xLock(f->real, level);
}

static int
log_unlock(sqlite3_file *file, int level)
{
    struct log_file *f = (struct log_file *)file;
    return f->real->pMethods->xUnlock(f->real, level);
}

static int
log_check_lock(sqlite3_file *file, int *out)
{
    struct log_file *f = (struct log_file *)file;
    return f->real->pMethods->xCheckReservedLock(f->real, out);
}

static int
log_control(sqlite3_file *file, int op, void *arg)
{
    struct log_file *f = (struct log_file *)file;
    return f->real->pMethods->xFileControl(f->real, op, arg);
}

static int
log_sector(sqlite3_file *file)
{
    struct log_file *f = (struct log_file *)file;
    return f->real->pMethods->xSectorSize(f->real);
}

static int
log_device(sqlite3_file *file)
{
    struct log_file *f = (struct log_file *)file;
    return f->real->pMethods->xDeviceCharacteristics(f->real);
}

static const sqlite3_io_methods log_methods = {
    .iVersion = 1,
    .xClose = log_close,
    .xRead = log_read,
    .xWrite = log_write,
    .xTruncate = log_truncate,
    .xSync = log_sync,
    .xFileSize = log_size,
    .xLock = log_lock,
    .xUnlock = log_unlock,
    .xCheckReservedLock = log_check_lock,
    .xFileControl = log_control,
    .xSectorSize = log_sector,
    .xDeviceCharacteristics = log_device,
};

/* A log is opened behind our struct; any other file directly in its place. */
static int
gather_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags)
{
    sqlite3_vfs *real = vfs->pAppData;
    if (!(flags & SQLITE_OPEN_WAL))
        return real->xOpen(real, name, file, flags, out_flags);
    struct log_file *f = (struct log_file *)file;
    *f = (struct log_file){.kept = BUF_INIT, .real = (sqlite3_file *)(f + 1)};
    memset(f->real, 0, (size_t)real->szOsFile);
    int rc = real->xOpen(real, name, f->real, flags, out_flags);
    if (rc == SQLITE_OK)
        f->base.pMethods = &log_methods;
    else if (f->real->pMethods) /* as SQLite itself would */
        (void)f->real->pMethods->xClose(f->real);
    return rc;
}

const char *
gather_vfs_name(void)
{
    static sqlite3_vfs gathers;
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    if (gathers.zName)
        return gathers.zName;
    if (!real)
        return NULL;
    gathers = *real;
    gathers.pNext = NULL;
    gathers.zName = "berth-gather";
    gathers.szOsFile = (int)sizeof(struct log_file) + real->szOsFile;
    gathers.pAppData = real;
    gathers.xOpen = gather_open;
    if (sqlite3_vfs_register(&gathers, 0) == SQLITE_OK)
        return gathers.zName;
    gathers.zName = NULL;
    return NULL;
}
