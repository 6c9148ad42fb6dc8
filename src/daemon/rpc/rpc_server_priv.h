/* Shared by rpc_server.c, rpc_client.c and rpc_requests.c. */
#ifndef DAEMON_RPC_RPC_SERVER_PRIV_H
#define DAEMON_RPC_RPC_SERVER_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/buf.h"
#include "daemon/request/budget.h"
#include "daemon/request/event_filter.h"
#include "daemon/rpc/long_lines.h"
#include "wire/frame.h"

#define CHANGERS_MAX 16
#define LARGE_BYTES  ((size_t)256 << 10) /* line length from which parsing takes 5 ms */

struct reply {
    struct buf text;   /* the line up to its result */
    struct buf result; /* the result and the rest of the line; empty for an error */
    char *id;          /* as JSON, for an error answer if the commit fails */
    bool changes;      /* reports a durable change */
};

struct client {
    struct client *next, *prev;
    struct server *server;
    uv_pipe_t pipe;
    uid_t uid;
    uid_t group; /* the user's group (user_shares.h) */
    pid_t pid;
    bool admin;
    bool paused;      /* its user has used up the fair share of daemon time for now */
    int64_t since_us; /* boot clock: when it connected */
    int64_t kept;     /* bytes that user_shares.c counts for this client */
    struct frame in;
    struct reading *reading; /* of its long line, after which the next one starts: */
    size_t next_at;          /* offset in the bytes of in */
    struct buf unsent;       /* events of this turn, and output added since a write began */
    struct reply *held;
    int n_held;
    size_t cap_held;
    int n_tickets; /* requests to be answered later */
    bool following;
    struct event_filter filter;
    bool closing;
};

struct server {
    struct rpc *rpc;
    const struct method *(*find)(const char *name);
    struct listener *listener;
    struct peers *peers;
    struct long_lines *long_lines;
    uv_timer_t resume, trim;
    struct client *clients;
    int n_clients;
    int n_accepted;               /* in this round of the loop */
    bool caller_waits;            /* a connection waits for the next round */
    int64_t accept_failed_us;     /* boot clock: when this was last logged */
    uid_t changers[CHANGERS_MAX]; /* groups whose requests changed something in this turn */
    int n_changers;
    int64_t turned_away, turned_away_us; /* count, and time of the last (boot clock) */
    bool closing;
};

/* --- rpc_server.c --- */

/* A request or an answer was long: returns its memory to the system a little later. */
void server_trim_soon(struct server *s);
/* Counts one more client that was refused or dropped. */
void server_count_turned_away(struct server *s);

/* --- rpc_client.c --- */

void client_read(struct client *c); /* from now on */
/* Takes over the bytes; drops a client that leaves too much unread. */
void rpc_client_send(struct client *c, struct buf *bytes);
/* Sends what is in unsent; if a write is in progress, it follows that write. */
void client_send_gathered(struct client *c);
void client_drop(struct client *c);
size_t client_unread(const struct client *c); /* bytes */
/* True if no request, answer or event is under way on this connection. */
bool client_is_idle(const struct client *c);

/* --- rpc_requests.c --- */

/* Handles a request of len bytes; takes over what *p owns. The answer is held. */
void rpc_handle(struct client *c, struct parsed *p, size_t len);
/* Writes an error as a complete line; id is JSON. */
void rpc_write_error(struct buf *out, const char *id, int code, const char *kind,
                     const char *text);

#endif
