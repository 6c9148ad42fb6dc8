/* Starts and replaces the nursery: see nursery_link.h and shepherd/nursery/nursery_main.c. The
 * daemon never forks for a job: it sends a packet, which takes microseconds however busy the
 * machine is. */
#include "daemon/nursery/nursery_link.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/nursery/jobs_unit.h"
#include "sys/confine.h"
#include "sys/nursery_packets.h"
#include "sys/spawn.h"
#include "wire/places.h"

#define SEND_SECONDS 5     /* after that the nursery counts as stuck and is replaced */
#define UNIT_MS      20000 /* for a possibly busy service manager to start a unit */
#define HELLO_MS     10000
/* For a replacement while the daemon works: both must fit into the watchdog's period. */
#define AGAIN_UNIT_MS  8000
#define AGAIN_HELLO_MS 3000
#define AGAIN_US       (10 * INT64_C(1000000)) /* after a failed start */
#define SCOPE_HELLO_MS 5000                    /* then jobs live in our group */
#define HELLO_MAX      65536

struct nursery {
    char *program;
    char *base;       /* of the jobs' cgroups: "berth-" and eight hex digits */
    const char *unit; /* borrowed; template unit to start it in; NULL: none */
    bool no_scope;    /* a scope was tried and failed */
    bool was_there;   /* a nursery was started before; this is a replacement */
    bool forks_ahead; /* supports NURSERY_AHEAD; another version may not */
    struct confinement place;
    int fd;
    int pidfd;             /* so that signals never hit another process; -1: none */
    int64_t not_before_us; /* boot clock: no new start before that */
    struct err failed;     /* why the last start failed */
};

/* --- starting --- */

static pid_t
spawn_nursery(const struct nursery *n, struct jobsunit_scope *scope, int theirs, struct err *e)
{
    char *argv[JOBSUNIT_ARGS_MAX + 4] = {NULL};
    char option[] = "--nursery";
    int at = 0;
    for (int i = 0; scope && i < scope->n; i++)
        argv[at++] = scope->texts[i];
    argv[at++] = n->program;
    argv[at++] = option;
    argv[at++] = n->base;
    if (scope && scope->runtime_dir) {
        (void)setenv("XDG_RUNTIME_DIR", scope->runtime_dir, 1);
        (void)unsetenv("DBUS_SESSION_BUS_ADDRESS"); /* it may be another user's too */
    }
    struct spawn s = SPAWN_INIT;
    const int fds[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, theirs};
    s.argv = argv;
    s.envp = environ; /* for supervisors; a job's is in its spec */
    memcpy(s.fds, fds, sizeof fds);
    s.n_fds = sizeof fds / sizeof fds[0];
    s.new_session = true; /* Ctrl-C on the daemon's terminal must not reach supervisors */
    int errnum = 0;
    enum spawn_stage stage = SPAWN_OK;
    pid_t pid = spawn_process(&s, &errnum, &stage);
    return pid > 0 ? pid : err_errno(e, ERR_FAILED, errnum, "cannot start %s", argv[0]);
}

/* Reads its first packet: what can be enforced on jobs there. */
static int
hear_hello(struct nursery *n, int fd, int patience_ms, struct err *e)
{
    auto_free char *text = xmalloc(HELLO_MAX);
    if (!file_await(fd, patience_ms))
        return err_set(e, ERR_FAILED, "the process that forks supervisors does not answer");
    ssize_t len = recv(fd, text, HELLO_MAX, 0);
    json_t *hello = len > 0 ? json_loadb(text, (size_t)len, 0, NULL) : NULL;
    struct confinement place;
    bool is_hello = confine_read(json_object_get(hello, "confinement"), &place);
    pid_t pid = (pid_t)json_integer_value(json_object_get(hello, "pid"));
    n->forks_ahead = json_is_true(json_object_get(hello, "ahead"));
    json_decref(hello);
    if (!is_hello)
        return err_set(e, ERR_FAILED, "the process that forks supervisors exited immediately");
    confine_free(&n->place);
    n->place = place;
    if (n->pidfd >= 0)
        close(n->pidfd);
    n->pidfd = pid > 1 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    return 0;
}

/* Starts it as our child, in this scope (NULL: in our own group). */
static int
start_child(struct nursery *n, struct jobsunit_scope *scope, struct err *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return err_errno(e, ERR_FAILED, errno, "cannot make a socket pair");
    auto_close int ours = pair[0];
    auto_close int theirs = pair[1];
    pid_t pid = spawn_nursery(n, scope, theirs, e);
    if (pid < 0)
        return -1;
    close(TAKE_FD(theirs));
    int patience_ms = scope ? SCOPE_HELLO_MS : HELLO_MS;
    if (hear_hello(n, ours, n->was_there ? AGAIN_HELLO_MS : patience_ms, e) < 0) {
        (void)kill(pid, SIGKILL);
        return -1;
    }
    return TAKE_FD(ours);
}

/* Falls back to our own group: a service manager that does not answer must not keep a user's
 * daemon from working. */
static int
start_in_scope(struct nursery *n, struct err *e)
{
    struct jobsunit_scope scope;
    int fd = -1;
    if (!n->no_scope && jobsunit_scope_find(n->base, &scope)) {
        fd = start_child(n, &scope, e);
        jobsunit_scope_free(&scope);
    }
    if (fd >= 0)
        return fd;
    if (!n->no_scope && e->code)
        log_warn("event=no-scope jobs stay in the daemon's own group: %s", e->text);
    n->no_scope = true;
    return start_child(n, NULL, e);
}

