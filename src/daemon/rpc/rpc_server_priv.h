/* What rpc_server.c, rpc_client.c and rpc_requests.c share. */
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
#define LARGE_BYTES  ((size_t)256 << 10) /* of a line: it takes 5 ms to read */

struct reply {
    struct buf text;   /* the line, up to its result */
    struct buf result; /* and what follows; nothing in an error */
    char *id;          /* as JSON, to make an error of it when the commit fails */
    bool changes;      /* says that something has been made durable */
};

struct client {
    struct client *next, *prev;
    struct server *server;
    uv_pipe_t pipe;
    uid_t uid;
    uid_t group; /* the group that its user counts in (user_shares.h) */
    pid_t pid;
    bool admin;
    bool paused;      /* its user has used up a fair share of our time for now */
    int64_t since_us; /* boot clock: when it connected */
    int64_t kept;     /* bytes of it, as user_shares.c knows */
    struct frame in;
    struct reading *reading; /* of its long line, at the end of which the next begins: */
    size_t next_at;          /* in bytes of in */
    struct buf unsent;       /* events of this turn, and what has come since a write began */
    struct reply *held;
    int n_held;
    size_t cap_held;
    int n_tickets; /* requests that are answered later */
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
    bool caller_waits;            /* connected, but for the next round */
    int64_t accept_failed_us;     /* boot clock: when that was said last */
    uid_t changers[CHANGERS_MAX]; /* groups whose requests changed something in this turn */
    int n_changers;
    int64_t turned_away, turned_away_us; /* how many, and when the last (boot clock) */
    bool closing;
};

/* --- rpc_server.c --- */

/* A request or an answer was long: its memory goes back to the machine a little later. */
void server_trim_soon(struct server *s);
/* One more that was hung up on. */
void server_count_turned_away(struct server *s);

/* --- rpc_client.c --- */

void client_read(struct client *c); /* from now on */
/* Takes the bytes; drops a client that leaves too many unread. */
void rpc_client_send(struct client *c, struct buf *bytes);
/* What is in unsent, unless a write is in progress: then it follows that write. */
void client_send_gathered(struct client *c);
void client_drop(struct client *c);
size_t client_unread(const struct client *c); /* bytes */
/* Nothing is under way between it and the daemon: no request, no answer, no events. */
bool client_is_idle(const struct client *c);

/* --- rpc_requests.c --- */

/* Serves a request, which took len bytes; takes over what *p owns. The answer is held. */
void rpc_handle(struct client *c, struct parsed *p, size_t len);
/* An error as a whole line; id as JSON. */
void rpc_write_error(struct buf *out, const char *id, int code, const char *kind,
                     const char *text);

#endif
