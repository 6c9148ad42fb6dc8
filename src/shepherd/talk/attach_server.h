/* Clients that are attached to an interactive job: docs/protocol.md section 5. */
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

/* Makes the spec's attach socket, for its user alone, and listens. NULL with words; also NULL,
 * without, when the job is not interactive: everything below does nothing then. The spec is
 * borrowed. */
struct attach *attach_open(const struct spec *spec, struct err *e);
void attach_free(struct attach *at); /* removes the socket */

/* The user who looks at the job, and perhaps types into it: reported on arrival, and on
 * leaving before the job's end, until that is heard (true). A client that was never reported
 * leaves without a report. */
struct attach_guest {
    uid_t uid;
    bool types;
};
typedef bool (*attach_heard_fn)(void *ctx, const struct attach_guest *who, bool came);
void attach_tell(struct attach *at, attach_heard_fn tell, void *ctx);

/* For command_start, which opens it. NULL of an attach that is NULL. */
struct console *attach_console(struct attach *at);

/* Where clients come in; the descriptor may be another later. */
int attach_listener(const struct attach *at);

/* Before and after poll: at most ATTACH_POLL_MAX entries. wait_ms: for how long poll may
 * wait at the most; -1: as long as it likes. */
size_t attach_fill(const struct attach *at, struct pollfd *out);
void attach_serve(struct attach *at, const struct pollfd *polled, size_t n);
int attach_wait_ms(const struct attach *at);

/* Words of ours on the job's terminal; nothing for a job without one. */
void attach_say(struct attach *at, const char *words);

/* The log has been cut: what followed at `from` lies `bytes` further in front now (loglimit.h).
 * Clients go on where they are, or, if that has been cut out, at the line that says so. */
void attach_log_cut(struct attach *at, off_t from, int64_t bytes);

/* Nothing of the job is left: what its terminal still holds goes to the log. How many bytes
 * that has no room for. */
int64_t attach_drain(struct attach *at);
/* The exit record that clients get once they have had the whole log. */
void attach_end(struct attach *at, const char *record, size_t n);
/* The attempt is over and everything released: stays for clients that still read, and a moment
 * for one that has not come yet, since the log alone does not say how it ended. */
void attach_linger(struct attach *at);

#endif
