/* Connections to a daemon's socket: see daemon_socket.h. Any user can create a socket in /tmp,
 * so the user at its other end is checked before the daemon gets commands and environments.
 * Called by connect.c and daemon_start.c. */
#include "cli/ask/daemon_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/ask/connect.h"
#include "wire/client.h"
#include "wire/places.h"

struct client *
connect_at(const char *path, struct err *e)
{
    struct client *c = client_connect(path, e);

    if (c)
        client_set_patience(c, CONNECT_PATIENCE_MS);
    return c;
}

int
connect_peer_uid(const struct client *c, uid_t *uid)
{
    struct ucred cred;
    socklen_t size = sizeof cred;

    if (getsockopt(client_fd(c), SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
        return -1;
    *uid = cred.uid;
    return 0;
}

static bool
is_trusted(const struct client *c)
{
    uid_t uid;

    return connect_peer_uid(c, &uid) == 0 && (uid == geteuid() || uid == 0);
}

struct client *
connect_trusted(const char *path, struct err *e)
{
    struct client *c = connect_at(path, e);

    if (!c || is_trusted(c))
        return c;
    client_free(c);
    err_set(e, ERR_PERMISSION,
            "%s belongs to another user; remove it, or choose another socket with --socket",
            path);
    return NULL;
}

struct client *
connect_place(const struct places *p, struct err *e)
{
    auto_free char *path = places_live_socket(p);

    return p->root ? connect_at(path, e) : connect_trusted(path, e);
}
