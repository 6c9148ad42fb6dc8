/* A line of the jobs file of `scheduler`: priority,script[,conda[,arguments[,gpus]]], split at
 * the first four commas, so that the GPU list keeps its commas. Also the table of models'
 * needs. A bad line does not affect others. Pure except for sched_table_load. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "compat/engine/compat_paths.h"
#include "compat/py/pytext.h"
#include "compat/scheduler/scheduler.h"

#define FIELDS          5
#define MODE_MAX        20
#define TABLE_MAX_BYTES (16UL * 1024 * 1024)
#define NEED_MAX        GPU_MAX

enum { FIELD_PRIORITY, FIELD_SCRIPT, FIELD_CONDA, FIELD_ARGS, FIELD_GPUS };

void
sched_spec_free(struct sched_spec *s)
{
    free(s->text);
    free(s->script);
    free(s->conda);
    text_list_free(s->args);
    *s = (struct sched_spec){0};
}

/* --- words --- */

struct words {
    char **at;
    size_t n, cap;
};

static void
push(struct words *w, char *word)
{
    w->at = xgrow(w->at, w->n + 1, &w->cap, sizeof *w->at);
    w->at[w->n++] = word;
    w->at[w->n] = NULL;
}

/* The rest of a quoted string, after its opening quote. NULL: the closing quote is missing. */
static const char *
take_quoted(const char *at, char quote, struct buf *word)
{
    for (; *at && *at != quote; at++) {
        if (quote == '"' && *at == '\\' && (at[1] == '"' || at[1] == '\\'))
            at++;
        buf_addc(word, *at);
    }
    return *at ? at + 1 : NULL;
}

/* One word starting at `at`. NULL with *why. */
static const char *
take_word(const char *at, struct buf *word, struct buf *why)
{
    while (*at && !strchr(" \t\r\n", *at)) {
        if (*at == '\'' || *at == '"') {
            at = take_quoted(at + 1, *at, word);
            if (!at) {
                buf_adds(why, "No closing quotation");
                return NULL;
            }
        } else if (*at == '\\') {
            if (!at[1]) {
                buf_adds(why, "No escaped character");
                return NULL;
            }
            buf_addc(word, at[1]);
            at += 2;
        } else {
            buf_addc(word, *at++);
        }
    }
    return at;
}

char **
sched_split(const char *text, struct buf *why)
{
    struct words w = {xcalloc(1, sizeof(char *)), 0, 1};
    const char *at = text;

    for (at += strspn(at, " \t\r\n"); *at; at += strspn(at, " \t\r\n")) {
        auto_buf struct buf word = BUF_INIT;

        at = take_word(at, &word, why);
        if (!at) {
            text_list_free(w.at);
            return NULL;
        }
        push(&w, xstrdup(buf_str(&word)));
    }
    return w.at;
}

char *
sched_script_of(const char *command, double *need)
{
    auto_buf struct buf why = BUF_INIT;
    char **words = sched_split(command, &why), **at = words, *script = NULL;

    for (; at && *at && strcmp(*at, "--") != 0; at++) {
        if (strncmp(*at, "--need=", 7) == 0)
            (void)py_float(*at + 7, need);
    }
    if (at && at[0] && at[1])
        script = xstrdup(at[1]);
    text_list_free(words);
    return script;
}

/* --- GPUs --- */

__attribute__((format(printf, 2, 3))) static void
note(struct buf *why, const char *fmt, ...)
{
    va_list ap;

    if (why->len)
        buf_adds(why, "; ");
    va_start(ap, fmt);
    buf_addv(why, fmt, ap);
    va_end(ap);
}

static bool
read_id(const char *s, size_t n, int64_t *out)
{
    auto_free char *text = xstrndup(s, n);

    return n > 0 && strspn(text, "0123456789") == n && py_int(text, out);
}

