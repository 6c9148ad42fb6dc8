/* The event stream: numbered, appended in the same transaction as what it tells about, read
 * in order by those who follow it, trimmed from its old end. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "store/internal.h"

int
store_event_add(struct store *s, struct store_event *event, struct err *e)
{
    sqlite3_stmt *st = store_write_stmt(s, STMT_EVENT_ADD, e);

    if (!st)
        return -1;
    event->seq = s->last_seq + 1;
    sqlite3_bind_int64(st, 1, event->seq);
    sqlite3_bind_int64(st, 2, event->at_us);
    sqlite3_bind_text(st, 3, event->kind, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 4, event->job);
    sqlite3_bind_int64(st, 5, event->file);
    sqlite3_bind_text64(st, 6, event->json, event->json_len, SQLITE_STATIC, SQLITE_UTF8);
    if (store_write(s, st, e) < 0)
        return -1;
    s->last_seq++;
    return 0;
}

int64_t
store_event_last(const struct store *s)
{
    return s->last_seq;
}

static int
id_compare(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* A sorted copy, for bsearch; the caller frees it. */
static uint32_t *
ids_sorted(const uint32_t *ids, int n)
{
    uint32_t *copy = xcalloc((unsigned long)n + 1, sizeof(*copy));

    if (n > 0) {
        memcpy(copy, ids, (size_t)n * sizeof(*copy));
        qsort(copy, (size_t)n, sizeof(*copy), id_compare);
    }
    return copy;
}

static void
event_read(sqlite3_stmt *st, struct store_event *event)
{
    event->seq = sqlite3_column_int64(st, 0);
    event->at_us = sqlite3_column_int64(st, 1);
    event->kind = (const char *)sqlite3_column_text(st, 2);
    event->job = (uint32_t)sqlite3_column_int64(st, 3);
    event->file = (uint32_t)sqlite3_column_int64(st, 4);
    event->json = (const char *)sqlite3_column_text(st, 5);
    event->json_len = (size_t)sqlite3_column_bytes(st, 5);
}

int
store_events_read(struct store *s, const struct store_event_filter *f, store_event_cb cb,
                  void *arg, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, STMT_EVENTS, e);
    auto_free uint32_t *ids = ids_sorted(f->jobs, f->n_jobs);
    int64_t left = f->limit > 0 ? f->limit : -1;
    struct store_event event;
    int rc = SQLITE_DONE;

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, f->since);
    sqlite3_bind_int64(st, 2, f->file);
    while (left != 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        event_read(st, &event);
        if (f->n_jobs > 0 &&
            !bsearch(&event.job, ids, (size_t)f->n_jobs, sizeof(*ids), id_compare))
            continue;
        left--;
        if (cb(&event, arg) != 0)
            break;
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        store_read_failed(s, e);
    sqlite3_reset(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : -1;
}

int
store_events_trim(struct store *s, int64_t keep, struct err *e)
{
    sqlite3_stmt *st = store_write_stmt(s, STMT_EVENTS_TRIM, e);

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, s->last_seq - (keep > 1 ? keep : 1));
    return store_write(s, st, e);
}
