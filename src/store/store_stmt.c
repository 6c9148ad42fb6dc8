/* The SQL of every prepared statement. Statements over whole jobs and attempts are composed
 * from the column tables in store_row.c, so a new column is added in one place. */
#include "base/err.h"
#include "store/store_priv.h"

/* Joins each job's last attempt; most jobs of a long queue have none. */
#define LAST_ATTEMPT                                                                           \
    " FROM jobs j LEFT JOIN attempts a ON a.job = j.id AND"                                    \
    " a.number = (SELECT max(number) FROM attempts WHERE job = j.id)"
/* The text that is searched. argv is a JSON list; the quotes between its words are removed. */
#define WORDS                                                                                  \
    "coalesce(j.name, '') || char(10) || coalesce(j.command, '')"                              \
    " || replace(coalesce(j.argv, ''), '\",\"', ' ') || char(10) || coalesce(j.tags, '')"
/* Parameters as in store_jobs.c's jobs_bind_filter. */
#define MATCHES                                                                                \
    " WHERE j.id BETWEEN ?1 AND ?2 AND (?3 = 0 OR ?3 >> j.state & 1)"                          \
    " AND (?4 < 0 OR j.uid = ?4) AND (?5 = 0 OR j.file = ?5)"                                  \
    " AND (?6 = 0 OR j.ended_us >= ?6) AND (?7 = 0 OR (j.ended_us > 0 AND j.ended_us < ?7))"

