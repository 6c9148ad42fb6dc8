/* One connection of mgpu's protocol: who is there, what he asks for, the answer. Everything is
 * asked of berthd as that user, by a process that is his: what the message says of users counts
 * for nothing. Whatever is wrong with a request ends in a `fail` with words. */
#include <ctype.h>
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
#include "cli/answer.h"
#include "cli/compat/mgpu.h"
#include "cli/compat/pytext.h"
#include "sys/rlimits.h"
#include "wire/client.h"

#define BEGIN_MS        30000 /* for the first byte */
#define MORE_MS         1500  /* for the rest of what has begun: there is no mark of its end */
#define CHUNK           65536
#define PEER_FD         3 /* above the standard ones */
#define PATIENCE_MS     15000
#define CANCEL_GRACE_MS 2000
#define CANCEL_WAIT_MS  10000

struct peer {
    int fd;
    const struct mgpu_service *service;
    struct mgpu_user user;
    bool ours; /* mgpu_srun and its kin of Berth, not the original's */
};

void
mgpu_user_free(struct mgpu_user *u)
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

/* ------------------------------------------------------------------ who is there */

/* The limits of who connected, as they would be the job's without a server between. Only while
 * that process is his: another may have its number by now. */
static void
take_limits(const struct ucred *cred)
{
    auto_free char *proc = xasprintf("/proc/%d", (int)cred->pid);
    auto_buf struct buf text = BUF_INIT;
    struct rlimits limits;
    struct stat st;

    if (cred->pid > 0 && rlimits_of(cred->pid, &text) == 0 && stat(proc, &st) == 0 &&
        st.st_uid == cred->uid && rlimits_parse(buf_str(&text), &limits, NULL) == 0)
        (void)rlimits_apply(&limits);
}

static int
become(const struct ucred *cred, const struct passwd *pw, struct err *e)
{
    take_limits(cred);
    if (initgroups(pw->pw_name, pw->pw_gid) < 0 ||
        setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) < 0 ||
        setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot work as %s", pw->pw_name);
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
    };
    return as_peer ? become(&cred, pw, e) : 0;
}

/* ------------------------------------------------------------------ the request */

/* 1: there is more; 0: no more will come, or not in time. */
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

