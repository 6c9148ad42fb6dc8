/* The client's side of the socket. There is one read buffer; only new bytes are searched for a
 * newline, so a 64 MiB answer costs one pass. This file knows nothing of jobs. */
#include "wire/client.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/unixsock.h"
#include "wire/json_text.h"

#define LINE_MAX_BYTES (64UL * 1024 * 1024)
/* Enough for the full objects of 100,000 jobs. */
#define ANSWER_MAX_BYTES (256UL * 1024 * 1024)
#define READ_CHUNK       (64UL * 1024)
#define AGAIN_MAX        5 /* reconnects to daemons that exit before the requests are resent */
/* Daemons that exit soon after a request, before answering it. */
#define SILENT_MAX 3
#define LASTED_US  INT64_C(10000000) /* an exit later than this has another cause */
#define NO_METHOD  (-32601)          /* JSON-RPC's */
/* Each such part of a request gives the daemon one more second to answer. */
#define SECOND_MORE_BYTES (64UL * 1024)

/* An unanswered request, kept only if it may have to be resent. */
struct asked {
    int64_t id;
    struct buf line;
};

struct client {
    int fd;
    char *path; /* owned; NULL for client_from_fd */
    bool lost;
    int patience_ms; /* 0: no timeout */
    int timeout_ms;  /* the socket's timeout: patience, longer after a large request */
    int64_t last_id;
    struct buf in;
    size_t taken;                  /* bytes of in already processed */
    uint64_t n_taken;              /* lines processed */
    size_t scanned;                /* bytes of in known to hold no further newline */
    char token[CLIENT_TOKEN_SIZE]; /* for the next request; "": not set */
    client_notify_fn on_notify;
    client_answer_fn on_answer;
    client_text_fn on_text;
    client_sign_fn on_sign;
    void *ctx;
    /* client_keep: */
    client_again_fn again;
    void (*free_again)(void *);
    void *again_ctx;
    client_back_fn on_back;
    void *back_ctx;
    bool stopped; /* by a person, as announced by the daemon */
    bool renewing;
    int renewals;        /* reconnects since the last message, or since a daemon that lasted */
    int64_t renewed_us;  /* time of the last reconnect; boot clock */
    struct asked *asked; /* array of n_asked, in order of sending */
    size_t n_asked, cap_asked;
    /* The call being waited for: */
    int64_t want_id; /* 0: none */
    bool have;
    bool raw; /* wants text: raw_at and raw_len in in.data, or json for any other format */
    size_t raw_at;
    size_t raw_len;
    char *raw_copy; /* owned; text of a result that was not in berthd's own format */
    json_t *result;
    struct err error;
};

struct client *
client_from_fd(int fd)
{
    struct client *c = xcalloc(1, sizeof *c);

    c->fd = fd;
    return c;
}

struct client *
client_connect(const char *path, struct err *e)
{
    auto_close int fd = -1;
    struct client *c;

    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        err_errno(e, ERR_FAILED, errno, "cannot make a socket");
        return NULL;
    }
    if (unixsock_connect(fd, path) < 0) {
        int why = errno;

        if (why == EACCES || why == EPERM)
            err_errno(e, ERR_PERMISSION, why, "no permission to use %s", path);
        else
            err_errno(e, ERR_UNREACHABLE, why, "no daemon answers at %s", path);
        return NULL;
    }
    c = client_from_fd(TAKE_FD(fd));
    c->path = xstrdup(path);
    return c;
}

void
client_free(struct client *c)
{
    if (!c)
        return;
    if (c->fd >= 0)
        close(c->fd);
    if (c->free_again)
        c->free_again(c->again_ctx);
    for (size_t i = 0; i < c->n_asked; i++)
        buf_free(&c->asked[i].line);
    free(c->asked);
    json_decref(c->result);
    free(c->raw_copy);
    buf_free(&c->in);
    free(c->path);
    free(c);
}

const char *
client_path(const struct client *c)
{
    return c->path;
}

void
client_cleanup(struct client **c)
{
    client_free(*c);
}

