/* Splits a byte stream into lines of one JSON object each. The daemon uses it for clients,
 * shepherds and the probe. A line over the bound is the sender's error, detected before the
 * bytes are kept. */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include <stddef.h>

#include "base/buf.h"

#define FRAME_MAX_CLIENT ((size_t)64 << 20) /* a jobs file of 100,000 lines is about 20 MiB */
#define FRAME_MAX_PEER   ((size_t)4 << 20)  /* shepherd and probe messages are short */

struct frame {
    struct buf bytes;
    size_t scanned; /* no newline before this offset */
    size_t max;
};

void frame_init(struct frame *f, size_t max);
void frame_free(struct frame *f);

/* Room for at least n more bytes, to read into; NULL when the pending line is too long. */
char *frame_room(struct frame *f, size_t n);
void frame_filled(struct frame *f, size_t n);

/* The next whole line (without its newline, NUL-terminated in place) or NULL. Valid until
 * frame_done, which must be called after the last frame_next of a turn. */
char *frame_next(struct frame *f, size_t *at, size_t *len);
void frame_done(struct frame *f, size_t at);

#endif
