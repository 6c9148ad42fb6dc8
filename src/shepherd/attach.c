/* Attached clients: see attach.h. attempt.c polls for it. Each client is served from the log,
 * by offset, with one frame in memory: a client that does not read costs 64 KiB and nothing
 * else, and one that lost its connection asks for the rest. Any of them may type, and what
 * they type goes in as it comes. The window is as large as the last one said. */
#include "shepherd/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
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
#include "base/jsonw.h"
#include "shepherd/attach_socket.h"
#include "shepherd/spec.h"
#include "wire/attach.h"

#define PART_BYTES    (ATTACH_PAYLOAD_MAX - ATTACH_OFFSET_SIZE)
#define FRAMES_A_TURN 16    /* for one client: then it is everybody else's turn */
#define FIRST_WAIT_MS 10000 /* for the first client, once the job is over */
#define STALL_MS      30000 /* a client that takes nothing for so long reads the log itself */
#define LOST_MS       5000  /* between tries to give the socket a name again */
#define LINGER_MAX_US (600 * INT64_C(1000000))
/* What the daemon is told of each guest becomes an event, on the disk: one who comes and goes
 * all day long is told of so many times, and then once in a while. */
#define TELL_AT_ONCE  20
#define TELL_EVERY_US (5 * INT64_C(1000000))

struct peer {
    int fd; /* -1: free */
    struct buf in;
    struct buf out;
    size_t sent; /* of out */
    off_t at;    /* of the log, what comes next */
    bool greeted;
    bool told_end; /* the last frame is in out, or gone */
    struct attach_guest who;
    bool heard_of; /* a daemon knows that it is here */
};

struct attach {
    const struct spec *spec;
    char *path;
    struct attach_socket socket;
    bool lost;     /* the socket has no name, and could not be given one */
    int notify_fd; /* what happens in the socket's folder, and the log's growth; -1 */
    int log_watch; /* in it, while somebody is there to be told; -1 */
    struct console console;
    struct peer peers[ATTACH_PEERS_MAX];
    struct buf record;    /* empty: the job has not ended */
    bool was_used;        /* somebody has been here */
    attach_heard_fn tell; /* NULL: nobody is to know */
    void *tell_ctx;
    int64_t told_until_us; /* boot clock: when those that were told of are paid for */
};

/* ---- coming and going ---- */

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

/* The kernel tells of the log's growth only as long as anybody wants to know. */
static void
watch_log(struct attach *at, bool wanted)
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

/* ---- who is here ---- */

/* Root is told of always: it looks at what is another's. */
static bool
is_too_often(const struct attach *at, const struct peer *p, int64_t now_us)
{
    return (p->who.uid != 0 || at->spec->uid <= 0) &&
           at->told_until_us - now_us >= TELL_AT_ONCE * TELL_EVERY_US;
}

static void
tell_of(struct attach *at, struct peer *p)
{
    int64_t now_us = clock_boot_us();
    if (is_too_often(at, p, now_us) || !at->tell(at->tell_ctx, &p->who, true))
        return;
    p->heard_of = true;
    at->told_until_us =
        (at->told_until_us > now_us ? at->told_until_us : now_us) + TELL_EVERY_US;
}

static void
tell_who_is_here(struct attach *at)
{
    for (int i = 0; at->tell && i < ATTACH_PEERS_MAX; i++) {
        struct peer *p = &at->peers[i];
        if (p->fd >= 0 && p->greeted && !p->heard_of)
            tell_of(at, p);
    }
}

static void
drop_peer(struct attach *at, struct peer *p)
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
        watch_log(at, false);
}

