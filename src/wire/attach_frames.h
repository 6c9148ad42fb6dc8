/* The protocol between an attached client and a job's shepherd: frames of a one-byte type, a
 * four-byte big-endian length and the payload. Both sides build and parse frames here;
 * docs/protocol.md section 5 defines them. */
#ifndef WIRE_ATTACH_FRAMES_H
#define WIRE_ATTACH_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define ATTACH_HEAD_BYTES  5
#define ATTACH_PAYLOAD_MAX 65536
#define ATTACH_OFFSET_SIZE 8 /* precedes the bytes of an output frame */

enum attach_type {
    ATTACH_HELLO = 'h',   /* both directions, first: JSON */
    ATTACH_OUTPUT = 'o',  /* from the shepherd: offset in the log, then bytes */
    ATTACH_ENDED = 'x',   /* from the shepherd, last: the exit record, JSON */
    ATTACH_REFUSED = 'r', /* from the shepherd, last: the reason */
    ATTACH_INPUT = 'i',   /* from the client: bytes */
    ATTACH_EOF = 'e',     /* from the client: no more input */
    ATTACH_WINSIZE = 'w', /* from the client: rows and columns, two bytes each */
};

/* A frame in a buffer; bytes are borrowed from it. */
struct attach_frame {
    char type;
    const char *bytes;
    size_t n;
};

/* Appends a frame; n at most ATTACH_PAYLOAD_MAX. */
void attach_add(struct buf *out, char type, const void *bytes, size_t n);
void attach_add_winsize(struct buf *out, uint16_t rows, uint16_t columns);

/* Builds an output frame in place: begin returns room for up to ATTACH_PAYLOAD_MAX -
 * ATTACH_OFFSET_SIZE bytes to read into; end takes the number of bytes read (0: drops the
 * frame). */
char *attach_begin_output(struct buf *out, uint64_t offset);
void attach_end_output(struct buf *out, size_t n);

/* Reads the frame at *at and advances *at: 1; 0 if it is incomplete; -1 if its length exceeds
 * the bound. */
int attach_next(const struct buf *in, size_t *at, struct attach_frame *out);

/* Decode a frame of that type; -1 if invalid. */
int attach_get_output(const struct attach_frame *f, uint64_t *offset, const char **bytes,
                      size_t *n);
int attach_get_winsize(const struct attach_frame *f, uint16_t *rows, uint16_t *columns);

#endif
