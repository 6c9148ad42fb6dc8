/* The tables, and the migrations from any older version. A new database is built under another
 * name and then renamed, so an empty or truncated berth.db is never a fresh one: it is
 * damaged, and refused. Only store_open calls this.
 *
 * To change the tables, add a step to STEPS. Never edit a released step. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "store/store_priv.h"

/* jobs_state serves the restart (jobs that have not ended), the counts and `state:failed`; its
 * final states only grow. jobs_file holds the jobs that still count for a jobs file; as the
 * rowid follows its columns, a file's jobs come in order of id, which is also the order of
 * their pages. */
static const char schema_v1[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE jobs("
    " id INTEGER PRIMARY KEY, uid INTEGER NOT NULL, state INTEGER NOT NULL,"
    " submitted_us INTEGER NOT NULL, ended_us INTEGER NOT NULL, ord INTEGER NOT NULL,"
    " file INTEGER NOT NULL, detached INTEGER NOT NULL DEFAULT 0, line INTEGER NOT NULL,"
    " key TEXT, name TEXT, env INTEGER NOT NULL, umask INTEGER NOT NULL,"
    " devices INTEGER NOT NULL, gpus INTEGER NOT NULL, vram_mib INTEGER NOT NULL,"
    " cpus INTEGER NOT NULL, mem_mib INTEGER NOT NULL, exclusive INTEGER NOT NULL,"
    " gpu_ids TEXT NOT NULL, priority INTEGER NOT NULL, oom_retries INTEGER NOT NULL,"
    " retries INTEGER NOT NULL, limit_ms INTEGER NOT NULL, grace_ms INTEGER NOT NULL,"
    " hold INTEGER NOT NULL, cancel INTEGER NOT NULL, requeue INTEGER NOT NULL,"
    " declared_mib INTEGER NOT NULL, oom_used INTEGER NOT NULL, retries_used INTEGER NOT NULL,"
    " misfires INTEGER NOT NULL, cancel_asked INTEGER NOT NULL, begin_us INTEGER NOT NULL, "
    "attempts INTEGER NOT NULL,"
    " cancelled_by TEXT, never_text TEXT, cwd TEXT, log TEXT, command TEXT, argv TEXT);"
    "CREATE INDEX jobs_state ON jobs(state);"
    "CREATE INDEX jobs_file ON jobs(file) WHERE file <> 0 AND detached = 0;"
    "CREATE TABLE attempts("
    " job INTEGER NOT NULL, number INTEGER NOT NULL, cards TEXT NOT NULL,"
    " peaks_mib TEXT NOT NULL, vram_mib INTEGER NOT NULL, shepherd_pid INTEGER NOT NULL,"
    " started_us INTEGER NOT NULL, util_sum INTEGER NOT NULL, util_count INTEGER NOT NULL,"
    " warned INTEGER NOT NULL, outcome INTEGER NOT NULL, code INTEGER NOT NULL,"
    " signal INTEGER NOT NULL, errno INTEGER NOT NULL, oom INTEGER NOT NULL,"
    " ended_us INTEGER NOT NULL, run_ms INTEGER NOT NULL, cpu_ms INTEGER NOT NULL,"
    " max_rss_kib INTEGER NOT NULL, text TEXT NOT NULL,"
    " PRIMARY KEY(job, number)) WITHOUT ROWID;"
    "CREATE TABLE envs(id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, bytes BLOB NOT NULL);"
    "CREATE INDEX envs_hash ON envs(hash);"
    "CREATE TABLE files(id INTEGER PRIMARY KEY, uid INTEGER NOT NULL, path TEXT NOT NULL,"
    " UNIQUE(uid, path));"
    "CREATE TABLE events(seq INTEGER PRIMARY KEY, at_us INTEGER NOT NULL, kind TEXT NOT NULL,"
    " job INTEGER NOT NULL, file INTEGER NOT NULL, json TEXT NOT NULL);";

static const char schema_v2[] =
    "ALTER TABLE jobs ADD COLUMN share_permille INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN min_vram_mib INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN max_used_permille INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN max_load_permille INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN margin_mib INTEGER NOT NULL DEFAULT -1;"
    "ALTER TABLE jobs ADD COLUMN gpu_type TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE jobs ADD COLUMN unique_job INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN preemptible INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN on_timeout INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN max_requeues INTEGER NOT NULL DEFAULT 3;"
    "ALTER TABLE jobs ADD COLUMN requeues_used INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN requeue_asked INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN warn_signal INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN warn_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN wanted_begin_us INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN array_max INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN array_job INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN task INTEGER NOT NULL DEFAULT -1;"
    "ALTER TABLE jobs ADD COLUMN llm TEXT;"
    "ALTER TABLE jobs ADD COLUMN interactive INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN pty INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN tty_rows INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN tty_columns INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN fingerprint TEXT;"
    "ALTER TABLE jobs ADD COLUMN login INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN rlimits TEXT;"
    "ALTER TABLE jobs ADD COLUMN user TEXT;"
    "CREATE TABLE runs(uid INTEGER NOT NULL, fingerprint TEXT NOT NULL,"
    " last_ms INTEGER NOT NULL, before_ms INTEGER NOT NULL, ended_us INTEGER NOT NULL,"
    " PRIMARY KEY(uid, fingerprint)) WITHOUT ROWID;"
    "ALTER TABLE jobs ADD COLUMN deps TEXT;"
    "ALTER TABLE jobs ADD COLUMN tags TEXT;"
    "ALTER TABLE jobs ADD COLUMN array_tasks TEXT;"
    "ALTER TABLE jobs ADD COLUMN array_book TEXT;"
    /* Partial indexes: each holds only the rows that have the column. */
    "CREATE INDEX jobs_array ON jobs(array_job, task) WHERE array_job <> 0;"
    "CREATE INDEX jobs_fingerprint ON jobs(fingerprint) WHERE fingerprint IS NOT NULL;"
    "CREATE INDEX jobs_name ON jobs(name) WHERE name IS NOT NULL;"
    /* What remains of a pruned job that still counts for its line. */
    "CREATE TABLE lines(file INTEGER NOT NULL, key TEXT NOT NULL, job INTEGER NOT NULL,"
    " line INTEGER NOT NULL, state INTEGER NOT NULL, outcome INTEGER, code INTEGER,"
    " signal INTEGER, PRIMARY KEY(file, key)) WITHOUT ROWID;"
    "CREATE TABLE usage(uid INTEGER PRIMARY KEY, gpu_seconds REAL NOT NULL,"
    " at_us INTEGER NOT NULL);";

static const char schema_v3[] =
    "ALTER TABLE jobs ADD COLUMN idle_mib INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN placement INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN screen INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN env_setup TEXT;"
    "ALTER TABLE jobs ADD COLUMN conda TEXT;"
    /* Usage over time of attempts and GPUs; core/learn/trace.h, core/learn/series.h. */
    "CREATE TABLE traces(job INTEGER NOT NULL, attempt INTEGER NOT NULL, bytes BLOB NOT NULL,"
    " PRIMARY KEY(job, attempt)) WITHOUT ROWID;"
    "CREATE TABLE series(uuid TEXT PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE totals(uid INTEGER PRIMARY KEY, gpu_ms INTEGER NOT NULL);";

/* jobs_ended and attempts_ended serve reports, which walk backwards through ended jobs; each
 * holds only ended rows. peaks: peak memory per GPU of a command's last runs, from which
 * `vram=auto` is learned. */
static const char schema_v4[] =
    "ALTER TABLE jobs ADD COLUMN vram_auto INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN auto_runs INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX jobs_ended ON jobs(ended_us) WHERE ended_us > 0;"
    "CREATE INDEX attempts_ended ON attempts(ended_us) WHERE ended_us > 0;"
    "CREATE TABLE peaks(uid INTEGER NOT NULL, fingerprint TEXT NOT NULL,"
    " gpus INTEGER NOT NULL, peaks_mib TEXT NOT NULL, oom_mib INTEGER NOT NULL,"
    " oom_runs INTEGER NOT NULL, ended_us INTEGER NOT NULL,"
    " PRIMARY KEY(uid, fingerprint, gpus)) WITHOUT ROWID;";

/* outbox: notifications of jobs (hooks, webhooks, mail) not yet delivered. */
static const char schema_v5[] =
    "ALTER TABLE jobs ADD COLUMN hooks TEXT;"
    "CREATE TABLE outbox(id INTEGER PRIMARY KEY AUTOINCREMENT, job INTEGER NOT NULL,"
    " uid INTEGER NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL, event TEXT NOT NULL,"
    " tries INTEGER NOT NULL);";

/* site: requested by the settings, not by the job. */
static const char schema_v6[] =
    "ALTER TABLE outbox ADD COLUMN site INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN admin_held INTEGER NOT NULL DEFAULT 0;";

/* %a in a log's name was the attempt; it is now an array's task, as in Slurm. */
static const char schema_v7[] =
    "ALTER TABLE jobs ADD COLUMN error TEXT;"
    "ALTER TABLE jobs ADD COLUMN truncates INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN comment TEXT;"
    "ALTER TABLE jobs ADD COLUMN env_set TEXT;"
    "ALTER TABLE jobs ADD COLUMN chdir TEXT;"
    "ALTER TABLE jobs ADD COLUMN slurm_env INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN begin_said TEXT;"
    "ALTER TABLE jobs ADD COLUMN warn_batch INTEGER NOT NULL DEFAULT 0;"
    "UPDATE jobs SET log = replace(replace(replace(log, '%%', char(1)), '%a', '%r'), char(1), "
    "'%%')"
    " WHERE log LIKE '%\\%a%' ESCAPE '\\';";

/* jobs_env finds environments that no job refers to. */
static const char schema_v8[] =
    "CREATE INDEX jobs_env ON jobs(env);"
    "ALTER TABLE jobs ADD COLUMN log_max_mib INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE attempts ADD COLUMN log_cut_bytes INTEGER NOT NULL DEFAULT 0;";

/* Answers to requests that can be repeated. answers_uid lists them in order of arrival,
 * because the rowid follows an index's columns. */
static const char schema_v9[] =
    "CREATE TABLE answers(id INTEGER PRIMARY KEY AUTOINCREMENT, uid INTEGER NOT NULL,"
    " token TEXT NOT NULL, bytes INTEGER NOT NULL, json TEXT NOT NULL, UNIQUE(uid, token));"
    "CREATE INDEX answers_uid ON answers(uid);";

/* Progress of long requests, one row per piece. It was a single row of `answers` before,
 * "TOKEN so far". */
static const char schema_v10[] =
    "CREATE TABLE progress(uid INTEGER NOT NULL, token TEXT NOT NULL, piece INTEGER NOT NULL,"
    " at_us INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY(uid, token, piece)) WITHOUT "
    "ROWID;"
    "CREATE INDEX progress_at ON progress(at_us);"
    "DELETE FROM answers WHERE token LIKE '% so far';";

/* kept: approximate bytes in `files` and `lines` per user; see store_files.c. Replace a row of
 * theirs with an update, because REPLACE deletes without firing a trigger. jobs_detached finds
 * the jobs of a file that jobs_file leaves out. */
#define FILE_BYTES(row) "64 + 2 * length(CAST(" row "path AS BLOB))"
#define LINE_BYTES(row) "64 + length(CAST(" row "key AS BLOB))"
#define LINE_OWNER(row) "(SELECT uid FROM files WHERE id = " row "file)"
static const char schema_v11[] =
    "CREATE INDEX jobs_detached ON jobs(file) WHERE file <> 0 AND detached <> 0;"
    "CREATE TABLE kept(uid INTEGER PRIMARY KEY, bytes INTEGER NOT NULL);"
    "INSERT INTO kept SELECT uid, sum(n) FROM"
    " (SELECT uid, " FILE_BYTES("") " AS n FROM files UNION ALL SELECT f.uid, " LINE_BYTES(
        "l.") " FROM lines l JOIN files f ON f.id = l.file) GROUP BY uid;"
              "CREATE TRIGGER files_in AFTER INSERT ON files BEGIN"
              " INSERT INTO kept VALUES(new.uid, " FILE_BYTES(
                  "new.") ")"
                          " ON CONFLICT(uid) DO UPDATE SET bytes = bytes + excluded.bytes; END;"
                          "CREATE TRIGGER files_out AFTER DELETE ON files BEGIN"
                          " UPDATE kept SET bytes = bytes - (" FILE_BYTES(
                              "old.") ") WHERE uid = old.uid; END;"
                                      "CREATE TRIGGER lines_in AFTER INSERT ON lines BEGIN"
                                      " INSERT INTO kept SELECT uid, " LINE_BYTES(
                                          "new.") " FROM files WHERE id = new.file"
                                                  " ON CONFLICT(uid) DO UPDATE SET bytes = "
                                                  "bytes + excluded.bytes; END;"
                                                  "CREATE TRIGGER lines_out AFTER DELETE ON "
                                                  "lines BEGIN"
                                                  " UPDATE kept SET bytes = bytes - "
                                                  "(" LINE_BYTES(
                                                      "old.") ")"
                                                              " WHERE uid = " LINE_OWNER(
                                                                  "old.") "; END;";

/* cap_mib: the VRAM cap enforced on the attempt. */
static const char schema_v12[] =
    "ALTER TABLE jobs ADD COLUMN vram_cap INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE attempts ADD COLUMN cap_mib INTEGER NOT NULL DEFAULT 0;";

static const char schema_v13[] =
    "ALTER TABLE jobs ADD COLUMN on_exceed INTEGER NOT NULL DEFAULT 0;";

/* slurm_*: the Slurm job that runs an attempt; see struct attempt. */
static const char schema_v14[] =
    "ALTER TABLE jobs ADD COLUMN engine INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE attempts ADD COLUMN slurm_key TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE attempts ADD COLUMN slurm_index INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE attempts ADD COLUMN slurm_id TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE attempts ADD COLUMN slurm_node TEXT NOT NULL DEFAULT '';";

static const char schema_v15[] =
    "ALTER TABLE attempts ADD COLUMN slurm_peak_mib INTEGER NOT NULL DEFAULT -1;";

static const char schema_v16[] =
    "ALTER TABLE jobs ADD COLUMN gpu_cc_tenths INTEGER NOT NULL DEFAULT 0;";

/* numa_nodes: mask of the nodes to whose CPUs the attempt was bound. */
static const char schema_v17[] =
    "ALTER TABLE jobs ADD COLUMN cpu_bind INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE attempts ADD COLUMN numa_nodes INTEGER NOT NULL DEFAULT 0;";

static const char schema_v18[] = "ALTER TABLE jobs ADD COLUMN container TEXT;"
                                 "ALTER TABLE jobs ADD COLUMN container_mounts TEXT;";

static const char schema_v19[] = "ALTER TABLE jobs ADD COLUMN pack INTEGER NOT NULL DEFAULT 0;";

static const char schema_v20[] =
    "ALTER TABLE jobs ADD COLUMN singleton INTEGER NOT NULL DEFAULT 0;";

/* lined_us: see struct job. Jobs with dependencies may have waited for them until now. */
static const char schema_v21[] =
    "ALTER TABLE jobs ADD COLUMN lined_us INTEGER NOT NULL DEFAULT 0;"
    "UPDATE jobs SET lined_us = max(submitted_us, wanted_begin_us)"
    " WHERE state = 0 AND begin_us = 0 AND deps IS NULL;";

static const char schema_v22[] =
    "ALTER TABLE attempts ADD COLUMN energy_mj INTEGER NOT NULL DEFAULT 0;";

static const char schema_v23[] =
    "ALTER TABLE attempts ADD COLUMN slurm_folder INTEGER NOT NULL DEFAULT 0;";

static const char schema_v24[] = "ALTER TABLE jobs ADD COLUMN submitted_as TEXT;";

/* array_book: counts tasks per exit status, where it held only the highest status before. This
 * version reads both forms; older daemons cannot read the new one. */
static const char schema_v25[] = "";

/* Finds a user's newest job, even behind 100,000 tasks or other users' jobs. */
static const char schema_v26[] = "CREATE INDEX jobs_user ON jobs(uid) WHERE array_job = 0;";

/* deps: a capital letter marks a met dependency, which older daemons cannot read. */
static const char schema_v27[] =
    "ALTER TABLE jobs ADD COLUMN stop_grace_ms INTEGER NOT NULL DEFAULT -1;";

/* STEPS[v] leads from version v to v + 1. */
static const char *const STEPS[] = {
    schema_v1,  schema_v2,  schema_v3,  schema_v4,  schema_v5,  schema_v6,  schema_v7,
    schema_v8,  schema_v9,  schema_v10, schema_v11, schema_v12, schema_v13, schema_v14,
    schema_v15, schema_v16, schema_v17, schema_v18, schema_v19, schema_v20, schema_v21,
    schema_v22, schema_v23, schema_v24, schema_v25, schema_v26, schema_v27};
#define STORE_SCHEMA_VERSION ((int)(sizeof(STEPS) / sizeof(STEPS[0])))

static int
schema_exec(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static int
schema_version(sqlite3 *db)
{
    sqlite3_stmt *st = NULL;
    int version = -1;

    if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        version = sqlite3_column_int(st, 0);
    sqlite3_finalize(st);
    return version;
}

/* Applies all steps from this version on, in one transaction. 0, or -1 with the db's error
 * set. */
static int
schema_apply(sqlite3 *db, int version)
{
    char sql[64];

    if (schema_exec(db, "BEGIN IMMEDIATE") != SQLITE_OK)
        return -1;
    for (; version < STORE_SCHEMA_VERSION; version++)
        if (schema_exec(db, STEPS[version]) != SQLITE_OK)
            return -1;
    sqlite3_snprintf(sizeof sql, sql, "PRAGMA user_version = %d", STORE_SCHEMA_VERSION);
    if (schema_exec(db, sql) != SQLITE_OK)
        return -1;
    return schema_exec(db, "COMMIT") == SQLITE_OK ? 0 : -1;
}

static int
schema_newer(struct err *e, const char *path, int version)
{
    return err_set(e, ERR_FAILED,
                   "%s was written by a newer Berth (schema %d, this program supports %d); use "
                   "the newer berthd, or another --dir",
                   path, version, STORE_SCHEMA_VERSION);
}

int
schema_migrate(struct store *s, struct err *e)
{
    int version = schema_version(s->db);

    if (version < 0)
        return store_read_failed(s, e);
    if (version > STORE_SCHEMA_VERSION)
        return schema_newer(e, s->path, version);
    if (version == STORE_SCHEMA_VERSION)
        return 0;
    if (schema_apply(s->db, version) == 0)
        return 0;
    store_read_failed(s, e);
    return err_prefix(e, "upgrading it from version %d to %d", version, STORE_SCHEMA_VERSION);
}

/* The 16 hex digits that mark this instance's processes. */
static int
schema_token_make(char out[17], struct err *e)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char raw[8];

    if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
        return err_errno(e, ERR_FAILED, errno, "getrandom");
    for (size_t i = 0; i < sizeof raw; i++) {
        out[2 * i] = digits[raw[i] >> 4];
        out[2 * i + 1] = digits[raw[i] & 15];
    }
    out[16] = '\0';
    return 0;
}

static int
schema_fill(sqlite3 *db, const char *token)
{
    char sql[256];

    sqlite3_snprintf(sizeof sql, sql, "PRAGMA synchronous = FULL; PRAGMA application_id = %d",
                     STORE_APPLICATION_ID);
    if (schema_exec(db, sql) != SQLITE_OK || schema_apply(db, 0) < 0)
        return -1;
    sqlite3_snprintf(sizeof sql, sql,
                     "INSERT INTO meta VALUES('token', %Q), ('boot_id', ''), ('clean', '1'),"
                     " ('next_job', '1'), ('next_order', '1')",
                     token);
    return schema_exec(db, sql) == SQLITE_OK ? 0 : -1;
}

static int
schema_sync_folder(const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    auto_free char *dir =
        slash ? xstrndup(path, (unsigned long)(slash - path) + 1) : xstrdup(".");
    auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) < 0)
        return err_errno(e, ERR_FAILED, errno, "%s", dir);
    return 0;
}

