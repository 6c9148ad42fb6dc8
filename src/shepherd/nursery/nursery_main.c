/* The nursery: supervisors are forked from one loaded process instead of executed one by one.
 * Loading a program costs more than everything a supervisor does until its command runs: on a
 * virtual machine the C library's start alone executes CPUID dozens of times, each of which
 * exits to the hypervisor.
 *
 * The nursery is started where jobs should live, possibly in a unit of its own
 * (daemon/nursery/jobs_unit.c), and first reports what can be enforced on jobs there. Then the
 * daemon sends one-byte packets (sys/nursery_packets.h) with the three descriptors listed in
 * docs/protocol.md section 4. If the nursery dies between packet and fork, these close, the
 * lock is released, and the attempt never ran. It holds no state, so the daemon starts another
 * one if sending fails.
 *
 * When the daemon exits, the nursery stays as long as it has children: it is the main process
 * of their unit, and inherits what a killed supervisor leaves (children.c). */
#include "shepherd/nursery/nursery_main.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/libc.h"
#include "shepherd/attempt/attempt.h"
#include "shepherd/attempt/sweep.h"
#include "shepherd/mps/mps_keeper.h"
#include "shepherd/nursery/again.h"
#include "shepherd/nursery/children.h"
#include "shepherd/nursery/deliver.h"
#include "shepherd/nursery/packet.h"
#include "sys/cgroup.h"
#include "sys/confine.h"
#include "sys/nursery_packets.h"
#include "sys/procs.h"
#include "sys/signals.h"

#define FD_SERVED     10 /* the socket's descriptor; leaves 3, 4 and 5 free to be received */
#define FIND_TRIES    3
#define SWEEP_WAIT_MS 2000 /* for a supervisor that has closed its files to exit */

struct nursery {
    struct children children;
    struct confinement place;
    int claims[1 + CGROUP_V1_N]; /* keep the groups marked as in use while open */
    int sig_fd;
    bool serves;   /* the daemon is connected, or may be */
    bool stopping; /* the unit is being stopped: nothing new is started */
};

/* --- its place --- */

static const char *
base_of(const struct nursery *n, int i)
{
    return i == CGROUP_V1_N ? n->place.base : n->place.v1[i];
}

/* False if an exiting process removed a folder before it was claimed. */
static bool
claim(struct nursery *n)
{
    bool all = true;
    for (int i = 0; i <= CGROUP_V1_N; i++) {
        const char *base = base_of(n, i);
        n->claims[i] = base ? packet_move_up(cgroup_claim(base)) : -1;
        all &= !base || n->claims[i] >= 0;
    }
    return all;
}

/* Releases the claims. Groups that others claim too, or that hold jobs, stay. */
static void
leave_place(struct nursery *n)
{
    for (int i = 0; i <= CGROUP_V1_N; i++)
        cgroup_disclaim(base_of(n, i), n->claims[i]);
    confine_free(&n->place);
}

static void
find_place(struct nursery *n, const char *name)
{
    for (int i = 0; i < FIND_TRIES; i++) {
        leave_place(n);
        confine_find(name, &n->place);
        if (claim(n))
            break;
    }
    for (int i = 0; i <= CGROUP_V1_N; i++)
        if (n->claims[i] >= 0)
            cgroup_remove_abandoned(base_of(n, i));
}

/* Makes removed bases again. The daemon reports those that cannot be made. */
static void
make_place_again(struct nursery *n)
{
    for (int i = 0; i <= CGROUP_V1_N; i++) {
        const char *base = base_of(n, i);
        if (!base || cgroup_base_again(base) <= 0)
            continue;
        fprintf(stderr, "berth-shepherd: the cgroup %s had been removed\n", base);
        if (n->claims[i] >= 0)
            close(n->claims[i]);
        n->claims[i] = packet_move_up(cgroup_claim(base));
    }
}

/* --- requests --- */

/* Shows that a start would get as far as an exec; reports it and does nothing else. */
static int
try_run(void)
{
    static const char tried[] = "{\"event\":\"tried\"}\n";
    (void)send(FD_CTL, tried, sizeof tried - 1, MSG_NOSIGNAL);
    return 0;
}

