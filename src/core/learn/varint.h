/* Numbers in few bytes: seven bits each, the lowest first, the top bit says that more follow;
 * signed ones with the sign in the lowest bit. For what is kept of series and traces. */
#ifndef CORE_LEARN_VARINT_H
#define CORE_LEARN_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

void varint_put(struct buf *out, uint64_t v);
void varint_put_signed(struct buf *out, int64_t v);

/* Bytes that are being read; bad is set by whatever is cut short or out of range, and stays. */
struct varint_reader {
    const unsigned char *at, *end;
    bool bad;
};
struct varint_reader varint_reader(const void *bytes, size_t n);
int64_t varint_get(struct varint_reader *r, int64_t least, int64_t most); /* least, when bad */
int64_t
varint_get_signed(struct varint_reader *r); /* within a third of int64_t, so sums of two fit */

#endif
