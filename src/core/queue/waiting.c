/* How many jobs and tasks wait; see waiting.h. */
#include "core/queue/waiting.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/err.h"
#include "base/search.h"

struct env_key {
    int64_t env;
    int64_t uid;
};

struct waiting_env {
    struct env_key key;
    int64_t bytes, jobs;
    UT_hash_handle hh;
};

/* Index of the user, or where to insert it. */
static size_t
position(const struct waiting *w, uint32_t uid)
{
    return search_first(at, w->n_users, w->users[at].uid < uid);
}

static struct waiting_user *
find(const struct waiting *w, size_t at, uint32_t uid)
{
    return at < w->n_users && w->users[at].uid == uid ? &w->users[at] : NULL;
}

static struct waiting_user *
find_or_add(struct waiting *w, uint32_t uid)
{
    size_t at = position(w, uid);
    struct waiting_user *user = find(w, at, uid);
    if (!user) {
        w->users = xgrow(w->users, w->n_users, &w->cap_users, sizeof *w->users);
        user = &w->users[at];
        memmove(user + 1, user, (w->n_users++ - at) * sizeof *user);
        *user = (struct waiting_user){.uid = uid};
    }
    return user;
}

void
waiting_add(struct waiting *w, uint32_t uid, int64_t n, bool held)
{
    if (n == 0)
        return;
    find_or_add(w, uid)->n += n;
    w->total += n;
    w->held += held ? n : 0;
}

int64_t
waiting_of(const struct waiting *w, uint32_t uid)
{
    const struct waiting_user *user = find(w, position(w, uid), uid);
    return user ? user->n : 0;
}

void
waiting_add_text(struct waiting *w, uint32_t uid, int64_t bytes)
{
    if (bytes != 0)
        find_or_add(w, uid)->text += bytes;
}

int64_t
waiting_text_of(const struct waiting *w, uint32_t uid)
{
    const struct waiting_user *user = find(w, position(w, uid), uid);
    return user ? user->text : 0;
}

static struct waiting_env *
find_env(const struct waiting *w, uint32_t uid, int64_t env)
{
    const struct env_key key = {env, uid};
    struct waiting_env *x;
    /* It does not see that all bytes of the key have been set:
     * NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
    HASH_FIND(hh, w->envs, &key, sizeof key, x);
    return x;
}

void
waiting_add_env(struct waiting *w, uint32_t uid, int64_t env, int64_t bytes)
{
    struct waiting_env *x = find_env(w, uid, env);
    if (!x) {
        x = xcalloc(1, sizeof *x);
        x->key = (struct env_key){env, uid};
        x->bytes = bytes;
        HASH_ADD(hh, w->envs, key, sizeof x->key, x);
        find_or_add(w, uid)->envs += bytes;
    }
    x->jobs++;
}

void
waiting_drop_env(struct waiting *w, uint32_t uid, int64_t env)
{
    struct waiting_env *x = find_env(w, uid, env);
    if (!x || --x->jobs > 0)
        return;
    find_or_add(w, uid)->envs -= x->bytes;
    HASH_DEL(w->envs, x);
    free(x);
}

int64_t
waiting_envs_of(const struct waiting *w, uint32_t uid)
{
    const struct waiting_user *user = find(w, position(w, uid), uid);
    return user ? user->envs : 0;
}

bool
waiting_has_env(const struct waiting *w, uint32_t uid, int64_t env)
{
    return find_env(w, uid, env) != NULL;
}

void
waiting_free(struct waiting *w)
{
    struct waiting_env *x = w->envs, *next;
    HASH_CLEAR(hh, w->envs);
    for (; x; x = next) {
        next = x->hh.next;
        free(x);
    }
    free(w->users);
    *w = (struct waiting){0};
}
