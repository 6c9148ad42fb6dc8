/* One connection of mgpu's protocol: determines the user, reads the request and answers it.
 * berthd is asked as that user, by a process of that user; user names in the request are
 * ignored. Every error is answered with `fail` and a message. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/libc.h"
#include "cli/ask/answer.h"
#include "compat/mgpu/mgpu.h"
#include "compat/py/pytext.h"
#include "sys/keyring.h"
#include "sys/rlimits.h"
#include "wire/client.h"

#define BEGIN_MS     30000 /* timeout for the first byte */
#define MORE_MS      1500  /* timeout for more, since a request has no end mark */
#define CHUNK        65536
#define STATUS_BYTES 65536 /* read of /proc/PID/status */
#define PEER_FD      3     /* first after the standard ones */
#define PATIENCE_MS  15000
#define DRAIN_MS     30000
#define AGAIN_TRIES  50 /* a daemon that died is restarted soon */
#define AGAIN_MS     100

struct peer {
    int fd;
    const struct mgpu_service *service;
    struct mgpu_user user;
    bool ours; /* the client is Berth's mgpu_srun or the like, not the original's */
};

static void
user_free(struct mgpu_user *u)
{
    free(u->name);
    free(u->home);
    free(u->shell);
    *u = (struct mgpu_user){0};
}

int
mgpu_service_of(struct mgpu_service *s, struct client *c, struct err *e)
{
    const char *path = client_path(c);

    if (!path || path[0] != '/' || strlen(path) >= sizeof s->daemon)
        return err_set(e, ERR_USAGE, "the daemon's socket needs a whole path: %s",
                       path ? path : "it has none");
    memcpy(s->daemon, path, strlen(path) + 1);
    return 0;
}

int
mgpu_send(int fd, const json_t *reply, bool newline)
{
    auto_buf struct buf out = BUF_INIT;

    py_add_json(&out, reply, 0);
    if (newline)
        buf_addc(&out, '\n');
    return file_write_all(fd, out.data, out.len);
}

/* --- the client --- */

static bool
is_of(const struct ucred *cred)
{
    auto_free char *proc = xasprintf("/proc/%d", (int)cred->pid);
    struct stat st;

    return stat(proc, &st) == 0 && st.st_uid == cred->uid;
}

/* Take over the client's resource limits, which the job would have without a server in
 * between. Only if the process still belongs to this user: its pid may have been reused. */
static void
take_limits(const struct ucred *cred)
{
    auto_buf struct buf text = BUF_INIT;
    struct rlimits limits;

    if (cred->pid > 0 && rlimits_of(cred->pid, &text) == 0 && is_of(cred) &&
        rlimits_parse(buf_str(&text), &limits, NULL) == 0)
        (void)rlimits_apply(&limits);
}

/* Also the client's umask, so that the log is no more readable than the user's other files. */
static mode_t
umask_of(const struct ucred *cred)
{
    auto_free char *path = xasprintf("/proc/%d/status", (int)cred->pid);
    auto_buf struct buf text = BUF_INIT;
    const char *at;

    if (cred->pid <= 0 || file_read(path, STATUS_BYTES, &text, NULL) < 0 || !is_of(cred))
        return MGPU_UMASK;
    at = strstr(buf_str(&text), "\nUmask:");
    return at ? (mode_t)strtoul(at + sizeof "\nUmask:" - 1, NULL, 8) & 0777 : MGPU_UMASK;
}

static int
become(const struct ucred *cred, const struct passwd *pw, struct err *e)
{
    take_limits(cred);
    errno = keyring_leave();
    if (errno != 0 || initgroups(pw->pw_name, pw->pw_gid) < 0 ||
        setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) < 0 ||
        setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot work as %s", pw->pw_name);
    keyring_settle();
    return 0;
}

