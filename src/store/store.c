/* Opening, closing, and the turn: a lazily begun transaction whose first failure fails the
 * rest of it. Also translates SQLite's errors for people, and keeps the reserve for a full
 * disk.
 *
 * The daemon empties the log (WAL) when it is idle, or a commit does once the log has grown
 * past its bound. SQLite's automatic checkpoint every 1000 pages is off, because it would
 * stall a turn at an arbitrary moment. */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "store/store_gather.h"
#include "store/store_priv.h"

/* Pages of 4 KiB. Emptying the log blocks the caller for some 10 ms per 1,000 pages. A short
 * log is also faster: rewriting a disk block needs no new allocation in the file system. */
#define WAL_IDLE_PAGES  256
#define WAL_BOUND_PAGES 1024
#define WAL_PAGE_BYTES  (24 + PAGE_BYTES)
#define WAL_BOUND_BYTES (WAL_BOUND_PAGES * WAL_PAGE_BYTES) /* file size kept after emptying */
#define WAL_ROOM_BYTES  (1 << 20)                          /* allocated for the log at a time */
#define WAL_ROOM_LEFT   (WAL_ROOM_BYTES / 8)
#define WAL_ROOM_PART   64 /* divisor: at most this part of the free disk space */
/* A file of which three quarters are unused is rewritten if the used part is small enough for
 * the delay not to be noticed: 3 MiB while others wait, 32 MiB at start. */
#define VACUUM_MIN_PAGES  1024
#define VACUUM_IDLE_PAGES 768
#define VACUUM_OPEN_PAGES 8192
#define PAGE_BYTES        4096
/* A file that can be checked within about a second is checked at each start. A larger one is
 * checked only after the machine went down under it; other damage shows when a read meets
 * it. */
#define CHECK_ALWAYS_BYTES (256 << 20)
#define RESERVE_BYTES      (1 << 20)

/* --- errors --- */

static int
store_error_damaged(const struct store *s, struct err *e, const char *why)
{
    return err_set(e, ERR_FAILED,
                   "%s is damaged (%s) and was not changed. Copy berth.db* to a safe place, "
                   "then try `sqlite3 berth.db .recover | sqlite3 new.db` and put new.db in "
                   "its place, or move it away to start with no jobs",
                   s->path, why);
}

static int
store_error_full(const struct store *s, struct err *e)
{
    return err_set(
        e, ERR_NO_SPACE,
        "no space left for %s: free some on that disk; acknowledged changes are safe", s->path);
}

/* For SQLite's codes that wrap a system call's errno: fills e from that. Returns -1. */
static int
store_error_system(const struct store *s, struct err *e)
{
    int errnum = sqlite3_system_errno(s->db);

    if (errnum == 0 && (sqlite3_errcode(s->db) & 0xff) == SQLITE_IOERR)
        errnum = errno; /* a failed commit does not set sqlite3_system_errno: see store_step */
    if (errnum == ENOSPC || errnum == EDQUOT)
        return store_error_full(s, e);
    if (errnum)
        return err_errno(e, ERR_FAILED, errnum, "%s (or berth.db-wal beside it): %s", s->path,
                         sqlite3_errmsg(s->db));
    return err_set(e, ERR_FAILED, "%s: %s", s->path, sqlite3_errmsg(s->db));
}

int
store_read_failed(const struct store *s, struct err *e)
{
    switch (sqlite3_errcode(s->db) & 0xff) {
    case SQLITE_FULL:
        return store_error_full(s, e);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return store_error_damaged(s, e, sqlite3_errmsg(s->db));
    case SQLITE_BUSY:
        return err_set(e, ERR_FAILED,
                       "another program has %s open: stop it, or use another --dir", s->path);
    case SQLITE_READONLY:
        return err_set(e, ERR_PERMISSION,
                       "%s cannot be written: make it and its folder "
                       "writable",
                       s->path);
    default:
        return store_error_system(s, e);
    }
}

/* As store_read_failed, and marks the turn as failed. */
static int
write_failed(struct store *s, struct err *e)
{
    if (s->failed.code == ERR_NONE)
        store_read_failed(s, &s->failed);
    if (e)
        *e = s->failed;
    return -1;
}

int
store_failed(struct store *s, enum err_code code, struct err *e, const char *fmt, ...)
{
    va_list ap;
    auto_buf struct buf text = BUF_INIT;

    va_start(ap, fmt);
    buf_addv(&text, fmt, ap);
    va_end(ap);
    if (s->failed.code == ERR_NONE)
        err_set(&s->failed, code, "%s", buf_str(&text));
    if (e)
        *e = s->failed;
    return -1;
}

/* --- the turn --- */

