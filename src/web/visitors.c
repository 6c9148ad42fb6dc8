/* Who is connected and says nothing: see visitors.h. Called by request.c for what libmicrohttpd
 * tells of connections and requests. */
#include "web/visitors.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/err.h"

struct visitor {
    TAILQ_ENTRY(visitor) link; /* in silent, while it is that */
    struct visitors *all;
    int fd;
    bool silent;
    bool shut; /* it is on its way out */
    char peer;
};

struct visitors {
    TAILQ_HEAD(, visitor) silent; /* the oldest first */
    int n_silent;
};

struct visitors *
visitors_new(void)
{
    struct visitors *v = xcalloc(1, sizeof *v);

    TAILQ_INIT(&v->silent);
    return v;
}

void
visitors_free(struct visitors *v)
{
    free(v);
}

static void
leave_silent(struct visitor *x)
{
    if (!x->silent)
        return;
    TAILQ_REMOVE(&x->all->silent, x, link);
    x->all->n_silent--;
    x->silent = false;
}

static void
make_room(struct visitors *v)
{
    struct visitor *oldest = TAILQ_FIRST(&v->silent);

    if (v->n_silent <= VISITORS_SILENT_MAX)
        return;
    leave_silent(oldest);
    oldest->shut = true;
    (void)shutdown(oldest->fd, SHUT_RDWR);
}

static void
be_silent(struct visitor *x)
{
    if (x->silent || x->shut)
        return;
    TAILQ_INSERT_TAIL(&x->all->silent, x, link);
    x->all->n_silent++;
    x->silent = true;
    make_room(x->all);
}

struct visitor *
visitors_enter(struct visitors *v, int fd)
{
    struct visitor *x = xcalloc(1, sizeof *x);

    x->all = v;
    x->fd = fd;
    be_silent(x);
    return x;
}

void
visitor_leave(struct visitor *x)
{
    leave_silent(x);
    free(x);
}

void
visitor_asks(struct visitor *x)
{
    leave_silent(x);
}

void
visitor_is_done(struct visitor *x)
{
    be_silent(x);
}

char *
visitor_peer(struct visitor *x)
{
    return &x->peer;
}
