/* Notes: short texts under a key, opaque to the store, such as an administrator's remark about
 * a GPU, its fault, or how far the kernel log has been read. They share the meta table,
 * because they are few and seldom change. */
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
    char *text;

    (void)store_get_text(s, STMT_META_GET, BINDS(bind_text(full)), &text, NULL);
    return text;
}
