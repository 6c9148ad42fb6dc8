/* Facts about the instance: its token, the boot id of its last recovery, the next job and
 * order numbers, and whether its last shutdown was clean. */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "store/store_priv.h"

/* The value of a key, which the caller frees; NULL with e filled. */
static char *
meta_get(struct store *s, const char *key, struct err *e)
{
    char *value;

    if (store_get_text(s, STMT_META_GET, BINDS(bind_text(key)), &value, e) == 0)
        err_set(e, ERR_FAILED, "%s is damaged: its meta table lacks '%s'", s->path, key);
    return value;
}

static int
meta_get_text(struct store *s, const char *key, char *out, size_t size, struct err *e)
{
    auto_free char *value = meta_get(s, key, e);

    if (!value)
        return -1;
    if (strlen(value) >= size)
        return err_set(e, ERR_FAILED, "%s is damaged: '%s' is too long", s->path, key);
    memcpy(out, value, strlen(value) + 1);
    return 0;
}

static int
meta_get_number(struct store *s, const char *key, uint64_t *out, struct err *e)
{
    auto_free char *value = meta_get(s, key, e);
    int64_t v;

    if (!value)
        return -1;
    if (parse_int(value, 0, INT64_MAX, &v, NULL) < 0)
        return err_set(e, ERR_FAILED, "%s is damaged: '%s' is not a number", s->path, key);
    *out = (uint64_t)v;
    return 0;
}

/* The maximum of a column, for SQL that an index or the rowid answers directly. */
static int
meta_max(struct store *s, const char *sql, int64_t *out, struct err *e)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);

    if (rc == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
        *out = sqlite3_column_int64(st, 0);
    else
        rc = store_read_failed(s, e);
    sqlite3_finalize(st);
    return rc == SQLITE_OK ? 0 : -1;
}

void
counter_reach(struct counter *c, uint64_t used)
{
    if (c->next <= used)
        c->next = used + 1;
}

int
meta_load(struct store *s, struct err *e)
{
    uint64_t clean = 0;
    int64_t last_id = 0;

    if (meta_get_text(s, "token", s->token, sizeof s->token, e) < 0 ||
        meta_get_text(s, "boot_id", s->boot_id, sizeof s->boot_id, e) < 0 ||
        meta_get_number(s, "clean", &clean, e) < 0 ||
        meta_get_number(s, "next_job", &s->job_id.saved, e) < 0 ||
        meta_get_number(s, "next_order", &s->order.saved, e) < 0 ||
        meta_max(s, "SELECT coalesce(max(id), 0) FROM jobs", &last_id, e) < 0 ||
        meta_max(s, "SELECT coalesce(max(seq), 0) FROM events", &s->last_seq, e) < 0)
        return -1;
    s->clean = clean != 0;
    s->saved_seq = s->last_seq;
    s->job_id.next = s->job_id.saved;
    s->order.next = s->order.saved;
    counter_reach(&s->job_id, (uint64_t)last_id);
    return 0;
}

int
meta_set(struct store *s, const char *key, const char *value, struct err *e)
{
    return store_put(s, STMT_META_SET, BINDS(bind_text(key), bind_text(value)), e);
}

static int
meta_save_counter(struct store *s, const char *key, const struct counter *c, struct err *e)
{
    char value[32];

    if (c->next == c->saved)
        return 0;
    sqlite3_snprintf(sizeof value, value, "%llu", (unsigned long long)c->next);
    return meta_set(s, key, value, e);
}

/* Call this in the turn's transaction, just before the commit. */
int
meta_save_counters(struct store *s, struct err *e)
{
    if (meta_save_counter(s, "next_job", &s->job_id, e) < 0)
        return -1;
    return meta_save_counter(s, "next_order", &s->order, e);
}

void
meta_counters_saved(struct store *s)
{
    s->job_id.saved = s->job_id.next;
    s->order.saved = s->order.next;
}

int
meta_reload_boot_id(struct store *s)
{
    return meta_get_text(s, "boot_id", s->boot_id, sizeof s->boot_id, NULL);
}

const char *
store_token(const struct store *s)
{
    return s->token;
}

const char *
store_boot_id(const struct store *s)
{
    return s->boot_id;
}

int
store_boot_id_set(struct store *s, const char *boot_id, struct err *e)
{
    if (strlen(boot_id) >= sizeof s->boot_id)
        return store_failed(s, ERR_FAILED, e, "the boot id '%s' is too long", boot_id);
    if (meta_set(s, "boot_id", boot_id, e) < 0)
        return -1;
    memcpy(s->boot_id, boot_id, strlen(boot_id) + 1);
    return 0;
}

uint32_t
store_next_job_id(struct store *s)
{
    if (s->job_id.next > UINT32_MAX)
        err_abort("all %" PRIu32 " job ids are used up", UINT32_MAX);
    return (uint32_t)s->job_id.next++;
}

uint64_t
store_next_order(struct store *s)
{
    return s->order.next++;
}

uint32_t
store_peek_job_id(const struct store *s)
{
    return s->job_id.next > UINT32_MAX ? UINT32_MAX : (uint32_t)s->job_id.next;
}

void
store_advance_job_id(struct store *s, uint32_t next)
{
    if (next > s->job_id.next)
        s->job_id.next = next;
}
