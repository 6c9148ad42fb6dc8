/* What an attached client and a job's shepherd say to each other: frames of one byte of type,
 * four bytes of length (the greatest first) and the payload. Both sides build and cut them
 * here; docs/protocol.md section 5 says what they mean. */
#ifndef WIRE_ATTACH_FRAMES_H
#define WIRE_ATTACH_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define ATTACH_HEAD_BYTES  5
#define ATTACH_PAYLOAD_MAX 65536
#define ATTACH_OFFSET_SIZE 8 /* in front of the bytes of an output frame */

enum attach_type {
    ATTACH_HELLO = 'h',   /* both ways, first: JSON */
    ATTACH_OUTPUT = 'o',  /* from the shepherd: the offset in the log, then bytes */
    ATTACH_ENDED = 'x',   /* from the shepherd, last: the exit record, JSON */
    ATTACH_REFUSED = 'r', /* from the shepherd, last: words */
    ATTACH_INPUT = 'i',   /* from the client: bytes */
    ATTACH_EOF = 'e',     /* from the client: no more input */
    ATTACH_WINSIZE = 'w', /* from the client: rows and columns, two bytes each */
};

/* A frame in a buffer: bytes are borrowed from there. */
struct attach_frame {
    char type;
    const char *bytes;
    size_t n;
};

/* Appends a frame; n at most ATTACH_PAYLOAD_MAX. */
void attach_add(struct buf *out, char type, const void *bytes, size_t n);
void attach_add_winsize(struct buf *out, uint16_t rows, uint16_t columns);

/* An output frame whose bytes are read straight into place: room for up to
 * ATTACH_PAYLOAD_MAX - ATTACH_OFFSET_SIZE of them, then how many came (0: no frame). */
char *attach_begin_output(struct buf *out, uint64_t offset);
void attach_end_output(struct buf *out, size_t n);

/* The frame that begins at *at, which moves behind it: 1; 0 when it is not whole yet; -1 when
 * it says to be longer than a frame may be. */
int attach_next(const struct buf *in, size_t *at, struct attach_frame *out);

/* What is in a frame of that type; -1 when it makes no sense. */
int attach_get_output(const struct attach_frame *f, uint64_t *offset, const char **bytes,
                      size_t *n);
int attach_get_winsize(const struct attach_frame *f, uint16_t *rows, uint16_t *columns);

#endif
