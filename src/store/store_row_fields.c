/* Composite column values: lists, sets and an array's book. Each has a bind and a read that
 * undo each other. Called by store_row.c. Every value read is checked, because the file may be
 * damaged. */
#include "store/store_row_fields.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "base/request.h"
#include "core/queue/array.h"
#include "store/store.h"

static void
row_bind_own(sqlite3_stmt *st, int at, const struct buf *text)
{
    sqlite3_bind_text(st, at, buf_str(text), (int)text->len, SQLITE_TRANSIENT);
}

void
row_bind_argv(sqlite3_stmt *st, int at, char *const *argv)
{
    auto_buf struct buf text = BUF_INIT;
    struct jsonw w;

    if (!argv) {
        sqlite3_bind_null(st, at);
        return;
    }
    jsonw_init(&w, &text);
    jsonw_array(&w);
    for (; *argv; argv++)
        jsonw_str(&w, *argv);
    jsonw_end_array(&w);
    row_bind_own(st, at, &text);
}

void
row_bind_ids(sqlite3_stmt *st, int at, const struct demand *d)
{
    auto_buf struct buf text = BUF_INIT;

    if (d->n_ids == 0) {
        sqlite3_bind_text(st, at, "", 0, SQLITE_STATIC);
        return;
    }
    for (int i = 0; i < d->n_ids; i++)
        buf_addf(&text, i ? ",%d" : "%d", d->ids[i]);
    row_bind_own(st, at, &text);
}

void
row_bind_cards(sqlite3_stmt *st, int at, const struct attempt *a, const char *const *uuids)
{
    auto_buf struct buf text = BUF_INIT;

    for (int i = 0; uuids && i < a->n_gpus; i++)
        buf_addf(&text, i ? ",%d:%s" : "%d:%s", a->gpus[i], uuids[i]);
    row_bind_own(st, at, &text);
}

void
row_bind_peaks(sqlite3_stmt *st, int at, const struct attempt *a)
{
    auto_buf struct buf text = BUF_INIT;

    for (int i = 0; i < a->n_gpus; i++)
        buf_addf(&text, i ? ",%" PRId32 : "%" PRId32, a->peak_mib[i]);
    row_bind_own(st, at, &text);
}

void
row_bind_deps(sqlite3_stmt *st, int at, const struct request *r)
{
    static const char letters[] = {[DEP_SUCCESS] = 's', [DEP_ANY] = 'a', [DEP_FAILED] = 'f'};
    static const char met[] = {[DEP_SUCCESS] = 'S', [DEP_ANY] = 'A', [DEP_FAILED] = 'F'};
    auto_buf struct buf text = BUF_INIT;

    if (r->n_deps == 0) {
        sqlite3_bind_null(st, at);
        return;
    }
    for (int i = 0; i < r->n_deps; i++) {
        const struct dep *dep = &r->deps[i];
        buf_addf(&text, "%s%c%" PRIu32, i ? "," : "", (dep->ended ? met : letters)[dep->type],
                 dep->job);
        if (dep->task >= 0)
            buf_addf(&text, "_%" PRId32, dep->task);
    }
    row_bind_own(st, at, &text);
}

static void
row_put_text(struct jsonw *w, const char *key, const char *text)
{
    if (text)
        jsonw_kstr(w, key, text);
}

void
row_bind_hooks(sqlite3_stmt *st, int at, const struct hooks *h)
{
    auto_buf struct buf text = BUF_INIT;
    struct jsonw w;

    if (!h) {
        sqlite3_bind_null(st, at);
        return;
    }
    jsonw_init(&w, &text);
    jsonw_object(&w);
    row_put_text(&w, "on_start", h->on_start);
    row_put_text(&w, "on_end", h->on_end);
    row_put_text(&w, "on_fail", h->on_fail);
    row_put_text(&w, "webhook", h->webhook);
    row_put_text(&w, "mail_user", h->mail_user);
    jsonw_kint(&w, "mail_types", h->mail_types);
    jsonw_end_object(&w);
    row_bind_own(st, at, &text);
}

void
row_bind_set(sqlite3_stmt *st, int at, const struct task_set *set)
{
    auto_buf struct buf text = BUF_INIT;

    if (set->n == 0) {
        sqlite3_bind_null(st, at);
        return;
    }
    task_set_text(set, &text);
    row_bind_own(st, at, &text);
}

