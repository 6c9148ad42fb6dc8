/* The map `users` of the settings: limits of individual users that override the defaults.
 * Called by config.c and config_read.c. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "base/text.h"
#include "spec/config_table.h"

#define NAME_MAX_BYTES 64
#define SHOWN_COLUMNS  60

/* One row per key of a user in the map `users`. */
struct user_setting {
    const char *key;
    bool is_fraction; /* a double; otherwise an int64_t */
    size_t offset;    /* in struct config_user */
    double min, max;
};

#define LIMIT(name, max)                                                                       \
    {                                                                                          \
#name, false, offsetof(struct config_user, name), 0, max                               \
    }

static const struct user_setting settings[] = {
    {"weight", true, offsetof(struct config_user, weight), 0.01, 1000},
    LIMIT(max_running, 1000000),
    LIMIT(max_gpus, 1000000),
    LIMIT(max_vram_mib, 1000000000),
    LIMIT(max_pending, 10000000),
};

#define SETTINGS (sizeof settings / sizeof settings[0])

static void *
field_of(const struct user_setting *s, struct config_user *u)
{
    return (char *)u + s->offset;
}

void
config_user_init(struct config_user *u)
{
    *u = (struct config_user){
        .weight = 1, .max_running = -1, .max_gpus = -1, .max_vram_mib = -1, .max_pending = -1};
}

static int
refuse_key(const struct config_user *u, const char *key, struct err *e)
{
    const char *known[SETTINGS + 1] = {NULL};
    auto_buf struct buf shown = BUF_INIT;
    const char *near;

    for (size_t i = 0; i < SETTINGS; i++)
        known[i] = settings[i].key;
    near = text_nearest(key, known);
    text_add_safe(&shown, key, strlen(key), SHOWN_COLUMNS);
    if (near)
        return err_set(e, ERR_USAGE, "users: %s: unknown limit '%s'; did you mean %s?", u->name,
                       buf_str(&shown), near);
    return err_set(e, ERR_USAGE,
                   "users: %s: unknown limit '%s'; use weight, max_running, max_gpus, "
                   "max_vram_mib or max_pending",
                   u->name, buf_str(&shown));
}

int
config_user_set(struct config_user *u, const char *key, const char *value, struct err *e)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        const struct user_setting *s = &settings[i];
        if (strcmp(key, s->key) != 0)
            continue;
        int rc = s->is_fraction
                     ? parse_double(value, s->min, s->max, field_of(s, u), e)
                     : parse_int(value, (int64_t)s->min, (int64_t)s->max, field_of(s, u), e);
        return rc == 0 ? 0 : err_prefix(e, "users: %s: %s", u->name, key);
    }
    return refuse_key(u, key, e);
}

/* 0 if u can be added. */
static int
check_user(const struct config *c, const struct config_user *u, struct err *e)
{
    size_t n = strlen(u->name);

    if (n == 0 || n > NAME_MAX_BYTES || !text_is_utf8(u->name, n, NULL) ||
        strpbrk(u->name, " \t\r\n"))
        return err_set(e, ERR_USAGE, "users: expected the name of a user, of 1 to %d bytes",
                       NAME_MAX_BYTES);
    for (size_t i = 0; i < c->n_users; i++)
        if (strcmp(c->users[i].name, u->name) == 0)
            return err_set(e, ERR_USAGE, "users: %s is given twice; remove one of them",
                           u->name);
    if (c->n_users == CONFIG_USERS_MAX)
        return err_set(e, ERR_USAGE, "users: more than the maximum of %d", CONFIG_USERS_MAX);
    return 0;
}

int
config_add_user(struct config *c, struct config_user *u, struct err *e)
{
    if (check_user(c, u, e) < 0) {
        free(u->name);
        return -1;
    }
    c->users = xrealloc(c->users, (c->n_users + 1) * sizeof *c->users);
    c->users[c->n_users++] = *u;
    return 0;
}

void
config_free_users(struct config *c)
{
    for (size_t i = 0; i < c->n_users; i++)
        free(c->users[i].name);
    free(c->users);
    c->users = NULL;
    c->n_users = 0;
}

void
config_copy_users(struct config *to, const struct config *from)
{
    to->users = NULL;
    to->n_users = from->n_users;
    if (from->n_users == 0)
        return;
    to->users = xmalloc(from->n_users * sizeof *to->users);
    for (size_t i = 0; i < from->n_users; i++) {
        to->users[i] = from->users[i];
        to->users[i].name = xstrdup(from->users[i].name);
    }
}

/* `{}`, or one line per user. */
void
config_add_users_text(const struct config *c, struct buf *out)
{
    if (c->n_users == 0)
        buf_adds(out, " {}");
    for (size_t i = 0; i < c->n_users; i++) {
        struct config_user *u = &c->users[i];
        buf_adds(out, "\n  ");
        config_add_quoted(out, u->name);
        buf_adds(out, ": {");
        for (size_t k = 0; k < SETTINGS; k++) {
            const struct user_setting *s = &settings[k];
            int64_t n = s->is_fraction ? 0 : *(int64_t *)field_of(s, u);
            if (s->is_fraction)
                buf_addf(out, "%s: %.10g", s->key, *(double *)field_of(s, u));
            else if (n >= 0)
                buf_addf(out, ", %s: %lld", s->key, (long long)n);
        }
        buf_addc(out, '}');
    }
}

/* Omits limits that are the same as for all users, as the text does. */
void
config_add_users_json(const struct config *c, struct jsonw *w)
{
    jsonw_object(w);
    for (size_t i = 0; i < c->n_users; i++) {
        struct config_user *u = &c->users[i];

        jsonw_key(w, u->name);
        jsonw_object(w);
        for (size_t k = 0; k < SETTINGS; k++) {
            const struct user_setting *s = &settings[k];

            if (!s->is_fraction && *(int64_t *)field_of(s, u) < 0)
                continue;
            jsonw_key(w, s->key);
            if (s->is_fraction)
                jsonw_num(w, *(double *)field_of(s, u));
            else
                jsonw_int(w, *(int64_t *)field_of(s, u));
        }
        jsonw_end_object(w);
    }
    jsonw_end_object(w);
}
