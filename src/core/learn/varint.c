/* See varint.h. */
#include "core/learn/varint.h"

#include "base/buf.h"

#define MAGNITUDE_MAX (INT64_MAX / 3)

void
varint_put(struct buf *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        buf_addc(out, (char)(0x80 | (v & 0x7f)));
    buf_addc(out, (char)v);
}

void
varint_put_signed(struct buf *out, int64_t v)
{
    varint_put(out, v < 0 ? ~((uint64_t)v << 1) : (uint64_t)v << 1);
}

struct varint_reader
varint_reader(const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    return (struct varint_reader){.at = at, .end = at + n};
}

static uint64_t
get_raw(struct varint_reader *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 63 && r->at < r->end; shift += 7) {
        unsigned char byte = *r->at++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return v;
    }
    r->bad = true;
    return 0;
}

int64_t
varint_get(struct varint_reader *r, int64_t least, int64_t most)
{
    uint64_t v = get_raw(r);
    if (!r->bad && v <= INT64_MAX && (int64_t)v >= least && (int64_t)v <= most)
        return (int64_t)v;
    r->bad = true;
    return least;
}

int64_t
varint_get_signed(struct varint_reader *r)
{
    uint64_t v = get_raw(r);
    int64_t magnitude = (int64_t)(v >> 1);
    if (magnitude > MAGNITUDE_MAX) {
        r->bad = true;
        return 0;
    }
    return v & 1 ? -magnitude - 1 : magnitude;
}
