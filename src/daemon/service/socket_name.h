/* The socket path at which clients find this daemon: bound, watched, and bound again if it is
 * removed. rpc_server.c owns the listener and serves its clients. */
#ifndef DAEMON_SERVICE_SOCKET_NAME_H
#define DAEMON_SERVICE_SOCKET_NAME_H

#include <stdbool.h>
#include <uv.h>

struct instance;
struct err;
struct listener;

/* Binds the socket, replacing one left by a dead daemon, and listens. Fails if another process
 * answers there. on_connection finds `data` in the stream. */
struct listener *listener_open(struct instance *inst, uv_connection_cb on_connection,
                               void *data, struct err *e);
void listener_close(struct listener *l); /* removes the name; free after the loop has run */
void listener_free(struct listener *l);

/* Calls on_connection again for a connection that an earlier call did not accept, if any. */
void listener_go_on(struct listener *l);
bool listener_has_callers(const struct listener *l); /* connections not accepted yet */

#endif
