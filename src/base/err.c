/* Error values, their names on the wire, their exit statuses, and the aborting allocators.
 * Called by everything. An error always has a code other than ERR_NONE and valid UTF-8 text:
 * truncation respects character boundaries. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each code's name on the wire, and the exit status of a command that fails with it. */
static const struct {
    const char *name;
    int exit_status;
} err_codes[] = {
    [ERR_NONE] = {"none", 0},
    [ERR_FAILED] = {"failed", 1},
    [ERR_USAGE] = {"usage", 2},
    [ERR_NO_JOB] = {"no_job", 3},
    [ERR_UNREACHABLE] = {"unreachable", 4},
    [ERR_PERMISSION] = {"permission", 5},
    [ERR_REFUSED] = {"refused", 6},
    [ERR_TIMED_OUT] = {"timed_out", 7},
    [ERR_NO_SPACE] = {"no_space", 1},
};
#define ERR_CODES (sizeof(err_codes) / sizeof(err_codes[0]))

/* Removes the bytes of an incomplete last character. */
static void
cut_at_character(char *text, size_t len)
{
    size_t start = len;

    while (start > 0 && len - start < 4 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0)
        return;
    unsigned char lead = (unsigned char)text[start - 1];
    size_t want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (want > 1 && len - start + 1 < want)
        text[start - 1] = '\0';
}

static void err_vset(struct err *e, enum err_code code, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

static void
err_vset(struct err *e, enum err_code code, const char *fmt, va_list ap)
{
    int n = vsnprintf(e->text, sizeof e->text, fmt, ap);

    e->code = code;
    e->errnum = 0;
    if (n < 0)
        e->text[0] = '\0';
    else if ((size_t)n >= sizeof e->text)
        cut_at_character(e->text, sizeof e->text - 1);
}

int
err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
    va_list ap;

    if (!e)
        return -1;
    va_start(ap, fmt);
    err_vset(e, code, fmt, ap);
    va_end(ap);
    return -1;
}

int
err_errno(struct err *e, enum err_code code, int errnum, const char *fmt, ...)
{
    struct err words;
    char why[128];
    va_list ap;

    if (!e)
        return -1;
    if (code == ERR_FAILED) {
        if (errnum == ENOSPC || errnum == EDQUOT)
            code = ERR_NO_SPACE;
        else if (errnum == EACCES || errnum == EPERM)
            code = ERR_PERMISSION;
    }
    va_start(ap, fmt);
    err_vset(&words, code, fmt, ap);
    va_end(ap);
    err_set(e, code, "%s: %s", words.text, strerror_r(errnum, why, sizeof why));
    e->errnum = errnum;
    return -1;
}

int
err_prefix(struct err *e, const char *fmt, ...)
{
    struct err words;
    char *said;
    va_list ap;

    if (!e)
        return -1;
    said = xstrdup(e->text);
    va_start(ap, fmt);
    err_vset(&words, e->code, fmt, ap);
    va_end(ap);
    int errnum = e->errnum;
    err_set(e, e->code, "%s: %s", words.text, said);
    e->errnum = errnum;
    free(said);
    return -1;
}

int
err_exit_status(enum err_code code)
{
    return (size_t)code < ERR_CODES ? err_codes[code].exit_status : 1;
}

const char *
err_name(enum err_code code)
{
    return (size_t)code < ERR_CODES ? err_codes[code].name : "failed";
}

enum err_code
err_from_name(const char *name)
{
    for (size_t i = 0; name && i < ERR_CODES; i++)
        if (strcmp(err_codes[i].name, name) == 0)
            return (enum err_code)i;
    return ERR_FAILED;
}

_Noreturn void
err_abort_at(const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "berth: broken invariant at %s:%d: ", file, line);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    abort();
}

void *
xmalloc(unsigned long size)
{
    void *p = malloc(size ? size : 1);

    if (!p)
        err_abort("no memory for %lu bytes", size);
    return p;
}

void *
xcalloc(unsigned long n, unsigned long size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);

    if (!p)
        err_abort("no memory for %lu x %lu bytes", n, size);
    return p;
}

void *
xrealloc(void *p, unsigned long size)
{
    void *q = realloc(p, size ? size : 1);

    if (!q)
        err_abort("no memory for %lu bytes", size);
    return q;
}

void *
xdouble(void *list, unsigned long *cap, unsigned long size)
{
    *cap = *cap ? *cap * 2 : 4;
    return xrealloc(list, *cap * size);
}

char *
xstrdup(const char *s)
{
    return xstrndup(s, strlen(s));
}

char *
xstrndup(const char *s, unsigned long n)
{
    unsigned long len = strnlen(s, n);
    char *copy = xmalloc(len + 1);

    memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

char *
xasprintf(const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        err_abort("no memory for formatted text");
    va_end(ap);
    return s;
}
