/* Lines from a byte stream; see frame.h. `scanned` avoids searching a 20 MiB line from the
 * start for each 64 KiB read. */
#include "wire/frame.h"

#include <string.h>

void
frame_init(struct frame *f, size_t max)
{
    *f = (struct frame){.bytes = BUF_INIT, .max = max};
}

void
frame_free(struct frame *f)
{
    buf_free(&f->bytes);
}

char *
frame_room(struct frame *f, size_t n)
{
    if (f->bytes.len > f->max)
        return NULL;
    buf_reserve(&f->bytes, n);
    return f->bytes.data + f->bytes.len;
}

void
frame_filled(struct frame *f, size_t n)
{
    f->bytes.len += n;
    f->bytes.data[f->bytes.len] = '\0';
}

char *
frame_next(struct frame *f, size_t *at, size_t *len)
{
    size_t from = f->scanned > *at ? f->scanned : *at;
    if (from >= f->bytes.len)
        return NULL;
    char *end = memchr(f->bytes.data + from, '\n', f->bytes.len - from);
    if (!end) {
        f->scanned = f->bytes.len;
        return NULL;
    }
    char *line = f->bytes.data + *at;
    *end = '\0';
    *len = (size_t)(end - line);
    *at = (size_t)(end - f->bytes.data) + 1;
    f->scanned = *at;
    return line;
}

void
frame_done(struct frame *f, size_t at)
{
    buf_drop(&f->bytes, at);
    f->scanned = f->scanned > at ? f->scanned - at : 0;
    /* Release the memory of a huge request instead of holding 20 MiB for the life of the
     * connection. */
    if (f->bytes.len == 0 && f->bytes.cap > ((size_t)1 << 20)) {
        buf_free(&f->bytes);
        f->bytes = (struct buf)BUF_INIT;
    }
}