void
client_json_cleanup(json_t **j)
{
    json_decref(*j);
}

int
client_fd(const struct client *c)
{
    return c->fd;
}

static void
set_timeout(struct client *c, int ms)
{
    struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000L};

    c->timeout_ms = ms;
    /* A socket without timeouts waits forever, as by default. */
    (void)setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    (void)setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv);
}

void
client_set_patience(struct client *c, int ms)
{
    c->patience_ms = ms;
    set_timeout(c, ms);
}

/* A request of 100,000 jobs takes longer to answer than a small one, least of all fast on a
 * busy machine. */
static void
allow_for_size(struct client *c, size_t bytes)
{
    const int ms = c->patience_ms + (int)(bytes / SECOND_MORE_BYTES) * 1000;

    if (c->patience_ms && ms != c->timeout_ms)
        set_timeout(c, ms);
}

void
client_listen(struct client *c, client_notify_fn on_notify, client_answer_fn on_answer,
              void *ctx)
{
    c->on_notify = on_notify;
    c->on_answer = on_answer;
    c->ctx = ctx;
}

void
client_keep(struct client *c, client_again_fn again, void (*free_ctx)(void *), void *ctx)
{
    c->again = again;
    c->free_again = free_ctx;
    c->again_ctx = ctx;
}

void
client_on_back(struct client *c, client_back_fn back, void *ctx)
{
    c->on_back = back;
    c->back_ctx = ctx;
}

bool
client_was_stopped(const struct client *c)
{
    return c->stopped;
}

void
client_listen_signs(struct client *c, client_sign_fn on_sign)
{
    c->on_sign = on_sign;
}

void
client_listen_text(struct client *c, client_text_fn on_text)
{
    c->on_text = on_text;
}

static int
lose(struct client *c, int errnum, struct err *e)
{
    c->lost = true;
    if (errnum == EAGAIN && c->patience_ms)
        return err_set(
            e, ERR_UNREACHABLE,
            "the daemon has not answered for %.3g s; it may be stopped or waiting for its disk",
            c->timeout_ms / 1000.0);
    if (c->stopped)
        return err_set(e, ERR_UNREACHABLE, "the daemon was stopped");
    if (errnum)
        return err_errno(e, ERR_UNREACHABLE, errnum, "lost the connection to the daemon");
    return err_set(e, ERR_UNREACHABLE, "the daemon closed the connection");
}

/* --- reconnecting --- */

static void
remember(struct client *c, int64_t id, const struct buf *line)
{
    if (!c->again)
        return;
    c->asked = xgrow(c->asked, c->n_asked, &c->cap_asked, sizeof *c->asked);
    struct asked *a = &c->asked[c->n_asked++];

    *a = (struct asked){.id = id, .line = BUF_INIT};
    buf_add(&a->line, line->data, line->len);
}

static void
forget(struct client *c, int64_t id)
{
    for (size_t i = 0; i < c->n_asked; i++) {
        if (c->asked[i].id != id)
            continue;
        buf_free(&c->asked[i].line);
        c->n_asked--;
        memmove(&c->asked[i], &c->asked[i + 1], (c->n_asked - i) * sizeof *c->asked);
        return;
    }
}

/* 0: everything was sent. -1 with errno. */
static int
send_bytes(struct client *c, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(c->fd, bytes, n, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -1;
        bytes += sent;
        n -= (size_t)sent;
    }
    return 0;
}

/* The daemon is gone without announcing that it was stopped. Returns 0 once reconnected and
 * all unanswered requests are resent. */
