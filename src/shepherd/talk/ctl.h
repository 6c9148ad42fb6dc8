/* Connections to daemons: the descriptor the supervisor started with, and ctl.sock in the
 * attempt's folder for later daemons. */
#ifndef SHEPHERD_TALK_CTL_H
#define SHEPHERD_TALK_CTL_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct ctl;
struct err;

#define CTL_PEERS_MAX 8
#define CTL_POLL_MAX  (CTL_PEERS_MAX + 1)

struct ctl_handler {
    void (*greet)(void *ctx, struct buf *out); /* appends a peer's first message */
    /* why: "" (no longer wanted), "preempt", "requeue" or "exceed"; grace -1: the spec's
     * own */
    void (*cancel)(void *ctx, const char *why, const char *by, int64_t grace_ms);
    void (*signal)(void *ctx, int sig); /* 1..64 */
    void (*recorded)(void *ctx);
};

/* Takes ownership of first_fd, a connected peer that is not greeted: the first ctl_say is its
 * greeting. handler is borrowed. */
struct ctl *ctl_new(int first_fd, const struct ctl_handler *handler, void *ctx);
void ctl_free(struct ctl *ctl);

/* Makes ctl.sock in the folder and listens on it. On -1, the supervisor still has its first
 * peer. */
int ctl_listen(struct ctl *ctl, int dirfd, struct err *e);

/* Sends to every peer; drops a peer that does not take the message at once, because it has
 * stopped reading. */
void ctl_say(struct ctl *ctl, const char *bytes, size_t n);

/* Number of connected peers. */
size_t ctl_peers(const struct ctl *ctl);

/* Call before and after poll: fill returns the number of entries, at most CTL_POLL_MAX; serve
 * handles what arrived on them. */
size_t ctl_fill(const struct ctl *ctl, struct pollfd *out);
void ctl_serve(struct ctl *ctl, const struct pollfd *polled, size_t n);

#endif
