/* Where clients of an interactive job come in. */
#ifndef SHEPHERD_ATTACH_SOCKET_H
#define SHEPHERD_ATTACH_SOCKET_H

#include <stdbool.h>

struct err;
struct spec;

/* Makes spec->attach, for its user alone (0600), and listens. The descriptor, or -1. */
int attach_socket_listen(const struct spec *spec, struct err *e);

/* Whether who has connected is root or the job's own user, whatever the modes of files say. */
bool attach_socket_admits(const struct spec *spec, int fd);

#endif
