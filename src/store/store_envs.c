/* Captured environments. Thousands of jobs come from one shell, so each distinct environment
 * is stored once. It is found by hash and then compared byte by byte, so a deliberate hash
 * collision cannot give a user another user's environment. */
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "store/store_priv.h"

/* A script's submissions arrive one by one with the same environment; hashing it each time
 * would cost more than the rest of the insert. */
#define ENV_REMEMBER_BYTES (64 * 1024)

/* 48 bits of SHA-1 as a number, as the index holds them. */
static int64_t
env_hash(const void *bytes, size_t n)
{
    char hex[13];
    int64_t hash = 0;

    text_sha1_12(bytes, n, hex);
    for (int i = 0; i < 12; i++)
        hash = hash << 4 | (hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10);
    return hash;
}

static void
env_remember(struct store *s, const void *bytes, size_t n, int64_t id)
{
    s->env_id = 0;
    if (n > ENV_REMEMBER_BYTES)
        return;
    buf_clear(&s->env_bytes);
    buf_add(&s->env_bytes, bytes, n);
    s->env_id = id;
}

static bool
env_is_remembered(const struct store *s, const void *bytes, size_t n)
{
    return s->env_id != 0 && s->env_bytes.len == n &&
           memcmp(buf_str(&s->env_bytes), bytes, n) == 0;
}

/* Sets *id to that of equal bytes stored before, or to 0. */
static int
env_find(struct store *s, int64_t hash, const void *bytes, size_t n, int64_t *id, struct err *e)
{
    *id = 0;
    return store_get_number(s, STMT_ENV_FIND, BINDS(bind_number(hash), bind_bytes(bytes, n)),
                            id, e) < 0
               ? -1
               : 0;
}

static int
env_add(struct store *s, int64_t hash, const void *bytes, size_t n, int64_t *id, struct err *e)
{
    if (store_put(s, STMT_ENV_ADD, BINDS(bind_number(hash), bind_bytes(bytes, n)), e) < 0)
        return -1;
    *id = sqlite3_last_insert_rowid(s->db);
    return 0;
}

int
store_env_find(struct store *s, const void *bytes, size_t n, int64_t *id, struct err *e)
{
    const void *data = n ? bytes : ""; /* a NULL pointer would bind NULL, not an empty blob */

    if (env_is_remembered(s, data, n)) {
        *id = s->env_id;
        return 0;
    }
    return env_find(s, env_hash(data, n), data, n, id, e);
}

int
store_env_put(struct store *s, const void *bytes, size_t n, int64_t *id, struct err *e)
{
    const void *data = n ? bytes : "";
    int64_t hash;

    if (env_is_remembered(s, data, n)) {
        *id = s->env_id;
        return 0;
    }
    hash = env_hash(data, n);
    if (env_find(s, hash, data, n, id, e) < 0)
        return -1;
    if (*id == 0 && env_add(s, hash, data, n, id, e) < 0)
        return -1;
    env_remember(s, data, n, *id);
    return 0;
}

int
store_env_get(struct store *s, int64_t id, struct buf *out, struct err *e)
{
    int rc = store_get_bytes(s, STMT_ENV_GET, BINDS(bind_number(id)), out, e);

    if (rc == 0)
        err_set(e, ERR_FAILED, "environment %" PRId64 " is not in the database", id);
    return rc > 0 ? 0 : -1;
}

int64_t
store_env_bytes(struct store *s, int64_t id)
{
    int64_t n = 0;

    if (id)
        (void)store_get_number(s, STMT_ENV_BYTES, BINDS(bind_number(id)), &n, NULL);
    return n;
}
