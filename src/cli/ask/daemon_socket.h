/* Connects to a daemon's socket, and decides whom to trust there. */
#ifndef CLI_ASK_DAEMON_SOCKET_H
#define CLI_ASK_DAEMON_SOCKET_H

#include <sys/types.h>

struct client;
struct err;
struct places;

/* Connects to the socket at path, with the usual limit on the daemon's silence. */
struct client *connect_at(const char *path, struct err *e);

/* The same, but ERR_PERMISSION if the process there is neither this user's nor root's. */
struct client *connect_trusted(const char *path, struct err *e);

/* Connects to the daemon of these places, wherever it listens (places_live_socket). Trusts
 * anyone in a folder that was named. */
struct client *connect_place(const struct places *p, struct err *e);

/* The user of the process that listens at the other end. 0, or -1. */
int connect_peer_uid(const struct client *c, uid_t *uid);

#endif