void
attach_free(struct attach *at)
{
    if (!at)
        return;
    for (int i = 0; i < ATTACH_PEERS_MAX; i++)
        drop_peer(at, &at->peers[i]);
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

/* False when nobody waits to come in. */
static bool
accept_peer(struct attach *at)
{
    auto_close int fd = accept4(at->socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return false;
    uid_t who = 0;
    if (!attach_socket_admits(at->spec, fd, &who)) {
        refuse(fd, "the job is another user's");
        return true;
    }
    for (int i = 0; i < ATTACH_PEERS_MAX; i++)
        if (at->peers[i].fd < 0) {
            at->peers[i].fd = TAKE_FD(fd);
            at->peers[i].who.uid = who;
            return true;
        }
    refuse(fd, "as many are attached to the job as can be; let one of them detach");
    return true;
}

/* Something has happened in its folder: where its name is gone, it gets another socket there.
 * Those who stand before the old one come in first. */
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
    if (at->notify_fd >= 0) /* the folder may be another */
        (void)attach_socket_watch(at->spec, at->notify_fd);
}

/* ---- what clients say ---- */

static void
add_hello(const struct attach *at, struct buf *out)
{
    auto_buf struct buf text = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &text);
    jsonw_object(&w);
    jsonw_kint(&w, "version", 1);
    jsonw_kint(&w, "job", at->spec->job);
    jsonw_kint(&w, "attempt", at->spec->attempt);
    jsonw_kbool(&w, "pty", at->console.pty);
    jsonw_kint(&w, "from", at->console.from);
    jsonw_kint(&w, "size", at->console.size);
    jsonw_kstr(&w, "state", at->record.len ? "ended" : "running");
    jsonw_end_object(&w);
    attach_add(out, ATTACH_HELLO, text.data, text.len);
}

static int64_t
number_of(const json_t *o, const char *key, int64_t otherwise)
{
    const json_t *v = json_object_get(o, key);
    return json_is_integer(v) && json_integer_value(v) >= 0 ? json_integer_value(v) : otherwise;
}

/* Where it begins: at an offset of the log, or so many bytes before its end, else where this
 * attempt's output does. */
static off_t
begin_at(const struct console *c, const json_t *o)
{
    int64_t offset = number_of(o, "offset", -1), tail = number_of(o, "tail", -1);
    if (offset >= 0)
        return offset < c->size ? offset : c->size;
    if (tail >= 0)
        return c->size - c->from > tail ? c->size - tail : c->from;
    return c->from;
}

static void
take_size(struct attach *at, int64_t rows, int64_t columns)
{
    if (rows > 0 && rows <= UINT16_MAX && columns > 0 && columns <= UINT16_MAX)
        console_resize(&at->console, (uint16_t)rows, (uint16_t)columns);
}

static int
take_hello(struct attach *at, struct peer *p, const struct attach_frame *f)
{
    json_t *o = json_loadb(f->bytes, f->n, 0, NULL);
    if (!json_is_object(o) || p->greeted) {
        json_decref(o);
        return -1;
    }
    watch_log(at, true);
    console_look(&at->console);
    p->greeted = at->was_used = true;
    p->who.types = json_is_true(json_object_get(o, "input"));
    p->at = begin_at(&at->console, o);
    if (p->who.types)
        take_size(at, number_of(o, "rows", 0), number_of(o, "columns", 0));
    json_decref(o);
    add_hello(at, &p->out);
    return 0;
}

static int
take_frame(struct attach *at, struct peer *p, const struct attach_frame *f)
{
    uint16_t rows, columns;
    if (f->type == ATTACH_HELLO)
        return take_hello(at, p, f);
    if (!p->greeted)
        return -1;
    if (!p->who.types)
        return 0; /* it watches */
    if (f->type == ATTACH_INPUT)
        console_put(&at->console, f->bytes, f->n);
    else if (f->type == ATTACH_EOF)
        console_put_eof(&at->console);
    else if (f->type == ATTACH_WINSIZE && attach_get_winsize(f, &rows, &columns) == 0)
        console_resize(&at->console, rows, columns);
    return 0; /* what is not known is passed over: a newer client may say it */
}

