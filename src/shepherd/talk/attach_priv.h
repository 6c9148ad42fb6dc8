/* What attach_server.c and attach_peer.c share. */
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
    size_t sent; /* of out */
    off_t at;    /* of the log, what comes next */
    bool greeted;
    bool told_end; /* the last frame is in out, or gone */
    struct attach_guest who;
    bool heard_of; /* a daemon knows that it is here */
};

struct attach {
    const struct spec *spec;
    char *path;
    struct attach_socket socket;
    bool lost;     /* the socket has no name, and could not be given one */
    int notify_fd; /* what happens in the socket's folder, and the log's growth; -1 */
    int log_watch; /* in it, while a client is there; -1 */
    struct console console;
    struct peer peers[ATTACH_PEERS_MAX];
    struct buf record;    /* empty: the job has not ended */
    bool was_used;        /* a client has been here */
    attach_heard_fn tell; /* NULL: no reports */
    void *tell_ctx;
    int64_t told_until_us; /* boot clock: when the reported ones are paid for */
};

/* attach_server.c. The kernel reports the log's growth only as long as a client wants it. */
void attach_watch_log(struct attach *at, bool wanted);
void attach_drop_peer(struct attach *at, struct peer *p);
/* Tells the daemon that it is here, unless that was done, there is none, or visits come too
 * fast. */
void attach_tell_of(struct attach *at, struct peer *p);

/* attach_peer.c. Both may drop it. */
void peer_read(struct attach *at, struct peer *p);  /* what it says */
void peer_write(struct attach *at, struct peer *p); /* what it has not been given yet */
bool peer_has_more(const struct attach *at, const struct peer *p); /* to be written */

#endif
