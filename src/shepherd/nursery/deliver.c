/* One delivery, start to end: see deliver.h. Runs the program of hook_command.c as the job's
 * user, or as the account of the settings' hooks, in its own session, within the configured
 * time; appends its output to that user's log; ends everything it started; and reports to the
 * daemon. If the daemon has exited meanwhile, the delivery still completes, and the next
 * daemon, which cannot know, repeats it. */
#include "shepherd/nursery/deliver.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/file.h"
#include "base/jsonw.h"
#include "base/text.h"
#include "shepherd/attempt/attempt.h"
#include "shepherd/attempt/kill.h"
#include "shepherd/begin/blame.h"
#include "shepherd/begin/child_setup.h"
#include "shepherd/begin/command.h"
#include "shepherd/begin/identity.h"
#include "shepherd/begin/login_env.h"
#include "shepherd/common/attempt_spec.h"
#include "shepherd/common/groups.h"
#include "shepherd/nursery/hook_command.h"
#include "sys/procs.h"
#include "sys/rlimits.h"
#include "sys/spawn.h"

#define OUTPUT_MAX    (64 * 1024) /* output of one delivery kept in the log */
#define LOG_MAX       (1 << 20)   /* then rotated to hooks.log.1 */
#define LAST_LINE_MAX 300
#define GRACE_MS      2000 /* between TERM and KILL */
#define TIMED_OUT     124
#define KILLS_MAX     3 /* a driver can hold a process where KILL does not reach it */
#define SLICE_MAX_MS  60000
#define SLICE_MS      50 /* polling interval without pidfds */
#define PAUSE_NS      2000000
#define KILL_PASSES   2000

struct delivery {
    struct order order;
    struct order_run run;
    struct identity identity;
    struct groups groups;
    char **account_env; /* owned (login_env.h); NULL: use the order's */
    int log_fd;
    struct rlimits rlimits;
    bool has_rlimits;
    struct buf output;
    bool cut; /* output was truncated */
    int64_t began_us;
    int status; /* exit status as in a shell */
    char text[LAST_LINE_MAX + 1];
};

/* --- account and folder --- */

/* Rotates a large log by name, in a folder that only its owner can write to. */
static void
rotate_log(const char *path)
{
    struct stat st;
    auto_free char *old = xasprintf("%s.1", path);

    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > LOG_MAX)
        (void)rename(path, old);
}

/* Writes only to regular files: a FIFO without a reader would block this delivery forever, and
 * its slot among all users' deliveries. */
static void
keep_regular_log(struct delivery *d)
{
    struct stat st;
    if (d->log_fd >= 0 && (fstat(d->log_fd, &st) < 0 || !S_ISREG(st.st_mode)))
        close(TAKE_FD(d->log_fd));
}

static int
refused(const struct command *out, struct err *e)
{
    err_set(e, ERR_FAILED, "%s", out->text);
    e->errnum = out->errnum;
    return -1;
}

/* A missing working folder is no reason not to deliver. */
static int
become_ready_as(struct delivery *d, struct err *e)
{
    struct spec spec = {.uid = d->order.uid,
                        .user = d->order.user,
                        .cwd = d->order.cwd,
                        .umask = (mode_t)d->order.umask,
                        .log = d->order.log,
                        .log_mkdir = d->order.log_mkdir,
                        .pam = d->order.pam,
                        .locked_runs = d->order.locked_runs,
                        .drop_caps = d->order.drop_caps,
                        .no_new_privs = d->order.no_new_privs};
    struct command out = COMMAND_INIT;
    int rc = identity_open(&spec, &d->identity, &out);

    if (rc < 0 && out.errnum != ETIMEDOUT) {
        identity_free(&d->identity);
        out = COMMAND_INIT;
        spec.cwd = "/";
        rc = identity_open(&spec, &d->identity, &out);
    }
    d->log_fd = out.log_fd;
    keep_regular_log(d);
    if (rc < 0)
        return refused(&out, e);
    return identity_bound(&d->identity, &d->rlimits, &d->has_rlimits, e);
}

/* Uses the account of the settings' hooks; the log stays root's. */
static int
become_ready_for_site(struct delivery *d, struct err *e)
{
    struct command out = COMMAND_INIT;

    if (identity_open_account(d->order.account, d->order.cwd, &d->identity, &out) < 0)
        return refused(&out, e);
    d->account_env = login_env(&d->identity, d->order.env);
    return 0;
}

/* True if it runs as another user than this process. */
static bool
has_identity(const struct delivery *d)
{
    return d->order.uid >= 0 || d->order.account;
}

