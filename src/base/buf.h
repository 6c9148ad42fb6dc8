/* A growing byte string. Always followed by a NUL that is not counted, so .data is a C
 * string whenever the bytes hold none themselves. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char *data; /* NULL until the first byte */
    size_t len;
    size_t cap;
};

#define BUF_INIT                                                                               \
    {                                                                                          \
        NULL, 0, 0                                                                             \
    }
#define auto_buf __attribute__((cleanup(buf_free)))

void buf_free(struct buf *b);
void buf_clear(struct buf *b); /* keeps the memory */
void buf_reserve(struct buf *b, size_t more);
void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_adds(struct buf *b, const char *s);
void buf_addc(struct buf *b, char c);
/* Appends a text with its NUL, as the next of several. */
void buf_addz(struct buf *b, const char *s);
void buf_addzf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_addi(struct buf *b, int64_t v); /* in decimal; several times as fast as a format */
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_addv(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
void buf_drop(struct buf *b, size_t n); /* removes the first n bytes */
/* Writes the digits of v to the end of `room`. Returns the first digit; *n is the count. */
const char *decimal_digits(int64_t v, char room[24], size_t *n);
const char *buf_str(const struct buf *b); /* "" when empty; borrowed */
char *buf_take(struct buf *b);            /* the caller frees; the buffer is empty afterwards */

#endif
