/* The clients' end of mgpu's protocol: finds the server, sends requests, reads objects, one
 * per line. Anyone may create a socket in /tmp, so only a server of root or of the own user is
 * trusted. Without a server but with a running Berth daemon, we fork a process that serves us:
 * the machine's daemon needs no server in front of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "base/unixsock.h"
#include "cli/ask/answer.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "compat/compat.h"
#include "compat/mgpu/mgpu.h"
#include "wire/client.h"
#include "wire/frame.h"

#define CHUNK 65536

const char *
mgpu_socket(void)
{
    const char *path = getenv("MGPU_SCHEDULER_SOCKET");

    return path && path[0] ? path : MGPU_SOCKET;
}

/* -1 with errno. */
static int
connect_to_server(const char *path)
{
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || unixsock_connect(fd, path) < 0)
        return -1;
    return TAKE_FD(fd);
}

static bool
is_trusted(int fd, uid_t *uid)
{
    struct ucred cred;
    socklen_t size = sizeof cred;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
        return false;
    *uid = cred.uid;
    return cred.uid == 0 || cred.uid == geteuid();
}

/* Fork a process that replaces the server; -1: reported. */
static int
connect_to_own(const char *name)
{
    const char *socket_name = getenv("BERTH_SOCKET");
    const struct cli cli = {.socket = socket_name && socket_name[0] ? socket_name : NULL};
    struct mgpu_service s = {0};
    struct err e = {0};
    auto_client struct client *c = connect_daemon(&cli, &e);
    int ends[2];
    pid_t pid;

    if (!c || mgpu_service_of(&s, c, &e) < 0) {
        compat_fail(1, name,
                    "no server listens at %s, and no daemon of Berth's runs; start "
                    "mgpu_scheduler_server as root, or berth daemon start",
                    mgpu_socket());
        return -1;
    }
    pid = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0 ? -1 : fork();
    if (pid < 0) {
        compat_fail(1, name, "cannot start a process: %s", strerror(errno));
        return -1;
    }
    if (pid == 0)
        mgpu_serve_apart(ends[1], &s, false);
    close(ends[1]);
    return ends[0];
}

int
mgpu_connect(const char *name)
{
    auto_close int fd = connect_to_server(mgpu_socket());
    uid_t uid = (uid_t)-1;

    if (fd < 0 && (errno == ENOENT || errno == ECONNREFUSED))
        return connect_to_own(name);
    if (fd < 0) {
        compat_fail(1, name, "cannot reach the server at %s: %s", mgpu_socket(),
                    strerror(errno));
        return -1;
    }
    if (!is_trusted(fd, &uid)) {
        compat_fail(
            1, name,
            "what listens at %s is neither root's nor yours but user %u's: your command "
            "is not sent there",
            mgpu_socket(), uid);
        return -1;
    }
    return TAKE_FD(fd);
}

/* --- messages --- */

json_t *
mgpu_next(struct frame *in)
{
    size_t at = 0, n = 0;
    json_t *value = NULL;
    char *line = frame_next(in, &at, &n);

    if (line)
        value = json_loadb(line, n, JSON_ALLOW_NUL, NULL);
    frame_done(in, at);
    return value;
}

bool
mgpu_read(int fd, struct frame *in)
{
    char *room = frame_room(in, CHUNK);
    ssize_t n;

    if (!room)
        return false;
    do
        n = read(fd, room, CHUNK);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return false;
    frame_filled(in, (size_t)n);
    return true;
}

json_t *
mgpu_ask(const char *name, int fd, json_t *request, struct frame *in)
{
    json_t *reply = NULL;
    int rc;

    json_object_set_new(request, "berth", json_true());
    rc = mgpu_send(fd, request, false);
    json_decref(request);
    while (rc == 0 && !(reply = mgpu_next(in)) && mgpu_read(fd, in))
        continue;
    if (!reply)
        compat_fail(1, name, "the server at %s hung up without an answer", mgpu_socket());
    return reply;
}

json_t *
mgpu_ask_once(const char *name, json_t *request)
{
    auto_close int fd = mgpu_connect(name);
    json_t *reply;
    struct frame in;

    if (fd < 0) {
        json_decref(request);
        return NULL;
    }
    frame_init(&in, FRAME_MAX_CLIENT);
    reply = mgpu_ask(name, fd, request, &in);
    frame_free(&in);
    return reply;
}

/* --- mgpu_queue, mgpu_cancel --- */

/* As Python prints the value, on one line. */
static void
add_value(struct buf *out, const json_t *v)
{
    if (json_is_string(v))
        text_add_safe(out, json_string_value(v), json_string_length(v), 0);
    else if (json_is_integer(v))
        buf_addf(out, "%lld", (long long)json_integer_value(v));
    else
        buf_adds(out, "None");
}

static void
add_jobs(struct buf *out, const char *title, const json_t *jobs)
{
    static const char *const titles[] = {
        "ID: ", " | User: ", " | GPUs: ", " | Mem: ", " | CMD: ", " | Status: "};
    size_t i;
    json_t *job;

    buf_addf(out, "--- %s ---\n", title);
    json_array_foreach(jobs, i, job)
    {
        for (size_t p = 0; p < sizeof titles / sizeof *titles; p++) {
            buf_adds(out, titles[p]);
            add_value(out, json_array_get(job, p));
        }
        buf_addc(out, '\n');
    }
}

static bool
is_ok(const json_t *reply)
{
    return strcmp(answer_str(reply, "status"), "ok") == 0;
}

static bool
wants_help(int argc, char **argv)
{
    return argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
}

static int
put(const char *text)
{
    return cli_write(text, strlen(text));
}

int
compat_mgpu_queue(int argc, char **argv)
{
    auto_buf struct buf out = BUF_INIT;
    auto_json json_t *reply = NULL;

    if (wants_help(argc, argv))
        return put("Usage: mgpu_queue\n");
    reply = mgpu_ask_once("mgpu_queue", json_pack("{s:s}", "cmd", "queue"));
    if (!reply)
        return 1;
    if (!is_ok(reply)) {
        buf_addf(&out, "Query failed: %s\n", answer_str(reply, "msg"));
        (void)cli_put(&out);
        return 1;
    }
    add_jobs(&out, "Running Jobs", json_object_get(reply, "running"));
    add_jobs(&out, "Queue", json_object_get(reply, "queue"));
    return cli_put(&out);
}

int
compat_mgpu_cancel(int argc, char **argv)
{
    auto_json json_t *reply = NULL;
    static const char usage[] = "Usage: mgpu_cancel <job_id>\n";
    json_t *request;

    if (argc < 2 || wants_help(argc, argv)) {
        int status = put(usage);

        return argc < 2 ? 1 : status;
    }
    request = json_pack("{s:s, s:s}", "cmd", "cancel", "job_id", argv[1]);
    if (!request) {
        (void)put("Cancel failed.\n");
        return compat_fail(1, "mgpu_cancel", "a job's id is 8 letters and digits, or a number");
    }
    reply = mgpu_ask_once("mgpu_cancel", request);
    if (!reply)
        return 1;
    if (is_ok(reply))
        return put("Job cancelled.\n");
    (void)put("Cancel failed.\n");
    return answer_str(reply, "msg")[0]
               ? compat_fail(1, "mgpu_cancel", "%s", answer_str(reply, "msg"))
               : 1;
}
