/* A probe process and the socket pair to it: see prober_talk.h. Called by prober.c, which
 * knows what the lines mean. The memory outlives talk_end until uv has closed the pipe. */
#include "daemon/gpu/prober_talk.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uv.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "daemon/common/instance.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/machine_cards.h"
#include "sys/spawn.h"
#include "wire/frame.h"
#include "wire/places.h"

#define READ_SIZE 16384

struct talk {
    uv_pipe_t pipe; /* questions out, answers in */
    const struct talk_events *events;
    void *arg;
    int pidfd; /* so that no other process is ever killed; -1: none */
    bool over;
    struct frame in;
};

static void
on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct talk *t = handle->data;
    char *room = frame_room(&t->in, READ_SIZE);
    *out = uv_buf_init(room, room ? READ_SIZE : 0);
}

static void
on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
    (void)b;
    struct talk *t = stream->data;
    if (n < 0) {
        t->events->on_end(t->arg, t);
        return;
    }
    frame_filled(&t->in, (size_t)n);
    size_t at = 0, len = 0;
    const char *line;
    while (!t->over && (line = frame_next(&t->in, &at, &len)))
        t->events->on_line(t->arg, t, line, len);
    frame_done(&t->in, at);
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
    frame_init(&t->in, FRAME_MAX_PEER);
    uv_pipe_init(cards->inst->loop, &t->pipe, 0);
    t->pipe.data = t;
    uv_pipe_open(&t->pipe, TAKE_FD(ours));
    uv_read_start((uv_stream_t *)&t->pipe, on_alloc, on_read);
    return t;
}

static void
on_closed(uv_handle_t *handle)
{
    struct talk *t = handle->data;
    frame_free(&t->in);
    free(t);
}

int
talk_end(struct talk *t)
{
    if (!t)
        return -1;
    t->over = true;
    uv_close((uv_handle_t *)&t->pipe, on_closed);
    if (t->pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, t->pidfd, SIGKILL, NULL, 0);
    return TAKE_FD(t->pidfd);
}

void
talk_say(struct talk *t, const char *line, size_t n)
{
    uv_buf_t b = uv_buf_init((char *)(uintptr_t)line, (unsigned)n);
    (void)uv_try_write((uv_stream_t *)&t->pipe, &b, 1);
}
