/* The columns of a job and of an attempt: one table each says how a field of the struct
 * and a column of store_schema.c correspond. Statements, binding and reading follow from them,
 * so a new durable field is one line here and one step in store_schema.c. Values that are more
 * than a number or a text are store_row_fields.c's.
 *
 * Bound text is borrowed: a statement must be stepped before its job changes. Whatever is read
 * is checked, for the file may be damaged: an enumerator out of range is an error. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/counted_text.h"
#include "base/err.h"
#include "store/store_priv.h"
#include "store/store_row_fields.h"

enum column_type {
    COLUMN_I32,
    COLUMN_U32,
    COLUMN_I64, /* and uint64_t, whose bits are kept */
    COLUMN_U8,
    COLUMN_BOOL,
    COLUMN_STATE, /* an enum, below its bound */
    COLUMN_OUTCOME,
    COLUMN_OOM,
    COLUMN_ON_TIMEOUT,
    COLUMN_TYPE,   /* struct demand's gpu_type */
    COLUMN_TEXT,   /* char *, owned; NULL is NULL */
    COLUMN_SHARED, /* the same, of counted_text.h */
    COLUMN_ARGV,   /* char **, NULL-terminated, as a JSON array */
    COLUMN_IDS,    /* struct demand's ids and n_ids, "3,1" */
    COLUMN_WORDS,  /* struct ending's text */
    COLUMN_CARDS,  /* struct attempt's gpus with their UUIDs, "0:GPU-a,1:GPU-b" */
    COLUMN_PEAKS,  /* struct attempt's peak_mib, "100,-1"; after the cards */
    COLUMN_HOOKS,  /* struct hooks *, owned, as a JSON object; NULL is NULL */
    COLUMN_DEPS,   /* struct request's deps, "s12,a13_4": success, any, failed */
    COLUMN_SET,    /* struct task_set, "0-99,200"; NULL is empty */
    COLUMN_BOOK,   /* a struct job's tasks, "3-99;6:2,7:1;9": pending, ended, exit status */
};

struct column {
    const char *name;
    enum column_type type;
    size_t offset;
    bool fixed; /* never changes after the insert */
};

#define JOB(member)     offsetof(struct job, member)
#define ATTEMPT(member) offsetof(struct attempt, member)

