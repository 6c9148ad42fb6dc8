/* Where clients of an interactive job come in. */
#ifndef SHEPHERD_TALK_ATTACH_SOCKET_H
#define SHEPHERD_TALK_ATTACH_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

struct err;
struct spec;

struct attach_socket {
    int fd;
    dev_t dev; /* of the file that bind made */
    ino_t ino;
};

/* Makes spec->attach, for its user alone (0600), and listens. 0 or -1. */
int attach_socket_listen(const struct spec *spec, struct attach_socket *out, struct err *e);

/* Whether its name still leads to it: cleaners of /tmp and /run take names away. */
bool attach_socket_is_there(const struct spec *spec, const struct attach_socket *s);
/* Has inotify report what happens in its folder. The watch, or -1. */
int attach_socket_watch(const struct spec *spec, int notify_fd);

/* Whether the client is root or the job's own user, whatever the modes of files say. */
bool attach_socket_admits(const struct spec *spec, int fd, uid_t *who);

#endif