/* "4" or "0-3". */
static bool
add_piece(const char *piece, const struct sched_rules *rules, uint64_t *out, struct buf *why)
{
    size_t n = strlen(piece), dash = strcspn(piece, "-");
    int64_t first, last;

    if (!read_id(piece, dash, &first) ||
        (dash < n && !read_id(piece + dash + 1, n - dash - 1, &last))) {
        note(why, "'%s' is no GPU", piece);
        return false;
    }
    last = dash < n ? last : first;
    if (last < first) {
        note(why, "'%s' runs backwards", piece);
        return false;
    }
    for (int64_t i = first; i <= last && i < GPU_MAX && i < rules->n_gpus; i++)
        *out |= UINT64_C(1) << i;
    if (last >= rules->n_gpus)
        note(why, "GPUs from %lld on are not managed here",
             (long long)(first > rules->n_gpus ? first : rules->n_gpus));
    return true;
}

bool
sched_gpus_read(const char *text, const struct sched_rules *rules, uint64_t *out,
                struct buf *why)
{
    auto_buf struct buf piece = BUF_INIT;
    bool good = true;

    *out = 0;
    for (const char *at = text;; at++) {
        if (*at && *at != ',') {
            if (*at != ' ')
                buf_addc(&piece, *at);
            continue;
        }
        if (piece.len)
            good &= add_piece(buf_str(&piece), rules, out, why);
        buf_clear(&piece);
        if (!*at)
            return good || !rules->strict;
    }
}

/* --- derived members --- */

/* The word after the first occurrence of option; NULL: none. */
static const char *
value_of(char *const *args, const char *option)
{
    for (; args[0]; args++) {
        if (strcmp(args[0], option) == 0)
            return args[1];
    }
    return NULL;
}

/* Each run of characters unsuitable for a file name becomes one _. */
static void
fill_mode(struct sched_spec *s)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    const char *value = value_of(s->args, "--mode");
    size_t n = 0;
    bool was_plain = true;

    for (const char *at = value && *value ? value : "unknown"; *at && n < MODE_MAX; at++) {
        bool is_plain = strchr(plain, *at) != NULL;

        if (is_plain || was_plain)
            s->mode[n++] = is_plain ? *at : '_';
        was_plain = is_plain;
    }
    s->mode[n] = '\0';
}

static double
need_of(const struct sched_table *t, const char *llm)
{
    const json_t *v = llm ? json_object_get(t->models, llm) : NULL;

    return v ? json_number_value(v) : t->standard;
}

/* Each field ends with a NUL, so that order and boundaries count. */
static void
fill_key(struct sched_spec *s)
{
    auto_buf struct buf all = BUF_INIT;

    buf_add(&all, s->script, strlen(s->script) + 1);
    buf_adds(&all, s->conda ? s->conda : "");
    buf_addc(&all, '\0');
    for (char **arg = s->args; *arg; arg++)
        buf_add(&all, *arg, strlen(*arg) + 1);
    buf_addf(&all, "\n%llx", (unsigned long long)s->allowed);
    text_sha1(all.data, all.len, s->key);
}

void
sched_spec_finish(struct sched_spec *s, const struct sched_table *table)
{
    s->llm = value_of(s->args, "--llm");
    s->need = need_of(table, s->llm);
    fill_mode(s);
    fill_key(s);
}

/* --- the line --- */

struct field {
    const char *at;
    size_t n;
};

static void
split_fields(const char *text, size_t n, struct field *out)
{
    for (int i = 0; i < FIELDS; i++) {
        const char *comma = i < FIELDS - 1 ? memchr(text, ',', n) : NULL;
        size_t len = comma ? (size_t)(comma - text) : n;

        out[i].at = text;
        out[i].n = py_strip(&out[i].at, len);
        if (!comma) {
            for (i++; i < FIELDS; i++)
                out[i] = (struct field){"", 0};
            return;
        }
        text += len + 1;
        n -= len + 1;
    }
}