static int
identify(struct peer *p, bool as_peer, struct err *e)
{
    struct ucred cred;
    socklen_t size = sizeof cred;
    const struct passwd *pw;
    const char *home;

    if (getsockopt(p->fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot tell who is there");
    if (!as_peer && cred.uid != geteuid())
        return err_set(e, ERR_PERMISSION,
                       "this server is not root's: it serves only the user who started it");
    errno = 0;
    pw = getpwuid(cred.uid);
    if (!pw || !pw->pw_dir)
        return err_set(e, ERR_FAILED, "user %u has no account on this machine", cred.uid);
    home = getuid() == 0 || !getenv("HOME") ? pw->pw_dir : getenv("HOME");
    p->user = (struct mgpu_user){
        .name = xstrdup(pw->pw_name),
        .home = xstrdup(home),
        .shell = xstrdup(pw->pw_shell && pw->pw_shell[0] ? pw->pw_shell : "/bin/sh"),
        .umask_bits = umask_of(&cred),
    };
    umask(p->user.umask_bits); /* for the log */
    return as_peer ? become(&cred, pw, e) : 0;
}

/* --- the request --- */

/* 1: more was read; 0: end of input, or timeout. */
static int
read_more(int fd, struct buf *in)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int rc;
    ssize_t n;

    do
        rc = poll(&p, 1, in->len ? MORE_MS : BEGIN_MS);
    while (rc < 0 && errno == EINTR);
    if (rc <= 0)
        return 0;
    buf_reserve(in, CHUNK);
    n = read(fd, in->data + in->len, CHUNK);
    if (n <= 0)
        return 0;
    in->len += (size_t)n;
    in->data[in->len] = '\0';
    return 1;
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* A chunk may end within a number, an escape or a character, which a parser would call invalid
 * rather than incomplete. Only after a closing brace can it tell; text that does not begin
 * with { is never an object. */
static bool
can_be_judged(const struct buf *in)
{
    size_t first = 0, end = in->len;

    while (first < end && is_blank(in->data[first]))
        first++;
    while (end > first && is_blank(in->data[end - 1]))
        end--;
    return end > first && (in->data[first] != '{' || in->data[end - 1] == '}');
}

static json_t *
read_request(int fd, struct err *e)
{
    auto_buf struct buf in = BUF_INIT;
    json_error_t why = {0};

    while (in.len < MGPU_MAX_JSON && read_more(fd, &in)) {
        json_t *request = NULL;

        if (!can_be_judged(&in))
            continue;
        request = json_loadb(in.data, in.len, 0, &why);
        if (request)
            return request;
        if (json_error_code(&why) != json_error_premature_end_of_input) {
            err_set(e, ERR_USAGE, "the request is no JSON object: %s", why.text);
            return NULL;
        }
    }
    if (in.len == 0)
        err_set(e, ERR_USAGE, "the request is empty");
    else if (in.len >= MGPU_MAX_JSON)
        err_set(e, ERR_USAGE, "the request is longer than %d MiB", MGPU_MAX_JSON >> 20);
    else
        err_set(e, ERR_USAGE, "the request is no whole JSON object, and nothing more came");
    return NULL;
}

/* A rejected client may still be writing; closing now would reset the connection before it
 * reads the answer. */
static void
let_finish(int fd)
{
    auto_buf struct buf rest = BUF_INIT;
    int64_t until = clock_boot_us() + DRAIN_MS * 1000LL;

    (void)shutdown(fd, SHUT_WR);
    do {
        rest.len = 0;
        buf_addc(&rest, ' '); /* non-empty, so that the shorter timeout applies */
    } while (read_more(fd, &rest) && clock_boot_us() < until);
}

/* --- submit --- */

/* Clients of the original take the first chunk they read as the whole answer, so wait until it
 * was read before sending more. */
static void
await_reader(const struct peer *p)
{
    for (int wait_ms = 1; !p->ours; wait_ms = wait_ms < 1000 ? wait_ms * 2 : wait_ms) {
        struct pollfd gone = {.fd = p->fd}; /* POLLHUP and POLLERR are always reported */
        int left = 0;

        if (ioctl(p->fd, SIOCOUTQ, &left) < 0 || left == 0)
            return;
        if (poll(&gone, 1, wait_ms) > 0)
            return;
    }
}

static json_t *
answer_submit(struct peer *p, struct client *c, const json_t *request, struct err *e)
{
    struct mgpu_submitted job = {0};
    json_t *reply;

    if (mgpu_submit(c, p->service, &p->user, request, &job, e) < 0)
        return json_pack("{s:s, s:s, s:s}", "status", "fail", "job_id", job.id, "msg", e->text);
    reply = json_pack("{s:s, s:s}", "status", "ok", "job_id", job.id);
    if (job.note[0]) {
        json_object_set_new(reply, "priority", json_integer(job.priority));
        json_object_set_new(reply, "msg", json_string(job.note));
    }
    if (job.interactive) {
        const struct mgpu_stream stream = {p->fd, p->service, &job, p->ours};

        json_object_set_new(reply, "interactive", json_true());
        if (mgpu_send(p->fd, reply, p->ours) == 0) {
            await_reader(p);
            mgpu_stream(&stream, c);
        }
        json_decref(reply);
        reply = NULL;
    }
    free(job.log);
    return reply;
}

/* --- the connection --- */

static struct client *
connect_patiently(const char *daemon, struct err *e)
{
    struct client *c = client_connect(daemon, e);

    for (int i = 0; !c && e->code == ERR_UNREACHABLE && i < AGAIN_TRIES; i++) {
        poll(NULL, 0, AGAIN_MS);
        c = client_connect(daemon, e);
    }
    return c;
}

static json_t *
answer(struct peer *p, const json_t *request, struct err *e)
{
    const char *cmd = answer_str(request, "cmd");
    bool submits = strcmp(cmd, "submit") == 0, cancels = strcmp(cmd, "cancel") == 0;
    auto_client struct client *c = NULL;

    if (!json_is_object(request)) {
        err_set(e, ERR_USAGE, "the request is no JSON object");
        return NULL;
    }
    p->ours = answer_bool(request, "berth");
    if (!submits && !cancels && strcmp(cmd, "queue") != 0) {
        err_set(e, ERR_USAGE, "unknown command");
        return NULL;
    }
    c = connect_patiently(p->service->daemon, e);
    if (!c)
        return NULL;
    client_set_patience(c, PATIENCE_MS);
    if (submits)
        return answer_submit(p, c, request, e);
    return cancels ? mgpu_answer_cancel(c, &p->user, request, e)
                   : mgpu_answer_queue(c, p->ours, e);
}

static void
serve(int fd, const struct mgpu_service *s, bool as_peer)
{
    struct peer p = {.fd = fd, .service = s};
    auto_json json_t *request = NULL;
    auto_json json_t *reply = NULL;
    struct err e = {0};

    signal(SIGPIPE, SIG_IGN);
    if (identify(&p, as_peer, &e) == 0 && (request = read_request(fd, &e)))
        reply = answer(&p, request, &e);
    if (!reply && e.code)
        reply = json_pack("{s:s, s:s}", "status", "fail", "msg", e.text);
    if (reply && mgpu_send(fd, reply, p.ours) == 0 && !request)
        let_finish(fd);
    user_free(&p.user);
}

_Noreturn void
mgpu_serve_apart(int fd, const struct mgpu_service *s, bool as_peer)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;

    setsid();
    for (int i = 0; i <= STDERR_FILENO && null >= 0; i++)
        (void)dup2(null, i);
    if (fd != PEER_FD)
        (void)dup2(fd, PEER_FD);
    libc_close_from(PEER_FD + 1);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    serve(PEER_FD, s, as_peer);
    _exit(0);
}
