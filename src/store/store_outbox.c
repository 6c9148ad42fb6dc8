/* The outbox: notifications of jobs not yet delivered. A row is written in the transaction of
 * its event, and removed once the notification was delivered or given up. */
#include <inttypes.h>

#include "base/err.h"
#include "store/store_priv.h"

int
store_outbox_add(struct store *s, struct store_letter *letter, struct err *e)
{
    if (store_put(s, STMT_OUTBOX_ADD,
                  BINDS(bind_number(letter->job), bind_number(letter->uid),
                        bind_text(letter->kind), bind_text(letter->target),
                        bind_text(letter->event), bind_number(letter->site)),
                  e) < 0)
        return -1;
    letter->id = sqlite3_last_insert_rowid(s->db);
    return 0;
}

int
store_outbox_remove(struct store *s, int64_t id, struct err *e)
{
    return store_put(s, STMT_OUTBOX_REMOVE, BINDS(bind_number(id)), e);
}

int
store_outbox_tried(struct store *s, int64_t id, int tries, struct err *e)
{
    return store_put(s, STMT_OUTBOX_TRIED, BINDS(bind_number(id), bind_number(tries)), e);
}

static void
read_letter(sqlite3_stmt *st, struct store_letter *out)
{
    out->id = sqlite3_column_int64(st, 0);
    out->job = (uint32_t)sqlite3_column_int64(st, 1);
    out->uid = (uint32_t)sqlite3_column_int64(st, 2);
    out->kind = (const char *)sqlite3_column_text(st, 3);
    out->target = (const char *)sqlite3_column_text(st, 4);
    out->event = (const char *)sqlite3_column_text(st, 5);
    out->tries = sqlite3_column_int(st, 6);
    out->site = sqlite3_column_int(st, 7) != 0;
}

int
store_outbox_walk(struct store *s, int64_t from, int64_t to, store_letter_cb cb, void *arg,
                  struct err *e)
{
    sqlite3_stmt *st =
        store_bound(s, STMT_OUTBOX, BINDS(bind_number(from), bind_number(to)), e);
    struct store_letter letter;
    int rc;

    if (!st)
        return -1;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        read_letter(st, &letter);
        if (cb(&letter, arg) != 0)
            break;
    }
    return store_read_end(s, st, rc, e);
}
