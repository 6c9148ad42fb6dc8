/* Answers that are kept for a while: a client whose connection is lost before it has read one
 * asks again with the same token, and gets it instead of doing the same a second time. They
 * are written in the transaction that does what they report. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "store/store_priv.h"

/* A user's newest answers stay: a program asks for one thing at a time, and again within a
 * minute. Of those that name jobs by the thousand fewer do. */
#define KEPT        256
#define KEPT_LARGE  4
#define LARGE_BYTES 4096

char *
store_answer_get(struct store *s, uint32_t uid, const char *token)
{
    char *text;

    (void)store_get_text(s, STMT_ANSWER_GET, BINDS(bind_number(uid), bind_text(token)), &text,
                         NULL);
    return text;
}

/* Keeps the user's newest n of those that have more bytes than that. */
static int
trim(struct store *s, uint32_t uid, int bytes, int n, struct err *e)
{
    return store_put(s, STMT_ANSWERS_TRIM,
                     BINDS(bind_number(uid), bind_number(n), bind_number(bytes)), e);
}

int
store_answer_put(struct store *s, uint32_t uid, const char *token, const char *json,
                 struct err *e)
{
    if (store_put(s, STMT_ANSWER_PUT,
                  BINDS(bind_number(uid), bind_text(token), bind_text(json)), e) < 0)
        return -1;
    if (strlen(json) > LARGE_BYTES && trim(s, uid, LARGE_BYTES, KEPT_LARGE, e) < 0)
        return -1;
    return trim(s, uid, 0, KEPT, e);
}
