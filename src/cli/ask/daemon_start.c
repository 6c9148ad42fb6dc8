/* Starts a daemon, see daemon_start.h. The daemon detaches at once: its own session, no
 * descriptors of ours, root as its folder. It writes "ready" (or an error) to a pipe once its
 * socket listens, so no client polls. If two clients start a daemon at the same moment, the
 * daemon that finds the lock taken reports this and exits; its client then waits for the other
 * daemon's socket, or for an exiting daemon to release the lock. Called by connect.c. */
#include "cli/ask/daemon_start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/libc.h"
#include "cli/ask/daemon_socket.h"
#include "wire/places.h"

#define READY_FD     3
#define READY_MS     30000 /* opening a database after a crash can be slow */
#define RACE_MS      30000 /* the winner of a race must be up within this time */
#define STARTS_MAX   5
#define RACE_STEP_MS 20
#define SETTINGS_MAX 16

static void
build_argv(const struct places *p, const struct daemon_args *args, const char *config,
           const char *program, const char **out)
{
    int n = 0;

    out[n++] = program;
    if (p->root) {
        out[n++] = "--dir";
        out[n++] = p->root;
    }
    if (p->system)
        out[n++] = "--system";
    if (args && args->sim) {
        out[n++] = "--sim";
        out[n++] = args->sim;
    }
    if (config) {
        out[n++] = "--config";
        out[n++] = config;
    }
    if (args && args->stay)
        out[n++] = "--stay";
    if (args && args->need_gpus)
        out[n++] = "--need-gpus";
    for (size_t i = 0; args && args->settings && args->settings[i] && i < SETTINGS_MAX; i++) {
        out[n++] = "--set";
        out[n++] = args->settings[i];
    }
    out[n++] = "--ready-fd";
    out[n++] = "3";
    out[n] = NULL;
}

/* In the child: closes all descriptors except the pipe, which becomes descriptor 3. */
_Noreturn static void
exec_daemon(int ready, const char *const *argv)
{
    sigset_t none;
    int null;

    setsid();
    if (chdir("/") < 0)
        _exit(126);
    null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
        _exit(126);
    if (ready == READY_FD)
        fcntl(ready, F_SETFD, 0);
    else if (dup2(ready, READY_FD) < 0)
        _exit(126);
    libc_close_from(READY_FD + 1);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    execv(argv[0], (char *const *)argv);
    dprintf(READY_FD, "cannot execute %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* Forks twice, so that the daemon never becomes our zombie. Returns the read end of the
 * pipe. */
static int
spawn_daemon(const char *const *argv, struct err *e)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make a pipe");
    pid = fork();
    if (pid < 0) {
        err_errno(e, ERR_FAILED, errno, "cannot start the daemon");
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    if (pid == 0) {
        if (fork() != 0)
            _exit(0);
        exec_daemon(ends[1], argv);
    }
    close(ends[1]);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return ends[0];
}

/* Reads the daemon's one line; empty if it died without a message. Unless the line is "ready",
 * also waits for the daemon to exit: until then it may hold the very lock it complains
 * about. */
static int
read_ready(int fd, struct buf *line, struct err *e)
{
    int64_t until = clock_boot_us() + READY_MS * 1000LL;

    while (strcmp(buf_str(line), "ready\n") != 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left_ms = (until - clock_boot_us()) / 1000;
        char chunk[512];
        ssize_t n;

        if (left_ms <= 0)
            return err_set(e, ERR_UNREACHABLE,
                           "the daemon was started but is not ready after %d s",
                           READY_MS / 1000);
        if (poll(&p, 1, (int)left_ms) <= 0)
            continue;
        n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        buf_add(line, chunk, (size_t)n);
    }
    while (line->len > 0 && line->data[line->len - 1] == '\n')
        line->data[--line->len] = '\0';
    return 0;
}

/* Another process holds the lock: a starting daemon, whose socket will be there soon, or an
 * exiting one, which will release the lock soon (then *gone). */
static struct client *
await_holder(const struct places *p, const char *lock, bool *gone, struct err *e)
{
    int64_t until = clock_boot_us() + RACE_MS * 1000LL;

    for (;;) {
        bool held = file_is_locked_at(AT_FDCWD, lock, NULL) > 0;
        struct client *c = connect_place(p, e);

        if (c || clock_boot_us() > until)
            return c;
        if (!held) {
            *gone = true;
            err_set(e, ERR_UNREACHABLE,
                    "several daemons started at %s and exited; none answered", p->socket);
            return NULL;
        }
        poll(NULL, 0, RACE_STEP_MS);
    }
}

/* Handles the three outcomes: the daemon is up, it lost a race, or it reported an error. */
static struct client *
settle_start(const struct places *p, const char *line, bool *started, bool *again,
             struct err *e)
{
    auto_free char *lock = xasprintf("%s/lock", p->state);

    if (strcmp(line, "ready") == 0) {
        if (started)
            *started = true;
        return connect_place(p, e);
    }
    if (file_is_locked_at(AT_FDCWD, lock, NULL) > 0) {
        struct client *c = await_holder(p, lock, again, e);

        if (c)
            return c;
    }
    if (line[0])
        err_set(e, ERR_UNREACHABLE, "the daemon did not start: %s", line);
    else
        err_set(e, ERR_UNREACHABLE, "the daemon died during its start; its log is %s", p->log);
    return NULL;
}

/* Makes the path of --config absolute, as the daemon runs in the root folder. NULL: none. */
static int
absolute_config(const struct daemon_args *args, char **out, struct err *e)
{
    auto_free char *here = NULL;

    *out = NULL;
    if (!args || !args->config)
        return 0;
    if (args->config[0] == '/') {
        *out = xstrdup(args->config);
        return 0;
    }
    here = getcwd(NULL, 0);
    if (!here)
        return err_errno(e, ERR_USAGE, errno, "--config %s: cannot find out the current folder",
                         args->config);
    *out = xasprintf("%s/%s", here, args->config);
    return 0;
}

/* *again: the daemon that held the lock has exited, so try again. */
static struct client *
start_daemon(const struct places *p, const struct daemon_args *args, bool *started, bool *again,
             struct err *e)
{
    auto_free char *program = places_program("berthd", e);
    auto_free char *config = NULL;
    auto_buf struct buf line = BUF_INIT;
    const char *argv[16 + 2 * SETTINGS_MAX];
    auto_close int ready = -1;

    *again = false;
    if (!program || absolute_config(args, &config, e) < 0)
        return NULL;
    build_argv(p, args, config, program, argv);
    ready = spawn_daemon(argv, e);
    if (ready < 0 || read_ready(ready, &line, e) < 0)
        return NULL;
    return settle_start(p, buf_str(&line), started, again, e);
}

/* Retries a refusal once, as it may be due to a daemon that has exited since. */
struct client *
daemon_start(const struct places *p, const struct daemon_args *args, bool *started,
             struct err *e)
{
    for (int i = 0, refusals = 0; i < STARTS_MAX && refusals < 2; i++) {
        bool again;
        struct client *c = start_daemon(p, args, started, &again, e);

        if (!c)
            c = connect_place(p, NULL);
        if (c)
            return c;
        refusals += !again;
    }
    return NULL;
}
