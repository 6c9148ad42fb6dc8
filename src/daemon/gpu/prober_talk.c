/* A probe process and the socket pair to it: see prober_talk.h. Called by prober.c, which
 * interprets the lines. */
#include "daemon/gpu/prober_talk.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "daemon/common/instance.h"
#include "daemon/common/peer_lines.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/machine_cards.h"
#include "sys/spawn.h"
#include "wire/places.h"

struct talk {
    struct peer_lines *lines; /* requests out, answers in */
    const struct talk_events *events;
    void *arg;
    int pidfd; /* so that no other process is ever killed; -1: unavailable */
};

static void
on_line(void *arg, const char *line, size_t len)
{
    struct talk *t = arg;
    if (line)
        t->events->on_line(t->arg, t, line, len);
    else
        t->events->on_end(t->arg, t);
}

static int
spawn(struct cards *cards, char *sim_spec, int theirs, struct err *e)
{
    auto_free char *program = places_program("berth-probe", e);
    if (!program)
        return -1;
    char after[32];
    snprintf(after, sizeof after, "%lld", (long long)health_log_position(cards));
    char *real[] = {program, "--log-after", after, "--backend", "auto", NULL};
    char *sim[] = {
        program,     "--log-after",           after, "--backend", "sim", "--sim", sim_spec,
        "--sim-dir", cards->inst->places.sim, NULL};
    struct spawn s = SPAWN_INIT;
    s.argv = sim_spec ? sim : real;
    s.envp = environ;
    s.fds[0] = s.fds[1] = theirs;
    s.fds[2] = STDERR_FILENO;
    s.n_fds = 3;
    s.new_session = true;
    s.death_signal = SIGKILL;
    int errnum = 0;
    enum spawn_stage stage = SPAWN_OK;
    pid_t pid = spawn_process(&s, &errnum, &stage);
    if (pid < 0)
        return err_errno(e, ERR_FAILED, errnum, "cannot start %s", program);
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

struct talk *
talk_start(struct cards *cards, char *sim_spec, const struct talk_events *events, void *arg,
           struct err *e)
{
    int pair[2];
    e->code = ERR_NONE;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
        err_errno(e, ERR_FAILED, errno, "cannot make a socket pair");
        return NULL;
    }
    auto_close int theirs = pair[1];
    auto_close int ours = pair[0];
    int pidfd = spawn(cards, sim_spec, theirs, e);
    if (pidfd < 0 && e->code)
        return NULL;
    struct talk *t = xcalloc(1, sizeof *t);
    t->events = events;
    t->arg = arg;
    t->pidfd = pidfd;
    t->lines = peer_lines_open(cards->inst->loop, TAKE_FD(ours), on_line, t, e);
    if (!t->lines) {
        int killed = talk_end(TAKE(t));
        if (killed >= 0)
            close(killed);
    }
    return t;
}

int
talk_end(struct talk *t)
{
    if (!t)
        return -1;
    int pidfd = t->pidfd;
    peer_lines_close(t->lines);
    if (pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    free(t);
    return pidfd;
}

void
talk_say(struct talk *t, const char *line, size_t n)
{
    (void)peer_lines_say(t->lines, line, n);
}
