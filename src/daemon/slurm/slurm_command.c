/* Child processes of the engine: see slurm_command.h. Success is determined from the output,
 * because the kernel reaps the daemon's children and their exit codes are lost. Called by
 * slurm_calls.c. */
#include "daemon/slurm/slurm_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "slurm/slurm_answers.h"
#include "sys/spawn.h"

#define READ_SIZE     16384
#define OUT_MAX_BYTES ((size_t)256 << 20)

struct slurm_command {
    uv_pipe_t pipes[2]; /* standard output, standard error */
    uv_timer_t deadline;
    struct buf texts[2];
    int n_open;    /* handles not closed yet */
    int n_reading; /* pipes not at end of file yet */
    pid_t pid;     /* leader of a session of its own */
    int pidfd;
    bool late;
    slurm_done_fn done; /* NULL: abandoned */
    void *arg;
};

/* --- the process --- */

static void
on_closed(uv_handle_t *handle)
{
    struct slurm_command *c = handle->data;
    if (--c->n_open > 0)
        return;
    buf_free(&c->texts[0]);
    buf_free(&c->texts[1]);
    free(c);
}

static void
finish(struct slurm_command *c)
{
    slurm_done_fn done = TAKE(c->done);
    if (c->pidfd >= 0)
        close(TAKE_FD(c->pidfd));
    if (done)
        done(c->arg, &c->texts[0], &c->texts[1], c->late);
    uv_close((uv_handle_t *)&c->deadline, on_closed);
}

static void
on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct slurm_command *c = handle->data;
    struct buf *text = &c->texts[handle == (uv_handle_t *)&c->pipes[1]];
    buf_reserve(text, READ_SIZE);
    *out = uv_buf_init(text->data + text->len, READ_SIZE);
}

/* Kills the command and its descendants without waiting for the pipes to close: a site's
 * commands may be scripts whose children hold them open. */
static void
cut_off(struct slurm_command *c)
{
    if (c->pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
    (void)kill(-c->pid, SIGKILL);
    for (int i = 0; i < 2; i++)
        if (!uv_is_closing((uv_handle_t *)&c->pipes[i]))
            uv_close((uv_handle_t *)&c->pipes[i], on_closed);
    if (c->n_reading > 0) {
        c->n_reading = 0;
        finish(c);
    }
}

static void
on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
    (void)b;
    struct slurm_command *c = stream->data;
    struct buf *text = &c->texts[stream == (uv_stream_t *)&c->pipes[1]];
    if (n >= 0) {
        text->len += (size_t)n;
        text->data[text->len] = '\0';
        if (text->len > OUT_MAX_BYTES) {
            c->late = true;
            cut_off(c);
        }
        return;
    }
    uv_close((uv_handle_t *)stream, on_closed);
    if (--c->n_reading == 0)
        finish(c);
}

static void
on_deadline(uv_timer_t *timer)
{
    struct slurm_command *c = timer->data;
    c->late = true;
    cut_off(c);
}

/* The variables that the programs, and through sbatch the job, need; all others are dropped
 * because a variable may be an option for sbatch, and the command gets its own environment.
 * Queries get times as numbers; sbatch passes its environment on to the job. */
static char **
clean_env(bool sends)
{
    static const char *const kept[] = {"PATH=",
                                       "HOME=",
                                       "USER=",
                                       "LOGNAME=",
                                       "LANG=",
                                       "LC_ALL=",
                                       "SLURM_CONF=",
                                       "LD_LIBRARY_PATH=",
                                       "BERTH_SLURM_HASTE="};
    size_t n = 0;
    static char times[] = SLURM_TIMES;
    char **out = xcalloc(sizeof kept / sizeof kept[0] + 2, sizeof *out);
    for (char **e = environ; *e; e++)
        for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
            if (strncmp(*e, kept[i], strlen(kept[i])) == 0 && n < sizeof kept / sizeof kept[0])
                out[n++] = *e;
    if (!sends)
        out[n] = times;
    return out;
}

static int
open_input(const struct buf *input)
{
    if (!input)
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    return file_in_memory("script", input->data, input->len);
}

static pid_t
spawn(char *const *argv, bool sends, int input, const int theirs[2], struct err *e)
{
    auto_free char **env = clean_env(sends);
    enum spawn_stage stage = SPAWN_OK;
    struct spawn s = SPAWN_INIT;
    int errnum = 0;
    s.argv = argv;
    s.envp = env;
    s.fds[0] = input;
    s.fds[1] = theirs[0];
    s.fds[2] = theirs[1];
    s.n_fds = 3;
    s.new_session = true;
    s.death_signal = SIGKILL;
    pid_t pid = spawn_process(&s, &errnum, &stage);
    if (pid < 0)
        return err_errno(e, ERR_FAILED, errnum, "cannot start %s", argv[0]);
    return pid;
}

static void
read_from(uv_loop_t *loop, struct slurm_command *c, int i, int fd)
{
    uv_pipe_init(loop, &c->pipes[i], 0);
    c->pipes[i].data = c;
    uv_pipe_open(&c->pipes[i], fd);
    uv_read_start((uv_stream_t *)&c->pipes[i], on_alloc, on_read);
}

int
slurm_start(uv_loop_t *loop, char *const *argv, const struct buf *input, int deadline_ms,
            slurm_done_fn done, void *arg, struct slurm_command **out, struct err *e)
{
    int first[2], second[2];
    auto_close int in = open_input(input);
    if (in < 0 || pipe2(first, O_CLOEXEC) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot start %s", argv[0]);
    auto_close int out_fd = first[0];
    auto_close int out_theirs = first[1];
    if (pipe2(second, O_CLOEXEC) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot start %s", argv[0]);
    auto_close int err_fd = second[0];
    auto_close int err_theirs = second[1];
    const int theirs[2] = {out_theirs, err_theirs};
    pid_t pid = spawn(argv, input != NULL, in, theirs, e);
    if (pid < 0)
        return -1;
    struct slurm_command *c = xcalloc(1, sizeof *c);
    *c = (struct slurm_command){.n_open = 3,
                                .n_reading = 2,
                                .pid = pid,
                                .pidfd = (int)syscall(SYS_pidfd_open, pid, 0),
                                .done = done,
                                .arg = arg};
    read_from(loop, c, 0, TAKE_FD(out_fd));
    read_from(loop, c, 1, TAKE_FD(err_fd));
    uv_timer_init(loop, &c->deadline);
    c->deadline.data = c;
    uv_timer_start(&c->deadline, on_deadline, (uint64_t)deadline_ms, 0);
    *out = c;
    return 0;
}

void
slurm_abandon(struct slurm_command *c)
{
    if (!c)
        return;
    c->done = NULL;
    cut_off(c);
}
