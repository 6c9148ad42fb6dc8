/* The name under which clients find this daemon: bound, watched, and bound again when it is
 * removed. rpc_server.c owns the one there is and serves its clients. */
#ifndef DAEMON_SERVICE_SOCKET_NAME_H
#define DAEMON_SERVICE_SOCKET_NAME_H

#include <stdbool.h>
#include <uv.h>

struct instance;
struct err;
struct listener;

/* Binds the daemon's socket, replacing what a dead daemon left, and listens. -1 of a name under
 * which another process answers: refused. on_connection finds `data` in the stream. */
struct listener *listener_open(struct instance *inst, uv_connection_cb on_connection,
                               void *data, struct err *e);
void listener_close(struct listener *l); /* removes the name; free after the loop has run */
void listener_free(struct listener *l);

/* Calls on_connection for one who was not accepted when it was called before, if there is
 * one. */
void listener_go_on(struct listener *l);
bool listener_has_callers(const struct listener *l); /* connected, and not accepted yet */

#endif
