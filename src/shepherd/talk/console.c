/* The console of an interactive job: see console.h. A job without a terminal writes to the log
 * itself, like any job; only its input passes through here. A terminal's output passes through
 * here into the log, and only from the log to clients: so a slow client delays nothing, and a
 * returning one misses nothing. */
#include "shepherd/talk/console.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "shepherd/common/attempt_spec.h"
#include "shepherd/talk/pty.h"
#include "shepherd/talk/quota_write.h"

/* Retry interval for a full disk; the terminal's output waits meanwhile. */
#define FULL_RETRY_MS 200
#define CHUNK         65536
#define FULL_TRIES    10 /* at the end, when everything waits for it */
/* Bound on what is read at the end: the kernel buffers 64 KiB of a terminal's output, but
 * other processes of the user may keep writing to it. */
#define END_MAX   262144
#define INPUT_MAX 65536 /* input held for a command that does not read */

void
console_init(struct console *c, bool pty)
{
    *c = (struct console){.pty = pty, .uid = -1, .fd = -1, .slave_fd = -1, .log_fd = -1};
}

static void
close_job_side(struct console *c)
{
    if (c->fd >= 0)
        close(TAKE_FD(c->fd));
    if (c->slave_fd >= 0)
        close(TAKE_FD(c->slave_fd));
    buf_clear(&c->input);
}

void
console_free(struct console *c)
{
    close_job_side(c);
    buf_free(&c->input);
    buf_free(&c->held);
}

static int
open_pipe(struct console *c, struct console_ends *ends, struct err *e)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make a pipe");
    c->fd = pair[1];
    (void)fcntl(c->fd, F_SETFL, O_NONBLOCK);
    *ends = (struct console_ends){{pair[0], c->log_fd, c->log_fd}, pair[0]};
    return 0;
}

int
console_open(struct console *c, const struct spec *spec, int log_fd, struct console_ends *ends,
             struct err *e)
{
    struct stat st;
    if (file_look(log_fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, ERR_FAILED,
                       "the log of an interactive job must be a regular file: %s", spec->log);
    c->log_fd = log_fd;
    c->uid = spec->uid;
    c->from = c->size = st.st_size;
    if (!c->pty)
        return open_pipe(c, ends, e);
    if (pty_open(spec->rows, spec->columns, spec->uid, &c->fd, &c->slave_fd, e) < 0)
        return -1;
    *ends = (struct console_ends){{c->slave_fd, c->slave_fd, c->slave_fd}, -1};
    return 0;
}

bool
console_has_room(const struct console *c)
{
    return c->input.len < INPUT_MAX;
}

/* Passes on what the command takes. If it no longer reads, the rest is dropped. */
static void
pour(struct console *c)
{
    while (c->fd >= 0 && c->input.len > 0) {
        ssize_t n = write(c->fd, c->input.data, c->input.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            buf_clear(&c->input);
            if (!c->pty)
                close(TAKE_FD(c->fd));
            return;
        }
        buf_drop(&c->input, (size_t)n);
    }
    if (c->eof && c->fd >= 0 && c->input.len == 0)
        close(TAKE_FD(c->fd));
}

void
console_put(struct console *c, const char *bytes, size_t n)
{
    if (c->fd < 0 || c->eof)
        return;
    buf_add(&c->input, bytes, n);
    pour(c);
}

void
console_put_eof(struct console *c)
{
    char eof;
    if (c->fd < 0 || c->eof)
        return;
    if (c->pty) {
        eof = pty_eof_byte(c->fd);
        console_put(c, &eof, 1);
        return;
    }
    c->eof = true;
    pour(c);
}

void
console_resize(struct console *c, uint16_t rows, uint16_t columns)
{
    if (c->pty && c->fd >= 0)
        pty_resize(c->fd, rows, columns);
}

/* Writes as much as the disk has room for. Looks the size up instead of counting, because
 * others may append to the same file. */
static void
write_held(struct console *c)
{
    while (c->held.len > 0) {
        ssize_t n = quota_write(c->log_fd, c->held.data, c->held.len, c->uid);
        if (n < 0 && errno != EINTR)
            break;
        if (n > 0)
            buf_drop(&c->held, (size_t)n);
    }
    console_look(c);
}

/* Reads one piece of terminal output; returns its length, 0 if there is none. */
static size_t
take_output(struct console *c)
{
    char part[CHUNK];
    ssize_t n;
    do
        n = read(c->fd, part, sizeof part);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return 0;
    buf_add(&c->held, part, (size_t)n);
    write_held(c);
    return (size_t)n;
}

void
console_say(struct console *c, const char *words)
{
    if (!c->pty || c->log_fd < 0)
        return;
    buf_adds(&c->held, words);
    write_held(c);
}

size_t
console_fill(const struct console *c, struct pollfd *out)
{
    short events = 0;
    if (c->input.len > 0)
        events |= POLLOUT;
    if (c->pty && c->held.len == 0)
        events |= POLLIN;
    /* Polling for nothing, a pipe without a reader would still wake poll at once, again and
     * again. */
    if (c->fd < 0 || !events)
        return 0;
    *out = (struct pollfd){.fd = c->fd, .events = events};
    return 1;
}

void
console_serve(struct console *c, const struct pollfd *polled)
{
    write_held(c);
    if (!polled || c->fd < 0)
        return;
    if (polled->revents & (POLLOUT | POLLERR))
        pour(c);
    if (c->pty && c->held.len == 0 && polled->revents & (POLLIN | POLLHUP))
        (void)take_output(c);
}

int
console_wait_ms(const struct console *c)
{
    return c->held.len > 0 ? FULL_RETRY_MS : -1;
}

void
console_look(struct console *c)
{
    struct stat st;
    if (c->log_fd >= 0 && file_look(c->log_fd, &st) == 0)
        c->size = st.st_size;
}

/* Retries on a full disk. Returns the bytes that did not fit. */
static int64_t
wait_for_room(struct console *c)
{
    const struct timespec pause = {.tv_nsec = FULL_RETRY_MS * 1000000L};
    for (int i = 0; i < FULL_TRIES && c->held.len > 0; i++) {
        nanosleep(&pause, NULL);
        write_held(c);
    }
    int64_t lost = (int64_t)c->held.len;
    buf_clear(&c->held);
    return lost;
}

int64_t
console_end(struct console *c)
{
    size_t n = 0, part = 1;
    if (c->slave_fd >= 0) /* the last slave: now the master can be read to its end */
        close(TAKE_FD(c->slave_fd));
    for (; c->pty && c->fd >= 0 && part > 0 && n < END_MAX; n += part)
        part = take_output(c);
    close_job_side(c);
    int64_t lost = wait_for_room(c);
    console_look(c);
    return lost;
}