/* The child keeps only the descriptors it was sent, and its link. */
_Noreturn static void
be_a_shepherd(char kind, const int fds[NURSERY_FDS], int link)
{
    sigset_t none;
    sigemptyset(&none);
    bool is_attempt = kind == NURSERY_ATTEMPT || kind == NURSERY_AHEAD;
    if (!is_attempt) /* attempts take signals from a descriptor and must not miss any before */
        sigprocmask(SIG_SETMASK, &none, NULL);
    if (!packet_put_in_place(fds)) {
        packet_refuse(fds[0], errno);
        _exit(1); /* the lock closes with this process: the attempt never ran */
    }
    bool again = link >= 0 && dup3(link, FD_NURSERY, O_CLOEXEC) == FD_NURSERY;
    libc_close_from(FD_NURSERY + again);
    if (kind == NURSERY_TRY)
        _exit(try_run());
    if (kind == NURSERY_DELIVER)
        _exit(deliver_run());
    if (kind == NURSERY_MPS)
        _exit(mps_keeper_run());
    if (kind == NURSERY_SWEEP)
        _exit(sweep_run());
    _exit(again ? again_run(kind == NURSERY_AHEAD) : attempt_run(kind == NURSERY_AHEAD, NULL));
}

/* The lock of a killed supervisor is free a moment before its processes become ours. Waits
 * until they have been ended, because the sweep must come after that. */
static void
finish_before_sweep(struct nursery *n, int lock_fd)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    int64_t until_us = clock_boot_us() + SWEEP_WAIT_MS * INT64_C(1000);
    for (;;) {
        children_reap(&n->children);
        (void)children_end_orphans(&n->children);
        if ((!children_are_ending(&n->children) && !children_has(&n->children, lock_fd)) ||
            clock_boot_us() > until_us)
            return;
        nanosleep(&pause, NULL);
    }
}

/* Makes the link to a reusable supervisor; without one it is not reused. */
static void
make_link(const struct nursery *n, char kind, int *ours, int *theirs)
{
    int pair[2];
    bool is_attempt = kind == NURSERY_ATTEMPT || kind == NURSERY_AHEAD;
    if (!is_attempt || !children_have_room(&n->children) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return;
    *ours = packet_move_up(pair[0]);
    *theirs = packet_move_up(pair[1]);
}

static void
fork_one(struct nursery *n, char kind, const int fds[NURSERY_FDS])
{
    auto_close int ours = -1;
    auto_close int theirs = -1;
    make_link(n, kind, &ours, &theirs);
    pid_t pid = fork();
    if (pid == 0)
        be_a_shepherd(kind, fds, theirs);
    if (pid > 0)
        children_add(&n->children, pid, fds[1], TAKE_FD(ours));
    if (pid < 0)
        packet_refuse(fds[0], errno);
}

static void
serve_one(struct nursery *n)
{
    char kind;
    int fds[NURSERY_FDS];
    int rc = packet_receive(FD_SERVED, &kind, fds);
    if (rc == 0)
        n->serves = false;
    if (rc <= 0)
        return;
    if (kind == NURSERY_SWEEP)
        finish_before_sweep(n, fds[1]);
    if (kind == NURSERY_TRY)
        make_place_again(n);
    if (kind != NURSERY_AHEAD || !children_hand_over(&n->children, fds))
        fork_one(n, kind, fds);
    for (int i = 0; i < NURSERY_FDS; i++)
        close(fds[i]);
}

/* The daemon is the process that made our socket. */
static bool
is_of_daemon(void *ctx, pid_t pid)
{
    const pid_t *daemon = ctx;
    struct proc p;
    for (int depth = 0; pid > 1 && depth < 4; depth++, pid = p.ppid)
        if (pid == *daemon || proc_read(pid, &p) < 0)
            return true;
    return false;
}

/* Supervisors of an older version, which kept them and their jobs in the daemon's own service,
 * are moved to our place: the service manager complains of processes left in a service that it
 * starts, and the daemon's own limits are not meant for jobs. */
static void
adopt_from_daemon(const struct nursery *n)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    char path[4096];
    if (getsockopt(FD_SERVED, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || !n->place.base ||
        !proc_cgroup(peer.pid, path, sizeof path))
        return;
    int moved = cgroup_adopt(path, n->place.base, "earlier", is_of_daemon, &peer.pid);
    if (moved > 0)
        fprintf(stderr, "berth-shepherd: %d processes of earlier jobs were moved here\n",
                moved);
}

static void
say_hello(const struct nursery *n)
{
    auto_buf struct buf text = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &text);
    jsonw_object(&w);
    jsonw_kstr(&w, "event", "hello");
    jsonw_kint(&w, "pid", getpid());
    jsonw_kbool(&w, "ahead", true);
    jsonw_key(&w, "confinement");
    confine_write(&n->place, &w);
    jsonw_end_object(&w);
    (void)send(FD_SERVED, text.data, text.len, MSG_NOSIGNAL);
}