void
row_bind_book(sqlite3_stmt *st, int at, const struct tasks *t)
{
    auto_buf struct buf text = BUF_INIT;
    bool some = false;

    if (!t) {
        sqlite3_bind_null(st, at);
        return;
    }
    task_set_text(&t->pending, &text);
    buf_addc(&text, ';');
    for (int s = 0; s < JOB_STATES; s++) {
        if (!t->ended[s])
            continue;
        buf_addf(&text, "%s%d:%" PRId32, some ? "," : "", s, t->ended[s]);
        some = true;
    }
    buf_addc(&text, ';');
    for (int i = 0; i < t->n_statuses; i++)
        buf_addf(&text, "%s%" PRId32 ":%" PRId32, i ? "," : "", t->statuses[i].status,
                 t->statuses[i].n);
    row_bind_own(st, at, &text);
}

char *
row_text(sqlite3_stmt *st, int col)
{
    const unsigned char *text = sqlite3_column_text(st, col);

    if (!text)
        return NULL;
    return xstrndup((const char *)text, (unsigned long)sqlite3_column_bytes(st, col));
}

int
row_read_argv(sqlite3_stmt *st, int col, char ***out)
{
    const char *text = (const char *)sqlite3_column_text(st, col);
    json_t *array, *item;
    size_t i;

    *out = NULL;
    if (!text)
        return 0;
    array = json_loadb(text, (size_t)sqlite3_column_bytes(st, col), 0, NULL);
    if (!json_is_array(array)) {
        json_decref(array);
        return -1;
    }
    *out = xcalloc(json_array_size(array) + 1, sizeof(char *));
    json_array_foreach(array, i, item)(*out)[i] =
        xstrdup(json_is_string(item) ? json_string_value(item) : "");
    json_decref(array);
    return 0;
}

int
row_read_ids(sqlite3_stmt *st, int col, struct demand *d)
{
    const char *text = (const char *)sqlite3_column_text(st, col);
    int n;

    if (!text || !*text)
        return 0;
    n = parse_index_list(text, d->ids, REQUEST_IDS_MAX, NULL);
    if (n < 0)
        return -1;
    d->n_ids = (uint8_t)n;
    return 0;
}

static int
row_read_i32(const char *text, int32_t *out)
{
    int64_t v;

    if (parse_int(text, INT32_MIN, INT32_MAX, &v, NULL) < 0)
        return -1;
    *out = (int32_t)v;
    return 0;
}

/* "0:GPU-a" */
static int
row_read_card(char *text, struct store_attempt *a)
{
    char *colon = strchr(text, ':');
    int32_t index;
    int slot = a->attempt.n_gpus;

    if (!colon || slot == GPU_MAX)
        return -1;
    *colon = '\0';
    if (row_read_i32(text, &index) < 0 || index < 0 || index >= GPU_MAX)
        return -1;
    a->attempt.gpus[slot] = (uint8_t)index;
    a->uuids[slot] = xstrdup(colon + 1);
    a->attempt.n_gpus++;
    return 0;
}

int
row_read_cards(sqlite3_stmt *st, int col, struct store_attempt *a)
{
    auto_free char *text = row_text(st, col);
    char *rest = text;

    if (!text)
        return -1;
    while (*text && rest)
        if (row_read_card(strsep(&rest, ","), a) < 0)
            return -1;
    return 0;
}

int
row_read_peaks(sqlite3_stmt *st, int col, struct attempt *a)
{
    auto_free char *text = row_text(st, col);
    char *rest = text;

    for (int i = 0; i < GPU_MAX; i++)
        a->now_mib[i] = a->peak_mib[i] = -1;
    for (int i = 0; i < a->n_gpus; i++)
        if (!rest || row_read_i32(strsep(&rest, ","), &a->peak_mib[i]) < 0)
            return -1;
    return 0;
}

void
row_read_words(sqlite3_stmt *st, int col, char *out, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(st, col);
    size_t n = strnlen(text ? text : "", size - 1);

    memcpy(out, text ? text : "", n);
    out[n] = '\0';
}

static char *
row_take_text(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text ? xstrdup(text) : NULL;
}

int
row_read_hooks(sqlite3_stmt *st, int col, struct hooks **out)
{
    const char *text = (const char *)sqlite3_column_text(st, col);
    struct hooks *h;
    json_t *o;

    *out = NULL;
    if (!text)
        return 0;
    o = json_loadb(text, (size_t)sqlite3_column_bytes(st, col), 0, NULL);
    if (!json_is_object(o)) {
        json_decref(o);
        return -1;
    }
    h = *out = xcalloc(1, sizeof *h);
    h->on_start = row_take_text(o, "on_start");
    h->on_end = row_take_text(o, "on_end");
    h->on_fail = row_take_text(o, "on_fail");
    h->webhook = row_take_text(o, "webhook");
    h->mail_user = row_take_text(o, "mail_user");
    h->mail_types = (uint32_t)json_integer_value(json_object_get(o, "mail_types"));
    json_decref(o);
    return 0;
}

