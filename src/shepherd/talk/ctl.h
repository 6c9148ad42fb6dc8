/* The conversation with daemons: over the descriptor the shepherd was born with and over
 * ctl.sock in the attempt's folder, for daemons that came later. */
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
    void (*greet)(void *ctx, struct buf *out); /* appends what a new connection hears first */
    /* why: "" (it is not wanted any more), "preempt", "requeue" or "exceed"; grace -1: the
     * spec's own */
    void (*cancel)(void *ctx, const char *why, const char *by, int64_t grace_ms);
    void (*signal)(void *ctx, int sig); /* 1..64 */
    void (*recorded)(void *ctx);
};

/* first_fd (taken over) is a connected peer that is not greeted: the first ctl_say is for it.
 * handler is borrowed. */
struct ctl *ctl_new(int first_fd, const struct ctl_handler *handler, void *ctx);
void ctl_free(struct ctl *ctl);

/* Makes and listens on ctl.sock in the folder. -1 leaves the shepherd with its first peer. */
int ctl_listen(struct ctl *ctl, int dirfd, struct err *e);

/* Sends to every peer; one that does not take it at once has stopped reading, and is
 * dropped. */
void ctl_say(struct ctl *ctl, const char *bytes, size_t n);

/* How many peers there are now. */
size_t ctl_peers(const struct ctl *ctl);

/* Before and after poll: fills at most CTL_POLL_MAX entries and returns how many; serves what
 * came in on them. */
size_t ctl_fill(const struct ctl *ctl, struct pollfd *out);
void ctl_serve(struct ctl *ctl, const struct pollfd *polled, size_t n);

#endif