/* --- the loop --- */

/* The service manager stops our unit with URG, which jobs ignore by default, or with TERM if
 * the unit's file is gone. Anybody else's TERM is ignored: in a unit, all jobs would end with
 * this process. */
static int
take_signals(struct nursery *n, struct err *e)
{
    n->sig_fd = packet_move_up(
        signals_to_fd((const int[]){SIGCHLD, SIGTERM, NURSERY_UNIT_STOPS, 0}, e));
    return n->sig_fd < 0 ? -1 : 0;
}

static void
read_signals(struct nursery *n)
{
    struct signalfd_siginfo si;
    while (read(n->sig_fd, &si, sizeof si) == (ssize_t)sizeof si) {
        n->stopping |= si.ssi_signo == NURSERY_UNIT_STOPS ||
                       (si.ssi_signo == SIGTERM && signals_is_systemd(si.ssi_pid));
    }
    children_reap(&n->children);
}

static bool
has_work(const struct nursery *n)
{
    return (n->serves && !n->stopping) || n->children.n > 0 || n->children.orphaned;
}

static void
serve(struct nursery *n)
{
    for (;;) {
        if (!n->serves || n->stopping)
            children_release(&n->children);
        int wait_ms =
            children_end_orphans(&n->children); /* then there may be nothing to stay for */
        if (!has_work(n))
            return;
        struct pollfd p[] = {
            {.fd = n->sig_fd, .events = POLLIN},
            {.fd = n->serves && !n->stopping ? FD_SERVED : -1, .events = POLLIN}};
        if (poll(p, 2, n->children.reaps_on ? 0 : wait_ms) < 0) {
            packet_rest();
            continue;
        }
        if (p[0].revents || n->children.reaps_on)
            read_signals(n);
        if (p[1].revents)
            serve_one(n);
    }
}

/* The daemon may have started us through a program that does not pass on descriptors. */
static int
connect_to(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof addr.sun_path)
        return -1;
    memcpy(addr.sun_path, path, strlen(path) + 1);
    auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&addr, sizeof addr) < 0)
        return -1;
    return dup3(fd, FD_SERVED, O_CLOEXEC);
}

static int
take_given(void)
{
    if (dup3(FD_CTL, FD_SERVED, O_CLOEXEC) < 0)
        return -1;
    close(FD_CTL);
    return 0;
}

int
nursery_run(const char *name, const char *socket_path)
{
    struct nursery n = {.serves = true, .claims = {-1, -1, -1, -1}};
    struct err e;
    prctl(PR_SET_NAME, "berth-nursery");
    if ((socket_path ? connect_to(socket_path) : take_given()) < 0) {
        fprintf(stderr, "berth-shepherd: no daemon at %s: %s\n",
                socket_path ? socket_path : "descriptor 3", strerror(errno));
        return 1;
    }
    (void)clock_boot_id(); /* read once for all children */
    json_object_seed(0);   /* seeded once, likewise */
    children_init(&n.children);
    if (take_signals(&n, &e) < 0) {
        fprintf(stderr, "berth-shepherd: %s\n", e.text);
        return 1;
    }
    if (name) {
        auto_free char *base = xasprintf("%.14s", name);
        find_place(&n, base);
        if (socket_path)
            adopt_from_daemon(&n);
        say_hello(&n);
    }
    serve(&n);
    leave_place(&n);
    children_free(&n.children);
    return 0;
}