static void
read_peer(struct attach *at, struct peer *p)
{
    struct attach_frame f;
    size_t done = 0;
    int rc = 0;
    buf_reserve(&p->in, ATTACH_HEAD_BYTES + ATTACH_PAYLOAD_MAX);
    ssize_t n = recv(p->fd, p->in.data + p->in.len, ATTACH_PAYLOAD_MAX, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop_peer(at, p);
        return;
    }
    p->in.len += (size_t)n;
    p->in.data[p->in.len] = '\0';
    while (rc == 0 && (rc = attach_next(&p->in, &done, &f)) > 0)
        rc = take_frame(at, p, &f);
    if (rc < 0)
        drop_peer(at, p);
    else
        buf_drop(&p->in, done);
}

/* ---- what they get ---- */

/* 1 when all of out has gone, 0 when the client does not take more now, -1 when it is gone. */
static int
flush(struct peer *p)
{
    while (p->sent < p->out.len) {
        ssize_t n = send(p->fd, p->out.data + p->sent, p->out.len - p->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        p->sent += (size_t)n;
    }
    buf_clear(&p->out);
    p->sent = 0;
    return 1;
}

/* The next frame for it; false when it has everything. */
static bool
compose(const struct attach *at, struct peer *p)
{
    if (!p->greeted || p->told_end)
        return false;
    if (p->at > at->console.size)
        p->at = 0; /* a log that became shorter was begun anew */
    if (p->at < at->console.size) {
        off_t left = at->console.size - p->at; /* what came since is for the next look */
        size_t want = left < PART_BYTES ? (size_t)left : PART_BYTES;
        char *room = attach_begin_output(&p->out, (uint64_t)p->at);
        ssize_t n = pread(at->console.log_fd, room, want, p->at);
        attach_end_output(&p->out, n > 0 ? (size_t)n : 0);
        p->at = n > 0 ? p->at + n : at->console.size;
        return n > 0;
    }
    if (at->record.len == 0)
        return false;
    attach_add(&p->out, ATTACH_ENDED, at->record.data, at->record.len);
    p->told_end = true;
    return true;
}

static void
write_peer(struct attach *at, struct peer *p)
{
    for (int i = 0; i < FRAMES_A_TURN; i++) {
        int rc = flush(p);
        if (rc < 0)
            drop_peer(at, p);
        if (rc <= 0 || !compose(at, p))
            return;
    }
}

static bool
has_more(const struct attach *at, const struct peer *p)
{
    return p->out.len > 0 ||
           (p->greeted && !p->told_end && (p->at != at->console.size || at->record.len > 0));
}

/* ---- the loop's hooks ---- */

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
            .events = (short)((hears ? POLLIN : 0) | (has_more(at, p) ? POLLOUT : 0))};
    }
    out[n++] = (struct pollfd){.fd = at->socket.fd, .events = POLLIN};
    if (at->notify_fd >= 0)
        out[n++] = (struct pollfd){.fd = at->notify_fd, .events = POLLIN};
    return n + console_fill(&at->console, out + n);
}

/* That there were any says enough: both places are looked at. */
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
        read_peer(at, p);
    else if (revents & (POLLHUP | POLLERR))
        drop_peer(at, p);
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
        if (at->peers[i].fd >= 0 && has_more(at, &at->peers[i]))
            write_peer(at, &at->peers[i]);
    tell_who_is_here(at);
    if (somebody_came) /* last, so that a new client never inherits another's poll result */
        (void)accept_peer(at);
    if (something_moved || at->lost)
        keep_socket(at);
}

int
attach_wait_ms(const struct attach *at)
{
    int ms = at ? console_wait_ms(&at->console) : -1;
    return at && at->lost && (ms < 0 || ms > LOST_MS) ? LOST_MS : ms;
}

void
attach_say(struct attach *at, const char *words)
{
    if (at)
        console_say(&at->console, words);
}

void
attach_drain(struct attach *at)
{
    if (at)
        console_end(&at->console);
}

void
attach_end(struct attach *at, const char *record, size_t n)
{
    if (!at)
        return;
    buf_add(&at->record, record, n);
    watch_log(at, false);
    console_look(&at->console);
}

/* How long to wait for anything to happen; 0: there is nobody to stay for. */
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
            return; /* those that are there read nothing */
        if (rc > 0)
            attach_serve(at, fds, n);
    }
}
