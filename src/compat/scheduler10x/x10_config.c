/* The config file of `scheduler_10x`: one table has section, key, type, range and default of
 * each value, for reading, the sample and error messages. The sample can be loaded. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "compat/py/pytext.h"
#include "compat/scheduler10x/scheduler10x.h"

#define CONFIG_MAX_BYTES (1UL << 20)
#define INDENT           4
#define NO_MOST          INFINITY
#define WHOLE_MAX        9007199254740992.0 /* 2^53: larger doubles are not exact integers */

enum type { TYPE_INT, TYPE_FLOAT, TYPE_BOOL, TYPE_TEXT, TYPE_LEVEL, TYPE_PATHS };

struct row {
    const char *section, *key;
    enum type type;
    size_t at;
    double least, most, standard;
    const char *text; /* default of text types; else NULL */
};

#define AT(field) offsetof(struct x10_config, field)

static const struct row rows[] = {
    {"scheduler", "num_gpus", TYPE_INT, AT(num_gpus), 1, 64, 8, NULL},
    {"scheduler", "max_workers", TYPE_INT, AT(max_workers), 1, 128, 8, NULL},
    {"scheduler", "worker_timeout_s", TYPE_FLOAT, AT(worker_timeout_s), 1, NO_MOST, 300, NULL},
    {"scheduler", "job_timeout_s", TYPE_FLOAT, AT(job_timeout_s), 60, NO_MOST, 3600, NULL},
    {"scheduler", "graceful_shutdown_timeout_s", TYPE_FLOAT, AT(stop_s), 5, NO_MOST, 30, NULL},
    {"gpu", "memory_threshold", TYPE_FLOAT, AT(sched.mem_threshold), 0, 1, 0.8, NULL},
    {"gpu", "load_threshold", TYPE_FLOAT, AT(sched.load_threshold), 0, 1, 0.8, NULL},
    {"gpu", "allocation_precision", TYPE_FLOAT, AT(sched.precision), 0.001, 0.1, 0.01, NULL},
    {"gpu", "monitor_interval_s", TYPE_FLOAT, AT(sched.state_s), 1, 300, 5, NULL},
    {"gpu", "utilization_window_s", TYPE_FLOAT, AT(window_s), 10, NO_MOST, 60, NULL},
    {"jobs", "max_assignment_attempts", TYPE_INT, AT(max_attempts), 1, 20, 5, NULL},
    {"jobs", "assignment_retry_wait_s", TYPE_FLOAT, AT(retry_wait_s), 1, NO_MOST, 5, NULL},
    {"jobs", "queue_size_limit", TYPE_INT, AT(sched.queue_max), 10, NO_MOST, 1000, NULL},
    {"jobs", "max_concurrent_jobs", TYPE_INT, AT(max_concurrent), 1, NO_MOST, 100, NULL},
    {"files", "jobs_file", TYPE_TEXT, AT(sched.jobs_file), 0, 0, 0, "jobs.txt"},
    {"files", "llm_config_file", TYPE_TEXT, AT(sched.llm_file), 0, 0, 0, "llm_config.json"},
    {"files", "state_file", TYPE_TEXT, AT(sched.state_file), 0, 0, 0,
     "gpu_scheduler_state.json"},
    {"files", "log_file", TYPE_TEXT, AT(log.path), 0, 0, 0, "gpu_scheduler.log"},
    {"files", "monitor_interval_s", TYPE_FLOAT, AT(sched.monitor_s), 5, NO_MOST, 30, NULL},
    {"logging", "level", TYPE_LEVEL, AT(level), 0, 0, 0, "INFO"},
    {"logging", "structured", TYPE_BOOL, AT(log.structured), 0, 0, 1, NULL},
    {"logging", "max_log_size_mb", TYPE_FLOAT, AT(max_log_mb), 1, NO_MOST, 100, NULL},
    {"logging", "backup_count", TYPE_INT, AT(backups), 1, NO_MOST, 5, NULL},
    {"logging", "metrics_enabled", TYPE_BOOL, AT(metrics), 0, 0, 1, NULL},
    {"security", "allowed_script_paths", TYPE_PATHS, AT(allowed), 0, 0, 0, "/data3/"},
    {"security", "max_memory_per_job_gb", TYPE_FLOAT, AT(max_memory_gb), 0.1, NO_MOST, 32,
     NULL},
    {"security", "enable_resource_limits", TYPE_BOOL, AT(limits), 0, 0, 1, NULL},
};
#define ROWS (sizeof rows / sizeof rows[0])

