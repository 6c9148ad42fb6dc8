/* A job's screen session: see screen.h. command.c starts it before the command, as the job's
 * user and in its cgroup. The command is not screen's child: as with --pty, it has a terminal
 * of the supervisor's, and the session's window is one client of that (window.c). So its
 * status is waitpid's, the log is complete, and nothing waits for a terminal that a user
 * scrolls in; killing the session does not end the job. stop.c reports that the session was
 * closed. */
#include "shepherd/begin/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "shepherd/begin/blame.h"
#include "shepherd/begin/child_setup.h"
#include "shepherd/begin/command.h"
#include "shepherd/begin/window.h"
#include "shepherd/common/attempt_spec.h"
#include "sys/procs.h"
#include "sys/self.h"
#include "sys/spawn.h"

#define PATIENCE_MS 15000
#define SLICE_MS    50 /* polling interval without pidfds */
#define STOP_MS     2000
#define N_OURS      3
#define WORDS_MAX   512

char **
screen_env(char *const *env, pid_t pid, const char *name)
{
    static const char *const theirs[] = {"STY=", "TERM=", "WINDOW=", "TERMCAP=", NULL};
    size_t n = text_list_len(env), at = 0;
    char **out = xcalloc(N_OURS + n + 1, sizeof *out);
    out[at++] = xasprintf("STY=%d.%s", (int)pid, name);
    out[at++] = xasprintf("TERM=screen");
    out[at++] = xasprintf("WINDOW=0");
    for (size_t i = 0; i < n; i++)
        if (!text_begins_with(env[i], theirs))
            out[at++] = env[i];
    return out;
}

void
screen_env_free(char **env)
{
    for (size_t i = 0; env && i < N_OURS; i++)
        free(env[i]);
    free(env);
}

/* In a session of its own screen needs no terminal: -D -m neither forks nor opens one. */
static pid_t
spawn_screen(const struct screen_wish *w, int words_fd, int *errnum, enum spawn_stage *stage)
{
    auto_free char *program = self_sibling("berth-shepherd");
    auto_free char *name = xstrdup(w->spec->screen);
    auto_free char *socket = xstrdup(w->spec->attach);
    auto_close int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char *argv[] = {"screen", "-D", "-m", "-S", name, program, WINDOW_OPTION, socket, NULL};
    struct last_steps last = *w->last;
    last.lock_fd = -1;
    last.pty = false;
    last.death_signal = SIGTERM;
    const struct spawn s = {
        .argv = argv,
        .envp = w->env,
        .path = command_env(w->env, "PATH"),
        .fds = {null_fd, words_fd, words_fd},
        .n_fds = 3,
        .cgroup_fd = w->cgroup_fd,
        .must_join = groups_must_hold(&w->spec->groups),
        .new_session = true,
        .death_signal = last.death_signal,
        .patience_ms = last.identity ? PATIENCE_MS : 0,
        .before_exec = last_steps_take,
        .ctx = &last,
    };
    return spawn_process(&s, errnum, stage);
}

/* Waits until the process ends, the descriptor (-1: none) becomes readable, or the timeout. */
static void
await(pid_t pid, int fd, int64_t ms)
{
    auto_close int pidfd = proc_pidfd(pid);
    int64_t until_us = clock_boot_us() + ms * 1000;
    for (;;) {
        struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
        int64_t left_ms = (until_us - clock_boot_us() + 999) / 1000;
        if (left_ms <= 0)
            return;
        int rc = poll(fds, 2, (int)(pidfd < 0 && left_ms > SLICE_MS ? SLICE_MS : left_ms));
        if (rc > 0 || proc_has_ended(pid))
            return;
    }
}

static bool
is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

/* Its latest output, on one line. */
static void
read_words(int fd, char *out, size_t size)
{
    char words[WORDS_MAX] = "";
    ssize_t n = pread(fd, words, sizeof words - 1, 0);
    words[n > 0 ? n : 0] = '\0';
    char *end = words + strlen(words);
    while (end > words && (unsigned char)end[-1] <= ' ')
        *--end = '\0';
    const char *line = strrchr(words, '\n');
    snprintf(out, size, "%.*s", (int)size - 1, line ? line + 1 : words);
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
}

void
screen_stop(pid_t pid)
{
    kill(pid, SIGTERM);
    await(pid, -1, STOP_MS);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

pid_t
screen_start(const struct screen_wish *w, struct command *out)
{
    enum spawn_stage stage;
    char words[120];
    auto_close int words_fd = memfd_create("screen", MFD_CLOEXEC);
    pid_t pid = spawn_screen(w, words_fd, &out->errnum, &stage);
    if (pid < 0) {
        enum step step = stage == SPAWN_FORK   ? STEP_FORK
                         : stage == SPAWN_JOIN ? STEP_OURS
                                               : STEP_EXEC;
        out->blame = blame_of(w->spec->log_own, step, out->errnum);
        snprintf(out->text, sizeof out->text,
                 "cannot execute 'screen', which --screen needs: %s", strerror(out->errnum));
        return -1;
    }
    await(pid, w->listen_fd, PATIENCE_MS);
    if (is_readable(w->listen_fd))
        return pid;
    bool ended = proc_has_ended(pid);
    screen_stop(pid);
    read_words(words_fd, words, sizeof words);
    out->errnum = ended ? 0 : ETIMEDOUT; /* charged to the command, as far as is known */
    snprintf(out->text, sizeof out->text, "no screen session: %s",
             words[0] ? words
             : ended  ? "screen exited without a message"
                      : "its window did not open within 15 s");
    return -1;
}
