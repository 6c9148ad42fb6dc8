/* Connections to daemons and their messages. attempt.c owns one and acts on the messages. A
 * peer that sends anything but JSON objects, or a line without end, is dropped; an unknown
 * operation is ignored, so that a newer daemon can talk to an older supervisor. Nothing here
 * blocks: a hung daemon must not delay a job's end. */
#include "shepherd/talk/ctl.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/unixsock.h"
#include "wire/json_text.h"

#define LINE_MAX_BYTES 65536
#define GRACE_MAX_MS   (INT64_MAX / 2000)

struct peer {
    int fd; /* -1: free */
    struct buf in;
};

struct ctl {
    const struct ctl_handler *handler;
    void *ctx;
    int listen_fd;
    struct peer peers[CTL_PEERS_MAX];
};

static void
drop_peer(struct peer *p)
{
    if (p->fd >= 0)
        close(TAKE_FD(p->fd));
    buf_free(&p->in);
}

struct ctl *
ctl_new(int first_fd, const struct ctl_handler *handler, void *ctx)
{
    struct ctl *ctl = xcalloc(1, sizeof *ctl);
    ctl->handler = handler;
    ctl->ctx = ctx;
    ctl->listen_fd = -1;
    for (int i = 0; i < CTL_PEERS_MAX; i++)
        ctl->peers[i].fd = -1;
    ctl->peers[0].fd = first_fd;
    return ctl;
}

void
ctl_free(struct ctl *ctl)
{
    if (!ctl)
        return;
    for (int i = 0; i < CTL_PEERS_MAX; i++)
        drop_peer(&ctl->peers[i]);
    if (ctl->listen_fd >= 0)
        close(ctl->listen_fd);
    free(ctl);
}

int
ctl_listen(struct ctl *ctl, int dirfd, struct err *e)
{
    struct sockaddr_un addr;
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make a socket");
    int rc = unixsock_at(dirfd, "ctl.sock", &addr);
    if (rc == 0)
        rc = bind(fd, (struct sockaddr *)&addr, sizeof addr);
    if (rc < 0 && errno == EADDRINUSE) {
        (void)unlinkat(dirfd, "ctl.sock", 0); /* stale, because we hold the lock */
        rc = bind(fd, (struct sockaddr *)&addr, sizeof addr);
    }
    if (rc < 0 || listen(fd, CTL_PEERS_MAX) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot listen on ctl.sock");
    ctl->listen_fd = TAKE_FD(fd);
    return 0;
}

static void
say_to(struct peer *p, const char *bytes, size_t n)
{
    if (p->fd < 0 || n == 0)
        return;
    ssize_t sent;
    do
        sent = send(p->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent != (ssize_t)n)
        drop_peer(p);
}

void
ctl_say(struct ctl *ctl, const char *bytes, size_t n)
{
    for (int i = 0; i < CTL_PEERS_MAX; i++)
        say_to(&ctl->peers[i], bytes, n);
}

size_t
ctl_peers(const struct ctl *ctl)
{
    size_t n = 0;
    for (int i = 0; i < CTL_PEERS_MAX; i++)
        n += ctl->peers[i].fd >= 0;
    return n;
}

size_t
ctl_fill(const struct ctl *ctl, struct pollfd *out)
{
    size_t n = 0;
    for (int i = 0; i < CTL_PEERS_MAX; i++)
        if (ctl->peers[i].fd >= 0)
            out[n++] = (struct pollfd){.fd = ctl->peers[i].fd, .events = POLLIN};
    if (ctl->listen_fd >= 0)
        out[n++] = (struct pollfd){.fd = ctl->listen_fd, .events = POLLIN};
    return n;
}

/* Only root and the supervisor's own user are admitted, whatever the folder's mode allows. */
static bool
peer_is_welcome(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
           (who.uid == 0 || who.uid == geteuid());
}

static void
accept_peer(struct ctl *ctl)
{
    auto_close int fd = accept4(ctl->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 || !peer_is_welcome(fd))
        return;
    for (int i = 0; i < CTL_PEERS_MAX; i++) {
        struct peer *p = &ctl->peers[i];
        if (p->fd >= 0)
            continue;
        p->fd = TAKE_FD(fd);
        auto_buf struct buf hello = BUF_INIT;
        ctl->handler->greet(ctl->ctx, &hello);
        say_to(p, buf_str(&hello), hello.len);
        return;
    }
}

static int64_t
int_field(const json_t *o, const char *key, int64_t min, int64_t max, int64_t otherwise)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
        return otherwise;
    return json_integer_value(v);
}

static void
act_on(struct ctl *ctl, const json_t *o)
{
    const char *op = json_string_value(json_object_get(o, "op"));
    if (!op)
        return;
    if (strcmp(op, "cancel") == 0) {
        const char *by = json_string_value(json_object_get(o, "by"));
        const char *why = json_string_value(json_object_get(o, "why"));
        ctl->handler->cancel(ctl->ctx, why ? why : "", by ? by : "",
                             int_field(o, "grace_ms", 0, GRACE_MAX_MS, -1));
    } else if (strcmp(op, "signal") == 0) {
        int sig = (int)int_field(o, "signal", 1, 64, 0);
        if (sig)
            ctl->handler->signal(ctl->ctx, sig);
    } else if (strcmp(op, "recorded") == 0) {
        ctl->handler->recorded(ctl->ctx);
    }
}

static int
take_line(struct ctl *ctl, const char *line, size_t n)
{
    json_t *o = json_text_read(line, n, NULL);
    if (!json_is_object(o)) {
        json_decref(o);
        return -1;
    }
    act_on(ctl, o);
    json_decref(o);
    return 0;
}

/* Processes the complete lines received. */
static int
take_lines(struct ctl *ctl, struct peer *p)
{
    const char *end;
    while (p->in.len > 0 && (end = memchr(p->in.data, '\n', p->in.len)) != NULL) {
        size_t n = (size_t)(end - p->in.data);
        if (n > 0 && take_line(ctl, p->in.data, n) < 0)
            return -1;
        if (p->fd < 0)
            return -1; /* processing it sent a message to all, which dropped this peer */
        buf_drop(&p->in, n + 1);
    }
    return p->in.len > LINE_MAX_BYTES ? -1 : 0;
}

static void
read_peer(struct ctl *ctl, struct peer *p)
{
    char part[4096];
    ssize_t n = recv(p->fd, part, sizeof part, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop_peer(p);
        return;
    }
    buf_add(&p->in, part, (size_t)n);
    if (take_lines(ctl, p) < 0)
        drop_peer(p);
}

void
ctl_serve(struct ctl *ctl, const struct pollfd *polled, size_t n)
{
    bool somebody_came = false;
    for (size_t k = 0; k < n; k++) {
        if (polled[k].revents == 0)
            continue;
        if (polled[k].fd == ctl->listen_fd)
            somebody_came = true;
        for (int i = 0; i < CTL_PEERS_MAX; i++)
            if (ctl->peers[i].fd == polled[k].fd)
                read_peer(ctl, &ctl->peers[i]);
    }
    if (somebody_came) /* last, so that a new peer never inherits another's poll result */
        accept_peer(ctl);
}