static const char *const levels[] = {"TRACE", "DEBUG",    "INFO", "WARNING",
                                     "ERROR", "CRITICAL", NULL};

static void *
field_of(struct x10_config *c, const struct row *r)
{
    return (char *)c + r->at;
}

/* Keep v as long as the config, which points into it. */
static void
set_text(struct x10_config *c, const struct row *r, const json_t *v)
{
    json_array_append(c->texts, (json_t *)v);
    *(const char **)field_of(c, r) = json_string_value(v);
}

void
x10_config_free(struct x10_config *c)
{
    json_decref(c->texts);
    text_list_free(c->allowed);
    *c = (struct x10_config){0};
}

/* --- reading --- */

static int
out_of_range(const struct row *r, const json_t *v, struct err *e)
{
    auto_buf struct buf shown = BUF_INIT;

    py_add_json(&shown, v, 0);
    if (isinf(r->most))
        return err_set(e, ERR_USAGE, "%s.%s is %.80s; it must be at least %g", r->section,
                       r->key, buf_str(&shown), r->least);
    return err_set(e, ERR_USAGE, "%s.%s is %.80s; it goes from %g to %g", r->section, r->key,
                   buf_str(&shown), r->least, r->most);
}

static int
wrong_type(const struct row *r, const char *what, struct err *e)
{
    return err_set(e, ERR_USAGE, "%s.%s must be %s", r->section, r->key, what);
}

/* Accepts 2.0 too, as in JSON Schema, which the original used. */
static bool
is_whole(const json_t *v)
{
    return json_is_integer(v) || (json_is_real(v) && fabs(json_real_value(v)) < WHOLE_MAX &&
                                  json_real_value(v) == rint(json_real_value(v)));
}

static int
take_number(struct x10_config *c, const struct row *r, const json_t *v, struct err *e)
{
    double x = json_number_value(v);

    if (r->type == TYPE_INT ? !is_whole(v) : !json_is_number(v))
        return wrong_type(r, r->type == TYPE_INT ? "a whole number" : "a number", e);
    if (!(x >= r->least && x <= r->most))
        return out_of_range(r, v, e);
    if (r->type == TYPE_INT)
        *(int64_t *)field_of(c, r) = json_is_real(v) ? (int64_t)x : json_integer_value(v);
    else
        *(double *)field_of(c, r) = x;
    c->workers_said |= strcmp(r->key, "max_workers") == 0;
    c->gpus_said |= strcmp(r->key, "num_gpus") == 0;
    return 0;
}

static int
take_level(struct x10_config *c, const struct row *r, const json_t *v, struct err *e)
{
    for (const char *const *level = levels; *level; level++) {
        if (json_is_string(v) && strcmp(json_string_value(v), *level) == 0) {
            set_text(c, r, v);
            return 0;
        }
    }
    return wrong_type(r, "one of TRACE, DEBUG, INFO, WARNING, ERROR and CRITICAL", e);
}

static int
take_paths(struct x10_config *c, const struct row *r, const json_t *v, struct err *e)
{
    size_t n = json_array_size(v);
    char **paths = xcalloc(n + 1, sizeof *paths);

    for (size_t i = 0; i < n; i++) {
        const char *path = json_string_value(json_array_get(v, i));

        if (path)
            paths[i] = xstrdup(path);
        if (!path || !*path)
            break;
        if (i + 1 == n) {
            text_list_free(c->allowed);
            c->allowed = paths;
            return 0;
        }
    }
    text_list_free(paths);
    return wrong_type(r, "a list of folders", e);
}

static int
take_value(struct x10_config *c, const struct row *r, const json_t *v, struct err *e)
{
    switch (r->type) {
    case TYPE_INT:
    case TYPE_FLOAT:
        return take_number(c, r, v, e);
    case TYPE_BOOL:
        if (!json_is_boolean(v))
            return wrong_type(r, "true or false", e);
        *(bool *)field_of(c, r) = json_is_true(v);
        return 0;
    case TYPE_TEXT:
        if (!json_is_string(v) || (r->at == AT(sched.state_file) && !*json_string_value(v)))
            return wrong_type(r, "a path", e);
        set_text(c, r, v);
        return 0;
    case TYPE_LEVEL:
        return take_level(c, r, v, e);
    case TYPE_PATHS:
        return take_paths(c, r, v, e);
    }
    return 0;
}

