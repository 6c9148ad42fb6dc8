/* Reads settings from YAML, and therefore from JSON, which is a subset: maps libyaml's events
 * to rows of the table in config.c. All or nothing: settings are read into a copy, which
 * replaces the caller's only if the whole text is valid. Every error has its line number, and
 * all errors are reported, as far as the text is YAML. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/buf.h"
#include "base/err.h"
#include "spec/config.h"
#include "spec/config_table.h"

#define ERRORS_MAX 100 /* errors that are kept */

/* The copy being filled, the keys seen so far, and the errors. */
struct reader {
    yaml_parser_t yaml;
    const char *name;
    struct config next;
    bool seen[CONFIG_SETTINGS];
    struct buf *all; /* NULL: only the first error is wanted */
    struct err first;
    int n_errors;
};

/* Records e with "NAME:LINE: " in front. */
static void
note(struct reader *r, yaml_mark_t mark, const struct err *e)
{
    struct err here;

    err_set(&here, ERR_USAGE, "%s:%zu: %s", r->name, mark.line + 1, e->text);
    if (r->n_errors == 0)
        r->first = here;
    if (r->all && r->n_errors < ERRORS_MAX)
        buf_addf(r->all, "%s\n", here.text);
    r->n_errors++;
}

/* -1 (recorded) if the text is not YAML from here on: parsing cannot continue. */
static int
next_event(struct reader *r, yaml_event_t *event)
{
    struct err e;

    if (yaml_parser_parse(&r->yaml, event))
        return 0;
    err_set(&e, ERR_USAGE, "not YAML: %s%s%s",
            r->yaml.problem ? r->yaml.problem : "cannot be read", r->yaml.context ? " " : "",
            r->yaml.context ? r->yaml.context : "");
    note(r, r->yaml.problem_mark, &e);
    return -1;
}

static const char *
event_name(const yaml_event_t *event)
{
    switch ((int)event->type) {
    case YAML_MAPPING_START_EVENT:
        return "a mapping";
    case YAML_SEQUENCE_START_EVENT:
        return "a list";
    case YAML_ALIAS_EVENT:
        return "an alias";
    case YAML_SCALAR_EVENT:
        return "a single value";
    default:
        return "nothing";
    }
}

static bool
opens(const yaml_event_t *event)
{
    return event->type == YAML_MAPPING_START_EVENT || event->type == YAML_SEQUENCE_START_EVENT;
}

/* Skips to the end of the sequence or mapping that event opened, if any. */
static int
skip_rest(struct reader *r, const yaml_event_t *event)
{
    int depth = opens(event);

    while (depth > 0) {
        yaml_event_t inner;
        if (next_event(r, &inner) < 0)
            return -1;
        depth += opens(&inner);
        depth -= inner.type == YAML_MAPPING_END_EVENT || inner.type == YAML_SEQUENCE_END_EVENT;
        yaml_event_delete(&inner);
    }
    return 0;
}

static int
skip_value(struct reader *r)
{
    yaml_event_t event;
    int rc;

    if (next_event(r, &event) < 0)
        return -1;
    rc = skip_rest(r, &event);
    yaml_event_delete(&event);
    return rc;
}

/* The text of a scalar; one with a NUL inside is rejected, as no C string can hold it. */
static const char *
scalar_text(const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;

    if (event->type != YAML_SCALAR_EVENT)
        return NULL;
    return strlen(text) == event->data.scalar.length ? text : NULL;
}

/* Reads one item of a list; 1 at the end of the list. */
static int
read_item(struct reader *r, const struct setting *s, char **items, size_t *n, bool *bad)
{
    yaml_event_t event;
    struct err e;
    int rc = 0;

    if (next_event(r, &event) < 0)
        return -1;
    const char *text = scalar_text(&event);
    if (event.type == YAML_SEQUENCE_END_EVENT) {
        rc = 1;
    } else if (text && *n < CONFIG_LIST_MAX) {
        items[(*n)++] = xstrdup(text);
    } else {
        if (!*bad) {
            err_set(&e, ERR_USAGE, "%s must be a list of at most %d texts", s->key,
                    CONFIG_LIST_MAX);
            note(r, event.start_mark, &e);
        }
        *bad = true;
        rc = skip_rest(r, &event);
    }
    yaml_event_delete(&event);
    return rc;
}

/* Reads items up to the end of the list; `start` is the position of its first event. */
static int
read_list(struct reader *r, const struct setting *s, yaml_mark_t start)
{
    char *items[CONFIG_LIST_MAX];
    size_t n = 0;
    bool bad = false;
    struct err e;
    int rc;

    do {
        rc = read_item(r, s, items, &n, &bad);
    } while (rc == 0);
    if (rc == 1 && !bad && config_set_list(s, &r->next, (const char *const *)items, n, &e) < 0)
        note(r, start, &e);
    for (size_t i = 0; i < n; i++)
        free(items[i]);
    return rc < 0 ? -1 : 0;
}

/* --- users --- */

/* Reads one key and value of a user; 1 at the end of the user. */
static int
read_user_pair(struct reader *r, struct config_user *u)
{
    yaml_event_t key, value;
    struct err e;
    int rc = 0;

    if (next_event(r, &key) < 0)
        return -1;
    if (key.type == YAML_MAPPING_END_EVENT) {
        yaml_event_delete(&key);
        return 1;
    }
    const char *name = scalar_text(&key);
    if (skip_rest(r, &key) < 0 || next_event(r, &value) < 0) {
        yaml_event_delete(&key);
        return -1;
    }
    const char *text = scalar_text(&value);
    if (!name || !text) {
        err_set(&e, ERR_USAGE,
                "users: %s: keys and single values belong here, such as "
                "max_running: 4",
                u->name);
        note(r, key.start_mark, &e);
        rc = skip_rest(r, &value);
    } else if (config_user_set(u, name, text, &e) < 0) {
        note(r, key.start_mark, &e);
    }
    yaml_event_delete(&key);
    yaml_event_delete(&value);
    return rc;
}

