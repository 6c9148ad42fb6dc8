/* Shared by config.c, config_read.c and config_show.c: the rows of the table of settings, and
 * setting a value by row. No other file includes it. */
#ifndef SPEC_CONFIG_TABLE_H
#define SPEC_CONFIG_TABLE_H

#include <stddef.h>

#include "spec/config.h"

#define CONFIG_SETTINGS  91 /* rows; a wrong number fails to compile */
#define CONFIG_LIST_MAX  64 /* items of a list */
#define CONFIG_USERS_MAX 10000

enum config_type {
    TYPE_INT,
    TYPE_FRACTION,
    TYPE_CHOICE,
    TYPE_LIST,
    TYPE_TEXT,
    TYPE_PATH,
    TYPE_USERS
};

struct buf;
struct err;
struct jsonw;

struct setting {
    const char *key;
    enum config_type type;
    size_t offset;
    double min, max;        /* of TYPE_TEXT, max is in bytes */
    const char *standard;   /* the default, as in a file; a list's patterns are elsewhere */
    const char *choices[5]; /* TYPE_CHOICE: index is the value */
    const char *help;
};

extern const struct setting config_settings[CONFIG_SETTINGS];

const struct setting *config_find(const char *key); /* NULL: none */

/* "KEY is not a setting", with the nearest key, or all keys. Returns -1. */
int config_refuse_key(const char *key, struct err *e);

/* Appends one setting's value as written in a file, after "key:". */
void config_add_value(const struct setting *s, const struct config *c, struct buf *out);

/* Copies the items. */
int config_set_list(const struct setting *s, struct config *c, const char *const *items,
                    size_t n, struct err *e);

void config_user_init(struct config_user *u); /* every limit as for all users */
/* Errors: ERR_USAGE, prefixed with "users: alice: ...". */
int config_user_set(struct config_user *u, const char *key, const char *value, struct err *e);
/* Takes over u's contents. If the name is already there: ERR_USAGE, and u is freed. */
int config_add_user(struct config *c, struct config_user *u, struct err *e);
void config_free_users(struct config *c);
void config_copy_users(struct config *to, const struct config *from); /* to must have none */
void config_add_users_text(const struct config *c, struct buf *out);
void config_add_users_json(const struct config *c, struct jsonw *w);

/* Appends s in double quotes, which YAML and JSON read alike. */
void config_add_quoted(struct buf *out, const char *s);

void config_copy(struct config *to, const struct config *from); /* the caller frees to */

#endif