static int
start_in_unit(struct nursery *n, struct err *e)
{
    auto_close int fd =
        jobsunit_start(n->unit, n->base, n->was_there ? AGAIN_UNIT_MS : UNIT_MS, e);
    if (fd < 0 || hear_hello(n, fd, n->was_there ? AGAIN_HELLO_MS : HELLO_MS, e) < 0)
        return -1;
    return TAKE_FD(fd);
}

static void
log_place(const struct confinement *c)
{
    auto_buf struct buf text = BUF_INIT;
    for (int i = 0; i < CONFINE_PARTS; i++)
        buf_addf(&text, " %s=%d", confine_name((enum confine_part)i), c->has[i]);
    log_info("event=confinement cgroup=%s%s", c->base ? c->base : "none", buf_str(&text));
}

static int
start(struct nursery *n, struct err *e)
{
    const struct timeval patience = {.tv_sec = SEND_SECONDS};
    *e = (struct err){0};
    n->fd = n->unit ? start_in_unit(n, e) : start_in_scope(n, e);
    if (n->fd < 0) {
        n->failed = *e;
        n->not_before_us = clock_boot_us() + AGAIN_US;
        return -1;
    }
    (void)setsockopt(n->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    log_place(&n->place);
    n->was_there = true;
    return 0;
}

static void
hang_up(struct nursery *n)
{
    if (n->fd >= 0)
        close(TAKE_FD(n->fd));
    if (n->pidfd >= 0)
        close(TAKE_FD(n->pidfd));
}

void
nursery_wake(struct nursery *n)
{
    if (n->pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, n->pidfd, SIGCONT, NULL, 0);
}

/* Kills the old nursery: a stopped process would keep the descriptors it was sent, and with
 * them the locks of attempts. */
int
nursery_replace(struct nursery *n, struct err *e)
{
    if (n->unit || !n->no_scope)
        return err_set(e, ERR_FAILED,
                       "the process that forks supervisors does not answer; it is not "
                       "replaced, because running jobs would end with its unit");
    if (n->pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, n->pidfd, SIGKILL, NULL, 0);
    hang_up(n);
    return start(n, e);
}

struct nursery *
nursery_new(const char *instance, const char *unit, struct err *e)
{
    auto_free char *program = places_program("berth-shepherd", e);
    if (!program)
        return NULL;
    struct nursery *n = xcalloc(1, sizeof *n);
    n->program = TAKE(program);
    n->base = xasprintf("berth-%.8s", instance);
    n->unit = unit;
    n->fd = n->pidfd = -1;
    if (start(n, e) < 0) {
        nursery_free(n);
        return NULL;
    }
    return n;
}

const struct confinement *
nursery_place(const struct nursery *n)
{
    return &n->place;
}

void
nursery_free(struct nursery *n)
{
    if (!n)
        return;
    if (n->fd >= 0)
        close(n->fd);
    if (n->pidfd >= 0)
        close(n->pidfd);
    confine_free(&n->place);
    free(n->program);
    free(n->base);
    free(n);
}

bool
nursery_is_alive(const struct nursery *n)
{
    struct pollfd p = {.fd = n->fd, .events = POLLIN};
    return n->fd >= 0 && (poll(&p, 1, 0) == 0 || !(p.revents & (POLLHUP | POLLERR)));
}

int
nursery_ask(struct nursery *n, char kind, int ctl, int lock, int folder, struct err *e)
{
    const int fds[NURSERY_FDS] = {ctl, lock, folder};
    if (n->fd >= 0 && nursery_send_packet(n->fd, kind, fds, 0) == 0)
        return 0;
    /* Too many descriptors in flight (ETOOMANYREFS) or no memory: not the nursery's fault. */
    if (n->fd >= 0 && errno != EPIPE && errno != ECONNRESET && errno != EAGAIN &&
        errno != ENOTCONN)
        return err_errno(e, ERR_FAILED, errno,
                         "cannot send to the process that forks supervisors");
    if (n->fd < 0 && clock_boot_us() < n->not_before_us) {
        *e = n->failed;
        return -1;
    }
    log_warn("event=nursery-replaced %s", n->fd >= 0 ? strerror(errno) : "there was none");
    hang_up(n);
    if (start(n, e) < 0)
        return -1;
    if (nursery_send_packet(n->fd, kind, fds, 0))
        return err_errno(e, ERR_FAILED, errno,
                         "the process that forks supervisors takes no requests");
    return 0;
}

bool
nursery_ask_ahead(struct nursery *n, int ctl, int lock, int folder)
{
    const int fds[NURSERY_FDS] = {ctl, lock, folder};
    return n->forks_ahead && n->fd >= 0 &&
           nursery_send_packet(n->fd, NURSERY_AHEAD, fds, MSG_DONTWAIT) == 0;
}

int
nursery_call(struct nursery *n, char kind, int lock, int folder, struct err *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return err_errno(e, ERR_FAILED, errno, "cannot make a socket pair");
    auto_close int ours = pair[0];
    auto_close int theirs = pair[1];
    if (nursery_ask(n, kind, theirs, lock, folder, e) < 0)
        return -1;
    return TAKE_FD(ours);
}
