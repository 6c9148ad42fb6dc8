/* Frames between an attached client and a shepherd: see attach_frames.h. A peer cannot make
 * this allocate more than the bound: a longer frame is refused before its bytes are
 * buffered. */
#include "wire/attach_frames.h"

#include "base/err.h"

static void
put_number(char *out, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (char)(v >> (8 * (bytes - 1 - i)));
}

static uint64_t
get_number(const char *in, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v = v << 8 | (unsigned char)in[i];
    return v;
}

static void
put_head(char *out, char type, size_t n)
{
    out[0] = type;
    put_number(out + 1, n, 4);
}

void
attach_add(struct buf *out, char type, const void *bytes, size_t n)
{
    char head[ATTACH_HEAD_BYTES];
    if (n > ATTACH_PAYLOAD_MAX)
        err_abort("an attach frame of %zu bytes", n);
    put_head(head, type, n);
    buf_add(out, head, sizeof head);
    buf_add(out, bytes, n);
}

void
attach_add_winsize(struct buf *out, uint16_t rows, uint16_t columns)
{
    char payload[4];
    put_number(payload, rows, 2);
    put_number(payload + 2, columns, 2);
    attach_add(out, ATTACH_WINSIZE, payload, sizeof payload);
}

char *
attach_begin_output(struct buf *out, uint64_t offset)
{
    buf_reserve(out, ATTACH_HEAD_BYTES + ATTACH_PAYLOAD_MAX);
    put_number(out->data + out->len + ATTACH_HEAD_BYTES, offset, ATTACH_OFFSET_SIZE);
    return out->data + out->len + ATTACH_HEAD_BYTES + ATTACH_OFFSET_SIZE;
}

void
attach_end_output(struct buf *out, size_t n)
{
    if (n == 0)
        return;
    put_head(out->data + out->len, ATTACH_OUTPUT, ATTACH_OFFSET_SIZE + n);
    out->len += ATTACH_HEAD_BYTES + ATTACH_OFFSET_SIZE + n;
    out->data[out->len] = '\0';
}

int
attach_next(const struct buf *in, size_t *at, struct attach_frame *out)
{
    size_t left = in->len - *at;
    if (left < ATTACH_HEAD_BYTES)
        return 0;
    const char *head = in->data + *at;
    size_t n = (size_t)get_number(head + 1, 4);
    if (n > ATTACH_PAYLOAD_MAX)
        return -1;
    if (left - ATTACH_HEAD_BYTES < n)
        return 0;
    *out = (struct attach_frame){.type = head[0], .bytes = head + ATTACH_HEAD_BYTES, .n = n};
    *at += ATTACH_HEAD_BYTES + n;
    return 1;
}

int
attach_get_output(const struct attach_frame *f, uint64_t *offset, const char **bytes, size_t *n)
{
    if (f->n < ATTACH_OFFSET_SIZE)
        return -1;
    *offset = get_number(f->bytes, ATTACH_OFFSET_SIZE);
    *bytes = f->bytes + ATTACH_OFFSET_SIZE;
    *n = f->n - ATTACH_OFFSET_SIZE;
    return 0;
}

int
attach_get_winsize(const struct attach_frame *f, uint16_t *rows, uint16_t *columns)
{
    if (f->n != 4)
        return -1;
    *rows = (uint16_t)get_number(f->bytes, 2);
    *columns = (uint16_t)get_number(f->bytes + 2, 2);
    return 0;
}