static int
store_step(struct store *s, enum stmt_id id, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, id, e);
    int rc;

    if (!st)
        return -1;
    errno = 0;
    rc = sqlite3_step(st);
    int errnum = errno;
    sqlite3_reset(st);
    errno = errnum;
    return rc == SQLITE_DONE ? 0 : store_read_failed(s, e);
}

static int
store_begin(struct store *s, struct err *e)
{
    if (store_step(s, STMT_BEGIN, &s->failed) < 0) {
        if (e)
            *e = s->failed;
        return -1;
    }
    s->in_turn = true;
    if (!s->clean)
        return 0;
    s->turn_dirties = true;
    return meta_set(s, "clean", "0", e);
}

sqlite3_stmt *
store_write_stmt(struct store *s, enum stmt_id id, struct err *e)
{
    sqlite3_stmt *st;

    if (s->failed.code != ERR_NONE) {
        if (e)
            *e = s->failed;
        return NULL;
    }
    if (!s->in_turn && store_begin(s, e) < 0)
        return NULL;
    st = store_stmt(s, id, &s->failed);
    if (!st && e)
        *e = s->failed;
    return st;
}

int
store_write(struct store *s, sqlite3_stmt *st, struct err *e)
{
    int rc = sqlite3_step(st);

    if (rc == SQLITE_DONE) {
        sqlite3_reset(st);
        return 0;
    }
    write_failed(s, e);
    sqlite3_reset(st);
    return -1;
}

int
store_read_end(const struct store *s, sqlite3_stmt *st, int rc, struct err *e)
{
    bool failed = rc != SQLITE_ROW && rc != SQLITE_DONE;

    if (failed)
        store_read_failed(s, e);
    sqlite3_reset(st);
    return failed ? -1 : 0;
}

bool
store_has_changes(const struct store *s)
{
    return s->in_turn || s->failed.code != ERR_NONE;
}

