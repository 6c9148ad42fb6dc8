/* The user at the other end of a TCP connection within this machine. Any user who can log in
 * can reach a loopback address, so the address alone proves nothing; the kernel provides the
 * owner of the socket (sock_diag(7)). */
#ifndef WEB_HTTP_WEB_PEER_H
#define WEB_HTTP_WEB_PEER_H

#include <sys/types.h>

struct err;

/* The owner of the socket to which the accepted connection fd is connected. -1: the peer is on
 * another machine, or the kernel does not report it. */
int peer_uid(int fd, uid_t *out, struct err *e);

#endif
