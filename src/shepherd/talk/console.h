/* The console of an interactive job: passes typed input to the job and its output to the log.
 * attach_server.c owns one and serves clients from it. */
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
    bool eof;     /* no more input: the pipe is closed once the command has taken the rest */
    int64_t uid;  /* the log's owner, if the supervisor is root; else -1 */
    int fd;       /* pipe to the command's standard input, or its terminal's master; -1 */
    int slave_fd; /* held open so that the terminal does not hang up between two programs; -1 */
    int log_fd;   /* readable, for appending; the caller's; -1 before the start */
    off_t from;   /* offset of this attempt's output in the log */
    off_t size;   /* size of the log at the last look */
    struct buf input; /* input not yet taken by the command */
    struct buf held;  /* terminal output not yet in the log, because the disk is full */
};

/* The command's descriptors 0, 1 and 2; close_fd is to be closed once it runs (-1: none). */
struct console_ends {
    int fds[3];
    int close_fd;
};

void console_init(struct console *c, bool pty);
void console_free(struct console *c);

/* Borrows log_fd from now on. Refuses a log that cannot be read back (a FIFO, a device),
 * because clients are served from it. */
int console_open(struct console *c, const struct spec *spec, int log_fd,
                 struct console_ends *ends, struct err *e);

/* Input beyond what the command takes is buffered. While there is no room, callers must not
 * read more from clients. After the job's end, or after eof on a pipe, input is dropped. */
bool console_has_room(const struct console *c);
void console_put(struct console *c, const char *bytes, size_t n);
void console_put_eof(struct console *c);
void console_resize(struct console *c, uint16_t rows, uint16_t columns);

/* Writes our own words to the job's terminal. */
void console_say(struct console *c, const char *words);

/* Call before and after poll. wait_ms: poll's timeout for this, -1: none. */
size_t console_fill(const struct console *c, struct pollfd *out);
void console_serve(struct console *c, const struct pollfd *polled);
int console_wait_ms(const struct console *c);

/* Updates the log's size. */
void console_look(struct console *c);

/* Every writing process of the job is gone: takes the rest from the terminal, and closes.
 * Returns the bytes that did not get into the log, after two seconds of full disk. */
int64_t console_end(struct console *c);

#endif
