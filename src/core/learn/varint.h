/* Numbers in few bytes: seven bits each, lowest first, with the top bit set if more follow;
 * signed numbers have the sign in the lowest bit. For stored series and traces. */
#ifndef CORE_LEARN_VARINT_H
#define CORE_LEARN_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

void varint_put(struct buf *out, uint64_t v);
void varint_put_signed(struct buf *out, int64_t v);

/* A position in encoded bytes. bad is set, and stays, if a number is truncated or out of
 * range. */
struct varint_reader {
    const unsigned char *at, *end;
    bool bad;
};
struct varint_reader varint_reader(const void *bytes, size_t n);
int64_t varint_get(struct varint_reader *r, int64_t least, int64_t most); /* bad: least */
int64_t varint_get_signed(struct varint_reader *r); /* within a third of int64_t: two add up */

#endif
