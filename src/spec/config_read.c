/* Settings out of YAML, and so out of JSON, which YAML contains: libyaml's events to rows of
 * the table in config.c. All or nothing: what is read goes into a copy, and takes the place
 * of the caller's settings only when the whole text was good. Every error has its line. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "spec/config.h"
#include "spec/config_table.h"

/* What is being read: the copy that is filled, and which keys have been seen. */
struct reader {
    yaml_parser_t yaml;
    const char *name;
    struct config next;
    bool seen[CONFIG_SETTINGS];
};

/* Puts "NAME:LINE: " in front of what e says. */
static int
at_line(const struct reader *r, yaml_mark_t mark, struct err *e)
{
    auto_free char *words = xstrdup(e->text);

    return err_set(e, ERR_USAGE, "%s:%zu: %s", r->name, mark.line + 1, words);
}

static int
next_event(struct reader *r, yaml_event_t *event, struct err *e)
{
    if (yaml_parser_parse(&r->yaml, event))
        return 0;
    err_set(e, ERR_USAGE, "not YAML: %s%s%s",
            r->yaml.problem ? r->yaml.problem : "cannot be read", r->yaml.context ? " " : "",
            r->yaml.context ? r->yaml.context : "");
    return at_line(r, r->yaml.problem_mark, e);
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

/* A scalar without NUL inside, which no C string could hold. */
static const char *
scalar_text(const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;

    return strlen(text) == event->data.scalar.length ? text : NULL;
}

/* One item of a list: 1 when it was the list's end instead, -1 with e. */
static int
read_item(struct reader *r, const struct setting *s, char **items, size_t *n, struct err *e)
{
    yaml_event_t event;
    int rc = 0;

    if (next_event(r, &event, e) != 0)
        return -1;
    const char *text = event.type == YAML_SCALAR_EVENT ? scalar_text(&event) : NULL;
    if (event.type == YAML_SEQUENCE_END_EVENT)
        rc = 1;
    else if (text && *n < CONFIG_LIST_MAX)
        items[(*n)++] = xstrdup(text);
    else
        rc = err_set(e, ERR_USAGE, "%s: it is a list of at most %d texts", s->key,
                     CONFIG_LIST_MAX);
    if (rc < 0)
        at_line(r, event.start_mark, e);
    yaml_event_delete(&event);
    return rc;
}

/* The items up to the list's end; `start` is where its first event was. */
static int
read_list(struct reader *r, const struct setting *s, yaml_mark_t start, struct err *e)
{
    char *items[CONFIG_LIST_MAX];
    size_t n = 0;
    int rc;

    do {
        rc = read_item(r, s, items, &n, e);
    } while (rc == 0);
    if (rc == 1 && (rc = config_set_list(s, &r->next, (const char *const *)items, n, e)) != 0)
        at_line(r, start, e);
    for (size_t i = 0; i < n; i++)
        free(items[i]);
    return rc;
}

static int
read_value(struct reader *r, const struct setting *s, struct err *e)
{
    yaml_event_t event;
    const char *text;
    int rc;

    if (next_event(r, &event, e) != 0)
        return -1;
    text = event.type == YAML_SCALAR_EVENT ? scalar_text(&event) : NULL;
    if (event.type == YAML_SEQUENCE_START_EVENT && s->type == TYPE_LIST) {
        rc = read_list(r, s, event.start_mark, e);
    } else if (text) {
        const char *one[] = {text};
        rc = s->type == TYPE_LIST ? config_set_list(s, &r->next, one, 1, e)
                                  : config_set(&r->next, s->key, text, e);
        if (rc != 0)
            at_line(r, event.start_mark, e);
    } else {
        err_set(e, ERR_USAGE, "%s: %s where %s belongs", s->key, event_name(&event),
                s->type == TYPE_LIST ? "a list" : "a single value");
        rc = at_line(r, event.start_mark, e);
    }
    yaml_event_delete(&event);
    return rc;
}

/* One key and its value. */
static int
read_pair(struct reader *r, const yaml_event_t *key, struct err *e)
{
    const char *text = key->type == YAML_SCALAR_EVENT ? scalar_text(key) : NULL;
    const struct setting *s = text ? config_find(text) : NULL;

    if (!text) {
        err_set(e, ERR_USAGE, "%s where a setting's name belongs", event_name(key));
        return at_line(r, key->start_mark, e);
    }
    if (!s) {
        config_refuse_key(text, e);
        return at_line(r, key->start_mark, e);
    }
    if (r->seen[s - config_settings]) {
        err_set(e, ERR_USAGE, "%s is said twice; leave one of them", s->key);
        return at_line(r, key->start_mark, e);
    }
    r->seen[s - config_settings] = true;
    return read_value(r, s, e);
}

/* Events from the start of the stream to its end: at most one document, a mapping. */
static int
read_stream(struct reader *r, struct err *e)
{
    bool in_mapping = false, had_mapping = false;

    for (;;) {
        yaml_event_t event;
        int rc = 0;
        if (next_event(r, &event, e) != 0)
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
            err_set(e, ERR_USAGE, "settings are `key: value` lines, in one document");
            rc = at_line(r, event.start_mark, e);
        }
        yaml_event_delete(&event);
        if (rc != 0 || type == YAML_STREAM_END_EVENT)
            return rc;
    }
}

int
config_read(struct config *c, const char *name, const char *text, size_t len, struct err *e)
{
    struct reader r = {.name = name};
    int rc;

    if (!yaml_parser_initialize(&r.yaml))
        err_abort("no memory for a YAML parser");
    yaml_parser_set_input_string(&r.yaml, (const unsigned char *)text, len);
    config_copy(&r.next, c);
    rc = read_stream(&r, e);
    yaml_parser_delete(&r.yaml);
    if (rc == 0) {
        config_free(c);
        *c = r.next;
    } else {
        config_free(&r.next);
    }
    return rc;
}