static json_t *
read_request(int fd, struct err *e)
{
    auto_buf struct buf in = BUF_INIT;

    while (in.len < MGPU_MAX_JSON && read_more(fd, &in)) {
        json_error_t why;
        json_t *request = json_loadb(in.data, in.len, 0, &why);

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
        err_set(e, ERR_USAGE, "the request ends before its JSON does");
    return NULL;
}

/* ------------------------------------------------------------------ submit */

/* The original's clients take the first piece that they read for the answer, whole: what
 * follows must not be in it. */
static void
await_reader(const struct peer *p)
{
    while (!p->ours) {
        struct pollfd gone = {.fd = p->fd, .events = POLLRDHUP};
        int left = 0;

        if (ioctl(p->fd, SIOCOUTQ, &left) < 0 || left == 0)
            return;
        if (poll(&gone, 1, 2) > 0 && gone.revents & (POLLHUP | POLLERR))
            return;
    }
}

static json_t *
answer_submit(struct peer *p, struct client *c, const json_t *request, struct err *e)
{
    bool interactive = json_is_true(json_object_get(request, "interactive"));
    struct mgpu_submitted job = {0};
    json_t *reply;

    if (mgpu_submit(c, p->service, &p->user, request, &job, e) < 0)
        return json_pack("{s:s, s:s, s:s}", "status", "fail", "job_id", job.id, "msg", e->text);
    reply = json_pack("{s:s, s:s}", "status", "ok", "job_id", job.id);
    if (interactive) {
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

/* ------------------------------------------------------------------ queue */

enum {
    COL_ID,
    COL_ARRAY,
    COL_TASK,
    COL_NAME,
    COL_USER,
    COL_GPUS,
    COL_MEM,
    COL_COMMAND,
    COL_STATE,
    COL_IDS,
    COL_SETUP,
    COL_TAGS,
    COLS
};

#define COL_NAMES                                                                              \
    "id", "array_job", "array_task", "name", "user", "gpus_wanted", "vram_mib", "command",     \
        "state", "gpu_ids", "env_setup", "tags"

static bool
has_tag(const json_t *tags, const char *tag)
{
    size_t i;
    json_t *t;

    json_array_foreach(tags, i, t)
    {
        if (json_is_string(t) && strcmp(json_string_value(t), tag) == 0)
            return true;
    }
    return false;
}

/* Jobs that came from elsewhere go by Berth's number. */
static json_t *
id_of(const json_t *row, bool from_mgpu)
{
    const json_t *array = json_array_get(row, COL_ARRAY);

    if (from_mgpu)
        return json_incref(json_array_get(row, COL_NAME));
    if (json_is_integer(array))
        return json_sprintf("%lld_%lld", (long long)json_integer_value(array),
                            (long long)json_integer_value(json_array_get(row, COL_TASK)));
    return json_sprintf("%lld", (long long)json_integer_value(json_array_get(row, COL_ID)));
}

static json_t *
texts_of(const json_t *numbers)
{
    json_t *out;
    size_t i;
    json_t *n;

    if (json_array_size(numbers) == 0)
        return json_null();
    out = json_array();
    json_array_foreach(numbers, i, n)
        json_array_append_new(out, json_sprintf("%lld", (long long)json_integer_value(n)));
    return out;
}

static void
list_row(const json_t *row, json_t *queue, json_t *running)
{
    const char *state = json_string_value(json_array_get(row, COL_STATE));
    const char *setup = json_string_value(json_array_get(row, COL_SETUP));
    const json_t *tags = json_array_get(row, COL_TAGS);
    bool mgpu = has_tag(tags, MGPU_TAG), said_mem = !mgpu || has_tag(tags, MGPU_TAG_MEM);
    bool waits = state && (strcmp(state, "PENDING") == 0 || strcmp(state, "HELD") == 0);
    bool none = !setup || (mgpu && strcmp(setup, ":") == 0);

    json_array_append_new(
        waits ? queue : running,
        json_pack("{s:o, s:O, s:O, s:o, s:O, s:s, s:o, s:o}", "id", id_of(row, mgpu), "user",
                  json_array_get(row, COL_USER), "gpus", json_array_get(row, COL_GPUS), "mem",
                  said_mem ? json_incref(json_array_get(row, COL_MEM)) : json_null(), "cmd",
                  json_array_get(row, COL_COMMAND), "status", waits ? "queued" : "running",
                  "gpu_ids", texts_of(json_array_get(row, COL_IDS)), "env_setup_cmd",
                  none ? json_null() : json_string(setup)));
}

static json_t *
answer_queue(struct client *c, struct err *e)
{
    static const char *const names[COLS] = {COL_NAMES};
    auto_json json_t *result = NULL;
    json_t *fields = json_array(), *queue, *running;
    size_t i;
    json_t *row;

    for (i = 0; i < COLS; i++)
        json_array_append_new(fields, json_string(names[i]));
    if (client_call(c, "jobs", json_pack("{s:o, s:s}", "fields", fields, "order", "turn"),
                    &result, e) < 0)
        return NULL;
    queue = json_array();
    running = json_array();
    json_array_foreach(json_object_get(result, "rows"), i, row) list_row(row, queue, running);
    return json_pack("{s:s, s:o, s:o}", "status", "ok", "queue", queue, "running", running);
}

/* ------------------------------------------------------------------ cancel */

/* What berthd calls the job: those of mgpu have the id as their name, which is the caller's
 * own; others go by number, as mgpu_queue shows them. NULL: such an id there cannot be. */
static json_t *
selector_of(const char *id)
{
    size_t n = strlen(id), digits = strspn(id, "0123456789_");

    if (n == MGPU_ID_LEN && strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == n)
        return json_sprintf("name:%s", id);
    if (n > 0 && n < 20 && digits == n && isdigit((unsigned char)id[0]))
        return json_string(id);
    return NULL;
}

static void
on_ended(void *ctx, int64_t id, json_t *result, const struct err *error)
{
    bool *ended = ctx;

    (void)id;
    (void)result;
    (void)error;
    *ended = true;
}

/* Whoever reads `ok` may count on the processes being gone. */
static void
await_end(struct client *c, const json_t *ids)
{
    int64_t until = clock_boot_us() + CANCEL_WAIT_MS * 1000LL;
    json_t *select = json_array();
    bool ended = false;
    size_t i;
    json_t *id;

    json_array_foreach(ids, i, id)
        json_array_append_new(select, json_sprintf("%lld", (long long)json_integer_value(id)));
    client_listen(c, NULL, on_ended, &ended);
    if (client_send(c, "wait", json_pack("{s:o}", "select", select), NULL) < 0)
        return;
    while (!ended && clock_boot_us() < until &&
           client_wait(c, (int)((until - clock_boot_us()) / 1000) + 1, NULL) == 0)
        continue;
}

static json_t *
answer_cancel(struct client *c, const json_t *request, struct err *e)
{
    const json_t *id = json_object_get(request, "job_id");
    auto_json json_t *result = NULL;
    json_t *select, *ids;

    if (!json_is_string(id)) {
        err_set(e, ERR_USAGE, "cancel needs \"job_id\", a text");
        return NULL;
    }
    select = selector_of(json_string_value(id));
    if (!select) {
        err_set(e, ERR_NO_JOB, "there is no such job");
        return NULL;
    }
    if (client_call(c, "cancel",
                    json_pack("{s:[o], s:i}", "select", select, "grace_ms", CANCEL_GRACE_MS),
                    &result, e) < 0)
        return NULL;
    ids = json_object_get(result, "ids");
    if (json_array_size(ids) == 0) {
        err_set(e, ERR_NO_JOB, "there is no such job, or it has ended");
        return NULL;
    }
    await_end(c, ids);
    return json_pack("{s:s}", "status", "ok");
}

/* ------------------------------------------------------------------ all of it */

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
    c = client_connect(p->service->daemon, e);
    if (!c)
        return NULL;
    client_set_patience(c, PATIENCE_MS);
    if (submits)
        return answer_submit(p, c, request, e);
    return cancels ? answer_cancel(c, request, e) : answer_queue(c, e);
}

void
mgpu_serve(int fd, const struct mgpu_service *s, bool as_peer)
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
    if (reply)
        (void)mgpu_send(fd, reply, p.ours);
    mgpu_user_free(&p.user);
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
    close_range(PEER_FD + 1, ~0U, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    mgpu_serve(PEER_FD, s, as_peer);
    _exit(0);
}
