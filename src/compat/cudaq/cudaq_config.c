/* cudaq's settings: defaults, then a flat YAML mapping, then the command line. Values are
 * checked when read, not when first used in the middle of a run. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "compat/cudaq/cudaq.h"
#include "compat/py/pytext.h"

#define MIB_MAX    1e9
#define POLL_MAX_S 1e6

void
cq_config_init(struct cq_config *c)
{
    *c = (struct cq_config){
        .min_free_mib = 6000,
        .poll_s = 60,
        .poll_text = xstrdup("60"),
        .commands_file = xstrdup("commands.txt"),
        .log_dir = xstrdup("./logs"),
        .jobs_file = xstrdup("./jobs.jsonl"),
    };
}

void
cq_config_free(struct cq_config *c)
{
    free(c->poll_text);
    free(c->commands_file);
    free(c->log_dir);
    free(c->jobs_file);
    *c = (struct cq_config){0};
}

static int
bad(struct err *e, const char *value, const char *want)
{
    auto_buf struct buf shown = BUF_INIT;

    py_add_repr(&shown, value);
    return err_set(e, ERR_FAILED, "%s is no %s", buf_str(&shown), want);
}

/* "0,1,3" */
static int
set_gpus(struct cq_config *c, const char *value, struct err *e)
{
    auto_free char *copy = xstrdup(value);
    char *rest = copy, *piece;
    uint64_t bits = 0;

    while ((piece = strsep(&rest, ","))) {
        int64_t id;

        if (!py_int(piece, &id) || id < 0 || id >= GPU_MAX)
            return bad(e, value, "list of GPU numbers below 64; write 0,1,3");
        bits |= UINT64_C(1) << id;
    }
    c->gpus = bits;
    return 0;
}

static int
set_number(double *field, const char *value, double max, const char *what, struct err *e)
{
    double v;

    if (!py_float(value, &v) || !(v >= 0) || v > max)
        return bad(e, value, what);
    *field = v;
    return 0;
}

static int
set_text(char **field, const char *value, struct err *e)
{
    if (!*value)
        return bad(e, value, "name of a file");
    free(*field);
    *field = xstrdup(value);
    return 0;
}

int
cq_config_set(struct cq_config *c, const char *key, const char *value, struct err *e)
{
    if (strcmp(key, "gpu_ids") == 0)
        return set_gpus(c, value, e);
    if (strcmp(key, "min_free_mem_mb") == 0)
        return set_number(&c->min_free_mib, value, MIB_MAX, "number of MB", e);
    if (strcmp(key, "poll_interval") == 0)
        return set_number(&c->poll_s, value, POLL_MAX_S, "number of seconds", e) < 0
                   ? -1
                   : set_text(&c->poll_text, value, e);
    if (strcmp(key, "commands_file") == 0)
        return set_text(&c->commands_file, value, e);
    if (strcmp(key, "log_dir") == 0)
        return set_text(&c->log_dir, value, e);
    if (strcmp(key, "jobs_file") == 0)
        return set_text(&c->jobs_file, value, e);
    return 0;
}

/* --- YAML --- */

/* NULL: not a scalar, or one that contains NUL. */
static const char *
scalar(const yaml_node_t *node)
{
    const char *s =
        node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;

    return s && strlen(s) == node->data.scalar.length ? s : NULL;
}

static bool
is_null(const yaml_node_t *node)
{
    const char *s = scalar(node);

    return s && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!*s || strcmp(s, "~") == 0 || strcasecmp(s, "null") == 0);
}

/* The value as text; a list's scalars are joined by commas. False: neither a scalar nor a list
 * of scalars. */
static bool
add_text(yaml_document_t *doc, const yaml_node_t *value, struct buf *out)
{
    if (value && value->type != YAML_SEQUENCE_NODE) {
        buf_adds(out, scalar(value) ? scalar(value) : "");
        return scalar(value) != NULL;
    }
    for (const yaml_node_item_t *i = value ? value->data.sequence.items.start : NULL;
         i && i < value->data.sequence.items.top; i++) {
        const char *s = scalar(yaml_document_get_node(doc, *i));

        if (!s)
            return false;
        if (out->len > 0)
            buf_addc(out, ',');
        buf_adds(out, s);
    }
    return value != NULL;
}

static bool
is_key(const char *word)
{
    static const char *const keys[] = {"gpu_ids",       "min_free_mem_mb", "poll_interval",
                                       "commands_file", "log_dir",         "jobs_file"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(keys[i], word) == 0)
            return true;
    }
    return false;
}

static int
take_pair(struct cq_config *c, yaml_document_t *doc, const char *key, const yaml_node_t *value,
          struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    bool is_gpus = strcmp(key, "gpu_ids") == 0;

    if (!is_key(key))
        return 0;
    if (is_null(value)) {
        c->gpus = is_gpus ? 0 : c->gpus;
        return 0;
    }
    if (!add_text(doc, value, &text) || (!is_gpus && !scalar(value)))
        return err_set(e, ERR_FAILED, "%s: write %s", key,
                       is_gpus ? "a list of GPU numbers: [0, 1]" : "a single value");
    return cq_config_set(c, key, buf_str(&text), e) < 0 ? err_prefix(e, "%s", key) : 0;
}

static int
take_document(struct cq_config *c, yaml_document_t *doc, struct err *e)
{
    const yaml_node_t *root = yaml_document_get_root_node(doc);

    if (!root || is_null(root))
        return 0;
    if (root->type != YAML_MAPPING_NODE)
        return err_set(e, ERR_FAILED,
                       "it is no mapping; write lines such as poll_interval: 30");
    for (const yaml_node_pair_t *p = root->data.mapping.pairs.start;
         p < root->data.mapping.pairs.top; p++) {
        const char *key = scalar(yaml_document_get_node(doc, p->key));
        const yaml_node_t *value = yaml_document_get_node(doc, p->value);

        if (key && take_pair(c, doc, key, value, e) < 0)
            return err_prefix(e, "line %zu", value ? value->start_mark.line + 1 : 0);
    }
    return 0;
}

int
cq_config_read(struct cq_config *c, const char *name, const char *text, size_t n, struct err *e)
{
    yaml_parser_t yaml;
    yaml_document_t doc;
    int rc;

    if (!yaml_parser_initialize(&yaml))
        err_abort("no memory for a YAML parser");
    yaml_parser_set_input_string(&yaml, (const unsigned char *)text, n);
    if (!yaml_parser_load(&yaml, &doc)) {
        rc = err_set(e, ERR_FAILED, "line %zu: not YAML: %s", yaml.problem_mark.line + 1,
                     yaml.problem ? yaml.problem : "cannot be read");
    } else {
        rc = take_document(c, &doc, e);
        yaml_document_delete(&doc);
    }
    yaml_parser_delete(&yaml);
    return rc < 0 ? err_prefix(e, "%s", name) : 0;
}
