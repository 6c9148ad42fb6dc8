/* Repeated drawing; see redraw.h. Follows the daemon's events and draws again after an event,
 * at most ten times a second. */
#include "cli/ask/redraw.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "cli/common/term.h"
#include "wire/client.h"

#define REDRAW_MS 1000 /* default interval on a terminal without events */
#define SETTLE_MS 100  /* other events often follow an event */

/* The original terminal settings, in a global because exit handlers take no arguments. */
static struct termios before;
static bool is_quiet;
static volatile sig_atomic_t ended_by; /* signal number */

static void
on_event(void *ctx, const char *method, json_t *params)
{
    bool *changed = ctx;

    (void)method;
    (void)params;
    *changed = true;
}

/* Draws in place: from the top left, clearing to the end of each line and below the last; no
 * more lines than the screen has, because it would scroll. */
static void
add_screen(struct buf *out, const struct buf *picture)
{
    const char *at = picture->data;
    const char *end = picture->data + picture->len;

    buf_adds(out, "\033[H");
    for (int left = term_rows() - 1; at < end && left > 0; left--) {
        const char *eol = memchr(at, '\n', (size_t)(end - at));
        size_t n = eol ? (size_t)(eol - at) : (size_t)(end - at);

        buf_add(out, at, n);
        buf_adds(out, "\033[K\n");
        at += n + 1;
    }
    buf_adds(out, "\033[J");
}

static int
put_picture(const struct term *term, const struct buf *picture, struct buf *last)
{
    auto_buf struct buf out = BUF_INIT;

    if (term->tty) {
        add_screen(&out, picture);
        return cli_put(&out);
    }
    if (picture->len == last->len &&
        (picture->len == 0 || memcmp(picture->data, last->data, picture->len) == 0))
        return 0;
    if (last->len)
        buf_addc(&out, '\n');
    buf_add(&out, picture->data, picture->len);
    buf_clear(last);
    buf_add(last, picture->data, picture->len);
    return cli_put(&out);
}

static void
on_signal(int number)
{
    ended_by = number;
}

static void
leave_terminal(void)
{
    if (is_quiet)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    is_quiet = false;
}

/* Reads keys without waiting for a line and without echo, if we are in the terminal's
 * foreground. */
static void
enter_terminal(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct termios quiet;

    if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgrp() ||
        tcgetattr(STDIN_FILENO, &before) < 0 || atexit(leave_terminal) != 0)
        return;
    quiet = before;
    quiet.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    is_quiet = tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet) == 0;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

/* True if the user wants to quit: q, or the end of input. */
static bool
was_left(void)
{
    char keys[64];
    ssize_t n = read(STDIN_FILENO, keys, sizeof keys);

    return n == 0 || (n > 0 && memchr(keys, 'q', (size_t)n));
}

/* Waits at most ms (-1: without limit) for the daemon. 1: quit, -1 with e. */
static int
wait_once(struct client *c, int ms, struct err *e)
{
    struct pollfd p[3] = {{.fd = client_fd(c), .events = POLLIN},
                          {.fd = is_quiet ? STDIN_FILENO : -1, .events = POLLIN},
                          {.fd = STDOUT_FILENO}};

    if (poll(p, 3, ms) < 0 && errno != EINTR)
        return err_errno(e, ERR_FAILED, errno, "cannot wait");
    bool has_no_reader = (p[2].revents & (POLLERR | POLLHUP)) != 0;
    if (ended_by || has_no_reader || (p[1].revents && was_left()))
        return 1;
    return client_pump(c, e);
}

struct watch {
    struct client *client;
    int interval_ms; /* -1: redraw only after events */
    bool changed, again;
};

/* Waits for an event or the end of the interval; after an event, redraws once more later,
 * because no event reports that a starting job has begun to run. */
static int
wait_for_change(struct watch *w, struct err *e)
{
    int64_t until_us = clock_boot_us() + w->interval_ms * INT64_C(1000);
    bool bounded = w->interval_ms >= 0;
    int rc = client_pump(w->client, e);

    if (!bounded && w->again) {
        until_us = clock_boot_us() + REDRAW_MS * INT64_C(1000);
        bounded = true;
    }
    while (rc == 0 && !w->changed) {
        int64_t left_us = bounded ? until_us - clock_boot_us() : 0;

        if (bounded && left_us <= 0)
            break;
        rc = wait_once(w->client, bounded ? (int)(left_us / 1000) + 1 : -1, e);
    }
    if (rc == 0 && w->changed)
        rc = wait_once(w->client, SETTLE_MS, e);
    w->again = w->changed;
    w->changed = false;
    return rc;
}

int
watch_read_interval(const char *value, int *interval_ms)
{
    struct err e;
    double seconds;

    *interval_ms = isatty(STDOUT_FILENO) ? REDRAW_MS : -1;
    if (!value)
        return 0;
    if (parse_double(value, 0.1, 86400, &seconds, &e) < 0)
        return cli_usage("--watch: %s seconds, as in --watch=2", e.text);
    *interval_ms = (int)(seconds * 1000);
    return 0;
}

static json_t *
follow_params(void)
{
    return json_pack("{s:i,s:b}", "since", 0, "follow", 1);
}

static int
follow(struct client *c, struct err *e)
{
    return client_call(c, "events", follow_params(), NULL, e);
}

/* A new daemon: draw again, as much may have changed. */
static void
on_back(void *ctx, struct client *c)
{
    struct watch *w = ctx;

    w->changed = true;
    (void)client_send(c, "events", follow_params(), NULL);
}

static int
run(struct watch *w, watch_draw draw, void *ctx, struct err *e)
{
    auto_buf struct buf last = BUF_INIT;
    int rc = 0;

    while (rc == 0) {
        auto_buf struct buf picture = BUF_INIT;
        struct term term = term_of_stdout();

        if (draw(ctx, w->client, &term, &picture, e) < 0)
            return -1;
        if (put_picture(&term, &picture, &last) != 0 || cli_output_status() != 0)
            return 0;
        rc = wait_for_change(w, e);
    }
    return rc < 0 && !ended_by ? -1 : 0;
}

int
watch_run(const struct cli *cli, int interval_ms, watch_draw draw, void *ctx)
{
    struct err e = {0};
    auto_client struct client *c = connect_daemon(cli, &e);
    struct watch w = {.client = c, .interval_ms = interval_ms};
    int rc;

    if (!c)
        return cli_fail(&e);
    const struct keeping how = {.quiet = term_of_stdout().tty};

    connect_keep(cli, c, &how);
    client_on_back(c, on_back, &w);
    client_listen(c, on_event, NULL, &w.changed);
    if (follow(c, &e) < 0)
        return cli_fail(&e);
    enter_terminal();
    if (term_rows())
        (void)cli_write("\033[2J", 4);
    rc = run(&w, draw, ctx, &e);
    leave_terminal();
    if (rc < 0)
        return cli_fail(&e);
    return ended_by ? 128 + ended_by : cli_output_status();
}