static int
read_user(struct reader *r, const yaml_event_t *key)
{
    struct config_user u;
    yaml_event_t event;
    struct err e;
    int rc = 0;

    if (next_event(r, &event) < 0)
        return -1;
    config_user_init(&u);
    u.name = xstrdup(scalar_text(key) ? scalar_text(key) : "");
    if (event.type == YAML_MAPPING_START_EVENT) {
        do {
            rc = read_user_pair(r, &u);
        } while (rc == 0);
    } else {
        err_set(&e, ERR_USAGE, "users: %s: %s where a mapping belongs, such as {weight: 2}",
                u.name, event_name(&event));
        note(r, event.start_mark, &e);
        rc = skip_rest(r, &event);
    }
    yaml_event_delete(&event);
    if (config_add_user(&r->next, &u, &e) < 0)
        note(r, key->start_mark, &e);
    return rc < 0 ? -1 : 0;
}

/* Reads users up to the end of the mapping. */
static int
read_users(struct reader *r)
{
    config_free_users(&r->next);
    for (;;) {
        yaml_event_t key;
        if (next_event(r, &key) < 0)
            return -1;
        int rc = key.type == YAML_MAPPING_END_EVENT ? 1 : 0;
        if (rc == 0)
            rc = skip_rest(r, &key) < 0 ? -1 : read_user(r, &key);
        yaml_event_delete(&key);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
    }
}

/* --- values --- */

static void
set_scalar(struct reader *r, const struct setting *s, const char *text, yaml_mark_t mark)
{
    const char *one[] = {text};
    struct err e;
    int rc = s->type == TYPE_LIST ? config_set_list(s, &r->next, one, 1, &e)
                                  : config_set(&r->next, s->key, text, &e);

    if (rc != 0)
        note(r, mark, &e);
}

static int
read_value(struct reader *r, const struct setting *s)
{
    yaml_event_t event;
    struct err e;
    int rc = 0;

    if (next_event(r, &event) < 0)
        return -1;
    const char *text = scalar_text(&event);
    if (event.type == YAML_SEQUENCE_START_EVENT && s->type == TYPE_LIST) {
        rc = read_list(r, s, event.start_mark);
    } else if (event.type == YAML_MAPPING_START_EVENT && s->type == TYPE_USERS) {
        rc = read_users(r);
    } else if (text && s->type != TYPE_USERS) {
        set_scalar(r, s, text, event.start_mark);
    } else {
        err_set(&e, ERR_USAGE, "%s: %s where %s belongs", s->key, event_name(&event),
                s->type == TYPE_LIST    ? "a list"
                : s->type == TYPE_USERS ? "a mapping of users"
                                        : "a single value");
        note(r, event.start_mark, &e);
        rc = skip_rest(r, &event);
    }
    yaml_event_delete(&event);
    return rc;
}

/* Reads one key and its value. */
static int
read_pair(struct reader *r, const yaml_event_t *key)
{
    const char *text = scalar_text(key);
    const struct setting *s = text ? config_find(text) : NULL;
    struct err e;

    if (!text)
        err_set(&e, ERR_USAGE, "%s where a setting's name belongs", event_name(key));
    else if (!s)
        config_refuse_key(text, &e);
    else if (r->seen[s - config_settings])
        err_set(&e, ERR_USAGE, "%s is given twice; keep one of them", s->key);
    if (!s || r->seen[s - config_settings]) {
        note(r, key->start_mark, &e);
        return skip_rest(r, key) < 0 ? -1 : skip_value(r);
    }
    r->seen[s - config_settings] = true;
    return read_value(r, s);
}

/* Reads the whole stream: at most one document, which must be a mapping. */
static void
read_stream(struct reader *r)
{
    bool in_mapping = false, had_mapping = false;
    struct err e;

    for (;;) {
        yaml_event_t event;
        int rc = 0;
        if (next_event(r, &event) < 0)
            return;
        yaml_event_type_t type = event.type;
        if (in_mapping && type == YAML_MAPPING_END_EVENT) {
            in_mapping = false;
        } else if (in_mapping) {
            rc = read_pair(r, &event);
        } else if (type == YAML_MAPPING_START_EVENT && !had_mapping) {
            in_mapping = had_mapping = true;
        } else if (type != YAML_STREAM_START_EVENT && type != YAML_STREAM_END_EVENT &&
                   type != YAML_DOCUMENT_START_EVENT && type != YAML_DOCUMENT_END_EVENT) {
            err_set(&e, ERR_USAGE,
                    "a file of settings must be one document of `key: value` lines");
            note(r, event.start_mark, &e);
            rc = -1;
        }
        yaml_event_delete(&event);
        if (rc != 0 || type == YAML_STREAM_END_EVENT)
            return;
    }
}

int
config_read(struct config *c, const char *name, const char *text, size_t len, struct buf *all,
            struct err *e)
{
    struct reader r = {.name = name, .all = all};

    if (!yaml_parser_initialize(&r.yaml))
        err_abort("no memory for a YAML parser");
    yaml_parser_set_input_string(&r.yaml, (const unsigned char *)text, len);
    config_copy(&r.next, c);
    read_stream(&r);
    yaml_parser_delete(&r.yaml);
    if (r.n_errors == 0) {
        config_free(c);
        *c = r.next;
        return 0;
    }
    config_free(&r.next);
    return err_set(e, ERR_USAGE, "%s", r.first.text);
}
