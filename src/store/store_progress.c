/* Progress of a long request that changes jobs, one row per piece, each written in the piece's
 * transaction. If the daemon dies in between, its successor reads the rows when the client
 * repeats the request. They are removed with the request. */
#include "base/err.h"
#include "store/store_priv.h"

int
store_progress_add(struct store *s, uint32_t uid, const char *token,
                   const struct store_piece *piece, struct err *e)
{
    return store_put(s, STMT_PROGRESS_ADD,
                     BINDS(bind_number(uid), bind_text(token), bind_number(piece->number),
                           bind_number(piece->at_us), bind_text(piece->text)),
                     e);
}

char *
store_progress_get(struct store *s, uint32_t uid, const char *token, int number)
{
    char *text;

    (void)store_get_text(s, STMT_PROGRESS_GET,
                         BINDS(bind_number(uid), bind_text(token), bind_number(number)), &text,
                         NULL);
    return text;
}

int
store_progress_drop(struct store *s, uint32_t uid, const char *token, struct err *e)
{
    return store_put(s, STMT_PROGRESS_DROP, BINDS(bind_number(uid), bind_text(token)), e);
}

int
store_progress_trim(struct store *s, int64_t before_us, struct err *e)
{
    return store_put(s, STMT_PROGRESS_TRIM, BINDS(bind_number(before_us)), e);
}