static const char *const SQL[STMT_COUNT] = {
    [STMT_BEGIN] = "BEGIN IMMEDIATE",
    [STMT_COMMIT] = "COMMIT",
    [STMT_META_GET] = "SELECT value FROM meta WHERE key = ?1",
    [STMT_META_SET] = "INSERT OR REPLACE INTO meta(key, value) VALUES(?1, ?2)",
    /* One row per candidate, so that the deadline can be checked in between: a job may have
     * megabytes to search. */
    [STMT_JOBS_SEARCH] = ("SELECT j.id, (?9 < 0 OR j.uid = ?9) AND instr(lower(" WORDS "), ?8)"
                          " FROM jobs j" MATCHES " ORDER BY j.id DESC"),
    [STMT_ENV_FIND] = "SELECT id FROM envs WHERE hash = ?1 AND bytes = ?2",
    [STMT_ENV_ADD] = "INSERT INTO envs(hash, bytes) VALUES(?1, ?2)",
    [STMT_ENV_BYTES] = "SELECT length(bytes) FROM envs WHERE id = ?1",
    [STMT_ENV_GET] = "SELECT bytes FROM envs WHERE id = ?1",
    [STMT_FILE_FIND] = "SELECT id FROM files WHERE uid = ?1 AND path = ?2",
    [STMT_FILE_ADD] = "INSERT INTO files(uid, path) VALUES(?1, ?2)",
    [STMT_FILE_PATH] = "SELECT path FROM files WHERE id = ?1",
    [STMT_FILE_KEYS] =
        ("SELECT j.key, j.id, j.line, j.state, a.outcome, a.code, a.signal" LAST_ATTEMPT
         " WHERE j.file = ?1 AND j.file <> 0 AND j.detached = 0 AND j.id > ?2 ORDER BY j.id"),
    [STMT_FILE_FORGET] = ("UPDATE jobs SET detached = 1 WHERE file = ?1 AND file <> 0"
                          " AND detached = 0 AND id > ?2 AND id <= ?3 AND state >= ?4"),
    [STMT_FILE_AHEAD] = ("SELECT max(id) FROM (SELECT id FROM jobs WHERE file = ?1"
                         " AND file <> 0 AND detached = 0 AND id > ?2 ORDER BY id LIMIT ?3)"),
    [STMT_JOB_DETACH] = "UPDATE jobs SET detached = 1 WHERE id = ?1",
    [STMT_FIND_SAME] = ("SELECT id, state FROM jobs WHERE fingerprint = ?1 AND uid = ?2"
                        " AND state <= ?3 AND array_job = 0 ORDER BY id DESC LIMIT 1"),
    [STMT_FIND_NAMED] = ("SELECT id, state FROM jobs WHERE name = ?1 AND uid = ?2"
                         " AND array_job = 0 ORDER BY id DESC LIMIT 1"),
    [STMT_FIND_NEWEST] = ("SELECT id, state FROM jobs INDEXED BY jobs_user WHERE uid = ?1"
                          " AND array_job = 0 ORDER BY id DESC LIMIT 1"),
    [STMT_FIND_TASK] = ("SELECT id, state FROM jobs WHERE array_job = ?1 AND array_job <> 0"
                        " AND task = ?2 LIMIT 1"),
    [STMT_FIND_JOB] = "SELECT id, state FROM jobs WHERE id = ?1",
    [STMT_ARRAY_TASKS] = "SELECT array_tasks FROM jobs WHERE id = ?1",
    [STMT_TASKS] = ("SELECT id, task, state FROM jobs WHERE array_job = ?1 AND array_job <> 0"
                    " AND task BETWEEN ?2 AND ?3 ORDER BY task"),
    [STMT_LINES] = ("SELECT key, job, line, state, outcome, code, signal FROM lines"
                    " WHERE file = ?1 AND key > ?2 ORDER BY key"),
    [STMT_LINES_FORGET] = ("DELETE FROM lines WHERE file = ?1 AND key IN"
                           " (SELECT key FROM lines WHERE file = ?1 LIMIT ?2)"),
    [STMT_KEPT] = "SELECT bytes FROM kept WHERE uid = ?1",
    [STMT_KEPT_ALL] = "SELECT coalesce(sum(bytes), 0) FROM kept",
    [STMT_KEPT_ABOVE] = "SELECT uid FROM kept WHERE bytes > ?1 LIMIT 1",
    [STMT_FILES_AHEAD] = ("SELECT max(id) FROM (SELECT id FROM files WHERE id > ?1"
                          " ORDER BY id LIMIT ?2)"),
    /* The last file stays, so that its number is not reused. */
    [STMT_FILES_PRUNE] =
        ("DELETE FROM files WHERE id > ?1 AND id <= ?2 AND uid = ?3"
         " AND id < (SELECT max(id) FROM files)"
         " AND NOT EXISTS (SELECT 1 FROM lines WHERE file = files.id)"
         " AND NOT EXISTS (SELECT 1 FROM jobs WHERE file = files.id AND file <> 0"
         " AND detached = 0)"
         " AND NOT EXISTS (SELECT 1 FROM jobs WHERE file = files.id AND file <> 0"
         " AND detached <> 0)"),
    /* A task is pruned after its array, which has a lower id: rerunning an array counts tasks
     * without a row as tasks that never left it. */
    [STMT_PRUNE_LIST] =
        ("SELECT id, state, submitted_us, ended_us, array_job <> 0 AND EXISTS (SELECT 1"
         " FROM jobs a WHERE a.id = jobs.array_job AND (a.state < ?1 OR a.id >= ?2"
         " AND a.ended_us >= ?3)) FROM jobs ORDER BY id"),
    [STMT_PRUNE_OF] =
        ("SELECT id, uid, state, array_job <> 0 AND EXISTS (SELECT 1 FROM jobs a"
         " WHERE a.id = jobs.array_job AND (a.state < ?2 OR a.id <= ?1)) FROM jobs"
         " WHERE id > ?1 ORDER BY id"),
    /* Samples ?2 jobs, evenly over all ids; each environment of a user counts once. */
    [STMT_LARGEST_USER] =
        ("WITH RECURSIVE n(id, step) AS (SELECT min(id), 1 + (max(id) - min(id)) / ?2"
         " FROM jobs UNION ALL SELECT id + step, step FROM n WHERE id IS NOT NULL"
         " AND id + step <= (SELECT max(id) FROM jobs))"
         " SELECT uid, sum(bytes) FROM (SELECT j.uid AS uid, 1000"
         " + sum(coalesce(length(j.command), 0) + coalesce(length(j.argv), 0)"
         " + coalesce(length(j.comment), 0) + coalesce(length(j.env_set), 0)"
         " + coalesce(length(j.submitted_as), 0)"
         " + coalesce(length(j.array_book), 0))"
         " + coalesce((SELECT length(bytes) FROM envs WHERE envs.id = j.env), 0) AS bytes"
         " FROM n JOIN jobs j ON j.id = n.id WHERE j.state >= ?1 GROUP BY j.uid, j.env)"
         " GROUP BY uid ORDER BY 2 DESC LIMIT 1"),
    [STMT_PRUNE_LINE] =
        ("INSERT INTO lines SELECT j.file, j.key, j.id, j.line, j.state,"
         " a.outcome, a.code, a.signal" LAST_ATTEMPT " WHERE j.id = ?1 AND j.file <> 0"
         " AND j.detached = 0 AND j.key IS NOT NULL"
         " ON CONFLICT(file, key) DO UPDATE SET job = excluded.job, line = excluded.line,"
         " state = excluded.state, outcome = excluded.outcome, code = excluded.code,"
         " signal = excluded.signal"),
    [STMT_PRUNE_TRACES] = "DELETE FROM traces WHERE job = ?1",
    [STMT_PRUNE_ATTEMPTS] = "DELETE FROM attempts WHERE job = ?1",
    [STMT_PRUNE_JOB] = "DELETE FROM jobs WHERE id = ?1",
    [STMT_PRUNE_ENVS] = ("SELECT id, length(bytes), EXISTS (SELECT 1 FROM jobs WHERE env ="
                         " envs.id) FROM envs WHERE id > ?1 ORDER BY id"),
    [STMT_PRUNE_ENV] = "DELETE FROM envs WHERE id = ?1",
    [STMT_USAGE_SET] = "INSERT OR REPLACE INTO usage VALUES(?1, ?2, ?3)",
    [STMT_USAGE] = "SELECT uid, gpu_seconds, at_us FROM usage",
    [STMT_EVENT_ADD] = "INSERT INTO events VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
    [STMT_EVENTS] = ("SELECT seq, at_us, kind, job, file, json FROM events WHERE seq > ?1"
                     " ORDER BY seq"),
    [STMT_EVENTS_TRIM] = "DELETE FROM events WHERE seq <= ?1",
    [STMT_ENDED] =
        ("SELECT j.id, j.uid, j.state, j.submitted_us, j.wanted_begin_us, j.ended_us, j.gpus,"
         " j.declared_mib, j.fingerprint, j.never_text IS NOT NULL, a.number, a.cards,"
         " a.peaks_mib, a.vram_mib, a.started_us, a.run_ms, a.util_sum, a.util_count,"
         " a.outcome, a.code, a.signal, a.oom, a.slurm_key <> '', a.slurm_peak_mib, j.user"
         " FROM (SELECT id, uid, state, submitted_us,"
         " wanted_begin_us, ended_us, gpus, declared_mib, fingerprint, never_text, user"
         " FROM jobs INDEXED BY jobs_ended"
         " WHERE ended_us > 0 AND ended_us >= ?1 AND (ended_us, id) < (?2, ?3)"
         " AND array_tasks IS NULL ORDER BY ended_us DESC, id DESC LIMIT ?4) j"
         " LEFT JOIN attempts a ON a.job = j.id"
         " ORDER BY j.ended_us DESC, j.id DESC, a.number"),
    [STMT_USED] =
        ("SELECT a.cards, a.peaks_mib, a.vram_mib, a.started_us, a.ended_us, a.job, a.number,"
         " j.share_permille, j.uid, j.user FROM attempts a INDEXED BY attempts_ended"
         " JOIN jobs j ON j.id = a.job WHERE a.ended_us > 0 AND a.ended_us >= ?1"
         " AND (a.ended_us, a.job, a.number) < (?2, ?3, ?4) AND a.cards <> ''"
         " ORDER BY a.ended_us DESC, a.job DESC, a.number DESC LIMIT ?5"),
    [STMT_PAST_BEGIN] = ("SELECT CASE started_us WHEN 0 THEN ended_us ELSE started_us END"
                         " FROM attempts WHERE ended_us > 0 ORDER BY ended_us LIMIT 1"),
    [STMT_ANSWER_GET] = "SELECT json FROM answers WHERE uid = ?1 AND token = ?2",
    [STMT_ANSWER_PUT] = ("INSERT OR REPLACE INTO answers(uid, token, bytes, json)"
                         " VALUES(?1, ?2, length(?3), ?3)"),
    [STMT_ANSWERS_TRIM] =
        ("DELETE FROM answers WHERE uid = ?1 AND bytes > ?3 AND id <= (SELECT id"
         " FROM answers WHERE uid = ?1 AND bytes > ?3 ORDER BY id DESC LIMIT 1"
         " OFFSET ?2)"),
    [STMT_PROGRESS_ADD] = "INSERT OR REPLACE INTO progress VALUES(?1, ?2, ?3, ?4, ?5)",
    [STMT_PROGRESS_GET] =
        "SELECT text FROM progress WHERE uid = ?1 AND token = ?2 AND piece = ?3",
    [STMT_PROGRESS_DROP] = "DELETE FROM progress WHERE uid = ?1 AND token = ?2",
    [STMT_PROGRESS_TRIM] = "DELETE FROM progress WHERE at_us < ?1",
    [STMT_PEAKS_GET] = ("SELECT peaks_mib, oom_mib, oom_runs FROM peaks"
                        " WHERE uid = ?1 AND fingerprint = ?2 AND gpus = ?3"),
    [STMT_PEAKS_PUT] = "INSERT OR REPLACE INTO peaks VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [STMT_PEAKS_TRIM] = ("DELETE FROM peaks WHERE ended_us < (SELECT ended_us FROM peaks"
                         " ORDER BY ended_us DESC LIMIT 1 OFFSET ?1)"),
    [STMT_OUTBOX] = ("SELECT id, job, uid, kind, target, event, tries, site FROM outbox"
                     " WHERE id BETWEEN ?1 AND ?2 ORDER BY id"),
    [STMT_OUTBOX_ADD] = ("INSERT INTO outbox(job, uid, kind, target, event, tries, site)"
                         " VALUES(?1, ?2, ?3, ?4, ?5, 0, ?6)"),
    [STMT_OUTBOX_TRIED] = "UPDATE outbox SET tries = ?2 WHERE id = ?1",
    [STMT_OUTBOX_REMOVE] = "DELETE FROM outbox WHERE id = ?1",
    [STMT_RUNS_PUT] = "INSERT OR REPLACE INTO runs VALUES(?1, ?2, ?3, ?4, ?5)",
    [STMT_RUNS] = ("SELECT uid, fingerprint, last_ms, before_ms, ended_us FROM runs"
                   " ORDER BY ended_us DESC LIMIT ?1"),
    [STMT_RUNS_TRIM] = ("DELETE FROM runs WHERE ended_us < (SELECT ended_us FROM runs"
                        " ORDER BY ended_us DESC LIMIT 1 OFFSET ?1)"),
    [STMT_TRACE_PUT] = "INSERT OR REPLACE INTO traces VALUES(?1, ?2, ?3)",
    [STMT_TRACE_GET] = "SELECT bytes FROM traces WHERE job = ?1 AND attempt = ?2",
    [STMT_SERIES_PUT] = "INSERT OR REPLACE INTO series VALUES(?1, ?2)",
    [STMT_SERIES_GET] = "SELECT bytes FROM series WHERE uuid = ?1",
    [STMT_TOTAL_PUT] = "INSERT OR REPLACE INTO totals VALUES(?1, ?2)",
    [STMT_TOTALS] = "SELECT uid, gpu_ms FROM totals",
};

