/* A byte string that grows by doubling, so n appends cost O(n). Every function keeps the
 * invariant that data, when there is any, has a NUL at data[len] that is not counted. */
#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

void
buf_free(struct buf *b)
{
    free(b->data);
    *b = (struct buf)BUF_INIT;
}

void
buf_clear(struct buf *b)
{
    b->len = 0;
    if (b->data)
        b->data[0] = '\0';
}

void
buf_reserve(struct buf *b, size_t more)
{
    size_t need, cap = b->cap ? b->cap : 64;

    if (more >= SIZE_MAX / 2 - b->len)
        err_abort("a buffer of %zu bytes is to grow by %zu", b->len, more);
    need = b->len + more + 1;
    if (need <= b->cap)
        return;
    while (cap < need)
        cap *= 2;
    b->data = xrealloc(b->data, cap);
    b->data[b->len] = '\0';
    b->cap = cap;
}

void
buf_add(struct buf *b, const void *bytes, size_t n)
{
    buf_reserve(b, n);
    if (n > 0)
        memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void
buf_adds(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void
buf_addc(struct buf *b, char c)
{
    buf_reserve(b, 1);
    b->data[b->len++] = c;
    b->data[b->len] = '\0';
}

const char *
decimal_digits(int64_t v, char room[24], size_t *n)
{
    char *p = room + 24;
    uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do {
        *--p = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (v < 0)
        *--p = '-';
    *n = (size_t)(room + 24 - p);
    return p;
}

void
buf_addz(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s) + 1);
}

void
buf_addzf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    buf_addv(b, fmt, ap);
    va_end(ap);
    buf_addc(b, '\0');
}

void
buf_addi(struct buf *b, int64_t v)
{
    char room[24];
    size_t n;
    const char *digits = decimal_digits(v, room, &n);
    buf_add(b, digits, n);
}

void
buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    buf_addv(b, fmt, ap);
    va_end(ap);
}

void
buf_addv(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    int n;

    va_copy(again, ap);
    buf_reserve(b, 64);
    n = vsnprintf(b->data + b->len, b->cap - b->len, fmt, ap);
    if (n < 0)
        err_abort("text cannot be formatted with '%s'", fmt);
    if ((size_t)n >= b->cap - b->len) {
        buf_reserve(b, (size_t)n);
        vsnprintf(b->data + b->len, b->cap - b->len, fmt, again);
    }
    va_end(again);
    b->len += (size_t)n;
}

void
buf_drop(struct buf *b, size_t n)
{
    if (n > b->len)
        err_abort("a buffer of %zu bytes is to lose %zu", b->len, n);
    if (n == 0)
        return;
    memmove(b->data, b->data + n, b->len - n + 1);
    b->len -= n;
}

const char *
buf_str(const struct buf *b)
{
    return b->data ? b->data : "";
}

char *
buf_take(struct buf *b)
{
    char *s = b->data ? b->data : xstrdup("");

    *b = (struct buf)BUF_INIT;
    return s;
}
