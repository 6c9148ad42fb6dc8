/* The event stream: numbered, appended in the transaction of the change it describes, read in
 * order by its followers, trimmed from the old end. */
#include "base/err.h"
#include "store/store_priv.h"

int
store_event_add(struct store *s, struct store_event *event, struct err *e)
{
    event->seq = s->last_seq + 1;
    struct bind json = bind_text(event->json);
    json.number = (int64_t)event->json_len;
    if (store_put(s, STMT_EVENT_ADD,
                  BINDS(bind_number(event->seq), bind_number(event->at_us),
                        bind_text(event->kind), bind_number(event->job),
                        bind_number(event->file), json),
                  e) < 0)
        return -1;
    s->last_seq++;
    return 0;
}

int64_t
store_event_last(const struct store *s)
{
    return s->last_seq;
}

/* Number and time of the first event with seq > since. False: there is none. */
static bool
event_behind(struct store *s, int64_t since, int64_t *seq, int64_t *at_us)
{
    sqlite3_stmt *st = store_bound(s, STMT_EVENTS, BINDS(bind_number(since)), NULL);
    bool found;

    if (!st)
        return false;
    found = sqlite3_step(st) == SQLITE_ROW;
    if (found) {
        *seq = sqlite3_column_int64(st, 0);
        *at_us = sqlite3_column_int64(st, 1);
    }
    sqlite3_reset(st);
    return found;
}

int64_t
store_event_first(struct store *s)
{
    int64_t seq = 0, at_us;

    return event_behind(s, 0, &seq, &at_us) ? seq : 0;
}

/* Binary search by number. Events are in order of time unless the clock was set back; then
 * either answer is as good. */
int64_t
store_event_before(struct store *s, int64_t at_us)
{
    int64_t low = 0, high = s->last_seq; /* events up to low are older or absent; those after
                                            high are not older */
    int64_t seq, when;

    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (event_behind(s, mid, &seq, &when) && when < at_us)
            low = seq;
        else
            high = mid;
    }
    return low;
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
store_events_read(struct store *s, int64_t since, store_event_cb cb, void *arg, struct err *e)
{
    sqlite3_stmt *st = store_bound(s, STMT_EVENTS, BINDS(bind_number(since)), e);
    struct store_event event;
    int rc;

    if (!st)
        return -1;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        event_read(st, &event);
        if (cb(&event, arg) != 0)
            break;
    }
    return store_read_end(s, st, rc, e);
}

int
store_events_trim(struct store *s, int64_t keep, int most, struct err *e)
{
    int64_t all = s->last_seq - (keep > 1 ? keep : 1);
    int64_t first = store_event_first(s), now = first + most - 1;

    if (first == 0 || first > all)
        return 0;
    return store_put(s, STMT_EVENTS_TRIM, BINDS(bind_number(now < all ? now : all)), e) < 0
               ? -1
               : now < all;
}