static int
renew(struct client *c, int errnum, struct err *e)
{
    if (!c->again || c->stopped || c->renewing || errnum == EAGAIN)
        return lose(c, errnum, e);
    if (clock_boot_us() - c->renewed_us > LASTED_US)
        c->renewals = 0;
    if (++c->renewals > SILENT_MAX) {
        c->lost = true;
        return err_set(e, ERR_UNREACHABLE,
                       "%d daemons died without an answer; the request may be the cause",
                       c->renewals);
    }
    c->renewing = true;
    bool sent = false;
    for (int tries = 0; tries < AGAIN_MAX && !sent; tries++) {
        int fd = c->again(c->again_ctx, e);

        if (fd < 0)
            break;
        /* Keep the descriptor's number: a caller may have it in a poll list. */
        sent = dup3(fd, c->fd, O_CLOEXEC) >= 0;
        close(fd);
        set_timeout(c, c->patience_ms);
        for (size_t i = 0; i < c->n_asked && sent; i++) {
            allow_for_size(c, c->asked[i].line.len);
            /* A daemon that hangs up at once may have left a message to read. */
            sent = send_bytes(c, c->asked[i].line.data, c->asked[i].line.len) == 0 ||
                   errno == EPIPE;
        }
    }
    c->renewing = false;
    if (!sent) {
        c->lost = true;
        return e && e->code
                   ? -1
                   : err_set(e, ERR_UNREACHABLE, "daemons start and exit; none answers");
    }
    c->renewed_us = clock_boot_us();
    buf_clear(&c->in); /* may hold part of a line from the old daemon */
    c->taken = c->scanned = 0;
    if (c->on_back)
        c->on_back(c->back_ctx, c);
    return 0;
}

/* --- sending --- */

static int
send_all(struct client *c, const char *bytes, size_t n, struct err *e)
{
    if (c->lost)
        return lose(c, 0, e);
    /* The reason for the hang-up may be readable; if not, reading reports the loss. */
    if (send_bytes(c, bytes, n) == 0 || errno == EPIPE)
        return 0;
    return renew(c, errno, e);
}

void
client_make_token(char out[CLIENT_TOKEN_SIZE])
{
    uint64_t v[2];

    out[0] = '\0';
    if (getrandom(v, sizeof v, GRND_NONBLOCK) == sizeof v)
        snprintf(out, CLIENT_TOKEN_SIZE, "%016" PRIx64 "%016" PRIx64, v[0], v[1]);
}

void
client_name_next(struct client *c, const char *token)
{
    snprintf(c->token, sizeof c->token, "%s", token);
}

static int64_t
send_request(struct client *c, const char *method, const char *params, size_t n, struct err *e)
{
    auto_buf struct buf out = BUF_INIT;
    int64_t id = ++c->last_id;

    char token[CLIENT_TOKEN_SIZE];

    snprintf(token, sizeof token, "%s", c->token);
    c->token[0] = '\0';
    if (c->again && !token[0])
        client_make_token(token);
    buf_reserve(&out, n + 192);
    buf_addf(&out, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":\"%s\"", (long long)id, method);
    if (token[0])
        buf_addf(&out, ",\"token\":\"%s\"", token);
    if (c->patience_ms)
        buf_adds(&out, ",\"progress\":true");
    if (params) {
        buf_adds(&out, ",\"params\":");
        buf_add(&out, params, n);
    }
    buf_adds(&out, "}\n");
    if (out.len > LINE_MAX_BYTES)
        return err_set(e, ERR_USAGE,
                       "the request is %zu MiB; at most 64 MiB can be sent at once",
                       out.len >> 20);
    allow_for_size(c, out.len);
    remember(c, id, &out);
    return send_all(c, out.data, out.len, e) < 0 ? -1 : id;
}

int64_t
client_send(struct client *c, const char *method, json_t *params, struct err *e)
{
    auto_free char *text = params ? json_dumps(params, JSON_COMPACT) : NULL;

    if (params && !text) {
        json_decref(params);
        return err_set(e, ERR_USAGE, "the request cannot be written as JSON");
    }
    json_decref(params);
    return send_request(c, method, text, text ? strlen(text) : 0, e);
}

/* --- receiving --- */

static void
read_error(json_t *error, struct err *e)
{
    const char *words = json_string_value(json_object_get(error, "message"));
    const char *kind =
        json_string_value(json_object_get(json_object_get(error, "data"), "kind"));
    json_int_t code = json_integer_value(json_object_get(error, "code"));
    enum err_code mapped = ERR_FAILED;

    if (kind)
        mapped = err_from_name(kind);
    else if (code >= ERR_FAILED && code <= ERR_TIMED_OUT)
        mapped = (enum err_code)code;
    err_set(
        e, mapped, "%s%s", words ? words : "the daemon refused without a reason",
        code == NO_METHOD
            ? ": the daemon has another version than this program; restart it with this version"
            : "");
}

