/* Attached clients: see attach_server.h. attempt.c polls for it. This file accepts and drops
 * clients; attach_peer.c moves the bytes between a client and the job. */
#include "shepherd/talk/attach_server.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "shepherd/common/attempt_spec.h"
#include "shepherd/talk/attach_priv.h"
#include "shepherd/talk/attach_socket.h"
#include "wire/attach_frames.h"

#define FIRST_WAIT_MS 10000 /* wait for the first client, once the job is over */
#define STALL_MS      30000 /* then a client that takes nothing must read the log itself */
#define LOST_MS       5000  /* between attempts to give the socket a name again */
#define LOOK_MS       200   /* between looks at a log for which inotify is not available */
#define LINGER_MAX_US (600 * INT64_C(1000000))
/* Each report of a client becomes an event in the daemon's database. A client that reconnects
 * all day is reported this many times at once, then at this interval. */
#define TELL_AT_ONCE  20
#define TELL_EVERY_US (5 * INT64_C(1000000))

/* --- coming and going --- */

struct attach *
attach_open(const struct spec *spec, struct err *e)
{
    e->code = ERR_NONE;
    if (!spec->attach)
        return NULL;
    struct attach_socket made;
    if (attach_socket_listen(spec, &made, e) < 0)
        return NULL;
    struct attach *at = xcalloc(1, sizeof *at);
    at->spec = spec;
    at->path = xstrdup(spec->attach);
    at->socket = made;
    at->log_watch = -1;
    at->notify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (at->notify_fd >= 0)
        (void)attach_socket_watch(spec, at->notify_fd);
    console_init(&at->console, spec->pty);
    for (int i = 0; i < ATTACH_PEERS_MAX; i++)
        at->peers[i].fd = -1;
    return at;
}

void
attach_tell(struct attach *at, attach_heard_fn tell, void *ctx)
{
    if (!at)
        return;
    at->tell = tell;
    at->tell_ctx = ctx;
}

struct console *
attach_console(struct attach *at)
{
    return at ? &at->console : NULL;
}

int
attach_listener(const struct attach *at)
{
    return at->socket.fd;
}

static size_t
count_peers(const struct attach *at)
{
    size_t n = 0;
    for (int i = 0; i < ATTACH_PEERS_MAX; i++)
        n += at->peers[i].fd >= 0;
    return n;
}

void
attach_watch_log(struct attach *at, bool wanted)
{
    char path[32];
    if (!wanted && at->log_watch >= 0)
        (void)inotify_rm_watch(at->notify_fd, TAKE_FD(at->log_watch));
    if (!wanted || at->log_watch >= 0 || at->console.pty || at->console.log_fd < 0)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", at->console.log_fd);
    if (at->notify_fd >= 0)
        at->log_watch = inotify_add_watch(at->notify_fd, path, IN_MODIFY);
}

/* --- the clients --- */

/* Root is always reported, because it watches another user's job. */
static bool
is_too_often(const struct attach *at, const struct peer *p, int64_t now_us)
{
    return (p->who.uid != 0 || at->spec->uid <= 0) &&
           at->told_until_us - now_us >= TELL_AT_ONCE * TELL_EVERY_US;
}

void
attach_tell_of(struct attach *at, struct peer *p)
{
    int64_t now_us = clock_boot_us();
    if (!at->tell || !p->greeted || p->heard_of || is_too_often(at, p, now_us) ||
        !at->tell(at->tell_ctx, &p->who, true))
        return;
    p->heard_of = true;
    at->told_until_us =
        (at->told_until_us > now_us ? at->told_until_us : now_us) + TELL_EVERY_US;
}

/* Repeats reports, because a daemon may have connected only now. */
static void
tell_who_is_here(struct attach *at)
{
    for (int i = 0; i < ATTACH_PEERS_MAX; i++)
        if (at->peers[i].fd >= 0)
            attach_tell_of(at, &at->peers[i]);
}

void
attach_drop_peer(struct attach *at, struct peer *p)
{
    if (p->fd < 0)
        return;
    if (p->heard_of && at->tell)
        (void)at->tell(at->tell_ctx, &p->who, false);
    close(p->fd);
    buf_free(&p->in);
    buf_free(&p->out);
    *p = (struct peer){.fd = -1};
    if (count_peers(at) == 0)
        attach_watch_log(at, false);
}

void
attach_free(struct attach *at)
{
    if (!at)
        return;
    for (int i = 0; i < ATTACH_PEERS_MAX; i++)
        attach_drop_peer(at, &at->peers[i]);
    (void)unlink(at->path);
    close(at->socket.fd);
    if (at->notify_fd >= 0)
        close(at->notify_fd);
    console_free(&at->console);
    buf_free(&at->record);
    free(at->path);
    free(at);
}