static int
become_ready(struct delivery *d, struct err *e)
{
    const struct order *o = &d->order;

    rotate_log(o->log);
    if (o->rlimits) {
        d->has_rlimits = rlimits_parse(o->rlimits, &d->rlimits, e) == 0;
        if (!d->has_rlimits)
            return -1;
    }
    umask((mode_t)o->umask);
    if (o->uid >= 0)
        return become_ready_as(d, e);
    if (o->account && become_ready_for_site(d, e) < 0)
        return -1;
    if (chdir(o->cwd) < 0 && chdir("/") < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot enter /");
    d->log_fd = open(
        o->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK,
        0600);
    if (d->log_fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open %s", o->log);
    keep_regular_log(d);
    return 0;
}

/* --- the program --- */

/* Starts the program and returns its pid; *output is the read end of its output. */
static pid_t
start(struct delivery *d, int *output, struct err *e)
{
    auto_close int input =
        file_in_memory("berth-hook", buf_str(&d->run.input), d->run.input.len);
    auto_close int extra =
        file_in_memory("berth-hook", buf_str(&d->run.extra), d->run.extra.len);
    int ends[2], errnum = 0;
    enum spawn_stage stage;
    pid_t pid;
    struct last_steps last = {.identity = has_identity(d) ? &d->identity : NULL,
                              .rlimits = d->has_rlimits ? &d->rlimits : NULL,
                              .v1_fds = d->groups.v1_fds,
                              .lock_fd = -1,
                              .death_signal = SIGKILL};

    if (input < 0 || extra < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make a pipe");
    auto_close int theirs = ends[1];
    *output = ends[0];
    struct spawn s = SPAWN_INIT;
    s.argv = (char *const *)d->run.argv;
    s.envp = d->account_env ? d->account_env : d->order.env;
    s.fds[0] = input;
    s.fds[1] = s.fds[2] = theirs;
    s.fds[ORDER_EXTRA_FD] = extra;
    s.n_fds = d->run.extra.len ? ORDER_EXTRA_FD + 1 : ORDER_EXTRA_FD;
    s.new_session = true;
    s.cgroup_fd = d->groups.fd;
    s.must_join = groups_must_hold(&d->order.groups);
    s.death_signal = last.death_signal;
    s.patience_ms = last.identity ? 30000 : 0;
    s.before_exec = last_steps_take;
    s.ctx = &last;
    crash_point("hook-before-start");
    pid = spawn_process(&s, &errnum, &stage);
    return pid > 0 ? pid
                   : err_errno(e, ERR_FAILED, errnum, "cannot execute %s", d->run.argv[0]);
}

/* Reads what is available; false at end of file. */
static bool
take_output(struct delivery *d, int fd)
{
    char chunk[8192];
    ssize_t n = read(fd, chunk, sizeof chunk);

    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    size_t room = OUTPUT_MAX - d->output.len;
    buf_add(&d->output, chunk, (size_t)n < room ? (size_t)n : room);
    d->cut |= (size_t)n > room;
    return n > 0;
}

/* Reads what is left in the pipe once nothing more will be written. */
static bool
take_rest(struct delivery *d, int fd)
{
    size_t had = d->output.len;

    return take_output(d, fd) && d->output.len > had;
}

/* Ends the program's leftovers; nothing else waits for them. */
static void
end_the_rest(const struct delivery *d)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    for (unsigned pass = 0; pass < KILL_PASSES; pass++) {
        bool in_groups = groups_are_populated(&d->groups);
        if (in_groups)
            groups_kill(&d->groups);
        if (kill_pass(kill_find_own, NULL, pass) == 0 && !in_groups)
            break;
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
        nanosleep(&pause, NULL);
    }
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

static int
status_of(int wait_status)
{
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

/* Waits until the program has ended or its time is over: then TERM, and KILL a moment later. A
 * program that survives KILL is abandoned. */
static void
follow(struct delivery *d, pid_t pid, int output)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    auto_close int pidfd = proc_pidfd(pid);
    const int64_t slice_ms = pidfd >= 0 ? SLICE_MAX_MS : SLICE_MS;
    struct pollfd p[2] = {{.fd = pidfd, .events = POLLIN}, {.fd = output, .events = POLLIN}};
    int64_t until_us = d->began_us + d->order.limit_ms * 1000;
    unsigned n_kills = 0;
    bool termed = false;
    int wait_status = 0;

    while (!proc_has_ended(pid)) {
        int64_t left_ms = (until_us - clock_boot_us() + 999) / 1000;
        if (left_ms <= 0) {
            if (n_kills == KILLS_MAX)
                break;
            if (termed)
                kill_pass(kill_find_own, NULL, n_kills++);
            else
                kill_signal_all(kill_find_own, NULL, SIGTERM);
            termed = true;
            left_ms = GRACE_MS;
            until_us = clock_boot_us() + GRACE_MS * INT64_C(1000);
        }
        if (poll(p, 2, (int)(left_ms < slice_ms ? left_ms : slice_ms)) < 0)
            nanosleep(&pause, NULL); /* poll may fail because the kernel is out of memory */
        else if (p[1].revents && !take_output(d, output))
            p[1].fd = -1;
    }
    (void)waitpid(pid, &wait_status, WNOHANG);
    d->status = termed ? TIMED_OUT : status_of(wait_status);
    end_the_rest(d);
    (void)fcntl(output, F_SETFL, O_NONBLOCK);
    while (p[1].fd >= 0 && d->output.len < OUTPUT_MAX && take_rest(d, output))
        continue;
}

/* --- reporting --- */

static void
write_log(const struct delivery *d, const char *state)
{
    auto_buf struct buf text = BUF_INIT;
    char stamp[32];

    if (d->log_fd < 0)
        return;
    buf_addf(&text, "%s job=%u hook=%s state=%s exit_status=%d ms=%lld%s%s",
             clock_rfc3339(clock_wall_us(), stamp), d->order.job, d->order.kind, state,
             d->status, (long long)((clock_boot_us() - d->began_us) / 1000),
             d->status == TIMED_OUT ? " it exceeded its time limit" : "",
             d->cut ? " output was cut" : "");
    buf_addc(&text, '\n');
    buf_add(&text, d->output.data, d->output.len);
    if (d->output.len && d->output.data[d->output.len - 1] != '\n')
        buf_addc(&text, '\n');
    (void)file_write_all(d->log_fd, text.data, text.len);
}

static void
tell_daemon(const struct delivery *d, const char *state)
{
    auto_buf struct buf text = BUF_INIT, shown = BUF_INIT;
    struct jsonw w;

    text_add_safe(&shown, d->text, strlen(d->text), 0);
    jsonw_init(&w, &text);
    jsonw_object(&w);
    jsonw_kstr(&w, "kind", d->order.kind);
    jsonw_kstr(&w, "state", state);
    if (d->status >= 0)
        jsonw_kint(&w, "exit_status", d->status);
    jsonw_kstr(&w, "text",
               d->status == TIMED_OUT ? "it exceeded its time limit" : buf_str(&shown));
    jsonw_end_object(&w);
    buf_addc(&text, '\n');
    crash_point("hook-before-report");
    (void)send(FD_CTL, text.data, text.len, MSG_NOSIGNAL);
}

static int
deliver(struct delivery *d, struct err *e)
{
    auto_close int output = -1;
    pid_t pid;

    if (become_ready(d, e) < 0 || order_prepare(&d->order, &d->run, e) < 0 ||
        groups_make(&d->order.groups, &d->groups, e) < 0)
        return -1;
    d->began_us = clock_boot_us();
    pid = start(d, &output, e);
    if (pid < 0)
        return -1;
    follow(d, pid, output);
    order_explain(&d->order, &d->output, d->text, sizeof d->text);
    return 0;
}

int
deliver_run(void)
{
    struct delivery d = {
        .identity = IDENTITY_INIT, .groups = GROUPS_NONE, .log_fd = -1, .status = -1};
    struct err e = {0};

    (void)setsid();
    (void)prctl(PR_SET_NAME, "berth-hook");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (order_read(FD_LOCK, &d.order, &e) < 0)
        return 1; /* the daemon sees the connection close without a result */
    d.began_us = clock_boot_us();
    bool ran = deliver(&d, &e) == 0;
    if (!ran)
        snprintf(d.text, sizeof d.text, "%.*s", LAST_LINE_MAX, e.text);
    /* A temporary shortage of the machine or the user is no reason to give up. */
    const char *state = ran ? order_judge(&d.order, d.status, d.text)
                        : blame_of(false, STEP_EXEC, e.errnum) == BLAME_COMMAND ? "failed"
                                                                                : "again";
    write_log(&d, state);
    tell_daemon(&d, state);
    groups_remove(&d.order.groups);
    groups_close(&d.groups);
    identity_free(&d.identity);
    login_env_free(d.account_env);
    order_run_free(&d.run);
    order_free(&d.order);
    buf_free(&d.output);
    if (d.log_fd >= 0)
        close(d.log_fd);
    return 0;
}