/* Creates a new, empty file with access for its owner only; SQLite copies the mode to the
 * files beside it. */
static int
schema_make_file(const char *path, struct err *e)
{
    auto_free char *journal = xasprintf("%s-journal", path);

    unlink(path);
    unlink(journal);
    auto_close int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make %s", path);
    return 0;
}

/* Explains an error while filling a new file, when there is no store to ask yet. */
static int
schema_create_failed(sqlite3 *db, const char *path, struct err *e)
{
    int errnum = db ? sqlite3_system_errno(db) : 0;

    if (db && sqlite3_errcode(db) == SQLITE_FULL)
        errnum = ENOSPC;
    if (errnum)
        err_errno(e, ERR_FAILED, errnum, "cannot write %s", path);
    else
        err_set(e, ERR_FAILED, "cannot write %s: %s", path,
                db ? sqlite3_errmsg(db) : "out of memory");
    return -1;
}

int
schema_create(const char *path, struct err *e)
{
    auto_free char *fresh = xasprintf("%s.new", path);
    sqlite3 *db = NULL;
    char token[17];
    int rc = 0;

    if (schema_token_make(token, e) < 0 || schema_make_file(fresh, e) < 0)
        return -1;
    if (sqlite3_open_v2(fresh, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
            SQLITE_OK ||
        schema_fill(db, token) < 0)
        rc = schema_create_failed(db, fresh, e);
    if (sqlite3_close(db) != SQLITE_OK && rc == 0)
        rc = err_set(e, ERR_FAILED, "cannot close %s", fresh);
    if (rc == 0 && rename(fresh, path) < 0)
        rc = err_errno(e, ERR_FAILED, errno, "cannot rename %s to %s", fresh, path);
    if (rc < 0) {
        unlink(fresh);
        return -1;
    }
    return schema_sync_folder(path, e);
}

/* A number in a database's header: four bytes, big-endian. */
static uint32_t
schema_header_u32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* A log without its database is an error too. */
static int
schema_check_absent(const char *path, struct err *e)
{
    auto_free char *wal = xasprintf("%s-wal", path);

    if (access(wal, F_OK) == 0)
        return err_set(e, ERR_FAILED,
                       "%s is gone but its log %s is there: put the database back, or move the "
                       "log away to start with no jobs",
                       path, wal);
    return 0;
}

/* Checks the first 100 bytes before SQLite opens the file, because SQLite would take an empty
 * file for a new database. Offsets: https://www.sqlite.org/fileformat.html, 1.3. */
int
schema_check_file(const char *path, struct err *e)
{
    unsigned char head[100];
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0 && errno == ENOENT)
        return schema_check_absent(path, e);
    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno,
                         "cannot read %s (jobs are kept there, so none are started)", path);
    n = pread(fd, head, sizeof head, 0);
    if (n < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot read %s", path);
    if (n < (ssize_t)sizeof head || memcmp(head, "SQLite format 3", 16) != 0 ||
        schema_header_u32(head + 68) != STORE_APPLICATION_ID)
        return err_set(e, ERR_FAILED,
                       "%s is not a Berth database, or is damaged at its start. It was not "
                       "changed: put a good copy in its place, or move it away to start with "
                       "no jobs",
                       path);
    if (schema_header_u32(head + 60) > STORE_SCHEMA_VERSION)
        return schema_newer(e, path, (int)schema_header_u32(head + 60));
    return 1;
}
