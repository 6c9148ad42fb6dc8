/* Captured environments. Thousands of jobs come from one shell, so each distinct one is kept
 * once, found by a hash and then compared byte for byte: two users can never be given each
 * other's by a hash that was made to collide. */
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "store/store_priv.h"

/* One script's submissions come one by one with the same environment; hashing it each time
 * would cost more than the rest of the insert. */
#define ENV_REMEMBER_BYTES (64 * 1024)

/* 48 bits of SHA-1 as a number; the index holds these. */
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

/* *id of the same bytes put before, or 0. */
static int
env_find(struct store *s, int64_t hash, const void *bytes, size_t n, int64_t *id, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, STMT_ENV_FIND, e);
    int rc;

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, hash);
    sqlite3_bind_blob64(st, 2, bytes, n, SQLITE_STATIC);
    rc = sqlite3_step(st);
    *id = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    return store_read_end(s, st, rc, e);
}

static int
env_add(struct store *s, int64_t hash, const void *bytes, size_t n, int64_t *id, struct err *e)
{
    sqlite3_stmt *st = store_write_stmt(s, STMT_ENV_ADD, e);

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, hash);
    sqlite3_bind_blob64(st, 2, bytes, n, SQLITE_STATIC);
    if (store_write(s, st, e) < 0)
        return -1;
    *id = sqlite3_last_insert_rowid(s->db);
    return 0;
}

int
store_env_find(struct store *s, const void *bytes, size_t n, int64_t *id, struct err *e)
{
    const void *data = n ? bytes : ""; /* a NULL blob would be no bytes but NULL */

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
    sqlite3_stmt *st = store_stmt(s, STMT_ENV_GET, e);
    int rc;

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, id);
    rc = sqlite3_step(st);
    buf_clear(out);
    if (rc == SQLITE_ROW)
        buf_add(out, sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0));
    else if (rc == SQLITE_DONE)
        err_set(e, ERR_FAILED, "environment %" PRId64 " is not in the database", id);
    else
        store_read_failed(s, e);
    sqlite3_reset(st);
    return rc == SQLITE_ROW ? 0 : -1;
}

int64_t
store_env_bytes(struct store *s, int64_t id)
{
    sqlite3_stmt *st = id ? store_stmt(s, STMT_ENV_BYTES, NULL) : NULL;
    int64_t n = 0;

    if (!st)
        return 0;
    sqlite3_bind_int64(st, 1, id);
    if (sqlite3_step(st) == SQLITE_ROW)
        n = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    return n;
}
