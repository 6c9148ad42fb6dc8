/* Shared by attach_server.c and attach_peer.c. */
#ifndef SHEPHERD_TALK_ATTACH_PRIV_H
#define SHEPHERD_TALK_ATTACH_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "shepherd/talk/attach_server.h"
#include "shepherd/talk/attach_socket.h"

struct peer {
    int fd; /* -1: free */
    struct buf in;
    struct buf out;
    size_t sent; /* bytes of out already sent */
    off_t at;    /* offset in the log of the next byte to send */
    bool greeted;
    bool told_end; /* the last frame is in out, or sent */
    struct attach_guest who;
    bool heard_of; /* a daemon knows of this client */
};

struct attach {
    const struct spec *spec;
    char *path;
    struct attach_socket socket;
    bool lost;     /* the socket lost its name and could not be given a new one */
    int notify_fd; /* inotify: the socket's folder, and the log's growth; -1 */
    int log_watch; /* watch on the log while a client is connected; -1 */
    struct console console;
    struct peer peers[ATTACH_PEERS_MAX];
    struct buf record;    /* the exit record; empty: the job has not ended */
    bool was_used;        /* a client has been connected */
    attach_heard_fn tell; /* NULL: no reports */
    void *tell_ctx;
    int64_t told_until_us; /* boot clock: limits the rate of reports */
};

/* attach_server.c. Watches the log's growth only while a client needs it. */
void attach_watch_log(struct attach *at, bool wanted);
void attach_drop_peer(struct attach *at, struct peer *p);
/* Reports the client to the daemon, unless that was done, no daemon is there, or reports come
 * too fast. */
void attach_tell_of(struct attach *at, struct peer *p);

/* attach_peer.c. Both may drop the client. */
void peer_read(struct attach *at, struct peer *p);                 /* reads its messages */
void peer_write(struct attach *at, struct peer *p);                /* sends pending output */
bool peer_has_more(const struct attach *at, const struct peer *p); /* output is pending */

#endif
