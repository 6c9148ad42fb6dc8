/* Packets with descriptors: see packet.h. nursery_main.c and again.c call this. */
#include "shepherd/nursery/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "shepherd/attempt/attempt.h"

#define PAUSE_NS 100000000

/* Call it before ctl is closed. */
void
packet_refuse(int ctl, int errnum)
{
    char text[64];
    int n = snprintf(text, sizeof text, "{\"event\":\"not_forked\",\"errno\":%d}\n", errnum);
    (void)send(ctl, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The list is truncated if this process has no room for all descriptors: refuses the packet
 * and closes those received. */
static void
refuse_cut_off(const struct cmsghdr *c)
{
    int fds[NURSERY_FDS];
    size_t n = c && c->cmsg_type == SCM_RIGHTS ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
    if (n == 0 || n > NURSERY_FDS)
        return;
    memcpy(fds, CMSG_DATA(c), n * sizeof(int));
    packet_refuse(fds[0], EMFILE);
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
}

void
packet_rest(void)
{
    if (errno != EINTR)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

int
packet_receive(int from, char *kind, int fds[NURSERY_FDS])
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * NURSERY_FDS)];
        struct cmsghdr align;
    } control;
    struct iovec iov = {.iov_base = kind, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(from, &msg, MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EINTR || errno == ENOMEM || errno == ENOBUFS)) {
        packet_rest();
        return -1;
    }
    if (n <= 0)
        return 0;
    const struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    if (!c || c->cmsg_type != SCM_RIGHTS ||
        c->cmsg_len != CMSG_LEN(sizeof(int) * NURSERY_FDS)) {
        refuse_cut_off(c);
        return -1;
    }
    memcpy(fds, CMSG_DATA(c), sizeof(int) * NURSERY_FDS);
    return 1;
}

int
packet_move_up(int fd)
{
    int up = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FD_OUT_OF_THE_WAY);
    if (up < 0)
        return fd;
    close(fd);
    return up;
}

/* The received descriptors are the lowest free ones, so they are usually in place already. No
 * duplicate may remain: it would keep the lock held. */
bool
packet_put_in_place(const int fds[NURSERY_FDS])
{
    int up[NURSERY_FDS];
    if (fds[0] == FD_CTL && fds[1] == FD_LOCK && fds[2] == FD_FOLDER)
        return true;
    for (int i = 0; i < NURSERY_FDS; i++)
        up[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FD_OUT_OF_THE_WAY);
    for (int i = 0; i < NURSERY_FDS; i++)
        if (up[i] < 0 || dup3(up[i], FD_CTL + i, O_CLOEXEC) < 0)
            return false;
    for (int i = 0; i < NURSERY_FDS; i++) {
        close(up[i]);
        if (fds[i] > FD_FOLDER)
            close(fds[i]);
    }
    return true;
}