static void
take_answer(struct client *c, json_t *msg)
{
    int64_t id = json_integer_value(json_object_get(msg, "id"));
    json_t *result = json_object_get(msg, "result");
    json_t *error = json_object_get(msg, "error");
    struct err e = {0};

    forget(c, id);
    if (!result || (error && !json_is_null(error))) {
        result = NULL;
        read_error(error, &e);
    }
    if (c->want_id && (id == c->want_id || (id == 0 && error))) {
        c->have = true;
        c->result = json_incref(result);
        c->error = e;
    } else if (c->on_answer) {
        c->on_answer(c->ctx, id, result, &e);
    }
}

/* Recognises a result in berthd's own format by its first bytes. Returns the result's offset
 * in the line; 0: another format. */
static size_t
find_result(const char *line, size_t n, int64_t *id)
{
    static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":";
    static const char key[] = ",\"result\":";
    const char *at = line + sizeof head - 1;
    const char *end = line + n;

    if (n < sizeof head + sizeof key || memcmp(line, head, sizeof head - 1) != 0 ||
        line[n - 1] != '}')
        return 0;
    for (*id = 0; at < end && *at >= '0' && *at <= '9' && *id < INT64_MAX / 100; at++)
        *id = *id * 10 + (*at - '0');
    if ((size_t)(end - at) < sizeof key || memcmp(at, key, sizeof key - 1) != 0)
        return 0;
    return (size_t)(at - line) + sizeof key - 1;
}

static bool
take_text(struct client *c, const char *line, size_t n)
{
    int64_t id;
    size_t at = c->raw || c->on_text ? find_result(line, n, &id) : 0;

    if (at == 0)
        return false;
    if (c->raw && id == c->want_id) {
        forget(c, id);
        c->raw_at = (size_t)(line - c->in.data) + at;
        c->raw_len = n - at - 1;
        c->have = true;
        return true;
    }
    if (!c->on_text || id == c->want_id)
        return false;
    forget(c, id);
    c->on_text(c->ctx, id, line + at, n - at - 1);
    return true;
}

/* For a waiting call the arrival alone matters: each byte restarts the timeout. */
static void
take_sign(const struct client *c, const json_t *params)
{
    if (c->on_sign)
        c->on_sign(c->ctx, json_integer_value(json_object_get(params, "id")));
}

static int
take_line(struct client *c, const char *line, size_t n, struct err *e)
{
    if (take_text(c, line, n))
        return 0;

    json_error_t why;
    auto_json json_t *msg = json_text_read(line, n, &why);
    const char *method;

    if (!msg || !json_is_object(msg)) {
        c->lost = true;
        return err_set(e, ERR_FAILED, "the daemon sent a line that is not a JSON object: %s",
                       msg ? "another type" : why.text);
    }
    method = json_string_value(json_object_get(msg, "method"));
    if (!method)
        take_answer(c, msg);
    else if (strcmp(method, "stopped") == 0)
        c->stopped = true;
    else if (strcmp(method, "progress") == 0)
        take_sign(c, json_object_get(msg, "params"));
    else if (c->on_notify)
        c->on_notify(c->ctx, method, json_object_get(msg, "params"));
    return 0;
}

/* Stops at the awaited answer, so that later messages are delivered after the caller has seen
 * it. */
static int
take_lines(struct client *c, struct err *e)
{
    while (c->scanned < c->in.len && !c->have) {
        char *nl = memchr(c->in.data + c->scanned, '\n', c->in.len - c->scanned);
        size_t start = c->taken;
        size_t n;

        if (!nl) {
            c->scanned = c->in.len;
            break;
        }
        n = (size_t)(nl - c->in.data) - start;
        c->taken = c->scanned = start + n + 1;
        c->n_taken++;
        if (n > 0 && take_line(c, c->in.data + start, n, e) < 0)
            return -1;
    }
    if (c->taken > 0 && c->taken == c->in.len && !c->raw) {
        buf_clear(&c->in);
        c->taken = c->scanned = 0;
    }
    return 0;
}

