/* Shared by the store's files: the connection, its prepared statements and the row mapping.
 * Files outside src/store must not include this. */
#ifndef STORE_STORE_PRIV_H
#define STORE_STORE_PRIV_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/store.h"

#define STORE_APPLICATION_ID 0x42525448 /* "BRTH" */
#define STORE_BOOT_ID_BYTES  64

/* Every statement that is prepared once and kept; the SQL is in store_stmt.c. */
enum stmt_id {
    STMT_BEGIN,
    STMT_COMMIT,
    STMT_META_GET,
    STMT_META_SET,
    STMT_JOB_INSERT,
    STMT_JOB_UPDATE,
    STMT_JOB_LOAD,
    STMT_JOBS_LIVE,
    STMT_JOBS_UP,
    STMT_JOBS_DOWN,
    STMT_JOBS_SEARCH,
    STMT_ATTEMPT_INSERT,
    STMT_ATTEMPT_UPDATE,
    STMT_ATTEMPTS,
    STMT_ENV_FIND,
    STMT_ENV_ADD,
    STMT_ENV_GET,
    STMT_ENV_BYTES,
    STMT_FILE_FIND,
    STMT_FILE_ADD,
    STMT_FILE_PATH,
    STMT_FILE_KEYS,
    STMT_FILE_FORGET,
    STMT_FILE_AHEAD,
    STMT_JOB_DETACH,
    STMT_FIND_SAME,
    STMT_FIND_NAMED,
    STMT_FIND_TASK,
    STMT_FIND_NEWEST,
    STMT_FIND_JOB,
    STMT_ARRAY_TASKS,
    STMT_TASKS,
    STMT_LINES,
    STMT_LINES_FORGET,
    STMT_KEPT,
    STMT_KEPT_ALL,
    STMT_KEPT_ABOVE,
    STMT_FILES_AHEAD,
    STMT_FILES_PRUNE,
    STMT_PRUNE_LIST,
    STMT_PRUNE_OF,
    STMT_LARGEST_USER,
    STMT_PRUNE_LINE,
    STMT_PRUNE_TRACES,
    STMT_PRUNE_ATTEMPTS,
    STMT_PRUNE_JOB,
    STMT_PRUNE_ENVS,
    STMT_PRUNE_ENV,
    STMT_USAGE_SET,
    STMT_USAGE,
    STMT_EVENT_ADD,
    STMT_EVENTS,
    STMT_EVENTS_TRIM,
    STMT_OUTBOX,
    STMT_OUTBOX_ADD,
    STMT_OUTBOX_TRIED,
    STMT_OUTBOX_REMOVE,
    STMT_ENDED,
    STMT_USED,
    STMT_PAST_BEGIN,
    STMT_ANSWER_GET,
    STMT_ANSWER_PUT,
    STMT_ANSWERS_TRIM,
    STMT_PROGRESS_ADD,
    STMT_PROGRESS_GET,
    STMT_PROGRESS_DROP,
    STMT_PROGRESS_TRIM,
    STMT_PEAKS_GET,
    STMT_PEAKS_PUT,
    STMT_PEAKS_TRIM,
    STMT_RUNS_PUT,
    STMT_RUNS,
    STMT_RUNS_TRIM,
    STMT_TRACE_PUT,
    STMT_TRACE_GET,
    STMT_SERIES_PUT,
    STMT_SERIES_GET,
    STMT_TOTAL_PUT,
    STMT_TOTALS,
    STMT_COUNT
};

/* A number that is handed out, and the value of it that the file has. */
struct counter {
    uint64_t next;
    uint64_t saved;
};

/* The value that a column's parameter is still bound to from the previous job. */
struct row_bound {
    bool is_known; /* v is valid */
    int64_t v;
};
#define ROW_JOB_COLUMNS_MAX 128

struct store {
    sqlite3 *db;
    sqlite3_stmt *stmts[STMT_COUNT];
    char *dir;
    char *path;
    bool in_turn;         /* a transaction is open */
    bool clean;           /* the file records a clean shutdown */
    bool turn_dirties;    /* this turn clears that record */
    struct err failed;    /* the error of this turn, if code is set */
    int wal_pages;        /* pages in the log since it was last emptied */
    int wal_bound;        /* the next commit empties the log at this many pages */
    int wal_looked;       /* wal_pages when free disk space was last checked */
    int64_t wal_bytes;    /* size of the log file before the last commit */
    bool wal_has_no_room; /* space for the log could not be reserved: not tried again */
    ino_t inode;          /* identify the open file */
    dev_t device;
    struct counter job_id;
    struct counter order;
    int64_t last_seq;
    int64_t saved_seq; /* as committed */
    char token[17];
    char boot_id[STORE_BOOT_ID_BYTES];
    struct buf env_bytes; /* the environment stored last, and its id, because equal ones come
                             in a row */
    int64_t env_id;       /* 0: none remembered */
    struct row_bound inserted[ROW_JOB_COLUMNS_MAX]; /* parameters of STMT_JOB_INSERT */
};

