/* The socket to which clients of an interactive job connect. */
#ifndef SHEPHERD_TALK_ATTACH_SOCKET_H
#define SHEPHERD_TALK_ATTACH_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

struct err;
struct spec;

struct attach_socket {
    int fd;
    dev_t dev; /* of the socket file that bind made */
    ino_t ino;
};

/* Makes spec->attach, accessible to its user only (0600), and listens. 0 or -1. */
int attach_socket_listen(const struct spec *spec, struct attach_socket *out, struct err *e);

/* True if its path still leads to this socket: cleaners of /tmp and /run remove names. */
bool attach_socket_is_there(const struct spec *spec, const struct attach_socket *s);
/* Adds an inotify watch on its folder. Returns the watch, or -1. */
int attach_socket_watch(const struct spec *spec, int notify_fd);

/* True if the client is root or the job's own user, whatever the file modes allow. */
bool attach_socket_admits(const struct spec *spec, int fd, uid_t *who);

#endif
