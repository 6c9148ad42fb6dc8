/* The window of a screen session: see window.h. screen executes it as the job's user. It is an
 * ordinary client of the attach socket (docs/protocol.md section 5), and nothing depends on
 * it: the job's output is in the log whether this reads or not. Its terminal is raw, so that
 * every key that screen passes on reaches the job's terminal. */
#include "shepherd/begin/window.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/unixsock.h"
#include "sys/signals.h"
#include "wire/attach_frames.h"

#define CHUNK    16384
#define HELD_MAX 65536 /* in either direction; beyond that, its source waits */

struct window {
    int socket, signals;
    struct buf in;  /* from the job, not yet split into frames */
    struct buf out; /* to the job */
    struct buf show;
    bool over; /* the job sends nothing more */
    bool gone; /* the terminal is gone */
};

static int
connect_to(const char *path)
{
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || unixsock_connect(fd, path) < 0)
        return -1;
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    return TAKE_FD(fd);
}

static struct winsize
size_now(void)
{
    struct winsize size = {0};
    (void)ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
    return size;
}

static void
say_hello(struct window *w)
{
    auto_buf struct buf text = BUF_INIT;
    struct winsize size = size_now();
    buf_addf(&text, "{\"version\":1,\"input\":true,\"rows\":%d,\"columns\":%d}", size.ws_row,
             size.ws_col);
    attach_add(&w->out, ATTACH_HELLO, text.data, text.len);
}

static void
make_raw(void)
{
    struct termios t;
    if (tcgetattr(STDIN_FILENO, &t) < 0)
        return;
    cfmakeraw(&t);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &t);
}

/* Writes as much as possible without blocking; false if the reader is gone. */
static bool
pour(int fd, struct buf *from)
{
    while (from->len > 0) {
        ssize_t n = write(fd, from->data, from->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        buf_drop(from, (size_t)n);
    }
    return true;
}

static void
take_frames(struct window *w)
{
    struct attach_frame f;
    size_t done = 0, n;
    uint64_t offset;
    const char *bytes;
    int rc;
    while ((rc = attach_next(&w->in, &done, &f)) > 0) {
        if (f.type == ATTACH_OUTPUT && attach_get_output(&f, &offset, &bytes, &n) == 0)
            buf_add(&w->show, bytes, n);
        else if (f.type == ATTACH_REFUSED)
            buf_add(&w->show, f.bytes, f.n);
        w->over |= f.type == ATTACH_ENDED || f.type == ATTACH_REFUSED;
    }
    w->over |= rc < 0;
    buf_drop(&w->in, done);
}

/* Reads the job's output; false if there is none now. */
static bool
read_job(struct window *w)
{
    char part[CHUNK];
    ssize_t n = recv(w->socket, part, sizeof part, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        w->over = true;
        return false;
    }
    buf_add(&w->in, part, (size_t)n);
    take_frames(w);
    return !w->over;
}

static void
read_terminal(struct window *w)
{
    char part[CHUNK];
    ssize_t n = read(STDIN_FILENO, part, sizeof part);
    if (n > 0)
        attach_add(&w->out, ATTACH_INPUT, part, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        w->gone = true;
}

/* When asked to end, it still shows what has arrived. */
static void
read_signals(struct window *w)
{
    struct signalfd_siginfo si;
    while (read(w->signals, &si, sizeof si) == (ssize_t)sizeof si) {
        struct winsize size = size_now();
        if (si.ssi_signo == SIGWINCH) {
            attach_add_winsize(&w->out, size.ws_row, size.ws_col);
            continue;
        }
        while (read_job(w))
            ;
        w->over = true;
        w->gone |= si.ssi_signo == SIGHUP;
    }
}

static void
one_turn(struct window *w)
{
    bool hears = w->show.len < HELD_MAX, types = w->out.len < HELD_MAX;
    struct pollfd fds[] = {
        {.fd = w->signals, .events = POLLIN},
        {.fd = w->socket, .events = (short)((hears ? POLLIN : 0) | (w->out.len ? POLLOUT : 0))},
        {.fd = STDIN_FILENO,
         .events = (short)((types ? POLLIN : 0) | (w->show.len ? POLLOUT : 0))},
    };
    if (poll(fds, 3, -1) < 0)
        return;
    if (fds[0].revents)
        read_signals(w);
    if (!w->over && hears && fds[1].revents & (POLLIN | POLLHUP | POLLERR))
        (void)read_job(w);
    if (types && fds[2].revents & (POLLIN | POLLHUP | POLLERR))
        read_terminal(w);
    if (!w->over && !pour(w->socket, &w->out))
        w->over = true;
    if (!pour(STDIN_FILENO, &w->show))
        w->gone = true;
}

int
window_run(const char *socket)
{
    struct window w = {.socket = connect_to(socket),
                       .signals =
                           signals_to_fd((const int[]){SIGHUP, SIGTERM, SIGWINCH, 0}, NULL)};
    signal(SIGPIPE, SIG_IGN);
    if (w.socket < 0 || w.signals < 0) {
        fprintf(stderr, "berth-shepherd: cannot reach the job at %s: %s\n", socket,
                strerror(errno));
        return 1;
    }
    make_raw();
    (void)fcntl(STDIN_FILENO, F_SETFL, O_RDWR | O_NONBLOCK);
    say_hello(&w);
    while (!w.gone && (!w.over || w.show.len > 0))
        one_turn(&w);
    buf_free(&w.in);
    buf_free(&w.out);
    buf_free(&w.show);
    close(w.socket);
    close(w.signals);
    return 0;
}
