/* The columns of a job and of an attempt. One table each maps a field of the struct to a
 * column of store_schema.c; a job's attributes are added from the rows of spec/attr.c.
 * Statements, binding and reading follow from these tables, so a new durable field needs one
 * line here and one step in store_schema.c. store_row_fields.c handles composite values.
 *
 * Bound text is borrowed: step a statement before its job changes. Every value read is
 * checked, because the file may be damaged: an enumerator out of range is an error. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/counted_text.h"
#include "base/err.h"
#include "spec/attr.h"
#include "store/store_priv.h"
#include "store/store_row_fields.h"

enum column_type {
    COLUMN_I32,
    COLUMN_U32,
    COLUMN_I64, /* also uint64_t, whose bits are kept */
    COLUMN_U8,
    COLUMN_BOOL,
    COLUMN_STATE, /* an enum, below its bound */
    COLUMN_OUTCOME,
    COLUMN_OOM,
    COLUMN_CHOICE,  /* an enum of an attribute, below the column's bound */
    COLUMN_CHOICE8, /* the same in one byte. All kinds up to here are numbers */
    COLUMN_TYPE,    /* struct demand's gpu_type */
    COLUMN_TEXT,    /* char *, owned; NULL is NULL */
    COLUMN_SHARED,  /* the same, from counted_text.h */
    COLUMN_ARGV,    /* char **, NULL-terminated, as a JSON array */
    COLUMN_IDS,     /* struct demand's ids and n_ids, "3,1" */
    COLUMN_WORDS,   /* char [bound] */
    COLUMN_CARDS,   /* struct attempt's gpus with their UUIDs, "0:GPU-a,1:GPU-b" */
    COLUMN_PEAKS,   /* struct attempt's peak_mib, "100,-1"; after the cards */
    COLUMN_HOOKS,   /* struct hooks *, owned, as a JSON object; NULL is NULL */
    COLUMN_DEPS,    /* struct request's deps, "s12,a13_4": success, any, failed; "S12": met */
    COLUMN_SET,     /* struct task_set, "0-99,200"; NULL is empty */
    COLUMN_BOOK,    /* a struct job's tasks, "3-99;6:2,7:1;9": pending, ended, exit status */
};

struct column {
    const char *name;
    enum column_type type;
    size_t offset;
    bool fixed; /* never changes after the insert */
    int bound;  /* of a choice; of words: bytes including the NUL */
};

#define JOB(member)     offsetof(struct job, member)
#define ATTEMPT(member) offsetof(struct attempt, member)

/* Columns of a job besides its attributes. */
static const struct column own_columns[] = {
    {"id", COLUMN_U32, JOB(id), true, 0},
    {"uid", COLUMN_U32, JOB(uid), true, 0},
    {"state", COLUMN_STATE, JOB(state), false, 0},
    {"submitted_us", COLUMN_I64, JOB(submitted_us), true, 0},
    {"ended_us", COLUMN_I64, JOB(ended_us), false, 0},
    {"stop_grace_ms", COLUMN_I64, JOB(stop_grace_ms), false, 0},
    {"ord", COLUMN_I64, JOB(order), false, 0},
    {"file", COLUMN_U32, JOB(file), true, 0},
    {"line", COLUMN_I32, JOB(line), false, 0},
    {"key", COLUMN_TEXT, JOB(key), true, 0},
    {"env", COLUMN_I64, JOB(env), false, 0},
    {"umask", COLUMN_I32, JOB(umask_bits), false, 0},
    {"declared_mib", COLUMN_I32, JOB(declared_mib), false, 0},
    {"oom_used", COLUMN_I32, JOB(oom_used), false, 0},
    {"retries_used", COLUMN_I32, JOB(retries_used), false, 0},
    {"misfires", COLUMN_I32, JOB(misfires), false, 0},
    {"cancel_asked", COLUMN_BOOL, JOB(cancel_asked), false, 0},
    {"begin_us", COLUMN_I64, JOB(begin_us), false, 0},
    {"lined_us", COLUMN_I64, JOB(lined_us), false, 0},
    {"requeues_used", COLUMN_I32, JOB(requeues_used), false, 0},
    {"requeue_asked", COLUMN_U8, JOB(requeue_asked), false, 0},
    {"attempts", COLUMN_I32, JOB(attempts), false, 0},
    {"cancelled_by", COLUMN_TEXT, JOB(cancelled_by), false, 0},
    {"never_text", COLUMN_TEXT, JOB(never_text), false, 0},
    {"cwd", COLUMN_SHARED, JOB(cwd), false, 0},
    {"array_job", COLUMN_U32, JOB(array), true, 0},
    {"task", COLUMN_I32, JOB(task), true, 0},
    {"rlimits", COLUMN_SHARED, JOB(rlimits), false, 0},
    {"user", COLUMN_SHARED, JOB(user), true, 0},
    {"fingerprint", COLUMN_TEXT, JOB(fingerprint), false, 0},
    {"admin_held", COLUMN_BOOL, JOB(admin_held), false, 0},
    {"hooks", COLUMN_HOOKS, JOB(req.hooks), false, 0},
    {"auto_runs", COLUMN_I32, JOB(auto_runs), false, 0},
    /* After the attributes, because it is checked against the requested tasks. */
    {"array_book", COLUMN_BOOK, 0, false, 0},
};