void
store_rollback(struct store *s)
{
    if (!sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    if (s->in_turn)
        meta_reload_boot_id(s);
    s->in_turn = false;
    s->turn_dirties = false;
    s->failed.code = ERR_NONE;
    s->last_seq = s->saved_seq;
    s->env_id = 0;
}

/* True if the free disk space is less than the log may still grow by: on a small disk the
 * usual bound would fill everything. */
static bool
store_disk_is_tight(const struct store *s)
{
    struct statvfs fs;

    return statvfs(s->dir, &fs) == 0 &&
           (double)fs.f_bavail * (double)fs.f_frsize < 2.0 * s->wal_pages * PAGE_BYTES;
}

/* The commit is already durable, so an error here only postpones the emptying. */
static void
store_bound_log(struct store *s)
{
    if (s->wal_pages >= s->wal_bound) {
        if (store_checkpoint(s, NULL) < 0)
            s->wal_bound = s->wal_pages + WAL_BOUND_PAGES;
    } else if (s->wal_pages >= s->wal_looked + WAL_IDLE_PAGES) {
        s->wal_looked = s->wal_pages;
        if (store_disk_is_tight(s))
            (void)store_shrink_log(s, NULL);
    }
}

/* Appends zeros to the log file. Never overwrites: a commit may have extended the file. -1:
 * there is no room, and the file is unchanged. */
static int
store_lengthen_log(const struct store *s, off_t to)
{
    static const char zeros[1 << 16];
    auto_free char *wal = xasprintf("%s-wal", s->path);
    auto_close int fd = open(wal, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    for (off_t at = st.st_size; at < to; at += (off_t)sizeof zeros) {
        size_t n = to - at < (off_t)sizeof zeros ? (size_t)(to - at) : sizeof zeros;
        if (file_write_all_at(fd, zeros, n, at) == 0)
            continue;
        (void)!ftruncate(fd, st.st_size);
        return -1;
    }
    return 0;
}

/* Preallocates room in the log file. A commit that does not extend the file writes only its
 * pages, without the inode or a file system journal. SQLite ignores whatever follows the end
 * of its log. The zeros become durable with the next commit, and need not be earlier. */
static void
store_make_log_room(struct store *s)
{
    int64_t used = (int64_t)s->wal_pages * WAL_PAGE_BYTES;
    int64_t to =
        used + WAL_ROOM_BYTES < WAL_BOUND_BYTES ? used + WAL_ROOM_BYTES : WAL_BOUND_BYTES;
    struct statvfs fs;

    if (s->wal_bytes - used >= WAL_ROOM_LEFT || to <= s->wal_bytes || s->wal_has_no_room ||
        statvfs(s->dir, &fs) < 0)
        return;
    if ((double)fs.f_bavail * (double)fs.f_frsize < (double)WAL_ROOM_PART * WAL_ROOM_BYTES)
        return;
    s->wal_has_no_room = store_lengthen_log(s, to) < 0;
}

/* Fails if the open database or its log was removed or replaced: a commit into removed files
 * would not be durable. */
static int
store_check_names(struct store *s)
{
    auto_free char *wal = xasprintf("%s-wal", s->path);
    struct stat st;

    if (s->failed.code != ERR_NONE)
        return -1;
    if (stat(s->path, &st) < 0 || st.st_ino != s->inode || st.st_dev != s->device)
        return store_failed(s, ERR_FAILED, NULL,
                            "%s was removed or replaced while in use; put it back, or restart "
                            "the daemon and lose the changes since then",
                            s->path);
    if (stat(wal, &st) < 0)
        return store_failed(s, ERR_FAILED, NULL,
                            "%s was removed while in use; put it back, or restart the daemon "
                            "and lose its contents",
                            wal);
    s->wal_bytes = st.st_size;
    return 0;
}

int
store_commit(struct store *s, struct err *e)
{
    if (!store_has_changes(s))
        return 0;
    (void)store_check_names(s); /* the error sticks to the turn */
    if (s->failed.code == ERR_NONE && meta_save_counters(s, NULL) == 0 &&
        store_step(s, STMT_COMMIT, &s->failed) == 0) {
        if (s->turn_dirties)
            s->clean = false;
        s->in_turn = s->turn_dirties = false;
        meta_counters_saved(s);
        s->saved_seq = s->last_seq;
        store_bound_log(s);
        store_make_log_room(s);
        return 0;
    }
    if (e)
        *e = s->failed;
    /* If a quota shows only at writeback, our zeros may be what does not fit. */
    s->wal_has_no_room = true;
    store_rollback(s);
    return -1;
}

/* --- the log --- */

static int
store_on_wal(void *arg, sqlite3 *db, const char *name, int pages)
{
    struct store *s = arg;

    (void)db;
    (void)name;
    s->wal_pages = pages;
    return SQLITE_OK;
}

bool
store_wants_checkpoint(const struct store *s)
{
    return s->wal_pages >= WAL_IDLE_PAGES;
}

int64_t
store_bytes(const struct store *s)
{
    auto_free char *wal = xasprintf("%s-wal", s->path);
    struct stat st;
    int64_t n = stat(s->path, &st) == 0 ? st.st_size : 0;

    return n + (stat(wal, &st) == 0 ? st.st_size : 0);
}

int
store_checkpoint(struct store *s, struct err *e)
{
    if (s->wal_pages == 0 || s->in_turn)
        return 0;
    if (sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) !=
        SQLITE_OK)
        return store_read_failed(s, e);
    s->wal_pages = s->wal_looked = 0;
    s->wal_bound = WAL_BOUND_PAGES;
    return 0;
}

static int64_t
store_pragma_int(struct store *s, const char *sql)
{
    sqlite3_stmt *st = NULL;
    int64_t n = -1;

    if (sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return n;
}

int64_t
store_used_bytes(struct store *s)
{
    int64_t pages = store_pragma_int(s, "PRAGMA page_count");
    int64_t unused = store_pragma_int(s, "PRAGMA freelist_count");

    return (pages - unused) * store_pragma_int(s, "PRAGMA page_size");
}

static bool
store_wastes(struct store *s, int64_t most_used)
{
    int64_t pages = store_pragma_int(s, "PRAGMA page_count");
    int64_t unused = store_pragma_int(s, "PRAGMA freelist_count");

    return pages >= VACUUM_MIN_PAGES && unused > pages * 3 / 4 && pages - unused < most_used;
}

bool
store_is_mostly_free(struct store *s)
{
    return store_wastes(s, VACUUM_IDLE_PAGES);
}

int
store_compact(struct store *s, struct err *e)
{
    if (s->in_turn)
        return 0;
    if (sqlite3_exec(s->db, "VACUUM", NULL, NULL, NULL) != SQLITE_OK) {
        int rc = store_read_failed(s, e);
        (void)store_shrink_log(s, NULL); /* a large log may have taken all the room */
        return rc;
    }
    return store_shrink_log(s, e);
}

int
store_shrink_log(struct store *s, struct err *e)
{
    if (s->in_turn)
        return 0;
    if (sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) !=
        SQLITE_OK)
        return store_read_failed(s, e);
    s->wal_pages = s->wal_looked = 0;
    s->wal_bound = WAL_BOUND_PAGES;
    return 0;
}

/* --- the reserve --- */

bool
store_reserve_release(struct store *s)
{
    auto_free char *path = xasprintf("%s/reserve", s->dir);

    return unlink(path) == 0;
}

int
store_reserve_restore(struct store *s, struct err *e)
{
    auto_free char *path = xasprintf("%s/reserve", s->dir);
    auto_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat st;
    int errnum;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make %s", path);
    if (st.st_size == RESERVE_BYTES)
        return 0;
    errnum = posix_fallocate(fd, 0, RESERVE_BYTES);
    if (errnum == 0)
        return 0;
    unlink(path);
    return err_errno(e, ERR_FAILED, errnum, "cannot fill %s", path);
}

/* --- open and close --- */

/* SQLite's result: "ok", or the first error it found. */
int
store_check(struct store *s, struct err *e)
{
    sqlite3_stmt *st = NULL;
    const char *word;
    int rc = -1;

    if (sqlite3_prepare_v2(s->db, "PRAGMA quick_check(1)", -1, &st, NULL) != SQLITE_OK ||
        sqlite3_step(st) != SQLITE_ROW) {
        store_read_failed(s, e);
    } else {
        word = (const char *)sqlite3_column_text(st, 0);
        rc = word && strcmp(word, "ok") == 0
                 ? 0
                 : store_error_damaged(s, e, word ? word : "the check says nothing");
    }
    sqlite3_finalize(st);
    return rc;
}

static bool
store_is_small(const struct store *s)
{
    struct stat st;

    return stat(s->path, &st) == 0 && st.st_size < CHECK_ALWAYS_BYTES;
}

static bool
store_needs_check(const struct store *s)
{
    return store_is_small(s) || (!s->clean && strcmp(s->boot_id, clock_boot_id()) != 0);
}

static int
store_pragmas(struct store *s, struct err *e)
{
    /* EXCLUSIVE before the first access keeps the log's index in process memory, without a
     * shared file. cache_size is in KiB, so that a long history costs the daemon no memory. */
    static const char pragmas[] =
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        "PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -2048;"
        "PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF;";

    if (sqlite3_exec(s->db, pragmas, NULL, NULL, NULL) != SQLITE_OK)
        return store_read_failed(s, e);
    auto_free char *kept = xasprintf("PRAGMA journal_size_limit = %d", WAL_BOUND_BYTES);
    sqlite3_exec(s->db, kept, NULL, NULL, NULL);
    sqlite3_wal_hook(s->db, store_on_wal, s);
    return 0;
}

static int
store_connect(struct store *s, struct err *e)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;

    if (sqlite3_open_v2(s->path, &s->db, flags, gather_vfs_name()) != SQLITE_OK)
        return s->db ? store_read_failed(s, e) : err_set(e, ERR_FAILED, "out of memory");
    sqlite3_extended_result_codes(s->db, 1);
    /* Until the file is known to be sound, nothing is moved into it, not even on close. */
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    /* SQLite falls back to read-only, which would only show at the first write. */
    if (sqlite3_db_readonly(s->db, "main") == 1)
        return err_set(e, ERR_PERMISSION,
                       "%s cannot be written by this user: make it writable, "
                       "or use another --dir",
                       s->path);
    return 0;
}