/* store_stmt.c: a kept statement, ready to be bound. NULL with e filled if it cannot be
 * prepared. */
sqlite3_stmt *store_stmt(struct store *s, enum stmt_id id, struct err *e);
void store_stmts_free(struct store *s);

/* store.c: fills e with SQLite's last error in plain words and with advice. Returns -1. */
int store_read_failed(const struct store *s, struct err *e);
/* A statement that writes; opens the turn's transaction if needed. */
sqlite3_stmt *store_write_stmt(struct store *s, enum stmt_id id, struct err *e);
/* Runs a bound writing statement to completion. */
int store_write(struct store *s, sqlite3_stmt *st, struct err *e);
/* Ends a read whose last step returned rc; unread rows are fine. -1 with e if that step
 * failed. */
int store_read_end(const struct store *s, sqlite3_stmt *st, int rc, struct err *e);
int store_failed(struct store *s, enum err_code code, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* store_bind.c: the values of a statement's parameters, in order. Texts and bytes are borrowed
 * and must stay valid until the statement has run. */
enum bind_kind { BIND_END, BIND_NUMBER, BIND_REAL, BIND_TEXT, BIND_BYTES };
struct bind {
    enum bind_kind kind;
    int64_t number; /* or the number of bytes; -1 for text: up to its NUL */
    double real;
    const void *bytes;
};

static inline struct bind
bind_number(int64_t number)
{
    return (struct bind){.kind = BIND_NUMBER, .number = number};
}

static inline struct bind
bind_real(double real)
{
    return (struct bind){.kind = BIND_REAL, .real = real};
}

static inline struct bind
bind_text(const char *text)
{
    return (struct bind){.kind = BIND_TEXT, .number = -1, .bytes = text};
}

/* n 0 binds an empty blob, not NULL. */
static inline struct bind
bind_bytes(const void *bytes, size_t n)
{
    return (struct bind){.kind = BIND_BYTES, .number = (int64_t)n, .bytes = n > 0 ? bytes : ""};
}

#define BINDS(...) ((const struct bind[]){__VA_ARGS__, {.kind = BIND_END}})
#define BINDS_NONE ((const struct bind[]){{.kind = BIND_END}})

/* A bound statement for reading. NULL with e. */
sqlite3_stmt *store_bound(struct store *s, enum stmt_id id, const struct bind *binds,
                          struct err *e);
/* Binds and runs a writing statement. */
int store_put(struct store *s, enum stmt_id id, const struct bind *binds, struct err *e);
/* The first column of the first row: 1; 0: there is no row; -1 with e. The caller owns a text,
 * which is NULL if there is no row; a number is then left unchanged. */
int store_get_number(struct store *s, enum stmt_id id, const struct bind *binds, int64_t *out,
                     struct err *e);
int store_get_text(struct store *s, enum stmt_id id, const struct bind *binds, char **out,
                   struct err *e);
int store_get_bytes(struct store *s, enum stmt_id id, const struct bind *binds, struct buf *out,
                    struct err *e);

/* store_schema.c */
int schema_create(const char *path, struct err *e);
int schema_check_file(const char *path, struct err *e); /* 1 usable, 0 missing, -1 refused */
int schema_migrate(struct store *s, struct err *e);

/* store_meta.c */
int meta_load(struct store *s, struct err *e);
int meta_set(struct store *s, const char *key, const char *value, struct err *e);
int meta_set_clean(struct store *s, bool clean, struct err *e);
int meta_save_counters(struct store *s, struct err *e);
void meta_counters_saved(struct store *s);
int meta_reload_boot_id(struct store *s);
void counter_reach(struct counter *c, uint64_t used); /* raises next above used */

/* store_row.c: the columns of a job and of an attempt, from one table each. */
void row_job_columns(struct buf *out, const char *prefix); /* "id, uid, ..." */
void row_job_values(struct buf *out);                      /* "?1, ?2, ..." */
void row_job_assignments(struct buf *out);                 /* "state = ?3, ..." */
void row_attempt_columns(struct buf *out, const char *prefix);
void row_attempt_values(struct buf *out); /* from ?2 on; ?1 is the job */
void row_attempt_assignments(struct buf *out);
int row_job_count(void); /* number of columns */
/* Binds all columns. bound: the statement's own, zeroed before the first job; numbers equal to
 * the previous job's, as most are, are not bound again. */
void row_bind_new_job(sqlite3_stmt *st, const struct job *job,
                      struct row_bound bound[ROW_JOB_COLUMNS_MAX]);
/* These bind only the columns that may have changed since the insert. */
void row_bind_job(sqlite3_stmt *st, const struct job *job);
void row_bind_attempt(sqlite3_stmt *st, uint32_t job, const struct attempt *attempt,
                      const char *const *uuids);
/* Fill from the columns starting at `first`; -1 if a value is invalid. */
int row_read_job(sqlite3_stmt *st, struct job *job, struct err *e);
int row_read_attempt(sqlite3_stmt *st, int first, struct store_attempt *out, struct err *e);
void row_attempt_clear(struct store_attempt *a); /* frees its uuids */

#endif
