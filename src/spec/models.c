/* The model table; see models.h. Sorted by name, for binary search: it may have thousands of
 * entries, and each line of a jobs file looks one up. Called by the daemon for the setting
 * `models`, by `berth submit --models` and `berth run --models`. */
#include "spec/models.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/request.h"
#include "base/search.h"
#include "base/text.h"
#include "spec/attr.h"

#define MODELS_MAX    100000
#define SHOWN_COLUMNS 60

/* One of the two is 0; both: a whole GPU. */
struct need {
    int32_t gpus, vram_mib, share_permille;
};

struct model {
    char *name; /* owned */
    size_t line;
    struct need need;
};

struct models {
    struct model *at; /* owned; sorted by name */
    size_t n;
    struct need standard;
};

struct reader {
    yaml_parser_t yaml;
    const char *name;
    struct models *out;
    bool had_default, had_models;
};

static int
at_line(const struct reader *r, yaml_mark_t mark, struct err *e)
{
    return err_prefix(e, "%s:%zu", r->name, mark.line + 1);
}

static int
next_event(struct reader *r, yaml_event_t *event, struct err *e)
{
    if (yaml_parser_parse(&r->yaml, event))
        return 0;
    err_set(e, ERR_USAGE, "neither JSON nor YAML: %s",
            r->yaml.problem ? r->yaml.problem : "cannot be read");
    return at_line(r, r->yaml.problem_mark, e);
}

static const char *
scalar_text(const yaml_event_t *event)
{
    if (event->type != YAML_SCALAR_EVENT ||
        strlen((const char *)event->data.scalar.value) != event->data.scalar.length)
        return NULL;
    return (const char *)event->data.scalar.value;
}

/* "0.5", "1", "2.5", "18G". */
static int
parse_need(const char *text, struct need *out, struct err *e)
{
    struct need need = {1, 0, 0};
    int64_t mib;
    double v;

    if (parse_double(text, 0, GPU_MAX, &v, NULL) == 0 && v >= 0.0005) {
        int32_t permille = (int32_t)(v * 1000 + 0.5);
        need.gpus = (int32_t)v + (v > (double)(int32_t)v);
        need.share_permille = permille < 1000 ? permille : 0;
    } else if (!text[strspn(text, "0123456789.-")] || parse_size_mib(text, &mib, NULL) < 0 ||
               mib > VRAM_MAX_MIB) {
        return parse_refuse(
            e, text, "is not a requirement; write a share (0.5), GPUs (2) or VRAM (18G)");
    } else {
        need.vram_mib = (int32_t)mib;
    }
    *out = need;
    return 0;
}

/* Reads the value of a key as a requirement. */
static int
read_need(struct reader *r, const char *of, struct need *out, struct err *e)
{
    yaml_event_t event;
    const char *text;
    int rc;

    if (next_event(r, &event, e) < 0)
        return -1;
    text = scalar_text(&event);
    rc = text ? parse_need(text, out, e) : err_set(e, ERR_USAGE, "expected a number or a size");
    if (rc != 0) {
        auto_buf struct buf shown = BUF_INIT;
        text_add_safe(&shown, of, strlen(of), SHOWN_COLUMNS);
        err_prefix(e, "%s", buf_str(&shown));
        at_line(r, event.start_mark, e);
    }
    yaml_event_delete(&event);
    return rc;
}

static int
add_model(struct reader *r, const yaml_event_t *key, struct err *e)
{
    struct models *m = r->out;
    const char *name = scalar_text(key);
    struct need need;

    if (!name || !*name || m->n == MODELS_MAX) {
        err_set(e, ERR_USAGE,
                m->n == MODELS_MAX ? "more than 100000 models"
                                   : "expected the name of a model");
        return at_line(r, key->start_mark, e);
    }
    if (read_need(r, name, &need, e) < 0)
        return -1;
    if ((m->n & (m->n - 1)) == 0)
        m->at = xrealloc(m->at, (m->n ? m->n * 2 : 1) * sizeof *m->at);
    m->at[m->n++] = (struct model){xstrdup(name), key->start_mark.line + 1, need};
    return 0;
}

_Static_assert(MODELS_MAX == 100000, "as the words say");

static int
read_models(struct reader *r, struct err *e)
{
    yaml_event_t event;
    int rc;

    if (next_event(r, &event, e) < 0)
        return -1;
    bool is_mapping = event.type == YAML_MAPPING_START_EVENT;
    if (!is_mapping) {
        err_set(e, ERR_USAGE, "models: expected `name: requirement` lines");
        at_line(r, event.start_mark, e);
    }
    yaml_event_delete(&event);
    if (!is_mapping)
        return -1;
    do {
        if (next_event(r, &event, e) < 0)
            return -1;
        rc = event.type == YAML_MAPPING_END_EVENT ? 1 : add_model(r, &event, e);
        yaml_event_delete(&event);
    } while (rc == 0);
    return rc < 0 ? -1 : 0;
}

static int
read_pair(struct reader *r, const yaml_event_t *key, struct err *e)
{
    static const char *const known[] = {"default_requirement", "models", NULL};
    const char *name = scalar_text(key);
    bool is_default = name && strcmp(name, known[0]) == 0;
    bool *had = is_default ? &r->had_default : &r->had_models;

    if (!is_default && (!name || strcmp(name, known[1]) != 0)) {
        const char *near = name ? text_nearest(name, known) : NULL;
        auto_buf struct buf shown = BUF_INIT;
        text_add_safe(&shown, name ? name : "", name ? strlen(name) : 0, SHOWN_COLUMNS);
        err_set(e, ERR_USAGE, "unknown key '%s'; %s%s", buf_str(&shown),
                near ? "did you mean " : "use default_requirement and models",
                near ? near : "");
        return at_line(r, key->start_mark, e);
    }
    if (*had) {
        err_set(e, ERR_USAGE, "%s is given twice; keep one of them", name);
        return at_line(r, key->start_mark, e);
    }
    *had = true;
    return is_default ? read_need(r, name, &r->out->standard, e) : read_models(r, e);
}

