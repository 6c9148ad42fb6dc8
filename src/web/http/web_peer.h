/* Who is at the other end of a TCP connection within this machine. Anybody who can log in
 * can reach a loopback address, so that alone says nothing; the kernel knows whose socket it
 * is (sock_diag(7)). */
#ifndef WEB_HTTP_WEB_PEER_H
#define WEB_HTTP_WEB_PEER_H

#include <sys/types.h>

struct err;

/* The user whose socket the accepted connection fd leads to. -1: it comes from elsewhere, or
 * the kernel does not say. */
int peer_uid(int fd, uid_t *out, struct err *e);

#endif