/* All columns, the book last; laid out when the first statement is prepared. */
static struct column job_columns[ROW_JOB_COLUMNS_MAX];
static int n_job_columns;

static const struct column attempt_columns[] = {
    {"number", COLUMN_I32, ATTEMPT(number), true, 0},
    {"cards", COLUMN_CARDS, 0, true, 0},
    {"peaks_mib", COLUMN_PEAKS, 0, false, 0},
    {"vram_mib", COLUMN_I32, ATTEMPT(vram_mib), false, 0},
    {"cap_mib", COLUMN_I32, ATTEMPT(cap_mib), false, 0},
    {"numa_nodes", COLUMN_I64, ATTEMPT(nodes), false, 0},
    {"shepherd_pid", COLUMN_I32, ATTEMPT(shepherd_pid), false, 0},
    {"started_us", COLUMN_I64, ATTEMPT(started_us), false, 0},
    {"util_sum", COLUMN_I64, ATTEMPT(util_sum), false, 0},
    {"util_count", COLUMN_I32, ATTEMPT(util_count), false, 0},
    {"energy_mj", COLUMN_I64, ATTEMPT(energy_mj), false, 0},
    {"warned", COLUMN_BOOL, ATTEMPT(warned), false, 0},
    {"outcome", COLUMN_OUTCOME, ATTEMPT(ending.outcome), false, 0},
    {"code", COLUMN_I32, ATTEMPT(ending.code), false, 0},
    {"signal", COLUMN_I32, ATTEMPT(ending.signal), false, 0},
    {"errno", COLUMN_I32, ATTEMPT(ending.errno_value), false, 0},
    {"oom", COLUMN_OOM, ATTEMPT(ending.oom), false, 0},
    {"ended_us", COLUMN_I64, ATTEMPT(ending.ended_us), false, 0},
    {"run_ms", COLUMN_I64, ATTEMPT(ending.run_ms), false, 0},
    {"cpu_ms", COLUMN_I64, ATTEMPT(ending.cpu_ms), false, 0},
    {"max_rss_kib", COLUMN_I64, ATTEMPT(ending.max_rss_kib), false, 0},
    {"log_cut_bytes", COLUMN_I64, ATTEMPT(ending.log_cut_bytes), false, 0},
    {"text", COLUMN_WORDS, ATTEMPT(ending.text), false, sizeof((struct ending *)NULL)->text},
    {"slurm_key", COLUMN_WORDS, ATTEMPT(sent.key), true, sizeof((struct sent *)NULL)->key},
    {"slurm_index", COLUMN_I32, ATTEMPT(sent.index), true, 0},
    {"slurm_id", COLUMN_WORDS, ATTEMPT(sent.id), false, sizeof((struct sent *)NULL)->id},
    {"slurm_peak_mib", COLUMN_I32, ATTEMPT(sent.peak_mib), false, 0},
    {"slurm_folder", COLUMN_I32, ATTEMPT(sent.folder), true, 0},
    {"slurm_node", COLUMN_WORDS, ATTEMPT(sent.node), false, sizeof((struct sent *)NULL)->node},
};

#define COLUMNS(table) (int)(sizeof(table) / sizeof((table)[0]))

/* One COLUMN_HOOKS column stores all hook attributes. */
static bool
row_has_column(const struct attr *a)
{
    return a->key && a->kind != ATTR_HOOK && a->kind != ATTR_MAIL;
}

static enum column_type
row_type_of(const struct attr *a)
{
    switch (a->kind) {
    case ATTR_FLAG:
        return COLUMN_BOOL;
    case ATTR_INT:
    case ATTR_MIB:
    case ATTR_PERMILLE:
        return COLUMN_I32;
    case ATTR_TENTHS:
        return COLUMN_U8;
    case ATTR_MS:
    case ATTR_US:
    case ATTR_CARDS:
        return COLUMN_I64;
    case ATTR_CHOICE:
        return a->size == sizeof(uint8_t) ? COLUMN_CHOICE8 : COLUMN_CHOICE;
    case ATTR_TEXT:
        return COLUMN_TEXT;
    case ATTR_LIST:
        return COLUMN_ARGV;
    case ATTR_IDS:
        return COLUMN_IDS;
    case ATTR_TYPE:
        return COLUMN_TYPE;
    case ATTR_TASKS:
        return COLUMN_SET;
    case ATTR_DEPS:
        return COLUMN_DEPS;
    case ATTR_NOTHING:
    case ATTR_HOOK:
    case ATTR_MAIL:
        break;
    }
    err_abort("the attribute %s has no column", a->key);
}

/* Dependencies are read into the request as a whole. */
static size_t
row_place_of(const struct attr *a)
{
    return offsetof(struct job, req) + (a->kind == ATTR_DEPS ? 0 : a->at);
}