static void
stmt_select_jobs(struct buf *sql, const char *tail)
{
    buf_adds(sql, "SELECT ");
    row_job_columns(sql, "j.");
    buf_adds(sql, ", ");
    row_attempt_columns(sql, "a.");
    buf_adds(sql, LAST_ATTEMPT);
    buf_adds(sql, tail);
}

static void
stmt_insert_job(struct buf *sql)
{
    buf_adds(sql, "INSERT INTO jobs(");
    row_job_columns(sql, "");
    buf_adds(sql, ") VALUES(");
    row_job_values(sql);
    buf_adds(sql, ")");
}

static void
stmt_insert_attempt(struct buf *sql)
{
    buf_adds(sql, "INSERT OR REPLACE INTO attempts(job, ");
    row_attempt_columns(sql, "");
    buf_adds(sql, ") VALUES(?1, ");
    row_attempt_values(sql);
    buf_adds(sql, ")");
}

/* Composes a statement from the column tables. */
static void
stmt_compose(struct buf *sql, enum stmt_id id)
{
    if (id == STMT_JOB_INSERT) {
        stmt_insert_job(sql);
    } else if (id == STMT_JOB_UPDATE) {
        buf_adds(sql, "UPDATE jobs SET ");
        row_job_assignments(sql);
        buf_adds(sql, " WHERE id = ?1");
    } else if (id == STMT_JOB_LOAD) {
        stmt_select_jobs(sql, " WHERE j.id = ?1");
    } else if (id == STMT_JOBS_LIVE) {
        /* This form makes SQLite use the index of states instead of scanning every old job. */
        stmt_select_jobs(sql, " WHERE j.id IN (SELECT id FROM jobs WHERE state < ?1)"
                              " ORDER BY j.id");
    } else if (id == STMT_JOBS_UP) {
        stmt_select_jobs(sql, MATCHES " ORDER BY j.id");
    } else if (id == STMT_JOBS_DOWN) {
        stmt_select_jobs(sql, MATCHES " ORDER BY j.id DESC");
    } else if (id == STMT_ATTEMPT_INSERT) {
        stmt_insert_attempt(sql);
    } else if (id == STMT_ATTEMPT_UPDATE) {
        buf_adds(sql, "UPDATE attempts SET ");
        row_attempt_assignments(sql);
        buf_adds(sql, " WHERE job = ?1 AND number = ?2");
    } else if (id == STMT_ATTEMPTS) {
        buf_adds(sql, "SELECT ");
        row_attempt_columns(sql, "");
        buf_adds(sql, " FROM attempts WHERE job = ?1 ORDER BY number");
    } else {
        err_abort("store statement %d has no words", (int)id);
    }
}

sqlite3_stmt *
store_stmt(struct store *s, enum stmt_id id, struct err *e)
{
    sqlite3_stmt **st = &s->stmts[id];
    auto_buf struct buf sql = BUF_INIT;

    if (*st) {
        if (sqlite3_stmt_busy(*st))
            err_abort("store statement %d is used inside its own walk", (int)id);
        return *st;
    }
    if (SQL[id])
        buf_adds(&sql, SQL[id]);
    else
        stmt_compose(&sql, id);
    if (sqlite3_prepare_v3(s->db, buf_str(&sql), -1, SQLITE_PREPARE_PERSISTENT, st, NULL) ==
        SQLITE_OK)
        return *st;
    store_read_failed(s, e);
    return NULL;
}

void
store_stmts_free(struct store *s)
{
    for (int i = 0; i < STMT_COUNT; i++) {
        sqlite3_finalize(s->stmts[i]);
        s->stmts[i] = NULL;
    }
}