/* "s12" or "a13_4"; a capital letter ("S12") marks a dependency that has been met. */
static int
row_read_dep(char *text, struct dep *dep)
{
    char *task = strchr(text, '_');
    int64_t job;

    *dep = (struct dep){.task = -1};
    if (task)
        *task++ = '\0';
    switch (*text) {
    case 'S':
    case 's':
        dep->type = DEP_SUCCESS;
        break;
    case 'A':
    case 'a':
        dep->type = DEP_ANY;
        break;
    case 'F':
    case 'f':
        dep->type = DEP_FAILED;
        break;
    default:
        return -1;
    }
    if (parse_int(text + 1, 1, UINT32_MAX, &job, NULL) < 0)
        return -1;
    if (*text < 'a')
        dep->ended = dep->type == DEP_FAILED ? JOB_FAILED : JOB_COMPLETED;
    dep->job = (uint32_t)job;
    return task ? row_read_i32(task, &dep->task) : 0;
}

int
row_read_deps(sqlite3_stmt *st, int col, struct request *r)
{
    auto_free char *text = row_text(st, col);
    char *rest = text;

    while (rest) {
        if (r->n_deps == DEPS_MAX)
            return -1;
        r->deps = xrealloc(r->deps, (unsigned long)(r->n_deps + 1) * sizeof *r->deps);
        if (row_read_dep(strsep(&rest, ","), &r->deps[r->n_deps++]) < 0)
            return -1;
    }
    return 0;
}

/* "0-99,200", ascending; "" is empty. */
static int
row_parse_set(char *text, struct task_set *set)
{
    char *rest = *text ? text : NULL;
    int32_t behind = -1;
    size_t cap = 0;

    *set = (struct task_set){NULL, 0};
    while (rest) {
        char *first = strsep(&rest, ","), *last = strchr(first, '-');
        struct task_range r;
        if (last)
            *last++ = '\0';
        if (row_read_i32(first, &r.first) < 0 ||
            row_read_i32(last ? last : first, &r.last) < 0 || r.first <= behind ||
            r.last < r.first)
            return -1;
        set->ranges = xgrow(set->ranges, set->n, &cap, sizeof *set->ranges);
        set->ranges[set->n++] = r;
        behind = r.last;
    }
    return 0;
}

int
row_read_set(sqlite3_stmt *st, int col, struct task_set *set)
{
    auto_free char *text = row_text(st, col);

    return text ? row_parse_set(text, set) : 0;
}

/* "6:2,7:1" */
static int
row_read_ended(char *text, int32_t *ended)
{
    char *rest = *text ? text : NULL;

    while (rest) {
        char *state = strsep(&rest, ","), *count = strchr(state, ':');
        int32_t s;
        if (!count)
            return -1;
        *count++ = '\0';
        if (row_read_i32(state, &s) < 0 || s < JOB_COMPLETED || s >= JOB_STATES ||
            row_read_i32(count, &ended[s]) < 0)
            return -1;
    }
    return 0;
}

/* "130:2,7:1". Before schema version 25 this was only the highest status; it is taken as the
 * status of every task that did not complete. */
static int
row_read_statuses(char *text, struct tasks *t)
{
    char *rest = *text ? text : NULL;
    int32_t status, n = 0;

    for (int s = JOB_COMPLETED + 1; s < JOB_STATES; s++)
        n += t->ended[s];
    while (rest) {
        char *word = strsep(&rest, ","), *count = strchr(word, ':');
        if (count)
            *count++ = '\0';
        if (row_read_i32(word, &status) < 0 || (count && row_read_i32(count, &n) < 0))
            return -1;
        array_count_status(t, status, n);
    }
    return 0;
}

/* Call this after the requested set was read, which gives the total. Live tasks have their own
 * rows and are not in the book. */
int
row_read_book(sqlite3_stmt *st, int col, struct job *job)
{
    auto_free char *text = row_text(st, col);
    char *rest = text;
    struct tasks *t;

    if (!text)
        return 0;
    array_begin(job);
    t = job->tasks;
    task_set_free(&t->pending);
    if (row_parse_set(strsep(&rest, ";"), &t->pending) < 0 || !rest ||
        row_read_ended(strsep(&rest, ";"), t->ended) < 0 || !rest)
        return -1;
    return row_read_statuses(rest, t);
}
