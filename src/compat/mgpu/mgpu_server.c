/* mgpu_scheduler_server: listens where mgpu's clients connect and forks a process for each
 * connection, which becomes the connecting user and asks berthd as that user (mgpu_peer.c). A
 * slow or malicious peer thus affects only a process with its own user's rights. The queue is
 * berthd's: the machine's daemon, or one of the server's own, started here. Jobs outlive the
 * server, and so do clients that watch one. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/common/cli.h"
#include "compat/compat.h"
#include "compat/engine/pick_daemon.h"
#include "compat/engine/takeover.h"
#include "compat/mgpu/mgpu.h"
#include "compat/py/pyarg.h"
#include "sys/signals.h"
#include "wire/client.h"

#define NAME          "mgpu_scheduler_server"
#define SYSTEM_ROOT   "/var/lib/mgpu_scheduler"
#define PEERS_MAX     4096 /* each client watching an interactive job holds one */
#define PEERS_OF_USER 1024
#define AGAIN_MS      2000 /* retry interval for problems whose end no event reports */
#define MAX_SECONDS   (INT64_C(100) * 365 * 86400)

struct server {
    int signals;
    struct mgpu_listener listener;
    struct compat_link link;
    struct mgpu_service service;
    struct pyarg_value max_job_time; /* in seconds */
    bool lost;                       /* the connection to the daemon is lost */
    bool nameless;                   /* clients cannot find the socket; reported */
    struct {
        pid_t pid;
        uid_t uid;
    } peers[PEERS_MAX];
    int n_peers;
};

static const struct pyarg args[] = {
    PYARG_HELP_ROW,
    {"--max-job-time", PYARG_INT, PYARG_INTO(struct server, max_job_time),
     .help = "the longest a job may run that names no limit of its own, in seconds; then it "
             "goes to the end of the queue (default: no limit)",
     .metavar = "SEC"},
    {0},
};

static const struct pyarg_parser parser = {
    .prog = NAME,
    .about = "mgpu's server, in front of Berth's queue. Root's serves everybody.",
    .args = args,
};

/* --- peers --- */

static int
peers_of(const struct server *s, uid_t uid)
{
    int n = 0;

    for (int i = 0; i < s->n_peers; i++)
        n += s->peers[i].uid == uid;
    return n;
}

static void
reap(struct server *s)
{
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        for (int i = 0; i < s->n_peers; i++) {
            if (s->peers[i].pid == pid)
                s->peers[i--] = s->peers[--s->n_peers];
        }
    }
}