static const struct column job_columns[] = {
    {"id", COLUMN_U32, JOB(id), true},
    {"uid", COLUMN_U32, JOB(uid), true},
    {"state", COLUMN_STATE, JOB(state), false},
    {"submitted_us", COLUMN_I64, JOB(submitted_us), true},
    {"ended_us", COLUMN_I64, JOB(ended_us), false},
    {"ord", COLUMN_I64, JOB(order), false},
    {"file", COLUMN_U32, JOB(file), true},
    {"line", COLUMN_I32, JOB(line), false},
    {"key", COLUMN_TEXT, JOB(key), true},
    {"name", COLUMN_TEXT, JOB(req.name), false},
    {"env", COLUMN_I64, JOB(env), false},
    {"umask", COLUMN_I32, JOB(umask_bits), false},
    {"devices", COLUMN_I64, JOB(req.demand.devices), false},
    {"gpus", COLUMN_I32, JOB(req.demand.gpus), false},
    {"vram_mib", COLUMN_I32, JOB(req.demand.vram_mib), false},
    {"cpus", COLUMN_I32, JOB(req.demand.cpus), false},
    {"mem_mib", COLUMN_I32, JOB(req.demand.mem_mib), false},
    {"exclusive", COLUMN_U8, JOB(req.demand.exclusive), false},
    {"gpu_ids", COLUMN_IDS, JOB(req.demand), false},
    {"priority", COLUMN_I32, JOB(req.priority), false},
    {"oom_retries", COLUMN_I32, JOB(req.oom_retries), false},
    {"retries", COLUMN_I32, JOB(req.retries), false},
    {"limit_ms", COLUMN_I64, JOB(req.limit_ms), false},
    {"grace_ms", COLUMN_I64, JOB(req.grace_ms), false},
    {"hold", COLUMN_BOOL, JOB(req.hold), false},
    {"cancel", COLUMN_BOOL, JOB(req.cancel), false},
    {"requeue", COLUMN_BOOL, JOB(req.requeue), false},
    {"declared_mib", COLUMN_I32, JOB(declared_mib), false},
    {"oom_used", COLUMN_I32, JOB(oom_used), false},
    {"retries_used", COLUMN_I32, JOB(retries_used), false},
    {"misfires", COLUMN_I32, JOB(misfires), false},
    {"cancel_asked", COLUMN_BOOL, JOB(cancel_asked), false},
    {"begin_us", COLUMN_I64, JOB(begin_us), false},
    {"attempts", COLUMN_I32, JOB(attempts), false},
    {"cancelled_by", COLUMN_TEXT, JOB(cancelled_by), false},
    {"never_text", COLUMN_TEXT, JOB(never_text), false},
    {"cwd", COLUMN_SHARED, JOB(cwd), false},
    {"log", COLUMN_TEXT, JOB(req.log), false},
    {"error", COLUMN_TEXT, JOB(req.error), false},
    {"truncates", COLUMN_BOOL, JOB(req.truncate), false},
    {"log_max_mib", COLUMN_I32, JOB(req.log_max_mib), false},
    {"comment", COLUMN_TEXT, JOB(req.comment), false},
    {"env_set", COLUMN_ARGV, JOB(req.env), false},
    {"chdir", COLUMN_TEXT, JOB(req.chdir), false},
    {"slurm_env", COLUMN_BOOL, JOB(req.slurm_env), false},
    {"begin_said", COLUMN_TEXT, JOB(req.begin_said), false},
    {"command", COLUMN_TEXT, JOB(req.command), false},
    {"argv", COLUMN_ARGV, JOB(req.argv), false},
    {"share_permille", COLUMN_I32, JOB(req.demand.share_permille), false},
    {"min_vram_mib", COLUMN_I32, JOB(req.demand.min_vram_mib), false},
    {"max_used_permille", COLUMN_I32, JOB(req.demand.max_used_permille), false},
    {"max_load_permille", COLUMN_I32, JOB(req.demand.max_load_permille), false},
    {"margin_mib", COLUMN_I32, JOB(req.demand.margin_mib), false},
    {"idle_mib", COLUMN_I32, JOB(req.demand.idle_mib), false},
    {"placement", COLUMN_U8, JOB(req.demand.placement), false},
    {"gpu_type", COLUMN_TYPE, JOB(req.demand.gpu_type), false},
    {"unique_job", COLUMN_BOOL, JOB(req.unique), false},
    {"preemptible", COLUMN_BOOL, JOB(req.preemptible), false},
    {"on_timeout", COLUMN_ON_TIMEOUT, JOB(req.on_timeout), false},
    {"max_requeues", COLUMN_I32, JOB(req.max_requeues), false},
    {"requeues_used", COLUMN_I32, JOB(requeues_used), false},
    {"requeue_asked", COLUMN_U8, JOB(requeue_asked), false},
    {"warn_signal", COLUMN_I32, JOB(req.warn_signal), false},
    {"warn_ms", COLUMN_I64, JOB(req.warn_ms), false},
    {"warn_batch", COLUMN_BOOL, JOB(req.warn_batch), false},
    {"wanted_begin_us", COLUMN_I64, JOB(req.begin_us), false},
    {"array_max", COLUMN_I32, JOB(req.array_max), false},
    {"array_job", COLUMN_U32, JOB(array), true},
    {"task", COLUMN_I32, JOB(task), true},
    {"llm", COLUMN_TEXT, JOB(req.llm), false},
    {"interactive", COLUMN_BOOL, JOB(req.interactive), false},
    {"pty", COLUMN_BOOL, JOB(req.pty), false},
    {"tty_rows", COLUMN_I32, JOB(req.rows), false},
    {"tty_columns", COLUMN_I32, JOB(req.columns), false},
    {"login", COLUMN_BOOL, JOB(req.login), false},
    {"screen", COLUMN_BOOL, JOB(req.screen), false},
    {"env_setup", COLUMN_TEXT, JOB(req.env_setup), false},
    {"conda", COLUMN_TEXT, JOB(req.conda), false},
    {"rlimits", COLUMN_SHARED, JOB(rlimits), false},
    {"user", COLUMN_SHARED, JOB(user), true},
    {"fingerprint", COLUMN_TEXT, JOB(fingerprint), false},
    {"deps", COLUMN_DEPS, JOB(req), false},
    {"tags", COLUMN_ARGV, JOB(req.tags), false},
    {"admin_held", COLUMN_BOOL, JOB(admin_held), false},
    {"hooks", COLUMN_HOOKS, JOB(req.hooks), false},
    {"array_tasks", COLUMN_SET, JOB(req.array), true},
    {"array_book", COLUMN_BOOK, 0, false},
    {"vram_auto", COLUMN_BOOL, JOB(req.vram_auto), false},
    {"auto_runs", COLUMN_I32, JOB(auto_runs), false},
};