static int
store_load(struct store *s, struct err *e)
{
    if (store_connect(s, e) < 0 || store_pragmas(s, e) < 0 || schema_migrate(s, e) < 0 ||
        meta_load(s, e) < 0)
        return -1;
    if (store_needs_check(s) && store_check(s, e) < 0)
        return -1;
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return 0;
}

static void
store_free(struct store *s)
{
    store_stmts_free(s);
    sqlite3_close(s->db);
    buf_free(&s->env_bytes);
    free(s->path);
    free(s->dir);
    free(s);
}

static void
store_know_file(struct store *s)
{
    struct stat st;

    if (stat(s->path, &st) == 0) {
        s->inode = st.st_ino;
        s->device = st.st_dev;
    }
}

int
store_open(const char *dir, struct store **out, struct err *e)
{
    struct store *s = xcalloc(1, sizeof *s);
    int found;

    *out = NULL;
    /* Memory statistics, which nobody reads, take a lock at each allocation. Works only before
     * SQLite's first use; later it is a no-op. */
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    s->dir = xstrdup(dir);
    s->path = xasprintf("%s/berth.db", dir);
    s->wal_bound = WAL_BOUND_PAGES;
    found = schema_check_file(s->path, e);
    if (found < 0 || (found == 0 && schema_create(s->path, e) < 0) || store_load(s, e) < 0) {
        store_free(s);
        return -1;
    }
    /* Best effort: without room on the disk the file stays as it is. */
    if (store_wastes(s, VACUUM_OPEN_PAGES))
        (void)store_compact(s, NULL);
    store_know_file(s);
    /* A full disk is no reason not to run queued jobs. */
    store_reserve_restore(s, NULL);
    *out = s;
    return 0;
}

void
store_close(struct store *s)
{
    if (!s)
        return;
    store_rollback(s);
    /* If this fails, the next start checks the file; no harm is done. */
    if (!s->clean && meta_set(s, "clean", "1", NULL) == 0)
        store_commit(s, NULL);
    store_rollback(s);
    store_free(s);
}
