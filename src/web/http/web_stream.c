/* Server-sent events: see web_stream.h. Message n is in slot n % RING until RING later ones
 * have arrived; the connection of a listener that has read everything is suspended. */
#include "web/http/web_stream.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"

#define RING        512
#define BLOCK_BYTES 16384

struct message {
    struct buf text;
    bool is_detail;
};

struct listener {
    struct listener *next, **at;
    struct stream *stream;
    struct MHD_Connection *connection;
    uint64_t position; /* the next message to send */
    size_t sent;       /* of that message, already sent */
    bool all;
    bool suspended;
};

struct stream {
    struct message ring[RING];
    uint64_t n; /* number of messages so far */
    struct listener *listeners;
    int n_listeners;
    bool ended;
    struct stream_calls calls;
};

struct stream *
stream_new(const struct stream_calls *calls)
{
    struct stream *s = xcalloc(1, sizeof *s);

    s->calls = *calls;
    return s;
}

static void
wake(struct stream *s)
{
    bool any = false;

    for (struct listener *l = s->listeners; l; l = l->next) {
        if (!l->suspended)
            continue;
        l->suspended = false;
        any = true;
        MHD_resume_connection(l->connection);
    }
    if (any)
        s->calls.on_resume(s->calls.resume_ctx);
}

void
stream_end(struct stream *s)
{
    s->ended = true;
    wake(s);
}

void
stream_free(struct stream *s)
{
    if (!s)
        return;
    for (int i = 0; i < RING; i++)
        buf_free(&s->ring[i].text);
    free(s);
}

int
stream_listeners(const struct stream *s)
{
    return s->n_listeners;
}

/* --- listening --- */

/* Sent to a listener that fell behind by more than the ring: the page then reloads everything.
 * The leading newlines end a message that was sent in part. */
static const char lost[] = "\n\nevent: lost\ndata: {}\n\n";

static ssize_t
copy(struct listener *l, char *out, size_t room)
{
    struct stream *s = l->stream;
    size_t n = 0;

    if (s->n - l->position > RING && room >= sizeof lost) {
        memcpy(out, lost, sizeof lost - 1);
        n = sizeof lost - 1;
        l->position = s->n;
        l->sent = 0;
    }
    while (l->position < s->n && n < room) {
        const struct message *m = &s->ring[l->position % RING];
        size_t left = m->is_detail && !l->all ? 0 : m->text.len - l->sent;
        size_t part = left < room - n ? left : room - n;
        if (part > 0)
            memcpy(out + n, m->text.data + l->sent, part);
        n += part;
        l->sent += part;
        if (part < left)
            break;
        l->sent = 0;
        l->position++;
    }
    return (ssize_t)n;
}

static ssize_t
on_read(void *cls, uint64_t pos, char *out, size_t room)
{
    struct listener *l = cls;
    ssize_t n;

    (void)pos;
    if (l->stream->ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    n = copy(l, out, room);
    if (n == 0) {
        l->suspended = true;
        MHD_suspend_connection(l->connection);
    }
    return n;
}

static void
on_gone(void *cls)
{
    struct listener *l = cls;
    struct stream *s = l->stream;

    *l->at = l->next;
    if (l->next)
        l->next->at = l->at;
    free(l);
    s->n_listeners--;
    if (!s->ended)
        s->calls.on_change(s->calls.change_ctx, s->n_listeners);
}

struct MHD_Response *
stream_listen(struct stream *s, struct MHD_Connection *connection, bool all)
{
    struct listener *l;
    struct MHD_Response *response;

    if (s->n_listeners >= STREAM_LISTENERS_MAX)
        return NULL;
    l = xcalloc(1, sizeof *l);
    *l = (struct listener){.next = s->listeners,
                           .at = &s->listeners,
                           .stream = s,
                           .connection = connection,
                           .position = s->n,
                           .all = all};
    response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_read, l, on_gone);
    if (!response) {
        free(l);
        return NULL;
    }
    if (s->listeners)
        s->listeners->at = &l->next;
    s->listeners = l;
    s->n_listeners++;
    s->calls.on_change(s->calls.change_ctx, s->n_listeners);
    return response;
}

/* --- sending --- */

/* May overwrite a slot that is half sent to a listener: that listener is behind by a whole
 * ring, and copy detects this by its position. */
static void
put(struct stream *s, bool is_detail, struct buf *text)
{
    struct message *m = &s->ring[s->n % RING];

    buf_free(&m->text);
    m->text = *text;
    m->is_detail = is_detail;
    s->n++;
    wake(s);
}

void
stream_send(struct stream *s, const char *name, const char *data, size_t n, bool is_detail)
{
    struct buf text = BUF_INIT;

    if (s->n_listeners == 0)
        return;
    buf_addf(&text, "event: %s\ndata: ", name);
    buf_add(&text, data, n);
    buf_adds(&text, "\n\n");
    put(s, is_detail, &text);
}

void
stream_beat(struct stream *s)
{
    struct buf text = BUF_INIT;

    if (s->n_listeners == 0)
        return;
    buf_adds(&text, ":\n\n");
    put(s, false, &text);
}
