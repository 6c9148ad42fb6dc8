/* Forwards an interactive job's output to the client: follows its log, and asks berthd for its
 * end. The job is independent of this: a slow client does not delay it, a client that leaves
 * does not affect it, and a lost daemon is connected to again. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/ask/answer.h"
#include "cli/ask/text_follow.h"
#include "compat/mgpu/mgpu.h"
#include "compat/py/pytext.h"
#include "wire/client.h"

#define CHUNK        16384
#define LINE_MAX_LEN 65536 /* longer lines are split */
#define RETRY_MS     500
#define PATIENCE_MS  15000
#define AWAY_US      (INT64_C(600) * 1000000) /* give up if the daemon is away longer */
#define LOOK_MS      2000                     /* polling the log if inotify is exhausted */

struct stream {
    const struct mgpu_stream *what;
    struct client *client; /* NULL: the daemon is lost */
    struct client *other;  /* owned; the new connection after a loss */
    struct textfile log;
    int watch;        /* inotify on the log; -1: none */
    struct buf carry; /* incomplete character */
    json_t *end;      /* owned; `wait`'s answer for the job */
    bool asked;       /* `wait` was sent */
    bool quiet;       /* the client closed its sending side, but may still read */
    bool gone;        /* the client has left */
    int64_t lost_us;
};

/* ASCII only, as in json.dumps: clients of the original decode each chunk by itself, so no
 * multi-byte character may be split. */
static void
put_output(struct stream *s, const char *text, size_t n)
{
    auto_buf struct buf frame = BUF_INIT;

    buf_adds(&frame, "{\"type\": \"output\", \"data\": ");
    py_add_string(&frame, text, n);
    buf_adds(&frame, "}\n");
    if (file_write_all(s->what->fd, frame.data, frame.len) < 0)
        s->gone = true;
}

/* Raw bytes, each as the character with its number. */
static void
put_bytes(struct stream *s, const char *bytes, size_t n)
{
    auto_buf struct buf text = BUF_INIT;

    for (size_t i = 0; i < n; i++) {
        unsigned char b = (unsigned char)bytes[i];

        if (b >= 0x80)
            buf_addc(&text, (char)(0xc0 | b >> 6));
        buf_addc(&text, (char)(b >= 0x80 ? 0x80 | (b & 0x3f) : b));
    }
    put_output(s, text.data, text.len);
}

/* Number of bytes at the end that begin an incomplete character. */
static size_t
torn(const char *text, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char b = (unsigned char)text[n - back];
        size_t needs = b >= 0xf0 ? 4 : b >= 0xe0 ? 3 : b >= 0xc0 ? 2 : 0;

        if (needs)
            return needs > back ? back : 0;
        if (b < 0x80)
            return 0;
    }
    return 0;
}

/* Number of bytes to send now: whole lines; if nothing more can be read, also an incomplete
 * line except a torn character; everything at the end. */
static size_t
ripe(const struct buf *carry, bool more, bool last)
{
    const char *nl = more ? memrchr(carry->data, '\n', carry->len) : NULL;

    if (last)
        return carry->len;
    if (nl)
        return (size_t)(nl + 1 - carry->data);
    return more && carry->len < LINE_MAX_LEN ? 0 : carry->len - torn(carry->data, carry->len);
}

static void
put_lines(struct stream *s, bool more, bool last)
{
    size_t at = 0, n = s->carry.len > 0 ? ripe(&s->carry, more, last) : 0;

    while (at < n && !s->gone) {
        const char *nl = memchr(s->carry.data + at, '\n', n - at);
        size_t len = nl ? (size_t)(nl + 1 - (s->carry.data + at)) : n - at;

        put_output(s, s->carry.data + at, len);
        at += len;
    }
    buf_drop(&s->carry, n);
}

/* The log exists since submission. Watch the file, not its folder, so that other jobs' writes
 * do not wake us. */
static void
open_log(struct stream *s)
{
    const char *path = s->what->job->log;

    s->log.fd = file_open_regular(path);
    s->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (s->watch >= 0 && inotify_add_watch(s->watch, path, IN_MODIFY) < 0)
        close(TAKE_FD(s->watch));
}

/* Send everything in the log. */
static void
copy_log(struct stream *s, bool last)
{
    char chunk[CHUNK];
    ssize_t n;
    bool placed;

    s->log.is_final = last;
    placed = textfile_place(&s->log);
    while (placed && s->log.fd >= 0 && !s->gone &&
           (n = pread(s->log.fd, chunk, sizeof chunk, s->log.at)) > 0) {
        textfile_shown(&s->log, chunk, (size_t)n);
        if (s->what->bytes) {
            put_bytes(s, chunk, (size_t)n);
        } else {
            buf_add(&s->carry, chunk, (size_t)n);
            put_lines(s, true, false);
        }
    }
    if (!s->gone)
        put_lines(s, false, last);
}