static bool
read_fields(const struct field *f, const struct sched_rules *rules, struct sched_spec *s,
            struct buf *why)
{
    auto_free char *priority = xstrndup(f[FIELD_PRIORITY].at, f[FIELD_PRIORITY].n);
    auto_free char *args = xstrndup(f[FIELD_ARGS].at, f[FIELD_ARGS].n);
    auto_free char *gpus = xstrndup(f[FIELD_GPUS].at, f[FIELD_GPUS].n);

    if (!*priority || f[FIELD_SCRIPT].n == 0) {
        buf_adds(why, "a line is priority,script[,conda[,arguments[,gpus]]]");
        return false;
    }
    if (!py_int(priority, &s->priority)) {
        buf_addf(why, "the priority '%s' is no integer", priority);
        return false;
    }
    s->args = sched_split(args, why);
    if (!s->args)
        return false;
    s->script = xstrndup(f[FIELD_SCRIPT].at, f[FIELD_SCRIPT].n);
    if (f[FIELD_CONDA].n)
        s->conda = xstrndup(f[FIELD_CONDA].at, f[FIELD_CONDA].n);
    if (!*gpus)
        return true;
    if (!sched_gpus_read(gpus, rules, &s->allowed, why))
        return false;
    if (s->allowed == 0)
        note(why, "no GPU of '%s' is managed here, so the job is not added", gpus);
    return s->allowed != 0;
}

enum sched_line
sched_line_parse(const char *text, size_t n, const struct sched_rules *rules,
                 struct sched_spec *out, struct buf *why)
{
    struct field f[FIELDS];
    size_t bad;

    *out = (struct sched_spec){0};
    n = py_strip(&text, n);
    if (n == 0 || *text == '#')
        return SCHED_LINE_NOTHING;
    if (memchr(text, '\0', n) || !text_is_utf8(text, n, &bad)) {
        buf_adds(why, "it holds bytes that are no text (UTF-8)");
        return SCHED_LINE_BAD;
    }
    split_fields(text, n, f);
    if (!read_fields(f, rules, out, why)) {
        sched_spec_free(out);
        return SCHED_LINE_BAD;
    }
    out->text = xstrndup(text, n);
    sched_spec_finish(out, rules->table);
    return SCHED_LINE_JOB;
}

/* --- the table --- */

static bool
is_need(const json_t *v)
{
    double x = json_number_value(v);

    return json_is_number(v) && isfinite(x) && x > 0 && x <= NEED_MAX;
}

/* Remove invalid entries from the table. */
static void
check_models(struct sched_table *t, const char *path, struct buf *why)
{
    const char *name;
    void *next;
    json_t *v;

    json_object_foreach_safe(t->models, next, name, v)
    {
        if (is_need(v))
            continue;
        note(why, "%s: what '%s' needs is no number of GPUs above 0", path, name);
        json_object_del(t->models, name);
    }
}

bool
sched_table_load(struct sched_table *t, const char *path, struct buf *why)
{
    auto_buf struct buf text = BUF_INIT;
    json_error_t je;
    struct err e = {0};
    json_t *root, *v;

    *t = (struct sched_table){.standard = 1};
    if (compat_read_regular(path, TABLE_MAX_BYTES, &text, &e) < 0) {
        note(why, "%s; every job needs 1 GPU", e.text);
        return false;
    }
    root = json_loadb(buf_str(&text), text.len, 0, &je);
    if (!json_is_object(root)) {
        note(why, "%s: %s; every job needs 1 GPU", path, root ? "it is no object" : je.text);
        json_decref(root);
        return false;
    }
    v = json_object_get(root, "default_requirement");
    if (is_need(v))
        t->standard = json_number_value(v);
    else if (v)
        note(why, "%s: default_requirement is no number of GPUs above 0; it is 1", path);
    t->models = json_incref(json_object_get(root, "models"));
    if (t->models && !json_is_object(t->models)) {
        note(why, "%s: models is no object of names and numbers", path);
        json_decref(t->models);
        t->models = NULL;
    }
    check_models(t, path, why);
    json_decref(root);
    return why->len == 0;
}