static void
turn_away(int fd, const char *why)
{
    auto_free char *text = xasprintf("{\"status\": \"fail\", \"msg\": \"%s\"}\n", why);

    (void)send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void
take_peer(struct server *s, int fd)
{
    struct ucred cred;
    socklen_t size = sizeof cred;
    pid_t pid;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
        return;
    if (s->n_peers == PEERS_MAX || peers_of(s, cred.uid) >= PEERS_OF_USER) {
        turn_away(fd, "too many connections at once; try again");
        return;
    }
    pid = fork();
    if (pid == 0) /* stopping the server must not stop a job's output */
        mgpu_serve_apart(fd, &s->service, geteuid() == 0);
    if (pid < 0) {
        turn_away(fd, "the server cannot start a process for you; try again");
        return;
    }
    s->peers[s->n_peers].pid = pid;
    s->peers[s->n_peers++].uid = cred.uid;
}

static void
take_peers(struct server *s)
{
    int fd;

    while ((fd = accept4(s->listener.fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        take_peer(s, fd);
        close(fd);
    }
}

/* --- the loop --- */

/* Restart our own daemon. The machine's is restarted by its service manager, and each peer
 * connects by itself. */
static void
mend(struct server *s)
{
    struct err e = {0};

    if (s->link.cli.dir) {
        s->lost = compat_link_again(&s->link, &e) < 0;
        return;
    }
    client_free(s->link.client);
    s->link.client = NULL;
}

/* First serve clients that connected while the socket had its name. */
static void
keep_name(struct server *s)
{
    struct err e = {0};
    bool was = s->nameless;

    take_peers(s);
    s->nameless = mgpu_listener_keep(&s->listener, &e) < 0;
    if (s->nameless && !was)
        (void)compat_fail(1, NAME, "nobody finds the socket: %s", e.text);
}

/* True: the server must stop. */
static bool
on_signal(struct server *s)
{
    struct signalfd_siginfo info;

    while (read(s->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD)
            return true;
    }
    reap(s);
    return false;
}

static void
loop(struct server *s)
{
    for (;;) {
        int daemon = s->link.client ? client_fd(s->link.client) : -1;
        bool wrong = s->lost || s->nameless || s->listener.watch < 0;
        struct pollfd p[4] = {{.fd = s->signals, .events = POLLIN},
                              {.fd = s->listener.fd, .events = POLLIN},
                              {.fd = daemon, .events = POLLIN},
                              {.fd = s->listener.watch, .events = POLLIN}};

        if (poll(p, 4, wrong ? AGAIN_MS : -1) < 0 && errno != EINTR)
            err_abort("poll: %s", strerror(errno));
        if (p[0].revents && on_signal(s))
            return;
        if (s->lost || (p[2].revents && client_pump(s->link.client, NULL) < 0))
            mend(s);
        if (p[1].revents)
            take_peers(s);
        if (p[3].revents || wrong)
            keep_name(s);
    }
}

/* --- start --- */

/* Folder of the own daemon and of the locks that keep a second server off the same socket. */
static char *
root_folder(void)
{
    const char *dir = getenv("BERTH_DIR"), *home = getenv("HOME");

    if (dir && dir[0])
        return xstrdup(dir);
    return geteuid() == 0 ? xstrdup(SYSTEM_ROOT)
                          : xasprintf("%s/.mgpu_scheduler", home ? home : "/");
}

static int
lock_root(const struct server *s, const char *root, struct err *e)
{
    char sum[13];
    auto_free char *path = NULL;

    text_sha1_12(s->listener.path, strlen(s->listener.path), sum);
    path = xasprintf("%s/mgpu-%s.lock", root, sum);
    if (file_mkdirs(root, 0755, e) < 0)
        return -1;
    return compat_lock(path, e, "a server for %s runs already", s->listener.path);
}

static int
open_daemon(struct server *s, const char *root, struct err *e)
{
    /* As in the original, any user may set a priority, and equal priorities run in order of
     * arrival. */
    /* With the device filter GPUs must be named by UUID, but mgpu's jobs expect numbers. Each
     * mgpu client uses one connection of its user, so the limit is high. */
    static const char *const settings[] = {
        "user_priority_max=1000",    "fair_share=off",    "aging_s=0", "order=queue",
        "user_max_connections=1000", "device_filter=off", NULL};
    const struct compat_home home = {
        .root = root, .settings = settings, .system = geteuid() == 0};

    if (compat_link_open(&s->link, &home, e) < 0)
        return -1;
    return mgpu_service_of(&s->service, s->link.client, e);
}

static int
serve(struct server *s)
{
    auto_free char *root = root_folder();
    struct err e = {0};
    auto_close int lock = lock_root(s, root, &e);

    if (lock < 0 ||
        (s->signals = signals_to_fd((const int[]){SIGINT, SIGTERM, SIGHUP, SIGCHLD, 0}, &e)) <
            0 ||
        open_daemon(s, root, &e) < 0)
        return compat_fail(1, NAME, "%s", e.text);
    if (mgpu_listener_open(&s->listener, &e) < 0) {
        compat_link_close(&s->link);
        return compat_fail(1, NAME, "%s", e.text);
    }
    if (geteuid() != 0)
        (void)compat_fail(1, NAME, "not started by root: it serves nobody but you");
    (void)cli_write(NAME " started\n", sizeof NAME " started\n" - 1);
    loop(s);
    mgpu_listener_close(&s->listener);
    compat_link_close(&s->link);
    return 0;
}

int
compat_mgpu_server(int argc, char **argv)
{
    struct server *s = xcalloc(1, sizeof *s);
    int status = 0;

    if (pyarg_read(&parser, argc, argv, s, &status) != PYARG_EXIT) {
        s->listener.fd = s->listener.watch = -1;
        s->listener.path = mgpu_socket();
        s->service.max_job_ms = s->max_job_time.i * 1000;
        if (s->max_job_time.text && (s->max_job_time.i < 0 || s->max_job_time.i > MAX_SECONDS))
            status = compat_fail(1, NAME, "--max-job-time is a number of seconds, not %s",
                                 s->max_job_time.text);
        else
            status = serve(s);
    }
    free(s);
    return status;
}