/* --- the daemon --- */

static void
on_ended(void *ctx, int64_t id, json_t *result, const struct err *error)
{
    struct stream *s = ctx;
    json_t *job = json_array_get(json_object_get(result, "jobs"), 0);

    (void)id;
    if (job)
        s->end = json_incref(job);
    else if (error && error->code != ERR_UNREACHABLE)
        s->end = json_pack("{s:n}", "exit_status");
}

static json_t *
select_job(const struct stream *s)
{
    return json_pack("{s:[o]}", "select", json_sprintf("%lld", (long long)s->what->job->job));
}

static void
ask(struct stream *s)
{
    client_listen(s->client, NULL, on_ended, s);
    s->asked = client_send(s->client, "wait", select_job(s), NULL) >= 0;
}

static void
lose_daemon(struct stream *s)
{
    client_free(s->other);
    s->other = s->client = NULL;
    s->asked = false;
    s->lost_us = clock_boot_us();
}

static void
mend(struct stream *s)
{
    s->other = client_connect(s->what->service->daemon, NULL);
    s->client = s->other;
    if (s->client)
        client_set_patience(s->client, PATIENCE_MS);
}

/* Description of an abnormal end; NULL: none. The caller frees. */
static json_t *
words_of_end(struct stream *s)
{
    auto_json json_t *result = NULL;
    json_t *params = select_job(s), *job;
    const char *state, *text;

    json_object_set_new(params, "all", json_true());
    if (!s->client || client_call(s->client, "jobs", params, &result, NULL) < 0)
        return NULL;
    job = json_array_get(json_object_get(result, "jobs"), 0);
    state = answer_str(job, "state");
    text = answer_str(job, "text");
    if (json_is_integer(json_object_get(job, "exit_code")) &&
        (strcmp(state, "COMPLETED") == 0 || strcmp(state, "FAILED") == 0))
        return NULL;
    return json_string(text[0] ? text : state);
}

static void
put_completion(struct stream *s)
{
    auto_json json_t *frame =
        json_pack("{s:s, s:s, s:i}", "type", "completion", "job_id", s->what->job->id,
                  "exit_code", (int)answer_int(s->end, "exit_status", 1));
    json_t *words = s->what->bytes ? words_of_end(s) : NULL;

    if (words)
        json_object_set_new(frame, "text", words);
    (void)mgpu_send(s->what->fd, frame, true);
}

/* --- the loop --- */

static void
look_at_client(struct stream *s, short revents)
{
    char rest[256];

    if (revents & (POLLHUP | POLLERR))
        s->gone = true;
    else if (revents & POLLIN && recv(s->what->fd, rest, sizeof rest, MSG_DONTWAIT) == 0)
        s->quiet = true;
}

static void
turn(struct stream *s)
{
    struct pollfd p[3] = {{.fd = s->what->fd, .events = s->quiet ? 0 : POLLIN},
                          {.fd = s->watch, .events = POLLIN},
                          {.fd = s->client ? client_fd(s->client) : -1, .events = POLLIN}};

    bool look = s->watch < 0 || s->log.unclear_us;

    if (poll(p, 3, !s->client ? RETRY_MS : look ? LOOK_MS : -1) < 0 && errno != EINTR)
        err_abort("poll: %s", strerror(errno));
    look_at_client(s, p[0].revents);
    if (p[1].revents)
        textfile_drain(s->watch);
}

static void
follow(struct stream *s)
{
    while (!s->gone) {
        bool last = s->end;

        copy_log(s, last);
        if (last) {
            put_completion(s);
            return;
        }
        if (!s->client) {
            if (clock_boot_us() - s->lost_us > AWAY_US)
                return;
            mend(s);
        }
        if (s->client && !s->asked)
            ask(s);
        if (s->client && (!s->asked || client_pump(s->client, NULL) < 0))
            lose_daemon(s);
        if (!s->end && !s->gone)
            turn(s);
    }
}

void
mgpu_stream(const struct mgpu_stream *what, struct client *c)
{
    struct stream s = {
        .what = what, .client = c, .log = TEXTFILE_INIT(what->job->log), .watch = -1};

    open_log(&s);
    follow(&s);
    if (s.client)
        client_listen(s.client, NULL, NULL, NULL);
    client_free(s.other);
    json_decref(s.end);
    buf_free(&s.carry);
    textfile_close(&s.log);
    if (s.watch >= 0)
        close(s.watch);
}
