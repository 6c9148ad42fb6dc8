/* Settings that were read again, against those in force: config.h. Called by the daemon. */
#include <string.h>

#include "base/buf.h"
#include "spec/config_table.h"

/* What one field takes in struct config; 0: more than one field. */
static size_t
field_size(enum config_type type)
{
    switch (type) {
    case TYPE_INT:
        return sizeof(int64_t);
    case TYPE_FRACTION:
        return sizeof(double);
    case TYPE_CHOICE:
        return sizeof(int);
    case TYPE_LIST:
        return sizeof(char **);
    case TYPE_TEXT:
    case TYPE_PATH:
        return sizeof(char *);
    case TYPE_USERS:
        break;
    }
    return 0;
}

static void
swap(const struct setting *s, struct config *a, struct config *b)
{
    unsigned char keep[sizeof(int64_t)];
    size_t n = field_size(s->type);
    void *x = (char *)a + s->offset, *y = (char *)b + s->offset;

    memcpy(keep, x, n);
    memcpy(x, y, n);
    memcpy(y, keep, n);
}

void
config_take(struct config *c, struct config *fresh, bool (*may)(const char *key),
            void (*differs)(const char *key, bool taken))
{
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const struct setting *s = &config_settings[i];
        auto_buf struct buf old = BUF_INIT, new = BUF_INIT;

        config_add_value(s, c, &old);
        config_add_value(s, fresh, &new);
        if (strcmp(buf_str(&old), buf_str(&new)) == 0)
            continue;
        bool taken = may(s->key) && field_size(s->type) > 0;
        if (taken)
            swap(s, c, fresh);
        differs(s->key, taken);
    }
}
