/* Answers kept for a while: a client that loses its connection before reading an answer
 * repeats the request with the same token and gets the stored answer, so requests are
 * idempotent. An answer is written in the transaction that does what it reports. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "store/store_priv.h"

/* How many of a user's newest answers are kept: a program sends one request at a time and
 * repeats it within a minute. Fewer large answers (those that list thousands of jobs) are
 * kept. */
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

/* Keeps the user's newest n answers of those larger than this many bytes. */
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
