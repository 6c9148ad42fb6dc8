/* An attempt on a cluster's node: see node_attempt.h. This process and the daemon share only
 * the attempt's folder, on a file system that both see. First it creates the file `started`
 * there, which only one of all Slurm jobs can (O_EXCL). Then it forks the usual supervisor,
 * and acts as its daemon until the outcome is known; then it closes the connection, and the
 * supervisor writes its record to disk.
 *
 * The daemon requests an end by the file `stop`, which holds the message for the supervisor.
 * If nothing signals its arrival, the next pulse finds it. If this process is killed, the
 * supervisor ends the command: without pulses the daemon takes the attempt for lost, and may
 * run it again. Called by stand_in.c and allocation.c. */
#include "shepherd/slurm/node_attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/file.h"
#include "base/libc.h"
#include "core/queue/job.h"
#include "shepherd/attempt/attempt.h"
#include "shepherd/attempt/exit_record.h"
#include "shepherd/common/attempt_spec.h"
#include "slurm/haste.h"
#include "sys/exitrec.h"
#include "sys/nursery_packets.h"

#define READ_SIZE      4096
#define STOP_MAX_BYTES 512
#define SIGNALS_PART   4096 /* bytes read at a time */

/* --- its folder --- */

int
node_attempt_open(struct node_attempt *a, int parent, const char *folder, struct err *e)
{
    struct spec spec;
    *a = (struct node_attempt){.dir = -1, .lock = -1, .talk = -1, .status = -1};
    frame_init(&a->in, FRAME_MAX_PEER);
    a->dir = openat(parent, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    a->lock = a->dir < 0 ? -1 : openat(a->dir, "lock", O_RDWR | O_CLOEXEC);
    if (a->lock < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open %s", folder);
    if (spec_read(a->lock, &spec, e) < 0)
        return -1;
    a->job = spec.job;
    a->attempt = spec.attempt;
    a->limit_ms = spec.limit_ms;
    a->grace_ms = spec.grace_ms;
    spec_free(&spec);
    return 0;
}

void
node_attempt_close(struct node_attempt *a)
{
    int *const fds[] = {&a->dir, &a->lock, &a->talk};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (*fds[i] >= 0)
            close(TAKE_FD(*fds[i]));
    frame_free(&a->in);
}

/* Syncs the mark before the command runs, so that it cannot run again after a power loss. */
static void
sync_mark(const struct node_attempt *a)
{
    auto_close int fd = openat(a->dir, "started", O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)fsync(fd);
    (void)fsync(a->dir);
}

static int
write_end(const struct node_attempt *a, enum outcome outcome, int errnum, const char *text,
          struct err *e)
{
    struct exitrec r = {.job = a->job, .attempt = a->attempt, .blame = BLAME_MACHINE};
    r.ending = (struct ending){.outcome = outcome,
                               .code = -1,
                               .errno_value = errnum,
                               .ended_us = clock_wall_us(),
                               .cpu_ms = -1,
                               .max_rss_kib = -1};
    snprintf(r.ending.text, sizeof r.ending.text, "%s", text);
    snprintf(r.boot_id, sizeof r.boot_id, "%s", clock_boot_id());
    return record_write(a->dir, &r, true, e) < 0 || record_sync(a->dir, e) < 0 ? -1 : 0;
}

int
node_attempt_end_unbegun(const struct node_attempt *a, struct err *e)
{
    return write_end(a, OUTCOME_CANCELLED, 0, "cancelled before its command ran", e);
}

int
node_attempt_end_unstarted(const struct node_attempt *a, int errnum, struct err *e)
{
    return write_end(a, OUTCOME_NOT_STARTED, errnum, "the batch script cannot start a process",
                     e);
}

/* The daemon removes a folder starting with its lock; if that is gone, the mark came too late.
 * 1: it exists; 0: it is gone; -1: not known. */
static int
has_lock(int dir)
{
    struct stat st;
    if (fstatat(dir, "lock", &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 1;
    return errno == ENOENT || errno == ESTALE ? 0 : -1;
}

/* The mark is ours but the attempt must not run: without a record it would count as lost. */
static void
take_back_mark(const struct node_attempt *a, int errnum)
{
    struct err ignored = {0};
    if (node_attempt_end_unstarted(a, errnum, &ignored) < 0)
        (void)unlinkat(a->dir, "started", 0);
}

/* Creating the file decides, so an empty mark counts too. */
int
node_attempt_mark(const struct node_attempt *a, const char *more, struct err *e)
{
    char text[512], host[65] = "";
    auto_close int fd =
        openat(a->dir, "started", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST)
        return 1;
    int lock = fd < 0 ? 0 : has_lock(a->dir);
    if (lock <= 0)
        (void)err_errno(e, ERR_FAILED, errno, "cannot make its mark");
    if (lock < 0)
        take_back_mark(a, e->errnum);
    if (lock <= 0)
        return -1;
    (void)gethostname(host, sizeof host - 1);
    int n = snprintf(text, sizeof text, "%lld %s%s%s\n", (long long)clock_wall_us(), host,
                     more[0] ? " " : "", more);
    crash_point("slurm-mark-made");
    (void)file_write_all(fd, text, (size_t)n);
    return 0;
}

/* --- requests from the daemon --- */

/* Reads the stop message, one line; 0: there is none. */
static size_t
read_stop(int dir, char *out, size_t size)
{
    auto_close int fd = openat(dir, "stop", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? 0 : read(fd, out, size);
    return n > 0 && out[n - 1] == '\n' ? (size_t)n : 0;
}

bool
node_attempt_is_stopped(const struct node_attempt *a)
{
    char words[STOP_MAX_BYTES];
    return read_stop(a->dir, words, sizeof words) > 0;
}

static void
say(const struct node_attempt *a, const char *words, size_t n)
{
    if (a->talk >= 0)
        (void)send(a->talk, words, n, MSG_NOSIGNAL);
}

/* Passes on signals, which the daemon appends one per line, from where the last call
 * stopped. */
static bool
pass_on_some_signals(struct node_attempt *a)
{
    char text[SIGNALS_PART];
    auto_close int fd = openat(a->dir, "signals", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof text, a->signals);
    const char *end = n > 0 ? memrchr(text, '\n', (size_t)n) : NULL;
    if (!end)
        return false;
    say(a, text, (size_t)(end + 1 - text));
    a->signals += end + 1 - text;
    return true;
}

static void
pass_on_signals(struct node_attempt *a)
{
    while (pass_on_some_signals(a))
        ;
}

/* Passes on earlier signal requests first; the daemon wrote them before the stop. */
bool
node_attempt_pass_on_stop(struct node_attempt *a)
{
    char words[STOP_MAX_BYTES];
    size_t n = read_stop(a->dir, words, sizeof words);
    if (n == 0)
        return false;
    pass_on_signals(a);
    say(a, words, n);
    return true;
}

void
node_attempt_requeue(const struct node_attempt *a, const char *by)
{
    auto_buf struct buf text = BUF_INIT;
    nursery_add_cancel(&text, "requeue", by, a->grace_ms);
    say(a, buf_str(&text), text.len);
}

/* --- the supervisor --- */

/* If the batch script dies without ending it, the supervisor ends its command as at a machine
 * shutdown, because no more signs of life would be sent. */
_Noreturn static void
be_the_supervisor(const struct node_attempt *a, int talk, char *const *vars, pid_t parent)
{
    sigset_t all;
    int high[3] = {fcntl(talk, F_DUPFD_CLOEXEC, 16), fcntl(a->lock, F_DUPFD_CLOEXEC, 16),
                   fcntl(a->dir, F_DUPFD_CLOEXEC, 16)};
    sync_mark(a);
    for (int i = 0; i < 3; i++)
        if (high[i] < 0 || dup3(high[i], FD_CTL + i, O_CLOEXEC) < 0)
            _exit(1);
    libc_close_from(FD_FOLDER + 1); /* our own end of the connection, and others' */
    for (; vars && *vars; vars++)
        (void)putenv(*vars);
    sigfillset(&all); /* blocked until it takes them from a descriptor */
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (prctl(PR_SET_PDEATHSIG, NURSERY_UNIT_STOPS) < 0 || getppid() != parent)
        _exit(1);
    (void)setsid();
    _exit(attempt_run(false, NULL));
}

int
node_attempt_start(struct node_attempt *a, char *const *vars, struct measure *m, struct err *e)
{
    int pair[2];
    pid_t self = getpid();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make a socket");
    auto_close int theirs = pair[1];
    auto_close int ours = pair[0];
    a->supervisor = fork();
    if (a->supervisor == 0)
        be_the_supervisor(a, theirs, vars, self);
    if (a->supervisor < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot start a process");
    a->talk = TAKE_FD(ours);
    a->pulse_us = clock_boot_us() + slurm_haste(NODE_PULSE_MS) * 1000;
    measure_add(m, &a->seen, a->supervisor);
    return 0;
}

void
node_attempt_left(const struct node_attempt *a, int wait_status)
{
    struct exitrec r;
    struct err e = {0};
    int32_t pid;
    /* Not after a killed supervisor: a process that it forked may be about to begin. */
    int began = WIFEXITED(wait_status) ? exitrec_started_at(a->dir, &pid, NULL, &e) : -1;
    int ended = began ? -1 : exitrec_read_at(a->dir, a->job, a->attempt, &r, &e);
    if (began || ended)
        return;
    (void)write_end(a, OUTCOME_NOT_STARTED, 0, "its supervisor could not begin", &e);
}

static void
hang_up(struct node_attempt *a)
{
    if (a->talk >= 0)
        close(TAKE_FD(a->talk));
}

/* A command that was never executed counts as 1, as does an unknown status. */
static int
status_of(const struct ending *e)
{
    return e->outcome == OUTCOME_TIMEOUT ? 124
           : e->signal > 0               ? 128 + e->signal
           : e->code >= 0                ? e->code
                                         : 1;
}

/* Writes a sign of life, for when Slurm no longer knows the job: a growing number, and the
 * peak VRAM seen. */
static void
say_alive(struct node_attempt *a)
{
    char text[40];
    int n =
        snprintf(text, sizeof text, "%" PRId64 " %" PRId32 "\n", ++a->pulse, a->seen.peak_mib);
    auto_close int fd =
        openat(a->dir, "pulse", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0)
        (void)file_write_all_at(fd, text, (size_t)n, 0);
}

static void
hear(struct node_attempt *a, const char *line, size_t len)
{
    static const char ended[] = "{\"event\":\"ended\"";
    struct exitrec r;
    struct err e;
    if (len < sizeof ended - 1 || strncmp(line, ended, sizeof ended - 1) != 0)
        return;
    if (exitrec_decode(line, len, &r, &e) == 0)
        a->status = status_of(&r.ending);
    say_alive(a); /* with the final peak, before there is a record */
    crash_point("slurm-before-record");
    hang_up(a);
}

void
node_attempt_read(struct node_attempt *a)
{
    size_t at = 0, len = 0;
    const char *line;
    char *room = frame_room(&a->in, READ_SIZE);
    ssize_t n = room ? read(a->talk, room, READ_SIZE) : -1;
    if (n <= 0) {
        hang_up(a);
        return;
    }
    frame_filled(&a->in, (size_t)n);
    while (a->talk >= 0 && (line = frame_next(&a->in, &at, &len)))
        hear(a, line, len);
    frame_done(&a->in, at);
}

void
node_attempt_pulse(struct node_attempt *a, int64_t now_us)
{
    if (now_us < a->pulse_us)
        return;
    say_alive(a);
    (void)node_attempt_pass_on_stop(a); /* Slurm may have forgotten this job */
    pass_on_signals(a);
    a->pulse_us = now_us + slurm_haste(NODE_PULSE_MS) * 1000;
}