static int
read_stream(struct reader *r, struct err *e)
{
    bool in_mapping = false, had_mapping = false;

    for (;;) {
        yaml_event_t event;
        int rc = 0;
        if (next_event(r, &event, e) < 0)
            return -1;
        yaml_event_type_t type = event.type;
        if (in_mapping && type == YAML_MAPPING_END_EVENT) {
            in_mapping = false;
        } else if (in_mapping) {
            rc = read_pair(r, &event, e);
        } else if (type == YAML_MAPPING_START_EVENT && !had_mapping) {
            in_mapping = had_mapping = true;
        } else if (type != YAML_STREAM_START_EVENT && type != YAML_STREAM_END_EVENT &&
                   type != YAML_DOCUMENT_START_EVENT && type != YAML_DOCUMENT_END_EVENT) {
            err_set(e, ERR_USAGE, "a table needs default_requirement and models");
            rc = at_line(r, event.start_mark, e);
        }
        yaml_event_delete(&event);
        if (rc != 0 || type == YAML_STREAM_END_EVENT)
            return rc;
    }
}

static int
compare(const void *a, const void *b)
{
    const struct model *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* Sorts by name, and refuses duplicates. */
static int
sort(struct reader *r, struct err *e)
{
    struct models *m = r->out;
    auto_buf struct buf shown = BUF_INIT;

    if (m->n > 0)
        qsort(m->at, m->n, sizeof *m->at, compare);
    for (size_t i = 1; i < m->n; i++) {
        if (strcmp(m->at[i].name, m->at[i - 1].name) != 0)
            continue;
        text_add_safe(&shown, m->at[i].name, strlen(m->at[i].name), SHOWN_COLUMNS);
        return err_set(e, ERR_USAGE, "%s:%zu: %s is given twice; the other is in line %zu",
                       r->name, m->at[i].line, buf_str(&shown), m->at[i - 1].line);
    }
    return 0;
}

struct models *
models_read(const char *name, const char *text, size_t len, struct err *e)
{
    struct reader r = {.name = name, .out = xcalloc(1, sizeof(struct models))};
    int rc;

    r.out->standard.gpus = 1;
    if (!yaml_parser_initialize(&r.yaml))
        err_abort("no memory for a YAML parser");
    yaml_parser_set_input_string(&r.yaml, (const unsigned char *)text, len);
    rc = read_stream(&r, e);
    yaml_parser_delete(&r.yaml);
    if (rc == 0 && sort(&r, e) == 0)
        return r.out;
    models_free(r.out);
    return NULL;
}

void
models_free(struct models *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++)
        free(m->at[i].name);
    free(m->at);
    free(m);
}

size_t
models_count(const struct models *m)
{
    return m->n;
}

/* --- look-up --- */

static struct need
find(const struct models *m, const char *name)
{
    size_t place = search_first(at, m->n, strcmp(m->at[at].name, name) < 0);

    return place < m->n && strcmp(m->at[place].name, name) == 0 ? m->at[place].need
                                                                : m->standard;
}

static char *
llm_of_argv(char *const *argv)
{
    for (; *argv; argv++) {
        if (strcmp(*argv, "--llm") == 0)
            return argv[1] && argv[1][0] ? xstrdup(argv[1]) : NULL;
        if (strncmp(*argv, "--llm=", 6) == 0)
            return (*argv)[6] ? xstrdup(*argv + 6) : NULL;
    }
    return NULL;
}

/* Returns one word of shell text without its quotes. Text that only the shell can expand
 * ($MODEL) is left as it is, and is then an unknown model. */
static char *
take_word(const char *s)
{
    auto_buf struct buf word = BUF_INIT;
    char quote = '\0';

    for (; *s && (quote || !strchr(" \t\r\n;|&<>()", *s)); s++) {
        if (quote && *s == quote)
            quote = '\0';
        else if (!quote && (*s == '"' || *s == '\''))
            quote = *s;
        else if (*s == '\\' && quote != '\'' && s[1])
            buf_addc(&word, *++s);
        else
            buf_addc(&word, *s);
    }
    return word.len ? xstrdup(buf_str(&word)) : NULL;
}

static char *
llm_of_shell(const char *command)
{
    const char *p = command;

    while ((p = strstr(p, "--llm"))) {
        bool is_word = p == command || strchr(" \t\n;|&(\"'", p[-1]);
        p += strlen("--llm");
        if (is_word && *p == '=')
            return take_word(p + 1);
        if (is_word && (*p == ' ' || *p == '\t'))
            return take_word(p + strspn(p, " \t"));
    }
    return NULL;
}

void
models_apply(const struct models *m, struct request *r)
{
    struct demand *d = &r->demand;
    char *llm;

    if (!m || r->llm || r->gpus_said || d->vram_mib || r->vram_auto || d->share_permille ||
        d->n_ids)
        return;
    llm = r->argv ? llm_of_argv(r->argv) : r->command ? llm_of_shell(r->command) : NULL;
    if (!llm || strlen(llm) > NAME_MAX_BYTES || !text_is_utf8(llm, strlen(llm), NULL)) {
        free(llm);
        return;
    }
    struct need need = find(m, llm);
    r->llm = llm;
    r->gpus_said = true;
    d->gpus = need.gpus;
    d->vram_mib = need.vram_mib;
    d->share_permille = need.share_permille;
}
