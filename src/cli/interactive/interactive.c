/* Attaches to an interactive job: one loop over the connections to the supervisor and the
 * daemon, the keyboard, standard output and signals. Only poll waits, so that Ctrl-C works
 * while a slow reader holds up the output. Output comes only from the supervisor; the daemon
 * may die and come back meanwhile. */
#include "cli/interactive/interactive.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/common/cli.h"
#include "cli/common/rawtty.h"
#include "cli/interactive/interactive_priv.h"
#include "sys/signals.h"
#include "wire/client.h"

#define TWICE_US    2000000 /* time limit for the second Ctrl-C */
#define DETACH_KEY  '\035'  /* Ctrl-] */
#define INPUT_CHUNK 16384
#define PIPE_CHUNK  4096 /* a pipe accepts this in one write when poll reports it writable */

enum { P_DAEMON, P_SHEPHERD, P_INPUT, P_OUTPUT, P_SIGNALS, P_COUNT };

bool
interactive_window(uint16_t *rows, uint16_t *columns)
{
    struct winsize size;

    if (!isatty(STDIN_FILENO) || ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0)
        return false;
    *rows = size.ws_row;
    *columns = size.ws_col;
    return size.ws_row > 0 && size.ws_col > 0;
}

static void
say_detached(const struct session *s, const char *more)
{
    auto_buf struct buf back = BUF_INIT;

    session_add_way_back(s, &back);
    cli_say("detached; job %lld continues. To return to it: %s%s", (long long)s->what->job,
            buf_str(&back), more);
}

static void
detach(struct session *s, int status)
{
    rawtty_leave();
    attached_close(&s->at);
    if (s->what->left)
        *s->what->left = true;
    say_detached(s, "");
    session_finish(s, status);
}

/* Without a request by the user: detaches, or cancels the job if it ends with us. */
static void
part(struct session *s, int status)
{
    if (!s->what->ends) {
        detach(s, status);
        return;
    }
    rawtty_leave();
    session_cancel(s);
    session_finish(s, status);
}

/* --- signals --- */

static void
on_interrupt(struct session *s)
{
    rawtty_leave();
    if (isatty(STDERR_FILENO))
        (void)!write(STDERR_FILENO, "\n", 1); /* after the terminal's ^C */
    if (s->what->read_only || s->what->ends) {
        part(s, 128 + SIGINT);
    } else if (s->interrupt_us) {
        session_cancel(s);
        session_finish(s, 128 + SIGINT);
    } else {
        s->interrupt_us = clock_boot_us();
        attached_close(&s->at);
        s->parted = false;
        say_detached(s, "\nberth: Ctrl-C once more within two seconds cancels it");
    }
}

static void
send_window(struct session *s, bool anew)
{
    uint16_t rows, columns;

    if (s->at.fd < 0 || !s->at.pty || !interactive_window(&rows, &columns))
        return;
    /* Programs redraw everything when the size changes, so change it briefly. */
    if (anew && rows > 1)
        attached_put_size(&s->at, (uint16_t)(rows - 1), columns);
    attached_put_size(&s->at, rows, columns);
}

/* While we are stopped, the shell has the terminal. */
static void
stop_ourselves(struct session *s)
{
    bool was_raw = rawtty_is_on();

    rawtty_leave();
    kill(getpid(), SIGSTOP);
    if (was_raw)
        rawtty_enter();
    send_window(s, false);
}

static void
on_signals(struct session *s)
{
    struct signalfd_siginfo si;

    while (!s->done && read(s->signals, &si, sizeof si) == (ssize_t)sizeof si) {
        if (si.ssi_signo == SIGWINCH)
            send_window(s, false);
        else if (si.ssi_signo == SIGTSTP)
            stop_ourselves(s);
        else if (si.ssi_signo == SIGINT)
            on_interrupt(s);
        else
            part(s, 128 + (int)si.ssi_signo);
    }
}

/* --- input --- */

static bool
wants_input(const struct session *s)
{
    return !s->input_over && !s->what->read_only && attached_has_room(&s->at) &&
           (!isatty(STDIN_FILENO) || rawtty_is_ours());
}

static void
read_input(struct session *s)
{
    char bytes[INPUT_CHUNK];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
    const char *key;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        s->input_over = true;
        attached_put_eof(&s->at);
        return;
    }
    key = rawtty_is_on() ? memchr(bytes, DETACH_KEY, (size_t)n) : NULL;
    if (key)
        n = key - bytes;
    if (n > 0)
        attached_put(&s->at, bytes, (size_t)n);
    if (!key)
        return;
    (void)attached_flush(&s->at);
    detach(s, 0);
}

/* --- output --- */

static bool
has_shown_all(const struct session *s)
{
    return s->written == s->at.shown.len;
}

/* Writes no more than poll has reported room for, so that the write cannot block. */
static void
write_output(struct session *s)
{
    struct buf *out = &s->at.shown;
    size_t n = out->len - s->written;
    struct stat st;
    ssize_t wrote;

    if (n > PIPE_CHUNK && (fstat(STDOUT_FILENO, &st) < 0 || !S_ISREG(st.st_mode)))
        n = PIPE_CHUNK;
    wrote = write(STDOUT_FILENO, out->data + s->written, n);
    if (wrote > 0)
        s->written += (size_t)wrote;
    else if (wrote < 0 && errno != EINTR && errno != EAGAIN)
        s->broken = errno;
    if (has_shown_all(s)) {
        buf_clear(out);
        s->written = 0;
    }
}

