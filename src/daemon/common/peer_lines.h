/* Lines from another of Berth's processes, and to it, over a socket that the loop watches: a
 * supervisor, the probe, the nursery, a process that delivers. */
#ifndef DAEMON_COMMON_PEER_LINES_H
#define DAEMON_COMMON_PEER_LINES_H

#include <stddef.h>
#include <uv.h>

struct err;
struct peer_lines;

/* Called with each line, which is valid until it returns. line NULL: no more will come. */
typedef void (*peer_line_fn)(void *arg, const char *line, size_t n);

/* Takes the descriptor, also where it fails. */
struct peer_lines *peer_lines_open(uv_loop_t *loop, int fd, peer_line_fn on_line, void *arg,
                                   struct err *e);
/* Nothing is heard from it any more, from within on_line too. NULL is fine. */
void peer_lines_close(struct peer_lines *p);
/* A short line on an idle local socket: it fits, or the peer is going. libuv's errors. */
int peer_lines_say(struct peer_lines *p, const char *text, size_t n);
int peer_lines_fd(const struct peer_lines *p); /* -1: it is closed */

#endif
