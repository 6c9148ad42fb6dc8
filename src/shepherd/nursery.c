/* The nursery: shepherds are forked from one process that is already loaded, instead of
 * executed one by one. Loading a program costs more than everything a shepherd does until
 * its command runs: on a virtual machine the C library's start alone asks CPUID dozens of
 * times, and each of those leaves the guest.
 *
 * The daemon sends a packet of one byte (sys/nursery.h) with the three
 * descriptors that docs/protocol.md section 4 lists. The nursery keeps nothing of them: if
 * it dies between packet and fork they close, the lock is free, and the attempt has never
 * run. It holds no state, so the daemon starts another when sending fails. */
#include "shepherd/nursery.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "shepherd/attempt.h"
#include "shepherd/deliver.h"
#include "shepherd/sweep.h"
#include "sys/nursery.h"

#define FD_SERVED 10 /* where the socket goes, so that 3, 4 and 5 are free to be received */
#define N_FDS     3

/* 1 with *kind and fds filled, 0 at the end, -1 for a packet that makes no sense. */
static int
receive(char *kind, int fds[N_FDS])
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * N_FDS)];
        struct cmsghdr align;
    } control;
    struct iovec iov = {.iov_base = kind, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    ssize_t n;
    do
        n = recvmsg(FD_SERVED, &msg, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return 0;
    const struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int) * N_FDS))
        return -1;
    memcpy(fds, CMSG_DATA(c), sizeof(int) * N_FDS);
    return 1;
}

/* The received descriptors are the lowest free ones, hence usually in place already. */
static bool
put_in_place(const int fds[N_FDS])
{
    int up[N_FDS];
    if (fds[0] == FD_CTL && fds[1] == FD_LOCK && fds[2] == FD_FOLDER)
        return true;
    for (int i = 0; i < N_FDS; i++)
        up[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FD_SERVED + 1);
    for (int i = 0; i < N_FDS; i++)
        if (up[i] < 0 || dup3(up[i], FD_CTL + i, O_CLOEXEC) < 0)
            return false;
    return true;
}

_Noreturn static void
be_a_shepherd(char kind, const int fds[N_FDS])
{
    close(FD_SERVED);
    if (!put_in_place(fds))
        _exit(1); /* the lock closes with us: the attempt has never run */
    signal(SIGCHLD, SIG_DFL);
    if (kind == NURSERY_DELIVER)
        _exit(deliver_run());
    _exit(kind == NURSERY_SWEEP ? sweep_run() : attempt_run());
}

int
nursery_run(void)
{
    prctl(PR_SET_NAME, "berth-nursery");
    (void)clock_boot_id();    /* read once for all of them */
    json_object_seed(0);      /* drawn once, likewise */
    signal(SIGCHLD, SIG_IGN); /* shepherds are nobody's zombies */
    if (dup3(FD_CTL, FD_SERVED, O_CLOEXEC) < 0)
        return 1;
    close(FD_CTL);
    for (;;) {
        char kind;
        int fds[N_FDS];
        int rc = receive(&kind, fds);
        if (rc == 0)
            return 0;
        if (rc < 0)
            continue;
        pid_t pid = fork();
        if (pid == 0)
            be_a_shepherd(kind, fds);
        /* A fork that failed is seen by the daemon: the descriptors close unused. */
        for (int i = 0; i < N_FDS; i++)
            close(fds[i]);
    }
}