static void
on_broken_output(struct session *s)
{
    if (s->broken != EPIPE)
        cli_say("cannot write the output: %s", strerror(s->broken));
    part(s, s->broken == EPIPE ? 128 + SIGPIPE : 1);
}

/* --- the loop --- */

static void
on_shepherd(struct session *s, short revents)
{
    if (s->at.out.len > 0 && !attached_flush(&s->at))
        buf_clear(&s->at.out); /* it has closed; its last message is still to be read */
    if (!(revents & (POLLIN | POLLHUP | POLLERR)))
        return;
    if (!attached_read(&s->at)) {
        s->parted = true;
        return;
    }
    if (!s->at.greeted || !s->at.pty || s->what->read_only)
        return;
    rawtty_enter();
    if (s->redraw)
        send_window(s, true);
    s->redraw = false;
}

static void
on_daemon(struct session *s)
{
    struct err e;

    if (client_pump(*s->client, &e) < 0)
        session_lose_daemon(s);
}

static void
watch(struct pollfd *p, int fd, bool in, bool out)
{
    if (fd >= 0 && (in || out))
        *p = (struct pollfd){.fd = fd,
                             .events = (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0))};
}

static void
fill(const struct session *s, struct pollfd *p)
{
    for (int i = 0; i < P_COUNT; i++)
        p[i] = (struct pollfd){.fd = -1};
    watch(&p[P_DAEMON], *s->client ? client_fd(*s->client) : -1, true, false);
    watch(&p[P_SHEPHERD], s->parted ? -1 : s->at.fd, has_shown_all(s), s->at.out.len > 0);
    watch(&p[P_INPUT], STDIN_FILENO, wants_input(s), false);
    watch(&p[P_SIGNALS], s->signals, true, false);
    /* Polled also with nothing to write, to notice when the reader closes it. */
    p[P_OUTPUT] =
        (struct pollfd){.fd = STDOUT_FILENO, .events = has_shown_all(s) ? 0 : POLLOUT};
}

static int
wait_ms(const struct session *s)
{
    int64_t due = s->interrupt_us ? s->interrupt_us + TWICE_US : s->retry_us;
    int64_t left = due - clock_boot_us();

    if (!due)
        return -1;
    return left > 0 ? (int)((left + 999) / 1000) : 0;
}

static void
turn(struct session *s)
{
    struct pollfd p[P_COUNT];

    fill(s, p);
    if (poll(p, P_COUNT, wait_ms(s)) < 0 && errno != EINTR)
        err_abort("poll: %s", strerror(errno));
    on_signals(s);
    if (s->done || s->interrupt_us)
        return;
    if (p[P_OUTPUT].revents & POLLOUT)
        write_output(s);
    else if (p[P_OUTPUT].revents & POLLERR)
        s->broken = EPIPE;
    if (s->broken) {
        on_broken_output(s);
        return;
    }
    if (p[P_SHEPHERD].revents)
        on_shepherd(s, p[P_SHEPHERD].revents);
    if (p[P_DAEMON].revents)
        on_daemon(s);
    if (p[P_INPUT].revents && wants_input(s))
        read_input(s);
}

/* Does what is needed before the next wait. */
static void
act(struct session *s)
{
    int64_t now = clock_boot_us();

    if (s->interrupt_us) {
        if (now - s->interrupt_us >= TWICE_US)
            session_finish(s, 128 + SIGINT);
        return;
    }
    if (!has_shown_all(s))
        return;
    if (s->parted) {
        s->parted = false;
        session_part(s);
    }
    if (s->retry_us && now >= s->retry_us) {
        s->retry_us = 0;
        s->look = true;
    }
    if (!s->done && !*s->client && s->at.fd < 0 && !s->retry_us)
        session_mend(s);
    while (!s->done && *s->client && s->look) {
        session_look(s);
        if (*s->client) /* the answer may have brought an event, which poll does not show */
            on_daemon(s);
    }
}

/* True if we may restart the daemon, which is not so for the machine's. */
static bool
is_our_own(struct client *c)
{
    auto_json json_t *status = NULL;
    struct err e;

    return client_call(c, "status", NULL, &status, &e) == 0 &&
           strcmp(answer_str(json_object_get(status, "daemon"), "mode"), "user") == 0;
}

int
interactive_follow(const struct interactive *what, struct client **client)
{
    struct err e = {0};
    struct session s = {.what = what,
                        .client = client,
                        .signals = signals_to_fd(
                            (const int[]){SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, 0}, &e)};

    if (s.signals < 0)
        return cli_fail(&e);
    attached_init(&s.at);
    s.redraw = what->tail >= 0;
    s.look = true;
    s.may_start = is_our_own(*client);
    if (session_subscribe(&s, &e) < 0)
        session_lose_daemon(&s);
    while (!s.done) {
        act(&s);
        if (!s.done)
            turn(&s);
    }
    rawtty_leave();
    attached_free(&s.at);
    json_decref(s.job);
    free(s.said);
    free(s.log);
    close(s.signals);
    return s.status;
}