static void
refuse(int fd, const char *words)
{
    auto_buf struct buf out = BUF_INIT;
    attach_add(&out, ATTACH_REFUSED, words, strlen(words));
    (void)send(fd, out.data, out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* False if no client is waiting to connect. */
static bool
accept_peer(struct attach *at)
{
    auto_close int fd = accept4(at->socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return false;
    uid_t who = 0;
    if (!attach_socket_admits(at->spec, fd, &who)) {
        refuse(fd, "the job belongs to another user");
        return true;
    }
    for (int i = 0; i < ATTACH_PEERS_MAX; i++)
        if (at->peers[i].fd < 0) {
            at->peers[i].fd = TAKE_FD(fd);
            at->peers[i].who.uid = who;
            return true;
        }
    refuse(fd, "the maximum of clients is attached to the job; one of them must detach");
    return true;
}

/* The socket's folder has changed: if the socket's name is gone, makes another socket there.
 * Clients waiting at the old one are accepted first. */
static void
keep_socket(struct attach *at)
{
    struct attach_socket made;
    struct err e;
    if (attach_socket_is_there(at->spec, &at->socket)) {
        at->lost = false;
        return;
    }
    while (accept_peer(at))
        ;
    at->lost = attach_socket_listen(at->spec, &made, &e) < 0;
    if (at->lost)
        return;
    close(at->socket.fd);
    at->socket = made;
    if (at->notify_fd >= 0) /* the folder may have been made anew */
        (void)attach_socket_watch(at->spec, at->notify_fd);
}

/* --- the loop's hooks --- */

size_t
attach_fill(const struct attach *at, struct pollfd *out)
{
    size_t n = 0;
    if (!at)
        return 0;
    for (int i = 0; i < ATTACH_PEERS_MAX; i++) {
        const struct peer *p = &at->peers[i];
        if (p->fd < 0)
            continue;
        bool hears = !p->greeted || at->record.len > 0 || console_has_room(&at->console);
        out[n++] = (struct pollfd){
            .fd = p->fd,
            .events = (short)((hears ? POLLIN : 0) | (peer_has_more(at, p) ? POLLOUT : 0))};
    }
    out[n++] = (struct pollfd){.fd = at->socket.fd, .events = POLLIN};
    if (at->notify_fd >= 0)
        out[n++] = (struct pollfd){.fd = at->notify_fd, .events = POLLIN};
    return n + console_fill(&at->console, out + n);
}

/* Discards the events; that there were any is enough, because both places are checked. */
static bool
forget_events(int fd)
{
    char events[4096];
    bool any = false;
    while (fd >= 0 && read(fd, events, sizeof events) > 0)
        any = true;
    return any;
}

static void
serve_peer(struct attach *at, struct peer *p, short revents)
{
    if (revents & POLLIN)
        peer_read(at, p);
    else if (revents & (POLLHUP | POLLERR))
        attach_drop_peer(at, p);
}

void
attach_serve(struct attach *at, const struct pollfd *polled, size_t n)
{
    const struct pollfd *console = NULL;
    bool somebody_came = false;
    if (!at)
        return;
    for (size_t k = 0; k < n; k++) {
        if (polled[k].revents == 0)
            continue;
        if (polled[k].fd == at->socket.fd)
            somebody_came = true;
        else if (polled[k].fd == at->console.fd)
            console = &polled[k];
        for (int i = 0; i < ATTACH_PEERS_MAX; i++)
            if (at->peers[i].fd == polled[k].fd)
                serve_peer(at, &at->peers[i], polled[k].revents);
    }
    bool something_moved = forget_events(at->notify_fd);
    console_serve(&at->console, console);
    console_look(&at->console);
    for (int i = 0; i < ATTACH_PEERS_MAX; i++)
        if (at->peers[i].fd >= 0 && peer_has_more(at, &at->peers[i]))
            peer_write(at, &at->peers[i]);
    tell_who_is_here(at);
    if (somebody_came) /* last, so that a new client never inherits another's poll result */
        (void)accept_peer(at);
    if (something_moved || at->lost)
        keep_socket(at);
}

static bool
somebody_watches(const struct attach *at)
{
    for (int i = 0; i < ATTACH_PEERS_MAX; i++)
        if (at->peers[i].fd >= 0 && at->peers[i].greeted)
            return true;
    return false;
}

/* The shorter of two timeouts; -1: none. */
static int
shorter(int a_ms, int b_ms)
{
    return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
}

int
attach_wait_ms(const struct attach *at)
{
    if (!at)
        return -1;
    /* Without a watch, for example if the user has no inotify instance left, nothing reports
     * that the log has grown. */
    bool must_look = at->log_watch < 0 && !at->console.pty && at->record.len == 0;
    return shorter(
        console_wait_ms(&at->console),
        shorter(at->lost ? LOST_MS : -1, must_look && somebody_watches(at) ? LOOK_MS : -1));
}

void
attach_say(struct attach *at, const char *words)
{
    if (at)
        console_say(&at->console, words);
}

void
attach_log_cut(struct attach *at, off_t from, int64_t bytes)
{
    if (!at || bytes <= 0)
        return;
    for (int i = 0; i < ATTACH_PEERS_MAX; i++) {
        struct peer *p = &at->peers[i];
        if (p->at > from)
            p->at = p->at - bytes > from ? p->at - (off_t)bytes : from;
    }
    console_look(&at->console);
}

int64_t
attach_drain(struct attach *at)
{
    return at ? console_end(&at->console) : 0;
}

void
attach_end(struct attach *at, const char *record, size_t n)
{
    if (!at)
        return;
    buf_add(&at->record, record, n);
    attach_watch_log(at, false);
    console_look(&at->console);
}

/* Timeout while lingering; 0: there is no client to stay for. */
static int
linger_ms(const struct attach *at, int64_t since_us)
{
    int64_t passed_us = clock_boot_us() - since_us;
    if (passed_us > LINGER_MAX_US)
        return 0;
    if (count_peers(at) > 0)
        return STALL_MS;
    if (at->was_used || at->spec->no_client)
        return 0;
    int64_t left_ms = FIRST_WAIT_MS - passed_us / 1000;
    return left_ms > 0 ? (int)left_ms : 0;
}

void
attach_linger(struct attach *at)
{
    int64_t since_us = clock_boot_us();
    struct pollfd fds[ATTACH_POLL_MAX];
    int wait_ms;
    while (at && (wait_ms = linger_ms(at, since_us)) > 0) {
        size_t n = attach_fill(at, fds);
        int rc = poll(fds, n, wait_ms);
        if (rc == 0 && count_peers(at) > 0)
            return; /* the connected clients read nothing */
        if (rc > 0)
            attach_serve(at, fds, n);
    }
}
