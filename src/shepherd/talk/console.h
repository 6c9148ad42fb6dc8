/* The job's side of an interactive job: what is typed goes in, what it writes stands in the
 * log. attach_server.c owns one and serves clients from it. */
#ifndef SHEPHERD_TALK_CONSOLE_H
#define SHEPHERD_TALK_CONSOLE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct err;
struct spec;

#define CONSOLE_POLL_MAX 1

struct console {
    bool pty;
    bool eof;     /* no more input comes: once the command has taken it, its pipe is closed */
    int64_t uid;  /* whose log it is, where the supervisor is root; else -1 */
    int fd;       /* pipe into the command's standard input, or its terminal's master; -1 */
    int slave_fd; /* kept, so that the terminal does not hang up between two programs; -1 */
    int log_fd;   /* readable and appended to; the caller's; -1 before the start */
    off_t from;   /* where this attempt's output begins in the log */
    off_t size;   /* the log's, as last looked at */
    struct buf input; /* for the command, not taken by it yet */
    struct buf held;  /* of the terminal, not yet in the log: the disk is full */
};

/* What become the command's descriptors 0, 1 and 2; close_fd is the one to be closed once it
 * runs (-1: none). */
struct console_ends {
    int fds[3];
    int close_fd;
};

void console_init(struct console *c, bool pty);
void console_free(struct console *c);

/* log_fd is borrowed from now on. A log that cannot be read back (a FIFO, a device) is
 * refused: clients are served from it. */
int console_open(struct console *c, const struct spec *spec, int log_fd,
                 struct console_ends *ends, struct err *e);

/* Input: bytes beyond what the command takes wait here. While there is no room, callers do
 * not take any from clients. After the end, and after eof on a pipe, it is dropped. */
bool console_has_room(const struct console *c);
void console_put(struct console *c, const char *bytes, size_t n);
void console_put_eof(struct console *c);
void console_resize(struct console *c, uint16_t rows, uint16_t columns);

/* Words of ours between those of the job, on a terminal. */
void console_say(struct console *c, const char *words);

/* Before and after poll. wait_ms: how long poll may wait for it, -1: as long as it likes. */
size_t console_fill(const struct console *c, struct pollfd *out);
void console_serve(struct console *c, const struct pollfd *polled);
int console_wait_ms(const struct console *c);

/* Looks how long the log has become. */
void console_look(struct console *c);

/* Everything of the job that wrote has gone: takes what is left in the terminal, and closes.
 * How many bytes are not in the log, which has been full for two seconds. */
int64_t console_end(struct console *c);

#endif