static const struct column attempt_columns[] = {
    {"number", COLUMN_I32, ATTEMPT(number), true},
    {"cards", COLUMN_CARDS, 0, true},
    {"peaks_mib", COLUMN_PEAKS, 0, false},
    {"vram_mib", COLUMN_I32, ATTEMPT(vram_mib), false},
    {"shepherd_pid", COLUMN_I32, ATTEMPT(shepherd_pid), false},
    {"started_us", COLUMN_I64, ATTEMPT(started_us), false},
    {"util_sum", COLUMN_I64, ATTEMPT(util_sum), false},
    {"util_count", COLUMN_I32, ATTEMPT(util_count), false},
    {"warned", COLUMN_BOOL, ATTEMPT(warned), false},
    {"outcome", COLUMN_OUTCOME, ATTEMPT(ending.outcome), false},
    {"code", COLUMN_I32, ATTEMPT(ending.code), false},
    {"signal", COLUMN_I32, ATTEMPT(ending.signal), false},
    {"errno", COLUMN_I32, ATTEMPT(ending.errno_value), false},
    {"oom", COLUMN_OOM, ATTEMPT(ending.oom), false},
    {"ended_us", COLUMN_I64, ATTEMPT(ending.ended_us), false},
    {"run_ms", COLUMN_I64, ATTEMPT(ending.run_ms), false},
    {"cpu_ms", COLUMN_I64, ATTEMPT(ending.cpu_ms), false},
    {"max_rss_kib", COLUMN_I64, ATTEMPT(ending.max_rss_kib), false},
    {"log_cut_bytes", COLUMN_I64, ATTEMPT(ending.log_cut_bytes), false},
    {"text", COLUMN_WORDS, ATTEMPT(ending.text), false},
};

#define COLUMNS(table) (int)(sizeof(table) / sizeof((table)[0]))

/* The name stands for its %s, its number for %d; only what changes when changing is true. */
static void
row_list(struct buf *out, const struct column *c, int n, int first, bool changing,
         void (*add)(struct buf *, const char *name, int number, const char *prefix),
         const char *prefix)
{
    bool some = false;

    for (int i = 0; i < n; i++) {
        if (changing && c[i].fixed)
            continue;
        if (some)
            buf_adds(out, ", ");
        add(out, c[i].name, first + i, prefix);
        some = true;
    }
}

static void
row_add_name(struct buf *out, const char *name, int number, const char *prefix)
{
    (void)number;
    buf_addf(out, "%s%s", prefix, name);
}

static void
row_add_value(struct buf *out, const char *name, int number, const char *prefix)
{
    (void)name;
    (void)prefix;
    buf_addf(out, "?%d", number);
}

static void
row_add_assignment(struct buf *out, const char *name, int number, const char *prefix)
{
    (void)prefix;
    buf_addf(out, "%s = ?%d", name, number);
}

void
row_job_columns(struct buf *out, const char *prefix)
{
    row_list(out, job_columns, COLUMNS(job_columns), 1, false, row_add_name, prefix);
}