/* Reads once. 1: got bytes, 0: nothing there (only without waiting), -1: connection lost. */
static int
read_some(struct client *c, bool wait, struct err *e)
{
    ssize_t n;

    if (c->lost)
        return lose(c, 0, e);
    if (c->taken > 0 && c->taken >= c->in.len / 2) {
        buf_drop(&c->in, c->taken);
        c->scanned -= c->taken;
        c->taken = 0;
    }
    if (c->in.len - c->taken > ANSWER_MAX_BYTES)
        return err_set(e, ERR_FAILED, "the daemon sent a line of more than 256 MiB");
    buf_reserve(&c->in, c->in.len > READ_CHUNK ? c->in.len : READ_CHUNK);
    do
        n = recv(c->fd, c->in.data + c->in.len, c->in.cap - c->in.len - 1,
                 wait ? 0 : MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && !wait)
        return 0;
    if (n <= 0)
        return renew(c, n < 0 ? errno : 0, e);
    c->renewals = 0;
    c->in.len += (size_t)n;
    c->in.data[c->in.len] = '\0';
    return 1;
}

int
client_pump(struct client *c, struct err *e)
{
    int rc;

    do {
        if (take_lines(c, e) < 0)
            return -1;
        rc = read_some(c, false, e);
    } while (rc > 0);
    return rc;
}

int
client_wait(struct client *c, int timeout_ms, struct err *e)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    uint64_t before = c->n_taken;

    if (take_lines(c, e) < 0)
        return -1;
    if (c->n_taken != before)
        return 0; /* it arrived with the last answer, and may be what the caller waits for */
    if (poll(&p, 1, timeout_ms) <= 0)
        return 0;
    return client_pump(c, e);
}

static int
await(struct client *c, int64_t id, json_t **result, struct err *e)
{
    c->want_id = id;
    c->have = false;
    c->raw_len = 0;
    while (!c->have) {
        if (take_lines(c, e) < 0 || (!c->have && read_some(c, true, e) < 0)) {
            c->want_id = 0;
            return -1;
        }
    }
    c->want_id = 0;
    c->have = false;
    if (!c->result && c->raw_len == 0) {
        if (e)
            *e = c->error;
        return -1;
    }
    if (result)
        *result = TAKE(c->result);
    json_decref(TAKE(c->result));
    return 0;
}

int
client_call_raw(struct client *c, const char *method, json_t *params, const char **result,
                size_t *n, struct err *e)
{
    auto_json json_t *tree = NULL;
    int64_t id = client_send(c, method, params, e);
    int rc;

    if (id < 0)
        return -1;
    c->raw = true;
    rc = await(c, id, &tree, e);
    c->raw = false;
    if (rc < 0)
        return -1;
    if (tree) {
        free(c->raw_copy);
        c->raw_copy = json_dumps(tree, JSON_AS_SENT);
        *n = c->raw_copy ? strlen(c->raw_copy) : 0;
        *result = c->raw_copy ? c->raw_copy : "";
    } else {
        *n = c->raw_len;
        *result = c->in.data + c->raw_at;
    }
    return 0;
}

int
client_call(struct client *c, const char *method, json_t *params, json_t **result,
            struct err *e)
{
    int64_t id = client_send(c, method, params, e);

    return id < 0 ? -1 : await(c, id, result, e);
}

int64_t
client_call_begin(struct client *c, const char *method, const char *params, size_t n,
                  struct err *e)
{
    return send_request(c, method, params, n, e);
}

int
client_call_end(struct client *c, int64_t id, json_t **result, struct err *e)
{
    return await(c, id, result, e);
}

int
client_call_text(struct client *c, const char *method, const char *params, size_t n,
                 json_t **result, struct err *e)
{
    int64_t id = client_call_begin(c, method, params, n, e);

    return id < 0 ? -1 : client_call_end(c, id, result, e);
}
