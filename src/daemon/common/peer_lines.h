/* Exchanges lines with another Berth process over a socket that the loop watches: a
 * supervisor, the probe, the nursery or a delivery. */
#ifndef DAEMON_COMMON_PEER_LINES_H
#define DAEMON_COMMON_PEER_LINES_H

#include <stddef.h>
#include <uv.h>

struct err;
struct peer_lines;

/* Called with each line, valid during the call. line NULL: end of file or error; no
 * more lines. */
typedef void (*peer_line_fn)(void *arg, const char *line, size_t n);

/* Takes ownership of fd, also on failure. */
struct peer_lines *peer_lines_open(uv_loop_t *loop, int fd, peer_line_fn on_line, void *arg,
                                   struct err *e);
/* No callbacks follow. May be called from on_line. No-op for NULL. */
void peer_lines_close(struct peer_lines *p);
/* Writes without waiting: a short line fits into an idle local socket unless the peer is
 * exiting. Returns libuv's errors. */
int peer_lines_say(struct peer_lines *p, const char *text, size_t n);
int peer_lines_fd(const struct peer_lines *p); /* -1: closed */

#endif