void
row_job_values(struct buf *out)
{
    row_list(out, job_columns, COLUMNS(job_columns), 1, false, row_add_value, "");
}

void
row_job_assignments(struct buf *out)
{
    row_list(out, job_columns, COLUMNS(job_columns), 1, true, row_add_assignment, "");
}

void
row_attempt_columns(struct buf *out, const char *prefix)
{
    row_list(out, attempt_columns, COLUMNS(attempt_columns), 2, false, row_add_name, prefix);
}

void
row_attempt_values(struct buf *out)
{
    row_list(out, attempt_columns, COLUMNS(attempt_columns), 2, false, row_add_value, "");
}

void
row_attempt_assignments(struct buf *out)
{
    row_list(out, attempt_columns, COLUMNS(attempt_columns), 2, true, row_add_assignment, "");
}

int
row_job_count(void)
{
    return COLUMNS(job_columns);
}

/* --- writing ---------------------------------------------------------------------------- */

/* One field at p into parameter `at`. */
static void
row_bind(sqlite3_stmt *st, int at, enum column_type type, const void *p,
         const char *const *uuids)
{
    switch (type) {
    case COLUMN_I32:
    case COLUMN_STATE:
    case COLUMN_OUTCOME:
    case COLUMN_OOM:
    case COLUMN_ON_TIMEOUT:
        sqlite3_bind_int(st, at, *(const int32_t *)p);
        break;
    case COLUMN_U32:
        sqlite3_bind_int64(st, at, *(const uint32_t *)p);
        break;
    case COLUMN_I64:
        sqlite3_bind_int64(st, at, *(const int64_t *)p);
        break;
    case COLUMN_U8:
        sqlite3_bind_int(st, at, *(const uint8_t *)p);
        break;
    case COLUMN_BOOL:
        sqlite3_bind_int(st, at, *(const bool *)p);
        break;
    case COLUMN_TEXT:
    case COLUMN_SHARED:
        sqlite3_bind_text(st, at, *(const char *const *)p, -1, SQLITE_STATIC);
        break;
    case COLUMN_WORDS:
    case COLUMN_TYPE:
        sqlite3_bind_text(st, at, p, -1, SQLITE_STATIC);
        break;
    case COLUMN_ARGV:
        row_bind_argv(st, at, *(char *const *const *)p);
        break;
    case COLUMN_IDS:
        row_bind_ids(st, at, p);
        break;
    case COLUMN_CARDS:
        row_bind_cards(st, at, p, uuids);
        break;
    case COLUMN_PEAKS:
        row_bind_peaks(st, at, p);
        break;
    case COLUMN_HOOKS:
        row_bind_hooks(st, at, *(const struct hooks *const *)p);
        break;
    case COLUMN_DEPS:
        row_bind_deps(st, at, p);
        break;
    case COLUMN_SET:
        row_bind_set(st, at, p);
        break;
    case COLUMN_BOOK:
        row_bind_book(st, at, ((const struct job *)p)->tasks);
        break;
    }
}

_Static_assert(sizeof(enum job_state) == 4 && sizeof(enum outcome) == 4 &&
                   sizeof(enum oom_kind) == 4,
               "enumerators are bound as 32 bits");

void
row_bind_job(sqlite3_stmt *st, const struct job *job, bool fixed)
{
    for (int i = 0; i < COLUMNS(job_columns); i++) {
        const struct column *c = &job_columns[i];
        if (fixed || !c->fixed)
            row_bind(st, i + 1, c->type, (const char *)job + c->offset, NULL);
    }
    sqlite3_bind_int64(st, 1, job->id);
}

void
row_bind_attempt(sqlite3_stmt *st, uint32_t job, const struct attempt *attempt,
                 const char *const *uuids)
{
    sqlite3_bind_int64(st, 1, job);
    sqlite3_bind_int(st, 2, attempt->number);
    for (int i = 0; i < COLUMNS(attempt_columns); i++) {
        const struct column *c = &attempt_columns[i];
        if (uuids || !c->fixed)
            row_bind(st, i + 2, c->type, (const char *)attempt + c->offset, uuids);
    }
}

