/* UNIX sockets at paths of any length. An address holds 107 bytes; longer paths, and names in
 * an already open folder, go through /proc/self/fd. */
#ifndef BASE_UNIXSOCK_H
#define BASE_UNIXSOCK_H

#include <stdbool.h>

struct sockaddr_un;

/* The address of `name` in the folder open as `dir`. 0, or -1 with ENAMETOOLONG if the name
 * itself is too long. */
int unixsock_at(int dir, const char *name, struct sockaddr_un *out);

/* Connects fd, a stream socket, to the socket at path. 0, or -1 with the errno of connect or
 * open. */
int unixsock_connect(int fd, const char *path);

/* True if a process listens at path, even if its backlog is full. Does not wait. */
bool unixsock_is_answered(const char *path);

#endif
