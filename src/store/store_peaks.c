/* Learned memory use of commands (core/learn/demands.h): one row per user, fingerprint and
 * number of GPUs. The newest PEAKS_KEPT rows are kept. */
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "core/learn/demands.h"
#include "store/store_priv.h"
#include "store/store_row_fields.h"

#define PEAKS_KEPT 100000

int
store_peaks_put(struct store *s, const struct store_peaks_key *key, const struct learned *l,
                int64_t ended_us, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;

    for (int i = 0; i < l->n; i++)
        buf_addf(&text, i ? ",%" PRId32 : "%" PRId32, l->peaks_mib[i]);
    return store_put(s, STMT_PEAKS_PUT,
                     BINDS(bind_number(key->uid), bind_text(key->fingerprint),
                           bind_number(key->gpus), bind_text(buf_str(&text)),
                           bind_number(l->oom_mib), bind_number(l->oom_runs),
                           bind_number(ended_us)),
                     e);
}

/* Reads "6100,6200", at most as many as *l holds; an invalid number ends the list. */
static void
peaks_read(char *text, struct learned *l)
{
    char *rest = text && *text ? text : NULL;
    int64_t v;

    while (rest && l->n < LEARN_RUNS) {
        if (parse_int(strsep(&rest, ","), 0, INT32_MAX, &v, NULL) < 0)
            return;
        l->peaks_mib[l->n++] = (int32_t)v;
    }
}

int
store_peaks_get(struct store *s, const struct store_peaks_key *key, struct learned *out,
                struct err *e)
{
    sqlite3_stmt *st = store_bound(
        s, STMT_PEAKS_GET,
        BINDS(bind_number(key->uid), bind_text(key->fingerprint), bind_number(key->gpus)), e);
    int rc;

    *out = (struct learned){0};
    if (!st)
        return -1;
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        auto_free char *text = row_text(st, 0);
        peaks_read(text, out);
        out->oom_mib = sqlite3_column_int(st, 1);
        out->oom_runs = sqlite3_column_int(st, 2);
    }
    return store_read_end(s, st, rc, e);
}

int
store_peaks_trim(struct store *s, struct err *e)
{
    return store_put(s, STMT_PEAKS_TRIM, BINDS(bind_number(PEAKS_KEPT)), e);
}
