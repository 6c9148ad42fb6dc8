/* `berth top`: the machine on one screen. top_model.c holds the data and top_layout.c draws
 * it; this file connects them with the terminal, the daemon and the clock. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "cli/common/grid.h"
#include "cli/common/opt.h"
#include "cli/top/top_feed.h"
#include "cli/top/top_keys.h"
#include "cli/top/top_layout.h"
#include "cli/top/top_log.h"
#include "cli/top/top_model.h"
#include "cli/top/top_screen.h"
#include "wire/client.h"

#define ROWS_MIN    5
#define COLUMNS_MIN 20
#define LOG_MS      250 /* how often a continuously growing log is shown */
#define REDRAW_MS   1000

static const struct page page = {
    .usage = "berth top",
    .about = "Show the GPUs, the queue, the selected job and its log on one live screen.",
    .notes =
        "Keys: arrows or j k, Enter or l (follow the log), e (explain), / (filter), s (sort),\n"
        "c (cancel), h (hold), r (release), + - (priority), p u (pause and resume GPUs),\n"
        "a (ended jobs too), ? (help), q (quit)",
    .no_json = "use 'berth status --json' and 'berth queue --json'",
};

static volatile sig_atomic_t ended_by; /* signal number */

static void
on_signal(int number)
{
    ended_by = number;
}

static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/* Blocks signals except while waiting, so that none is missed; *wait is the mask while
 * waiting. */
static void
catch_signals(sigset_t *wait)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t block;

    sigemptyset(&block);
    sigaddset(&block, SIGWINCH);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        sigaddset(&block, endings[i]);
        sigaction(endings[i], &action, NULL);
    }
    sigprocmask(SIG_BLOCK, &block, wait);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        sigdelset(wait, endings[i]);
    sigdelset(wait, SIGWINCH);
}

struct view {
    struct top top;
    struct top_feed *feed;
    struct top_log_file *log;
    struct grid *grid;
    int64_t log_at_us; /* when the log was last looked at */
    sigset_t wait;
};

static void
draw(struct view *v)
{
    int rows, columns;

    top_screen_size(&rows, &columns);
    rows = rows < ROWS_MIN ? ROWS_MIN : rows;
    columns = columns < COLUMNS_MIN ? COLUMNS_MIN : columns;
    if (!v->grid || v->grid->rows != rows || v->grid->columns != columns) {
        grid_free(v->grid);
        v->grid = grid_new(rows, columns, v->top.ascii);
    }
    top_draw(&v->top, v->grid);
    top_screen_show(v->grid);
}

/* False: quit. */
static bool
take_keys(struct view *v)
{
    int key;

    while ((key = top_screen_key()) != TOP_KEY_NONE) {
        if (!top_press(&v->top, v->feed, key))
            return false;
    }
    return true;
}

/* Waits for a key, the daemon, the log or a timeout; false: the terminal is gone. */
static bool
wait_for_something(struct view *v, int feed_ms)
{
    int64_t log_ms = (v->top.now_us - v->log_at_us) / 1000;
    int ms = feed_ms < REDRAW_MS ? feed_ms : REDRAW_MS;
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    struct pollfd p[3] = {{.fd = STDIN_FILENO, .events = POLLIN},
                          {.fd = top_feed_fd(v->feed), .events = POLLIN},
                          {.fd = top_log_fd(v->log), .events = POLLIN}};

    if (log_ms < LOG_MS)
        p[2].fd = -1;
    if (ppoll(p, 3, &time, &v->wait) < 0)
        return errno == EINTR;
    return !(p[0].revents & (POLLERR | POLLHUP | POLLNVAL));
}

static void
look_at_log(struct view *v)
{
    v->top.now_us = clock_wall_us();
    if (v->top.now_us - v->log_at_us < LOG_MS * 1000 && v->top.now_us >= v->log_at_us)
        return;
    v->log_at_us = v->top.now_us;
    (void)top_log_update(v->log, &v->top);
}

static void
run(struct view *v)
{
    bool stay = true;

    while (stay && !ended_by) {
        int feed_ms;
        uint32_t selected;

        v->top.now_us = clock_wall_us();
        feed_ms = top_feed_run(v->feed);
        selected = v->top.selected;
        stay = take_keys(v);
        if (v->top.selected != selected)
            v->log_at_us = 0;
        look_at_log(v);
        if (!stay)
            return;
        draw(v);
        stay = wait_for_something(v, feed_ms);
    }
}

static int
show(const struct cli *cli)
{
    struct view v = {0};
    struct err e;

    if (top_screen_begin(&e) < 0)
        return cli_fail(&e);
    catch_signals(&v.wait);
    top_init(&v.top);
    v.top.ascii = top_screen_is_ascii();
    v.feed = top_feed_new(cli, &v.top);
    v.log = top_log_new();
    run(&v);
    top_screen_end();
    top_log_free(v.log);
    top_feed_free(v.feed);
    grid_free(v.grid);
    top_free(&v.top);
    return ended_by ? 128 + ended_by : 0;
}

int
cmd_top(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct err e;
    struct client *c;

    if (!opt_read_nothing(&r, cli, &page, argc, argv))
        return r.status;
    if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
        return cli_usage(
            "'berth top' needs a terminal; use 'berth queue --watch' for a file or a pipe");
    /* A daemon missing at the start may be a mistake; one that goes away later is awaited. */
    c = connect_daemon(cli, &e);
    if (!c)
        return cli_fail(&e);
    client_free(c);
    return show(cli);
}
