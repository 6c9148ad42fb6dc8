/* Keeping the nursery: see nursery.h and shepherd/nursery.c. The daemon never forks for a
 * job: it sends a packet, which takes microseconds, whatever the machine is doing. */
#include "daemon/nursery.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "sys/spawn.h"
#include "wire/places.h"

#define N_FDS        3
#define SEND_SECONDS 5 /* longer means that it is stuck: it gets replaced */

struct nursery {
    char *program;
    int fd;
};

static int
start(struct nursery *n, struct err *e)
{
    int pair[2];
    const struct timeval patience = {.tv_sec = SEND_SECONDS};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return err_errno(e, ERR_FAILED, errno, "cannot make a socket pair");
    auto_close int ours = pair[0];
    auto_close int theirs = pair[1];
    (void)setsockopt(ours, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    char *argv[] = {n->program, "--nursery", NULL};
    struct spawn s = SPAWN_INIT;
    const int fds[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, theirs};
    s.argv = argv;
    s.envp = environ; /* supervisors' own; a job's is in its spec */
    memcpy(s.fds, fds, sizeof fds);
    s.n_fds = sizeof fds / sizeof fds[0];
    s.new_session = true; /* a Ctrl-C meant for somebody's terminal never reaches a shepherd */
    int errnum = 0;
    enum spawn_stage stage = SPAWN_OK;
    if (spawn_process(&s, &errnum, &stage) < 0)
        return err_errno(e, ERR_FAILED, errnum, "cannot start %s", n->program);
    n->fd = TAKE_FD(ours);
    return 0;
}

struct nursery *
nursery_new(struct err *e)
{
    auto_free char *program = places_program("berth-shepherd", e);
    if (!program)
        return NULL;
    struct nursery *n = xcalloc(1, sizeof *n);
    n->program = TAKE(program);
    n->fd = -1;
    if (start(n, e)) {
        nursery_free(n);
        return NULL;
    }
    return n;
}

void
nursery_free(struct nursery *n)
{
    if (!n)
        return;
    if (n->fd >= 0)
        close(n->fd);
    free(n->program);
    free(n);
}

bool
nursery_is_alive(const struct nursery *n)
{
    struct pollfd p = {.fd = n->fd, .events = POLLIN};
    return n->fd >= 0 && (poll(&p, 1, 0) == 0 || !(p.revents & (POLLHUP | POLLERR)));
}

static int
send_packet(int to, char kind, const int fds[N_FDS])
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * N_FDS)];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {.iov_base = &kind, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * N_FDS);
    memcpy(CMSG_DATA(c), fds, sizeof(int) * N_FDS);
    ssize_t sent;
    do
        sent = sendmsg(to, &msg, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == 1 ? 0 : -1;
}

int
nursery_ask(struct nursery *n, char kind, int ctl, int lock, int folder, struct err *e)
{
    const int fds[N_FDS] = {ctl, lock, folder};
    if (n->fd >= 0 && send_packet(n->fd, kind, fds) == 0)
        return 0;
    log_warn("event=nursery-replaced %s", strerror(errno));
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
    if (start(n, e))
        return -1;
    if (send_packet(n->fd, kind, fds))
        return err_errno(e, ERR_FAILED, errno, "the nursery of shepherds takes nothing");
    return 0;
}
