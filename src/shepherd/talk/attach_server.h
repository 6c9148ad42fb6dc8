/* Serves clients attached to an interactive job: docs/protocol.md section 5. */
#ifndef SHEPHERD_TALK_ATTACH_SERVER_H
#define SHEPHERD_TALK_ATTACH_SERVER_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shepherd/talk/console.h"

struct attach;
struct err;
struct spec;

#define ATTACH_PEERS_MAX 16
#define ATTACH_POLL_MAX  (ATTACH_PEERS_MAX + 2 + CONSOLE_POLL_MAX)

/* Makes the spec's attach socket, accessible to its user only, and listens. NULL with words;
 * also NULL, without words, if the job is not interactive: the functions below are then
 * no-ops. The spec is borrowed. */
struct attach *attach_open(const struct spec *spec, struct err *e);
void attach_free(struct attach *at); /* removes the socket */

/* An attached user, who may also type. Reported on arrival, and on leaving before the job's
 * end, repeatedly until the callback returns true. A client that was never reported leaves
 * without a report. */
struct attach_guest {
    uid_t uid;
    bool types;
};
typedef bool (*attach_heard_fn)(void *ctx, const struct attach_guest *who, bool came);
void attach_tell(struct attach *at, attach_heard_fn tell, void *ctx);

/* For command_start, which opens it. NULL if at is NULL. */
struct console *attach_console(struct attach *at);

/* The listening descriptor; it may change later. */
int attach_listener(const struct attach *at);

/* Call before and after poll: at most ATTACH_POLL_MAX entries. wait_ms: upper bound on poll's
 * timeout; -1: none. */
size_t attach_fill(const struct attach *at, struct pollfd *out);
void attach_serve(struct attach *at, const struct pollfd *polled, size_t n);
int attach_wait_ms(const struct attach *at);

/* Writes our own words to the job's terminal; no-op for a job without one. */
void attach_say(struct attach *at, const char *words);

/* The log was cut: bytes after `from` moved forward by `bytes` (loglimit.h). Clients continue
 * where they were or, if that was cut out, at the line that reports the cut. */
void attach_log_cut(struct attach *at, off_t from, int64_t bytes);

/* Nothing of the job is left: moves what its terminal still holds to the log. Returns the
 * bytes that the log has no room for. */
int64_t attach_drain(struct attach *at);
/* Sets the exit record, which clients get after the whole log. */
void attach_end(struct attach *at, const char *record, size_t n);
/* The attempt is over and everything is released: stays for clients that still read, and
 * briefly for one that has not connected yet, because the log alone does not say how the job
 * ended. */
void attach_linger(struct attach *at);

#endif
