/* See nursery_packets.h. */
#include "sys/nursery_packets.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/jsonw.h"

void
nursery_add_cancel(struct buf *out, const char *why, const char *by, int64_t grace_ms)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "op", "cancel");
    if (why)
        jsonw_kstr(&w, "why", why);
    jsonw_kstr(&w, "by", by ? by : "");
    jsonw_kint(&w, "grace_ms", grace_ms);
    jsonw_end_object(&w);
    buf_addc(out, '\n');
}

int
nursery_send_packet(int to, char kind, const int fds[NURSERY_FDS], int flags)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * NURSERY_FDS)];
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
    c->cmsg_len = CMSG_LEN(sizeof(int) * NURSERY_FDS);
    memcpy(CMSG_DATA(c), fds, sizeof(int) * NURSERY_FDS);
    ssize_t sent;
    do
        sent = sendmsg(to, &msg, flags | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == 1 ? 0 : -1;
}
