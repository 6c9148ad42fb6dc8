/* Errors as values: a code, which maps to an exit status and to a JSON-RPC error, and a
 * message written where the facts are known. Functions that can fail take `struct err *` last
 * and return -1 (or NULL) with it filled. Never log *and* return an error. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

enum err_code {
    ERR_NONE = 0,
    ERR_FAILED,      /* anything without a code of its own */
    ERR_USAGE,       /* the caller's input is wrong: bad option, bad attribute, bad file */
    ERR_NO_JOB,      /* no such job */
    ERR_UNREACHABLE, /* no daemon, or the connection was lost */
    ERR_PERMISSION,  /* belongs to another user */
    ERR_REFUSED,     /* infeasible, over a limit, or a duplicate */
    ERR_TIMED_OUT,   /* gave up waiting */
    ERR_NO_SPACE,    /* disk or quota full */
};

struct err {
    enum err_code code;
    int errnum; /* of the failed system call, as passed to err_errno; 0: none */
    char text[1024];
};

/* Fills *e (which may be NULL) and returns -1, so that `return err_set(e, ...)` reads well.
 * Text longer than the buffer is truncated at a character boundary. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* As err_set, with ": strerror(errnum)" appended; ENOSPC and EDQUOT become ERR_NO_SPACE
 * when code is ERR_FAILED, EACCES and EPERM become ERR_PERMISSION. */
int err_errno(struct err *e, enum err_code code, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Prepends "words: " to the message, to add context on the way up. Returns -1. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The exit status of a command that fails with this error: 1 failed, 2 usage, 3 no such job, 4
 * daemon not reachable, 5 not permitted, 6 refused, 7 timed out waiting. */
int err_exit_status(enum err_code code);

/* Map between a code and its name on the wire ("usage", "no_job", ...); an unknown name is
 * ERR_FAILED. */
const char *err_name(enum err_code code);
enum err_code err_from_name(const char *name);

/* A broken invariant: prints file, line and message to stderr and aborts, in every build. */
#define err_abort(...) err_abort_at(__FILE__, __LINE__, __VA_ARGS__)
_Noreturn void err_abort_at(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Like malloc and friends, but abort when out of memory: a scheduler must not carry on with
 * guesses. */
void *xmalloc(unsigned long size);
void *xcalloc(unsigned long n, unsigned long size);
void *xrealloc(void *p, unsigned long size);
void *xdouble(void *list, unsigned long *cap, unsigned long size); /* for xgrow */
/* Returns a list of n items of this size, with *cap allocated, with room for one more; the
 * capacity doubles. */
static inline void *
xgrow(void *list, unsigned long n, unsigned long *cap, unsigned long size)
{
    return n < *cap ? list : xdouble(list, cap, size);
}
char *xstrdup(const char *s);
char *xstrndup(const char *s, unsigned long n);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