/* The task set never changes, and may be a long text. */
static void
row_begin(void)
{
    const int last = COLUMNS(own_columns) - 1;
    const struct attr *a;
    int n = last;

    if (n_job_columns)
        return;
    memcpy(job_columns, own_columns, (size_t)last * sizeof own_columns[0]);
    for (size_t i = 0; (a = attr_at(i)); i++) {
        if (!row_has_column(a))
            continue;
        if (n + 1 == COLUMNS(job_columns))
            err_abort("more than %d columns", n);
        job_columns[n++] =
            (struct column){a->column ? a->column : a->key, row_type_of(a), row_place_of(a),
                            a->kind == ATTR_TASKS, attr_choices(a)};
    }
    job_columns[n++] = own_columns[last];
    n_job_columns = n;
}

/* Passes each column's name and parameter number to add; with changing, only the columns that
 * may change. */
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
    row_begin();
    row_list(out, job_columns, n_job_columns, 1, false, row_add_name, prefix);
}

void
row_job_values(struct buf *out)
{
    row_begin();
    row_list(out, job_columns, n_job_columns, 1, false, row_add_value, "");
}

void
row_job_assignments(struct buf *out)
{
    row_begin();
    row_list(out, job_columns, n_job_columns, 1, true, row_add_assignment, "");
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
    return n_job_columns;
}

/* --- writing --- */

/* True if the field at p is a number, which goes to *out. */
static bool
row_number(enum column_type type, const void *p, int64_t *out)
{
    if (type > COLUMN_CHOICE8)
        return false;
    if (type == COLUMN_I64)
        *out = *(const int64_t *)p;
    else if (type == COLUMN_U32)
        *out = *(const uint32_t *)p;
    else if (type == COLUMN_U8 || type == COLUMN_CHOICE8)
        *out = *(const uint8_t *)p;
    else if (type == COLUMN_BOOL)
        *out = *(const bool *)p;
    else
        *out = *(const int32_t *)p;
    return true;
}

/* Binds the field at p to parameter `at`. */
static void
row_bind(sqlite3_stmt *st, int at, enum column_type type, const void *p,
         const char *const *uuids)
{
    int64_t v = 0;

    switch (type) {
    case COLUMN_I32:
    case COLUMN_STATE:
    case COLUMN_OUTCOME:
    case COLUMN_OOM:
    case COLUMN_CHOICE:
    case COLUMN_U32:
    case COLUMN_I64:
    case COLUMN_U8:
    case COLUMN_CHOICE8:
    case COLUMN_BOOL:
        row_number(type, p, &v);
        sqlite3_bind_int64(st, at, v);
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
row_bind_new_job(sqlite3_stmt *st, const struct job *job,
                 struct row_bound bound[ROW_JOB_COLUMNS_MAX])
{
    for (int i = 0; i < n_job_columns; i++) {
        const struct column *c = &job_columns[i];
        const char *p = (const char *)job + c->offset;
        int64_t v;
        if (!row_number(c->type, p, &v))
            row_bind(st, i + 1, c->type, p, NULL);
        else if (!bound[i].is_known || bound[i].v != v)
            bound[i] = (struct row_bound){sqlite3_bind_int64(st, i + 1, v) == SQLITE_OK, v};
    }
}

void
row_bind_job(sqlite3_stmt *st, const struct job *job)
{
    for (int i = 0; i < n_job_columns; i++) {
        const struct column *c = &job_columns[i];
        if (!c->fixed)
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

/* --- reading --- */

static int
row_read_enum(sqlite3_stmt *st, int col, int bound, void *out)
{
    int v = sqlite3_column_int(st, col);

    if (v < 0 || v >= bound)
        return -1;
    *(int *)out = v;
    return 0;
}

/* Reads column col into the field at p; 0, or -1 if the value is invalid. */
static int
row_read(sqlite3_stmt *st, int col, const struct column *c, void *p)
{
    int choice;

    switch (c->type) {
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
    case COLUMN_CHOICE:
        return row_read_enum(st, col, c->bound, p);
    case COLUMN_CHOICE8:
        if (row_read_enum(st, col, c->bound, &choice) < 0)
            return -1;
        *(uint8_t *)p = (uint8_t)choice;
        return 0;
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
        row_read_words(st, col, p, (size_t)c->bound);
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
    for (int i = 0; i < n_job_columns; i++) {
        const struct column *c = &job_columns[i];
        if (row_read(st, i, c, (char *)job + c->offset) < 0)
            return err_set(e, ERR_FAILED, "the database is damaged: job %" PRIu32 ", %s",
                           job->id, c->name);
    }
    return 0;
}

int
row_read_attempt(sqlite3_stmt *st, int first, struct store_attempt *out, struct err *e)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < COLUMNS(attempt_columns); i++) {
        const struct column *c = &attempt_columns[i];
        /* The attempt is the struct's first member; COLUMN_CARDS fills both. */
        if (row_read(st, first + i, c, (char *)out + c->offset) < 0) {
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
