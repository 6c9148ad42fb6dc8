/* Sockets of the file system at paths of any length. An address holds 107 bytes; where a path
 * is longer, or a folder is held open already, it goes through /proc/self/fd. */
#ifndef BASE_UNIXSOCK_H
#define BASE_UNIXSOCK_H

struct sockaddr_un;

/* The address of `name` in the folder that `dir` is open to. 0, or -1 with ENAMETOOLONG when
 * the name itself is too long. */
int unixsock_at(int dir, const char *name, struct sockaddr_un *out);

/* Connects fd, a stream socket, to the socket at path. 0, or -1 with errno as connect and open
 * have it. */
int unixsock_connect(int fd, const char *path);

#endif
