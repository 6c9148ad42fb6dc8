/* Connects to the daemon: finds the right one, and reconnects when the connection is lost.
 * daemon_start.c starts one if needed. */
#include "cli/ask/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/ask/daemon_socket.h"
#include "cli/ask/daemon_start.h"
#include "cli/ask/machine_turn.h"
#include "cli/common/cli.h"
#include "wire/client.h"
#include "wire/places.h"

#define PAUSE_MIN_MS 20
#define AGAIN_MS     60000 /* a restarted daemon is back within one or two seconds */
#define SAY_AFTER_MS 1500
#define PAUSE_MAX_MS 500
#define EXIT_MAX     64
#define SETTLE_MS    5000 /* time limit for a daemon that is starting or exiting */
#define GAP_MS       5000 /* time limit for systemd to restart the machine's daemon */
#define GAP_STEP_MS  100
#define START_MS     60000 /* time limit for the machine's daemon to get ready */

static int
find_places(const struct cli *cli, const struct daemon_args *args, struct places *p,
            struct err *e)
{
    if (!args || !args->system)
        return places_find(cli->dir, p, e);
    return places_system(cli->dir, p, e);
}

/* The machine's daemon has no simulated GPUs, and does not have the jobs of the user's own
 * daemon. */
static bool
skips_machine(const struct daemon_args *args)
{
    return args && (args->sim || args->own);
}

/* Tries the daemon that was named, the user's own, then the machine's. ERR_UNREACHABLE: there
 * is none. */
static struct client *
connect_found(const struct cli *cli, const struct places *p, const struct daemon_args *args,
              struct err *e)
{
    struct client *c;
    struct err why = {0};

    if (cli->socket)
        return connect_at(cli->socket, e);
    if (p->root)
        return connect_place(p, e);
    c = connect_place(p, &why);
    /* A socket without permission, or made by another user, counts as absent. */
    bool is_none = !c && (why.code == ERR_UNREACHABLE || why.code == ERR_PERMISSION);
    if (is_none && !p->system && !skips_machine(args))
        c = connect_trusted(PLACES_SYSTEM_SOCKET, NULL);
    if (!c && e)
        *e = why;
    return c;
}

struct client *
connect_machine_or_own(const struct cli *cli)
{
    struct client *c = connect_trusted(PLACES_SYSTEM_SOCKET, NULL);
    struct places p;

    if (c || places_find(cli->dir, &p, NULL) < 0)
        return c;
    c = p.root ? connect_trusted(p.socket, NULL) : connect_place(&p, NULL);
    places_free(&p);
    return c;
}

struct client *
connect_trusted_at(const char *dir)
{
    struct places p;
    struct client *c;

    if (places_find(dir, &p, NULL) < 0)
        return NULL;
    c = connect_trusted(p.socket, NULL);
    places_free(&p);
    return c;
}

/* --- choosing the daemon --- */

/* A daemon whose socket was given by name may be another user's, and systemd starts the
 * machine's: we start neither. */
static bool
is_ours_to_start(const struct cli *cli, const struct places *p)
{
    return !cli->socket && !p->system;
}

/* The machine's daemon, if the client may wait for it or for one of the user's own: a second
 * daemon beside it would allocate the same GPUs. */
static struct machine
machines_turn(const struct cli *cli, const struct places *p, const struct daemon_args *args)
{
    if (cli->socket || p->root || p->system || skips_machine(args))
        return (struct machine){.state = MACHINE_NONE};
    return machine_look();
}

struct machine
connect_machine(const struct cli *cli)
{
    struct machine m = {.state = MACHINE_NONE};
    struct places p;

    if (places_find(cli->dir, &p, NULL) < 0)
        return m;
    m = machines_turn(cli, &p, NULL);
    places_free(&p);
    return m;
}

static const char machines_died[] =
    "the system daemon has died and is not running again yet (systemctl status berthd)";
static const char machines_starts[] =
    "the system daemon is starting and does not answer yet (systemctl status berthd)";

/* How long a client has waited for the machine's daemon. */
struct wait {
    int64_t since_us; /* boot clock */
    int64_t seen_us;  /* when it was last starting; 0: never */
    bool told;
};