/* In the sample, allowed_paths has example folders. */
static json_t *
standard_of(const struct row *r, bool sample)
{
    switch (r->type) {
    case TYPE_INT:
        return json_integer((json_int_t)r->standard);
    case TYPE_FLOAT:
        return json_real(r->standard);
    case TYPE_BOOL:
        return json_boolean(r->standard != 0);
    case TYPE_TEXT:
    case TYPE_LEVEL:
        return json_string(r->text);
    case TYPE_PATHS:
        return sample ? json_pack("[s,s,s]", "/data3/", "/home/", "/tmp/test/")
                      : json_pack("[s]", r->text);
    }
    return NULL;
}

void
x10_config_init(struct x10_config *c)
{
    *c = (struct x10_config){.texts = json_array()};
    for (size_t i = 0; i < ROWS; i++) {
        json_t *v = standard_of(&rows[i], false);

        (void)take_value(c, &rows[i], v, NULL);
        json_decref(v);
    }
    c->workers_said = c->gpus_said = false;
}

static int
take_all(struct x10_config *c, const json_t *root, struct err *e)
{
    static const char *const required[] = {"scheduler", "files"};

    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        if (!json_object_get(root, required[i]))
            return err_set(e, ERR_USAGE, "the section \"%s\" is missing", required[i]);
    }
    for (size_t i = 0; i < ROWS; i++) {
        const json_t *section = json_object_get(root, rows[i].section);
        const json_t *v = json_object_get(section, rows[i].key);

        if (section && !json_is_object(section))
            return err_set(e, ERR_USAGE, "the section \"%s\" is no object", rows[i].section);
        if (v && take_value(c, &rows[i], v, e) < 0)
            return -1;
    }
    if (!c->gpus_said)
        return err_set(e, ERR_USAGE, "scheduler.num_gpus is missing");
    return 0;
}

int
x10_config_read(struct x10_config *c, const char *path, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    json_error_t je;
    json_t *root;
    int rc;

    if (file_read(path, CONFIG_MAX_BYTES, &text, e) < 0)
        return -1;
    root = json_loadb(buf_str(&text), text.len, JSON_REJECT_DUPLICATES, &je);
    if (!root)
        return err_set(e, ERR_USAGE, "%s: line %d: %s", path, je.line, je.text);
    rc = json_is_object(root) ? take_all(c, root, e)
                              : err_set(e, ERR_USAGE, "it is no JSON object");
    json_decref(root);
    return rc < 0 ? err_prefix(e, "%s", path) : 0;
}

int
x10_config_set_int(struct x10_config *c, const char *key, int64_t value, struct err *e)
{
    for (size_t i = 0; i < ROWS; i++) {
        auto_free char *name = xasprintf("%s.%s", rows[i].section, rows[i].key);
        json_t *v;
        int rc;

        if (strcmp(name, key) != 0)
            continue;
        v = json_integer(value);
        rc = take_number(c, &rows[i], v, e);
        json_decref(v);
        return rc;
    }
    err_abort("no setting %s", key);
}

int
x10_config_check(struct x10_config *c, struct err *e)
{
    int64_t most = 2 * c->num_gpus;

    if (!c->workers_said && c->max_workers > most)
        c->max_workers = most;
    if (c->max_workers > most)
        return err_set(e, ERR_USAGE,
                       "scheduler.max_workers is %lld; with %lld GPUs it may be %lld at most",
                       (long long)c->max_workers, (long long)c->num_gpus, (long long)most);
    if (c->retry_wait_s > c->worker_timeout_s / 4)
        return err_set(e, ERR_USAGE,
                       "jobs.assignment_retry_wait_s is %g; it may be a quarter of "
                       "scheduler.worker_timeout_s at most, which is %g",
                       c->retry_wait_s, c->worker_timeout_s);
    return 0;
}

char *
x10_whole_path(const char *path)
{
    auto_free char *here = *path == '/' ? NULL : getcwd(NULL, 0);

    return here ? xasprintf("%s/%s", here, path) : xstrdup(path);
}

/* --- the sample --- */

void
x10_config_sample(struct buf *out)
{
    json_t *root = json_object();

    for (size_t i = 0; i < ROWS; i++) {
        json_t *section = json_object_get(root, rows[i].section);

        if (!section) {
            json_object_set_new(root, rows[i].section, json_object());
            section = json_object_get(root, rows[i].section);
        }
        json_object_set_new(section, rows[i].key, standard_of(&rows[i], true));
    }
    py_add_json(out, root, INDENT);
    buf_addc(out, '\n');
    json_decref(root);
}
