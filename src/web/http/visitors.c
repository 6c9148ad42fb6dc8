/* Limits idle connections: see visitors.h. Called by web_request.c when libmicrohttpd reports
 * events of connections and requests. */
#include "web/http/visitors.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/err.h"

/* Oldest first. */
struct line {
    TAILQ_HEAD(, visitor) all;
    int n, max;
};

struct visitor {
    TAILQ_ENTRY(visitor) link;
    struct visitors *all;
    struct line *line; /* NULL: it waits for an answer, or listens to events */
    int fd;
    bool shut; /* its socket has been shut down */
    char peer;
};

struct visitors {
    struct line silent, reading;
};

static void
line_init(struct line *line, int max)
{
    TAILQ_INIT(&line->all);
    line->n = 0;
    line->max = max;
}

struct visitors *
visitors_new(void)
{
    struct visitors *v = xcalloc(1, sizeof *v);

    line_init(&v->silent, VISITORS_SILENT_MAX);
    line_init(&v->reading, VISITORS_READING_MAX);
    return v;
}

void
visitors_free(struct visitors *v)
{
    free(v);
}

static void
leave_line(struct visitor *x)
{
    if (!x->line)
        return;
    TAILQ_REMOVE(&x->line->all, x, link);
    x->line->n--;
    x->line = NULL;
}

static void
make_room(struct line *line)
{
    struct visitor *oldest = TAILQ_FIRST(&line->all);

    if (line->n <= line->max)
        return;
    leave_line(oldest);
    oldest->shut = true;
    (void)shutdown(oldest->fd, SHUT_RDWR);
}

static void
enter_line(struct visitor *x, struct line *line)
{
    if (x->line == line || x->shut)
        return;
    leave_line(x);
    TAILQ_INSERT_TAIL(&line->all, x, link);
    line->n++;
    x->line = line;
    make_room(line);
}

struct visitor *
visitors_enter(struct visitors *v, int fd)
{
    struct visitor *x = xcalloc(1, sizeof *x);

    x->all = v;
    x->fd = fd;
    enter_line(x, &v->silent);
    return x;
}

void
visitor_leave(struct visitor *x)
{
    leave_line(x);
    free(x);
}

void
visitor_asks(struct visitor *x)
{
    leave_line(x);
}

void
visitor_is_answered(struct visitor *x)
{
    enter_line(x, &x->all->reading);
}

void
visitor_is_done(struct visitor *x)
{
    enter_line(x, &x->all->silent);
}

char *
visitor_peer(struct visitor *x)
{
    return &x->peer;
}
