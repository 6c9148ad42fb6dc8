/* What the store's files share: the connection, its kept statements, the rows. No file outside
 * src/store includes this. */
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

/* Every statement that is prepared once and kept; its words are in store_stmt.c. */
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

/* A number that is handed out, and how far the file knows of it. */
struct counter {
    uint64_t next;
    uint64_t saved;
};

/* What a column's parameter holds since the last job. */
struct row_bound {
    bool is_known; /* it holds v */
    int64_t v;
};
#define ROW_JOB_COLUMNS_MAX 128

struct store {
    sqlite3 *db;
    sqlite3_stmt *stmts[STMT_COUNT];
    char *dir;
    char *path;
    bool in_turn;         /* a transaction is open */
    bool clean;           /* the file says that its last user left in order */
    bool turn_dirties;    /* this turn takes that word back */
    struct err failed;    /* of this turn, when code is set */
    int wal_pages;        /* in the log since it was last emptied */
    int wal_bound;        /* when the next commit empties it */
    int wal_looked;       /* its pages when room on the disk was looked at last */
    int64_t wal_bytes;    /* of its file, before the last commit */
    bool wal_has_no_room; /* it could not be made: not tried again */
    ino_t inode;          /* of the file that is open */
    dev_t device;
    struct counter job_id;
    struct counter order;
    int64_t last_seq;
    int64_t saved_seq; /* as committed */
    char token[17];
    char boot_id[STORE_BOOT_ID_BYTES];
    struct buf env_bytes; /* the environment put last, and its id: they repeat */
    int64_t env_id;       /* 0: none remembered */
    struct row_bound inserted[ROW_JOB_COLUMNS_MAX]; /* of the statement that inserts jobs */
};

/* store_stmt.c: a kept statement, ready to be bound. NULL with e filled when it cannot be
 * made. */
sqlite3_stmt *store_stmt(struct store *s, enum stmt_id id, struct err *e);
void store_stmts_free(struct store *s);

/* store.c: what SQLite said last, in words for a person, with what to do. -1. */
int store_read_failed(const struct store *s, struct err *e);
/* A statement for writing, with a transaction open around it. */
sqlite3_stmt *store_write_stmt(struct store *s, enum stmt_id id, struct err *e);
/* Runs a bound writing statement to its end. */
int store_write(struct store *s, sqlite3_stmt *st, struct err *e);
/* Ends a read whose last step returned rc; rows may be left. -1 with e if that step failed. */
int store_read_end(const struct store *s, sqlite3_stmt *st, int rc, struct err *e);
int store_failed(struct store *s, enum err_code code, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* store_bind.c: what the parameters of a statement hold, in their order. Texts and bytes stay
 * the caller's, and are there until the statement was run. */
enum bind_kind { BIND_END, BIND_NUMBER, BIND_REAL, BIND_TEXT, BIND_BYTES };
struct bind {
    enum bind_kind kind;
    int64_t number; /* or how many bytes; of a text -1: up to its NUL */
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

/* No bytes are none, and not NULL. */
static inline struct bind
bind_bytes(const void *bytes, size_t n)
{
    return (struct bind){.kind = BIND_BYTES, .number = (int64_t)n, .bytes = n > 0 ? bytes : ""};
}

#define BINDS(...) ((const struct bind[]){__VA_ARGS__, {.kind = BIND_END}})
#define BINDS_NONE ((const struct bind[]){{.kind = BIND_END}})

/* A statement for reading, bound. NULL with e. */
sqlite3_stmt *store_bound(struct store *s, enum stmt_id id, const struct bind *binds,
                          struct err *e);
/* The whole of a writing statement. */
int store_put(struct store *s, enum stmt_id id, const struct bind *binds, struct err *e);
/* The first column of the first row: 1; 0: there is no row; -1 with e. A text is the caller's,
 * and NULL where there is none; a number stays as it was then. */
int store_get_number(struct store *s, enum stmt_id id, const struct bind *binds, int64_t *out,
                     struct err *e);
int store_get_text(struct store *s, enum stmt_id id, const struct bind *binds, char **out,
                   struct err *e);
int store_get_bytes(struct store *s, enum stmt_id id, const struct bind *binds, struct buf *out,
                    struct err *e);

/* store_schema.c */
int schema_create(const char *path, struct err *e);
int schema_check_file(const char *path, struct err *e); /* 1 usable, 0 none there, -1 refused */
int schema_migrate(struct store *s, struct err *e);

/* store_meta.c */
int meta_load(struct store *s, struct err *e);
int meta_set(struct store *s, const char *key, const char *value, struct err *e);
int meta_set_clean(struct store *s, bool clean, struct err *e);
int meta_save_counters(struct store *s, struct err *e);
void meta_counters_saved(struct store *s);
int meta_reload_boot_id(struct store *s);
void counter_reach(struct counter *c, uint64_t used); /* next stands above used */

/* store_row.c: the columns of a job and of an attempt, in one table each. */
void row_job_columns(struct buf *out, const char *prefix); /* "id, uid, ..." */
void row_job_values(struct buf *out);                      /* "?1, ?2, ..." */
void row_job_assignments(struct buf *out);                 /* "state = ?3, ..." */
void row_attempt_columns(struct buf *out, const char *prefix);
void row_attempt_values(struct buf *out); /* from ?2: ?1 is the job */
void row_attempt_assignments(struct buf *out);
int row_job_count(void); /* columns of a job */
/* All columns. bound: the statement's own, zeroed before the first job; most numbers are those
 * of the job before, and are not bound anew. */
void row_bind_new_job(sqlite3_stmt *st, const struct job *job,
                      struct row_bound bound[ROW_JOB_COLUMNS_MAX]);
/* Those that may have changed since. */
void row_bind_job(sqlite3_stmt *st, const struct job *job);
void row_bind_attempt(sqlite3_stmt *st, uint32_t job, const struct attempt *attempt,
                      const char *const *uuids);
/* Fill from the columns that start at `first`; -1 when they make no sense. */
int row_read_job(sqlite3_stmt *st, struct job *job, struct err *e);
int row_read_attempt(sqlite3_stmt *st, int first, struct store_attempt *out, struct err *e);
void row_attempt_clear(struct store_attempt *a); /* its uuids */

#endif