/* --- reading ---------------------------------------------------------------------------- */

static int
row_read_enum(sqlite3_stmt *st, int col, int bound, void *out)
{
    int v = sqlite3_column_int(st, col);

    if (v < 0 || v >= bound)
        return -1;
    *(int *)out = v;
    return 0;
}

/* One field at p from column col; 0, or -1 when the column makes no sense. */
static int
row_read(sqlite3_stmt *st, int col, enum column_type type, void *p)
{
    switch (type) {
    case COLUMN_I32:
        *(int32_t *)p = sqlite3_column_int(st, col);
        return 0;
    case COLUMN_U32:
        *(uint32_t *)p = (uint32_t)sqlite3_column_int64(st, col);
        return 0;
    case COLUMN_I64:
        *(int64_t *)p = sqlite3_column_int64(st, col);
        return 0;
    case COLUMN_U8:
        *(uint8_t *)p = (uint8_t)sqlite3_column_int(st, col);
        return 0;
    case COLUMN_BOOL:
        *(bool *)p = sqlite3_column_int(st, col) != 0;
        return 0;
    case COLUMN_STATE:
        return row_read_enum(st, col, JOB_STATES, p);
    case COLUMN_OUTCOME:
        return row_read_enum(st, col, OUTCOMES, p);
    case COLUMN_OOM:
        return row_read_enum(st, col, OOM_HOST + 1, p);
    case COLUMN_ON_TIMEOUT:
        return row_read_enum(st, col, ON_TIMEOUT_REQUEUE + 1, p);
    case COLUMN_TYPE:
        memset(p, 0, GPU_TYPE_MAX);
        row_read_words(st, col, p, GPU_TYPE_MAX);
        return 0;
    case COLUMN_TEXT:
        free(*(char **)p);
        *(char **)p = row_text(st, col);
        return 0;
    case COLUMN_SHARED:
        shared_free(*(char **)p);
        *(char **)p = shared_new((const char *)sqlite3_column_text(st, col));
        return 0;
    case COLUMN_WORDS:
        row_read_words(st, col, p, sizeof(((struct ending *)NULL)->text));
        return 0;
    case COLUMN_ARGV:
        return row_read_argv(st, col, p);
    case COLUMN_IDS:
        return row_read_ids(st, col, p);
    case COLUMN_CARDS:
        return row_read_cards(st, col, p);
    case COLUMN_PEAKS:
        return row_read_peaks(st, col, p);
    case COLUMN_HOOKS:
        return row_read_hooks(st, col, p);
    case COLUMN_DEPS:
        return row_read_deps(st, col, p);
    case COLUMN_SET:
        return row_read_set(st, col, p);
    case COLUMN_BOOK:
        return row_read_book(st, col, p);
    }
    return -1;
}

int
row_read_job(sqlite3_stmt *st, struct job *job, struct err *e)
{
    for (int i = 0; i < COLUMNS(job_columns); i++) {
        const struct column *c = &job_columns[i];
        if (row_read(st, i, c->type, (char *)job + c->offset) < 0)
            return err_set(e, ERR_FAILED, "the database is damaged: job %" PRIu32 ", %s",
                           job->id, c->name);
    }
    return 0;
}

int
row_read_attempt(sqlite3_stmt *st, int first, struct store_attempt *out, struct err *e)
{
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < COLUMNS(attempt_columns); i++) {
        const struct column *c = &attempt_columns[i];
        /* The struct's first member is the attempt; the cards go to both. */
        if (row_read(st, first + i, c->type, (char *)out + c->offset) < 0) {
            row_attempt_clear(out);
            return err_set(e, ERR_FAILED, "the database is damaged: attempt %" PRId32 ", %s",
                           out->attempt.number, c->name);
        }
    }
    return 0;
}

_Static_assert(offsetof(struct store_attempt, attempt) == 0,
               "row_read_attempt reads both with one offset");

void
row_attempt_clear(struct store_attempt *a)
{
    for (int i = 0; i < GPU_MAX; i++) {
        free(a->uuids[i]);
        a->uuids[i] = NULL;
    }
}
