/* Settings that were read again, against those in force: config.h. Called by the daemon. */
#include <string.h>

#include "base/buf.h"
#include "spec/config_table.h"

/* What one field takes in struct config; 0: users, which are two. */
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
swap_users(struct config *a, struct config *b)
{
    struct config_user *users = a->users;
    size_t n = a->n_users;

    a->users = b->users;
    a->n_users = b->n_users;
    b->users = users;
    b->n_users = n;
}

static void
swap(const struct setting *s, struct config *a, struct config *b)
{
    unsigned char keep[sizeof(int64_t)];
    size_t n = field_size(s->type);
    if (s->type == TYPE_USERS) {
        swap_users(a, b);
        return;
    }
    void *x = (char *)a + s->offset, *y = (char *)b + s->offset;

    memcpy(keep, x, n);
    memcpy(x, y, n);
    memcpy(y, keep, n);
}

void
config_take(struct config *c, struct config *fresh, bool (*may)(const char *key),
            void (*differs)(void *arg, const char *key, bool taken), void *arg)
{
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const struct setting *s = &config_settings[i];
        auto_buf struct buf old = BUF_INIT, new = BUF_INIT;

        config_add_value(s, c, &old);
        config_add_value(s, fresh, &new);
        if (strcmp(buf_str(&old), buf_str(&new)) == 0)
            continue;
        bool taken = may(s->key);
        if (taken)
            swap(s, c, fresh);
        differs(arg, s->key, taken);
    }
}
