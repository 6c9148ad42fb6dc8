/* cudaq's settings: defaults, then a flat YAML mapping, then the command line. Values are
 * checked when they are read, and not when they are first compared in the middle of a run. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/compat/cudaq/cudaq.h"
#include "cli/compat/pytext.h"

#define GPUS_TEXT_MAX 1024

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
bad(struct err *e, const char *key, const char *value, const char *want)
{
    auto_buf struct buf shown = BUF_INIT;

    py_add_repr(&shown, value);
    return err_set(e, ERR_FAILED, "%s: %s is no %s", key, buf_str(&shown), want);
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
            return bad(e, "gpu_ids", value, "list of GPU numbers; write 0,1,3");
        bits |= UINT64_C(1) << id;
    }
    c->gpus = bits;
    return 0;
}

static int
set_poll(struct cq_config *c, const char *value, struct err *e)
{
    double v;

    if (!py_float(value, &v) || !(v >= 0) || v > 1e6)
        return bad(e, "poll_interval", value, "number of seconds");
    c->poll_s = v;
    free(c->poll_text);
    c->poll_text = xstrdup(value);
    return 0;
}

static int
set_min(struct cq_config *c, const char *value, struct err *e)
{
    double v;

    if (!py_float(value, &v) || !(v >= 0) || v > 1e9)
        return bad(e, "min_free_mem_mb", value, "number of MB");
    c->min_free_mib = v;
    return 0;
}

static void
set_text(char **field, const char *value)
{
    free(*field);
    *field = xstrdup(value);
}

int
cq_config_set(struct cq_config *c, const char *key, const char *value, struct err *e)
{
    if (strcmp(key, "gpu_ids") == 0)
        return set_gpus(c, value, e);
    if (strcmp(key, "min_free_mem_mb") == 0)
        return set_min(c, value, e);
    if (strcmp(key, "poll_interval") == 0)
        return set_poll(c, value, e);
    if (strcmp(key, "commands_file") == 0)
        set_text(&c->commands_file, value);
    else if (strcmp(key, "log_dir") == 0)
        set_text(&c->log_dir, value);
    else if (strcmp(key, "jobs_file") == 0)
        set_text(&c->jobs_file, value);
    return 0;
}

/* ------------------------------------------------------------------- YAML */

static const char *
scalar(const yaml_node_t *node)
{
    return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value
                                                  : NULL;
}

static bool
is_null(const yaml_node_t *node)
{
    const char *s = scalar(node);

    return s && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!*s || strcmp(s, "~") == 0 || strcasecmp(s, "null") == 0);
}

/* A list's scalars, joined by commas. */
static int
join_items(yaml_document_t *doc, const yaml_node_t *list, char *out, size_t size)
{
    size_t n = 0;

    out[0] = '\0';
    for (const yaml_node_item_t *i = list->data.sequence.items.start;
         i < list->data.sequence.items.top; i++) {
        const char *s = scalar(yaml_document_get_node(doc, *i));
        size_t len = s ? strlen(s) : size;

        if (n + len + 2 > size)
            return -1;
        if (n > 0)
            out[n++] = ',';
        memcpy(out + n, s, len + 1);
        n += len;
    }
    return 0;
}

static int
take_pair(struct cq_config *c, yaml_document_t *doc, const char *key, const yaml_node_t *value,
          struct err *e)
{
    char items[GPUS_TEXT_MAX];

    if (is_null(value)) {
        if (strcmp(key, "gpu_ids") == 0)
            c->gpus = 0;
        return 0;
    }
    if (scalar(value))
        return cq_config_set(c, key, scalar(value), e);
    if (strcmp(key, "gpu_ids") == 0 && value && value->type == YAML_SEQUENCE_NODE &&
        join_items(doc, value, items, sizeof items) == 0)
        return set_gpus(c, items, e);
    return strcmp(key, "gpu_ids") == 0
               ? err_set(e, ERR_FAILED, "gpu_ids: it is a list of numbers: [0, 1]")
               : 0;
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
