/* What config.c and config_read.c share: a row of the table of settings, and setting by row.
 * Of no interest to anybody else. */
#ifndef SPEC_CONFIG_TABLE_H
#define SPEC_CONFIG_TABLE_H

#include <stddef.h>

#include "spec/config.h"

#define CONFIG_SETTINGS 33 /* rows; the compiler refuses another number */
#define CONFIG_LIST_MAX 64 /* items of a list */

enum config_type { TYPE_INT, TYPE_FRACTION, TYPE_CHOICE, TYPE_LIST, TYPE_TEXT };

struct setting {
    const char *key;
    enum config_type type;
    size_t offset;
    double min, max;        /* TYPE_TEXT: max is the most bytes */
    const char *standard;   /* as written in a file; a list's patterns stand apart */
    const char *choices[5]; /* TYPE_CHOICE: index is the value */
    const char *help;
};

extern const struct setting config_settings[CONFIG_SETTINGS];

const struct setting *config_find(const char *key); /* NULL: none */

/* "KEY is not a setting", with the nearest, or all. Returns -1. */
int config_refuse_key(const char *key, struct err *e);

/* Items are copied. */
int config_set_list(const struct setting *s, struct config *c, const char *const *items,
                    size_t n, struct err *e);

void config_copy(struct config *to, const struct config *from); /* to is to be freed */

#endif
