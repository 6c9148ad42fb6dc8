/* Notes: short texts under a key, of which the store knows nothing more: what a person said
 * about a card and what is wrong with it, how far the kernel's log has been read. They lie in
 * the meta table, because there are few of them and they change seldom. */
#include "base/cleanup.h"
#include "base/err.h"
#include "store/store_priv.h"

static char *
note_key(const char *key)
{
    return xasprintf("note:%s", key);
}

int
store_note_put(struct store *s, const char *key, const char *text, struct err *e)
{
    auto_free char *full = note_key(key);

    return meta_set(s, full, text, e);
}

char *
store_note_get(struct store *s, const char *key)
{
    auto_free char *full = note_key(key);
    sqlite3_stmt *st = store_stmt(s, STMT_META_GET, NULL);
    char *text = NULL;

    if (!st)
        return NULL;
    sqlite3_bind_text(st, 1, full, -1, SQLITE_STATIC);
    if (sqlite3_step(st) == SQLITE_ROW)
        text = xstrdup((const char *)sqlite3_column_text(st, 0));
    sqlite3_reset(st);
    return text;
}