static bool
may_wait(struct wait *w, struct machine m)
{
    int64_t now_us = clock_boot_us(), waited_ms = (now_us - w->since_us) / 1000;

    if (m.state != MACHINE_STARTING)
        return m.soon &&
               now_us - (w->seen_us ? w->seen_us : w->since_us) < GAP_MS * INT64_C(1000);
    w->seen_us = now_us;
    if (waited_ms > SAY_AFTER_MS && !w->told) {
        cli_say("the system daemon is starting; waiting up to %d s for it", START_MS / 1000);
        w->told = true;
    }
    return waited_ms < START_MS;
}

/* --- no daemon is running --- */

/* How the last daemon of this place, if it was this user's, ended. Its lock file holds its pid
 * until an orderly exit (sign_lock in daemon/berthd.c), beside it the word `service` if a
 * service manager started it, which restarts it. END_NOT_YET: the lock is held by a daemon that
 * is starting, exiting or being killed: the kernel releases it after it closes the socket. */
enum end { END_IN_ORDER, END_DIED, END_DIED_SERVICE, END_NOT_YET };

static bool
is_own_file(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

static enum end
last_end(const struct places *p)
{
    auto_free char *lock = xasprintf("%s/lock", p->state);
    auto_buf struct buf text = BUF_INIT;
    int held;

    if (!is_own_file(lock))
        return END_IN_ORDER;
    held = file_is_locked_at(AT_FDCWD, lock, NULL);
    if (held > 0)
        return END_NOT_YET;
    if (held < 0 || file_read(lock, PLACES_LOCK_MAX, &text, NULL) < 0 || text.len == 0)
        return END_IN_ORDER;
    size_t line = strcspn(text.data, "\n"); /* the next one is a path */
    return memmem(text.data, line, "service", 7) ? END_DIED_SERVICE : END_DIED;
}

/* Why the daemon exited, from the note it left (note_exit in daemon/berthd.c). */
static const char *
orderly_end(const struct places *p)
{
    auto_free char *note = xasprintf("%s/exit", p->state);
    auto_buf struct buf why = BUF_INIT;

    if (!is_own_file(note) || file_read(note, EXIT_MAX, &why, NULL) < 0)
        return ": its jobs and history are kept";
    if (strcmp(buf_str(&why), "idle") == 0)
        return ": it exited when it was idle; its jobs and history are kept";
    return ": it was stopped; its jobs and history are kept";
}

/* Says how the last daemon ended: after an idle exit, people may fear that jobs are lost. */
static void
say_none_runs(const struct cli *cli, const struct places *p, int code, struct err *e)
{
    auto_free char *database = xasprintf("%s/berth.db", p->state);
    bool kept = !cli->socket && access(database, F_OK) == 0;
    const char *what = "";

    enum end end = cli->socket ? END_IN_ORDER : last_end(p);
    struct machine m = machines_turn(cli, p, NULL);

    if (m.state == MACHINE_DIED || m.state == MACHINE_STARTING) {
        err_set(e, code, "%s; its jobs are kept, and running jobs continue; try again",
                m.state == MACHINE_DIED ? machines_died : machines_starts);
        return;
    }
    if (end == END_NOT_YET) {
        err_set(e, code, "the daemon is starting or exiting (%s does not answer); try again",
                p->socket);
        return;
    }
    if (kept && end == END_DIED_SERVICE)
        what = ": it died, and its service manager restarts it (systemctl --user status "
               "berthd); its jobs are kept, and running jobs continue";
    else if (kept && end == END_DIED)
        what = ": it died; its jobs are kept, and running jobs continue";
    else if (kept)
        what = orderly_end(p);
    err_set(e, code,
            "%sno daemon is running (%s)%s; 'berth daemon start'%s starts one%s, "
            "and so do 'berth run' and 'berth submit'",
            m.state == MACHINE_FAILED
                ? "the system daemon has failed to start (systemctl status berthd), and "
                : "",
            cli->socket ? cli->socket : p->socket, what, cli->dir ? " with the same --dir" : "",
            kept ? " again" : "");
}

/* --- a daemon is running --- */

static struct client *
revive_daemon(const struct places *p, bool quiet, struct err *e)
{
    struct client *c = daemon_start(p, NULL, NULL, e);

    if (c && !quiet)
        cli_say("the daemon had died and was restarted");
    return c;
}

/* True while the outcome is known soon: the user's daemon is starting or exiting, or the
 * machine's is starting, or has died and is being restarted. */
static bool
is_unsettled(const struct cli *cli, const struct places *p, struct wait *w)
{
    struct machine m = machines_turn(cli, p, NULL);

    if (cli->socket)
        return false;
    if (m.state == MACHINE_STARTING || m.state == MACHINE_DIED)
        return may_wait(w, m);
    return last_end(p) == END_NOT_YET && clock_boot_us() - w->since_us < SETTLE_MS * 1000LL;
}

static struct client *
connect_settled(const struct cli *cli, const struct places *p, struct err *why)
{
    struct wait w = {.since_us = clock_boot_us()};
    struct client *c = connect_found(cli, p, NULL, why);

    while (!c && why->code == ERR_UNREACHABLE && is_unsettled(cli, p, &w)) {
        poll(NULL, 0, PAUSE_MIN_MS);
        c = connect_found(cli, p, NULL, why);
    }
    return c;
}

static struct client *
connect_existing(const struct cli *cli, bool revive, struct err *e)
{
    struct err why = {0};
    struct places p;
    struct client *c;

    if (places_find(cli->dir, &p, e) < 0)
        return NULL;
    c = connect_settled(cli, &p, &why);
    if (c || why.code != ERR_UNREACHABLE) {
        if (!c && e)
            *e = why;
    } else if (revive && is_ours_to_start(cli, &p) && last_end(&p) == END_DIED &&
               !machines_turn(cli, &p, NULL).soon) {
        c = revive_daemon(&p, false, e);
    } else {
        say_none_runs(cli, &p, why.code, e);
    }
    places_free(&p);
    return c;
}

struct client *
connect_daemon(const struct cli *cli, struct err *e)
{
    return connect_existing(cli, true, e);
}

struct client *
connect_running(const struct cli *cli, struct err *e)
{
    return connect_existing(cli, false, e);
}

/* Waits while the machine's daemon may be here soon, so that a command does not start a daemon
 * of the user's own meanwhile. */
static struct client *
await_machine(const struct cli *cli, const struct places *p, const struct daemon_args *args,
              struct err *why)
{
    struct wait w = {.since_us = clock_boot_us()};
    struct machine m = machines_turn(cli, p, args);
    struct client *c = NULL;

    while (!c && why->code == ERR_UNREACHABLE && may_wait(&w, m)) {
        poll(NULL, 0, GAP_STEP_MS);
        c = connect_found(cli, p, args, why);
        m = machines_turn(cli, p, args);
    }
    if (!c && why->code == ERR_UNREACHABLE &&
        (m.state == MACHINE_DIED || m.state == MACHINE_STARTING))
        err_set(why, ERR_REFUSED,
                "%s; to use a daemon of your own, choose a folder with --dir DIR",
                m.state == MACHINE_DIED ? machines_died : machines_starts);
    return c;
}

struct client *
connect_or_start(const struct cli *cli, const struct daemon_args *args, bool *started,
                 struct err *e)
{
    struct err why = {0};
    struct places p;
    struct client *c;

    if (started)
        *started = false;
    if (find_places(cli, args, &p, e) < 0)
        return NULL;
    c = connect_found(cli, &p, args, &why);
    if (!c && why.code == ERR_UNREACHABLE)
        c = await_machine(cli, &p, args, &why);
    /* Do not start the daemon of a socket given by name. */
    if (!c && why.code == ERR_UNREACHABLE && !cli->socket)
        c = daemon_start(&p, args, started, e);
    else if (!c && e)
        *e = why;
    places_free(&p);
    return c;
}

/* --- reconnecting --- */

/* State needed to reconnect. */
struct keeper {
    const struct cli *cli;
    struct keeping how;
    char *path;     /* owned; of the socket */
    bool is_places; /* the daemon of the places that cli names, wherever the next one listens */
    uid_t uid;      /* the daemon's user */
    /* Arguments to start a daemon however the last one ended; NULL: only if it died. */
    const struct daemon_args *args;
};

static void
keeper_free(void *arg)
{
    struct keeper *k = arg;

    free(k->path);
    free(k);
}

static bool
is_of_places(const struct cli *cli, const char *path)
{
    struct places p;

    if (places_find(cli->dir, &p, NULL) < 0)
        return false;
    auto_free char *live = places_live_socket(&p);
    bool is = strcmp(path, live) == 0 || strcmp(path, p.socket) == 0;
    places_free(&p);
    return is;
}

static struct keeper *
keeper_new(const struct cli *cli, const struct client *c, const struct keeping *how)
{
    struct keeper *k = xcalloc(1, sizeof *k);

    *k = (struct keeper){.cli = cli, .path = xstrdup(client_path(c))};
    k->is_places = !cli->socket && is_of_places(cli, k->path);
    if (how)
        k->how = *how;
    if (connect_peer_uid(c, &k->uid) == 0)
        return k;
    keeper_free(k);
    return NULL;
}

/* Checks the user again: another user who creates a socket at this path must not get the
 * requests meant for the daemon. */
static struct client *
connect_same(const struct keeper *k, const struct places *p, struct err *e)
{
    auto_free char *live = k->is_places ? places_live_socket(p) : NULL;
    const char *path = live ? live : k->path;
    struct client *c = connect_at(path, e);
    uid_t uid;

    if (!c || (connect_peer_uid(c, &uid) == 0 && uid == k->uid))
        return c;
    client_free(c);
    err_set(e, ERR_PERMISSION, "%s belongs to another user now", path);
    return NULL;
}

/* *over: do not retry; e says why. */
static struct client *
connect_or_revive(const struct keeper *k, const struct places *p, bool *over, struct err *e)
{
    struct client *c = connect_same(k, p, e);

    *over = !c && e->code != ERR_UNREACHABLE;
    if (c || *over || !k->is_places || !is_ours_to_start(k->cli, p))
        return c;
    if (last_end(p) == END_DIED)
        c = revive_daemon(p, k->how.quiet, e);
    else if (k->args && last_end(p) == END_IN_ORDER)
        c = daemon_start(p, k->args, NULL, e);
    else
        return NULL;
    *over = !c; /* it printed an error, or died during its start */
    return c;
}

static struct client *
await_daemon(const struct keeper *k, const struct places *p, struct err *e)
{
    int64_t now_us = clock_boot_us(), say_us = now_us + SAY_AFTER_MS * 1000LL;
    int64_t until_us = k->how.until_us ? k->how.until_us : now_us + AGAIN_MS * 1000LL;
    int pause_ms = PAUSE_MIN_MS;
    bool over = false;
    struct client *c;

    while (!(c = connect_or_revive(k, p, &over, e)) && !over && now_us < until_us) {
        if (now_us >= say_us && !k->how.quiet)
            cli_say("the daemon has exited; waiting up to %d s for it to return",
                    (int)((until_us - now_us) / 1000000) + 1);
        if (now_us >= say_us)
            say_us = INT64_MAX;
        over = poll(NULL, 0, pause_ms) < 0; /* interrupted by a signal */
        pause_ms = pause_ms * 2 < PAUSE_MAX_MS ? pause_ms * 2 : PAUSE_MAX_MS;
        now_us = clock_boot_us();
    }
    if (!c && !over)
        err_prefix(e, "the daemon has exited and has not returned");
    if (c && say_us == INT64_MAX && !k->how.quiet)
        cli_say("the daemon has returned");
    return c;
}

static struct client *
keeper_connect(const struct keeper *k, struct err *e)
{
    struct err why = {0};
    struct places p;
    struct client *c;

    if (places_find(k->cli->dir, &p, e) < 0)
        return NULL;
    c = await_daemon(k, &p, &why);
    places_free(&p);
    if (!c && e)
        *e = why;
    return c;
}

static int
connect_again(void *ctx, struct err *e)
{
    struct client *c = keeper_connect(ctx, e);
    int fd;

    if (!c)
        return -1;
    fd = fcntl(client_fd(c), F_DUPFD_CLOEXEC, 3);
    client_free(c);
    return fd < 0 ? err_errno(e, ERR_FAILED, errno, "cannot keep a connection") : fd;
}

void
connect_keep(const struct cli *cli, struct client *c, const struct keeping *how)
{
    struct keeper *k = keeper_new(cli, c, how);

    if (k)
        client_keep(c, connect_again, keeper_free, k);
}

struct client *
connect_kept(const struct cli *cli, struct err *e)
{
    struct client *c = connect_daemon(cli, e);

    if (c)
        connect_keep(cli, c, NULL);
    return c;
}

struct client *
connect_back(const struct cli *cli, const struct daemon_args *args, struct client *c,
             struct err *e)
{
    struct keeper *k = keeper_new(cli, c, NULL);
    struct client *next = NULL;

    client_free(c);
    if (!k) {
        err_set(e, ERR_UNREACHABLE, "the daemon has exited");
        return NULL;
    }
    k->args = args;
    next = keeper_connect(k, e);
    keeper_free(k);
    return next;
}
