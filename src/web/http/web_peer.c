/* Finds the peer's user: see web_peer.h. Called by web_request.c, once per connection. */
#include "web/http/web_peer.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

static void
put_address(const struct sockaddr_storage *a, __be32 *address, __be16 *port)
{
    if (a->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)a;
        memcpy(address, &in->sin_addr, sizeof in->sin_addr);
        *port = in->sin_port;
    } else {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a;
        memcpy(address, &in6->sin6_addr, sizeof in6->sin6_addr);
        *port = in6->sin6_port;
    }
}

/* Fills in the query from the peer's point of view: its local address is our remote one. */
static int
make_question(int fd, struct question *q, struct err *e)
{
    struct sockaddr_storage near = {0}, far = {0};
    socklen_t n = sizeof near, m = sizeof far;

    if (getsockname(fd, (struct sockaddr *)&near, &n) < 0 ||
        getpeername(fd, (struct sockaddr *)&far, &m) < 0)
        return err_errno(e, ERR_FAILED, errno,
                         "cannot find out where the connection comes from");
    if (far.ss_family != AF_INET && far.ss_family != AF_INET6)
        return err_set(e, ERR_FAILED, "not a TCP connection");
    *q = (struct question){
        .head = {.nlmsg_len = sizeof *q,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST},
        .body = {.sdiag_family = (uint8_t)far.ss_family,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = ~0U,
                 .id = {.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
    };
    put_address(&far, q->body.id.idiag_src, &q->body.id.idiag_sport);
    put_address(&near, q->body.id.idiag_dst, &q->body.id.idiag_dport);
    return 0;
}

int
peer_uid(int fd, uid_t *out, struct err *e)
{
    struct question q;
    union {
        struct nlmsghdr head;
        char bytes[4096];
    } answer;
    struct inet_diag_msg found;
    auto_close int diag = -1;
    ssize_t n;

    if (make_question(fd, &q, e) < 0)
        return -1;
    diag = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (diag < 0 || send(diag, &q, sizeof q, 0) < 0)
        return err_errno(e, ERR_FAILED, errno,
                         "cannot ask the kernel for the owner of the connection");
    n = recv(diag, &answer, sizeof answer, 0);
    if (n < (ssize_t)NLMSG_LENGTH(sizeof found) ||
        answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return err_set(e, ERR_FAILED, "the kernel reports no owner of the connection");
    memcpy(&found, NLMSG_DATA(&answer.head), sizeof found);
    *out = found.idiag_uid;
    return 0;
}
