/* The user at the other end of a TCP connection within this machine. Any user who can log in
 * can reach a loopback address, so the address alone proves nothing; the kernel knows the
 * owner of the socket (sock_diag(7)). */
#ifndef WEB_HTTP_WEB_PEER_H
#define WEB_HTTP_WEB_PEER_H

#include <sys/types.h>

struct err;

/* The user whose socket the accepted connection fd leads to. -1: it comes from elsewhere, or
 * the kernel does not say. */
int peer_uid(int fd, uid_t *out, struct err *e);

#endif
