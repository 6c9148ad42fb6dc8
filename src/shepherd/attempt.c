/* The shepherd's one job: RUNNING until the command has gone, its limit is reached or somebody
 * cancels it; STOPPING (TERM was sent, grace runs) while something of it is left; KILLING in
 * passes; ENDED once waitpid says that nothing is left: the record is written, `ended` said,
 * and `recorded` waited for. Works the same with no daemon at all. main.c calls it.
 *
 * Invariant: the outcome comes from waitpid alone. Which of limit, cancel or shutdown came
 * first decides what it is called; code and signal stay what they were. */
#include "shepherd/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "shepherd/attach.h"
#include "shepherd/command.h"
#include "shepherd/ctl.h"
#include "shepherd/kill.h"
#include "shepherd/outcome.h"
#include "shepherd/record.h"
#include "shepherd/spec.h"
#include "sys/cgroup.h"
#include "sys/devfilter.h"
#include "sys/exitrec.h"
#include "sys/procs.h"

#define MS_US              INT64_C(1000)
#define S_US               INT64_C(1000000)
#define STRAGGLERS_MAX_US  (2 * S_US)  /* what a command leaves behind gets no more grace */
#define KILL_PASS_FIRST_US (2 * MS_US) /* doubling to KILL_PASS_MAX_US */
#define KILL_PASS_MAX_US   (100 * MS_US)
/* A driver can hold a process where KILL does not reach it. */
#define KILL_GIVE_UP_US  (60 * S_US)
#define RECORDED_WAIT_US (10 * S_US)
#define RECORDED_SOON_US (100 * MS_US) /* a daemon that is well answers before */
/* ctl.sock is for a daemon that comes after this one; making it costs what a short job does. */
#define LISTEN_AFTER_US    (50 * MS_US)
#define REWRITE_FIRST_US   (100 * MS_US) /* doubling to REWRITE_MAX_US */
#define REWRITE_MAX_US     (10 * S_US)
#define REWRITE_GIVE_UP_US (3600 * S_US) /* a disk that stays full that long has lost more */
#define NOTICE_MAX_US                                                                          \
    (300 * S_US)         /* a terminal's user learns of the limit at most so long before */
#define NOTICE_PART   10 /* or in the last tenth, if that is less */
#define SCREEN_PASSES 6  /* of killing, in which the screen session may go by itself: 60 ms */

enum phase { PHASE_RUNNING, PHASE_STOPPING, PHASE_KILLING, PHASE_ENDED };

struct shepherd {
    struct spec spec;
    struct command command;
    struct ctl *ctl;
    struct attach *attach; /* NULL: the job is not interactive */
    struct exitrec record; /* complete in PHASE_ENDED */
    struct facts facts;
    enum phase phase;
    int sig_fd, timer_fd;
    bool written;      /* the record is in its file */
    bool recorded;     /* a daemon has it */
    bool screen_told;  /* to end */
    bool done;         /* nothing keeps the shepherd any longer */
    unsigned passes;   /* of killing */
    int64_t wake_us;   /* boot clock: when this phase wants to act; 0: never */
    int64_t warn_us;   /* boot clock: when the command is warned of its limit; 0: no more */
    int64_t notice_us; /* boot clock: when a terminal is told of the limit; 0: no more */
    int64_t armed_us;  /* what timer_fd is set to */
    int64_t phase_us;  /* when this phase began */
    int64_t backoff_us;
    int64_t listen_us; /* boot clock: when ctl.sock is made at the latest; 0: it is there */
};

static void
enter_phase(struct shepherd *a, enum phase phase, int64_t wake_us)
{
    a->phase = phase;
    a->phase_us = clock_boot_us();
    a->wake_us = wake_us;
    a->warn_us = a->notice_us = 0; /* what is being ended needs no warning */
}

/* ---- what is said ---- */

static void
add_hello(const struct shepherd *a, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "event", "hello");
    jsonw_kint(&w, "job", a->spec.job);
    jsonw_kint(&w, "attempt", a->spec.attempt);
    jsonw_kint(&w, "pid", getpid());
    jsonw_kstr(&w, "phase", a->phase == PHASE_RUNNING ? "running" : "ending");
    jsonw_kint(&w, "command_pid", a->command.pid > 0 ? a->command.pid : 0);
    jsonw_kint(&w, "started_us", a->record.started_us);
    if (a->record.warned_us)
        jsonw_kint(&w, "warned_us", a->record.warned_us);
    if (a->command.screen_pid > 0)
        jsonw_kint(&w, "screen_pid", a->command.screen_pid);
    jsonw_end_object(&w);
    buf_addc(out, '\n');
}

static void
add_started(const struct shepherd *a, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "event", "started");
    jsonw_kint(&w, "command_pid", a->command.pid);
    jsonw_kint(&w, "at_us", a->record.started_us);
    jsonw_end_object(&w);
    buf_addc(out, '\n');
}

static void
add_warned(const struct shepherd *a, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "event", "warned");
    jsonw_kint(&w, "signal", a->spec.warn_signal);
    jsonw_kint(&w, "at_us", a->record.warned_us);
    jsonw_end_object(&w);
    buf_addc(out, '\n');
}

static void
add_ended(const struct shepherd *a, struct buf *out)
{
    exitrec_encode(&a->record, "ended", out);
    buf_addc(out, '\n');
}

static void
on_greet(void *ctx, struct buf *out)
{
    const struct shepherd *a = ctx;
    add_hello(a, out);
    if (a->phase == PHASE_ENDED)
        add_ended(a, out);
}

/* ---- the end ---- */

static void
leave(struct shepherd *a)
{
    a->done = true;
    if (a->spec.cgroup && a->facts.cgroup_fd >= 0)
        (void)cgroup_remove(a->spec.cgroup);
    cgroup_v1_remove(a->spec.cgroup_v1);
}

/* Nobody will record it: it is made durable here, and then there is nothing left to do. */
static void
keep_and_leave(struct shepherd *a)
{
    (void)record_sync(FD_FOLDER, NULL); /* the file is there; a failing disk says no more */
    leave(a);
}

/* Whether the attempt's folder still has a name: in one that has not, nothing can be kept. */
static bool
folder_is_there(void)
{
    struct stat st;
    return fstat(FD_FOLDER, &st) == 0 && st.st_nlink > 0;
}

static void
try_to_write(struct shepherd *a)
{
    struct err e;
    if (record_write(FD_FOLDER, &a->record, &e) == 0) {
        a->written = true;
        return;
    }
    if (!folder_is_there() || clock_boot_us() - a->phase_us > REWRITE_GIVE_UP_US) {
        fprintf(stderr, "berth-shepherd: job=%" PRIu32 " outcome not kept: %s\n", a->spec.job,
                e.text);
        leave(a);
        return;
    }
    a->backoff_us = a->backoff_us ? a->backoff_us * 2 : REWRITE_FIRST_US;
    if (a->backoff_us > REWRITE_MAX_US)
        a->backoff_us = REWRITE_MAX_US;
    a->wake_us = clock_boot_us() + a->backoff_us;
}

/* With the outcome noted in the lock file a daemon that dies finds it; so the file of its own
 * is made only when nobody says `recorded` soon. */
static void
note_or_write(struct shepherd *a)
{
    if (ctl_peers(a->ctl) > 0 && record_note(FD_LOCK, &a->record) == 0)
        a->wake_us = clock_boot_us() + RECORDED_SOON_US;
    else
        try_to_write(a);
}

/* Waits for `recorded` as long as there is anybody to say it; then for the disk. */
static void
wait_or_leave(struct shepherd *a)
{
    if (!a->done && !a->written && ctl_peers(a->ctl) == 0)
        try_to_write(a);
    if (a->done || !a->written)
        return;
    if (ctl_peers(a->ctl) == 0)
        keep_and_leave(a);
    else
        a->wake_us = clock_boot_us() + RECORDED_WAIT_US;
}

static void
say_ended(struct shepherd *a)
{
    auto_buf struct buf words = BUF_INIT;
    crash_point("shepherd-before-ended");
    if (a->command.pid < 0)
        add_hello(a, &words); /* it never started: these are our first words */
    add_ended(a, &words);
    ctl_say(a->ctl, buf_str(&words), words.len);
}

static void
tell_attached(struct shepherd *a)
{
    auto_buf struct buf record = BUF_INIT;
    exitrec_encode(&a->record, NULL, &record);
    attach_end(a->attach, buf_str(&record), record.len);
}

/* Nothing of the job is left, or nothing came to be: puts the outcome on disk and says it. */
static void
end_attempt(struct shepherd *a)
{
    attach_drain(a->attach);
    outcome_fill(&a->facts, clock_boot_us(), &a->record);
    a->record.ending.ended_us = clock_wall_us();
    enter_phase(a, PHASE_ENDED, 0);
    note_or_write(a);
    say_ended(a);
    tell_attached(a);
    wait_or_leave(a);
}

/* ---- stopping ---- */

/* Its screen session ends like a person's, once: so that it leaves no name behind. */
static void
end_screen(struct shepherd *a)
{
    if (a->command.screen_pid > 0 && !a->screen_told)
        (void)kill(a->command.screen_pid, SIGTERM);
    a->screen_told = true;
}

static void
kill_now(struct shepherd *a)
{
    if (a->phase != PHASE_KILLING) {
        enter_phase(a, PHASE_KILLING, 0);
        a->backoff_us = KILL_PASS_FIRST_US;
        if (a->facts.cause != CAUSE_NONE && !a->facts.command_gone)
            a->facts.was_killed = true;
    }
    /* Without cgroup.kill: what is frozen cannot fork, and KILL reaches it all the same. */
    bool spares = a->command.screen_pid > 0 && a->passes < SCREEN_PASSES;
    if (spares)
        end_screen(a);
    else if (a->facts.cgroup_fd >= 0 && cgroup_kill(a->facts.cgroup_fd) < 0)
        (void)cgroup_freeze(a->facts.cgroup_fd, true);
    (void)kill_pass(kill_find_own, spares ? &a->command.screen_pid : NULL, a->passes++);
    a->wake_us = clock_boot_us() + a->backoff_us;
    a->backoff_us *= 2;
    if (a->backoff_us > KILL_PASS_MAX_US)
        a->backoff_us = KILL_PASS_MAX_US;
}

static void
stop_with_grace(struct shepherd *a, int64_t grace_us)
{
    if (a->phase == PHASE_STOPPING) { /* a second wish can only shorten what runs */
        if (clock_boot_us() + grace_us < a->wake_us)
            a->wake_us = clock_boot_us() + grace_us;
        return;
    }
    if (a->phase != PHASE_RUNNING)
        return;
    enter_phase(a, PHASE_STOPPING, clock_boot_us() + grace_us);
    /* The command may have something to say yet to who looks on. */
    (void)kill_signal_all(kill_find_own, &a->command.screen_pid, SIGTERM);
}

/* Whether somebody wants it ended that was only being stopped to run again. */
static bool
is_graver(enum cause now, enum cause before)
{
    return now == CAUSE_CANCEL && (before == CAUSE_PREEMPT || before == CAUSE_REQUEUE);
}

/* The first cause stands. Of a command that has gone by itself, only the rest is stopped. */
static void
stop_because(struct shepherd *a, enum cause cause, const char *by, int64_t grace_ms)
{
    if (a->phase == PHASE_ENDED)
        return;
    if (!a->facts.command_gone &&
        (a->facts.cause == CAUSE_NONE || is_graver(cause, a->facts.cause))) {
        a->facts.cause = cause;
        snprintf(a->facts.by, sizeof a->facts.by, "%s", by);
    }
    stop_with_grace(a, grace_ms * MS_US);
}

static void
on_cancel(void *ctx, const char *why, const char *by, int64_t grace_ms)
{
    struct shepherd *a = ctx;
    enum cause cause = strcmp(why, "preempt") == 0   ? CAUSE_PREEMPT
                       : strcmp(why, "requeue") == 0 ? CAUSE_REQUEUE
                                                     : CAUSE_CANCEL;
    stop_because(a, cause, by, grace_ms >= 0 ? grace_ms : a->spec.grace_ms);
}

static void
on_signal(void *ctx, int sig)
{
    const struct shepherd *a = ctx;
    if (!a->facts.command_gone && a->phase != PHASE_ENDED)
        kill_notify(a->command.pid, a->spec.argv, sig, a->command.screen_pid);
}

static void
on_recorded(void *ctx)
{
    struct shepherd *a = ctx;
    if (a->phase != PHASE_ENDED)
        return;
    a->recorded = true;
    leave(a);
}

/* What was born elsewhere but put into our cgroup (a container) is no child of ours. */
static bool
cgroup_is_empty(const struct shepherd *a)
{
    return a->facts.cgroup_fd < 0 || cgroup_is_populated(a->facts.cgroup_fd) != 1;
}

static void
say_screen(struct shepherd *a)
{
    auto_buf struct buf words = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &words);
    jsonw_object(&w);
    jsonw_kstr(&w, "event", "screen");
    jsonw_kint(&w, "pid", a->command.screen_pid);
    jsonw_end_object(&w);
    buf_addc(&words, '\n');
    ctl_say(a->ctl, buf_str(&words), words.len);
}

/* A session that somebody closes hangs up its jobs, as that of a person's does. One that was
 * killed is no wish of anybody's: only the view is lost. */
static void
on_screen_gone(struct shepherd *a, int status)
{
    auto_buf struct buf words = BUF_INIT;
    a->command.screen_pid = 0;
    if (a->facts.command_gone || a->phase == PHASE_ENDED)
        return;
    say_screen(a);
    if (WIFSIGNALED(status)) {
        buf_addf(&words,
                 "\r\nberth: the screen session was killed (signal %d); the job goes on, and "
                 "'berth attach %" PRIu32 "' shows it\r\n",
                 WTERMSIG(status), a->spec.job);
        attach_say(a->attach, buf_str(&words));
    } else if (a->phase == PHASE_RUNNING) {
        a->facts.screen_closed = true;
        (void)kill_signal_all(kill_find_own, NULL, SIGHUP);
    }
}

/* Everybody that has gone is waited for; then it is seen what that leaves. */
static void
reap(struct shepherd *a)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == a->command.screen_pid)
            on_screen_gone(a, status);
        if (pid != a->command.pid)
            continue;
        a->facts.command_gone = true;
        a->facts.status = status;
        crash_point("shepherd-child-exited");
    }
    if (!a->facts.command_gone || a->phase == PHASE_ENDED)
        return;
    end_screen(a);
    if (pid < 0 && errno == ECHILD && cgroup_is_empty(a)) {
        end_attempt(a);
    } else if (a->phase == PHASE_RUNNING) {
        int64_t grace_us = a->spec.grace_ms * MS_US;
        stop_with_grace(a, grace_us < STRAGGLERS_MAX_US ? grace_us : STRAGGLERS_MAX_US);
    }
}

/* ---- time ---- */

/* KILL does not end something. Says so and leaves it to the machine. */
static void
give_up(struct shepherd *a)
{
    auto_procs struct procs left = PROCS_INIT;
    if (procs_read_descendants(getpid(), &left) == 0 && left.n > 0)
        snprintf(a->facts.stuck, sizeof a->facts.stuck,
                 "%zu of its processes do not end on KILL (pid %d is in state %c)", left.n,
                 (int)left.v[0].pid, left.v[0].state);
    end_attempt(a);
}

static void
on_time(struct shepherd *a)
{
    a->wake_us = 0;
    switch (a->phase) {
    case PHASE_RUNNING:
        stop_because(a, CAUSE_LIMIT, "", a->spec.grace_ms);
        return;
    case PHASE_STOPPING:
        kill_now(a);
        return;
    case PHASE_KILLING:
        reap(a); /* a cgroup that has become empty sends no signal */
        if (a->phase != PHASE_KILLING)
            return;
        if (clock_boot_us() - a->phase_us > KILL_GIVE_UP_US)
            give_up(a);
        else
            kill_now(a);
        return;
    case PHASE_ENDED:
        if (a->written) {
            keep_and_leave(a);
            return;
        }
        try_to_write(a);
        wait_or_leave(a);
        return;
    }
}

/* Once, and whatever comes of it: at the limit it is stopped all the same. */
static void
warn(struct shepherd *a)
{
    auto_buf struct buf words = BUF_INIT;
    a->warn_us = 0;
    kill_notify(a->command.pid, a->spec.argv, a->spec.warn_signal, a->command.screen_pid);
    a->record.warned_us = clock_wall_us();
    add_warned(a, &words);
    ctl_say(a->ctl, buf_str(&words), words.len);
}

/* Into the terminal, where whoever sits there sees it. */
static void
give_notice(struct shepherd *a)
{
    char left[24];
    auto_buf struct buf words = BUF_INIT;
    int64_t left_ms = (a->wake_us - a->notice_us) / MS_US;
    a->notice_us = 0;
    buf_addf(&words, "\r\nberth: job %" PRIu32 " has %s left of its time limit\r\n",
             a->spec.job, format_duration(left_ms, left));
    attach_say(a->attach, buf_str(&words));
}

static void
act_on_time(struct shepherd *a)
{
    int64_t now = clock_boot_us();
    if (a->notice_us && now >= a->notice_us)
        give_notice(a);
    if (a->warn_us && now >= a->warn_us)
        warn(a);
    if (a->wake_us && now >= a->wake_us)
        on_time(a);
}

static int64_t
sooner(int64_t a_us, int64_t b_us)
{
    return !a_us ? b_us : !b_us || a_us < b_us ? a_us : b_us;
}

/* On the boot clock, so that a machine's sleep counts and a clock that is set does not. */
static void
arm_timer(struct shepherd *a)
{
    int64_t at_us = sooner(a->notice_us, sooner(a->warn_us, a->wake_us));
    if (at_us == a->armed_us)
        return;
    if (a->timer_fd < 0)
        a->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    struct itimerspec when = {
        .it_value = {.tv_sec = at_us / S_US, .tv_nsec = at_us % S_US * 1000},
    };
    if (timerfd_settime(a->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) < 0)
        err_abort("cannot set a timer: %s", strerror(errno));
    a->armed_us = at_us;
}

/* ---- the loop ---- */

static void
describe_sender(const struct signalfd_siginfo *si, char *out, size_t size)
{
    snprintf(out, size, "pid %" PRIu32 ", uid %" PRIu32, si->ssi_pid, si->ssi_uid);
}

static void
read_signals(struct shepherd *a)
{
    struct signalfd_siginfo si;
    bool children = false, stop = false;
    char sender[64];
    while (read(a->sig_fd, &si, sizeof si) == (ssize_t)sizeof si) {
        children |= si.ssi_signo == SIGCHLD;
        if (si.ssi_signo == SIGTERM) {
            stop = true;
            describe_sender(&si, sender, sizeof sender);
        }
    }
    if (children) /* first: what has ended by itself was not stopped */
        reap(a);
    if (stop)
        stop_because(a, CAUSE_SHUTDOWN, sender, a->spec.grace_ms);
}

static int
listen_timeout_ms(const struct shepherd *a)
{
    int64_t left_us = a->listen_us - clock_boot_us();
    if (!a->listen_us)
        return -1;
    return left_us > 0 ? (int)(left_us / MS_US) + 1 : 0;
}

/* How long poll may sleep. */
static int
patience_ms(const struct shepherd *a)
{
    int listen_ms = listen_timeout_ms(a), attach_ms = attach_wait_ms(a->attach);
    return listen_ms < 0 || (attach_ms >= 0 && attach_ms < listen_ms) ? attach_ms : listen_ms;
}

/* At once when the daemon goes, so that the next one finds us. */
static void
listen_if_due(struct shepherd *a)
{
    if (!a->listen_us || a->done)
        return;
    if (ctl_peers(a->ctl) > 0 && clock_boot_us() < a->listen_us)
        return;
    /* On a full disk there is no room for its name: again in a while. */
    a->listen_us = ctl_listen(a->ctl, FD_FOLDER, NULL) ? clock_boot_us() + S_US : 0;
}

static void
one_turn(struct shepherd *a)
{
    struct pollfd fds[2 + CTL_POLL_MAX + ATTACH_POLL_MAX];
    arm_timer(a);
    fds[0] = (struct pollfd){.fd = a->sig_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = a->timer_fd, .events = POLLIN};
    size_t n = ctl_fill(a->ctl, fds + 2);
    size_t n_attach = attach_fill(a->attach, fds + 2 + n);
    if (poll(fds, n + n_attach + 2, patience_ms(a)) < 0 && errno != EINTR)
        err_abort("poll: %s", strerror(errno));
    if (fds[0].revents) /* before any wish to stop it, for the same reason */
        read_signals(a);
    if (fds[1].revents) {
        a->armed_us = -1; /* it has fired: setting it again clears it */
        act_on_time(a);
    }
    size_t peers = ctl_peers(a->ctl);
    ctl_serve(a->ctl, fds + 2, n);
    attach_serve(a->attach, fds + 2 + n, n_attach);
    if (a->phase == PHASE_ENDED && ctl_peers(a->ctl) < peers && ctl_peers(a->ctl) == 0)
        wait_or_leave(a);
    listen_if_due(a);
}

/* Everything that could be sent from outside waits in a descriptor or is not looked at. */
static int
take_signals(void)
{
    sigset_t all, wanted;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGTERM);
    signal(SIGCHLD, SIG_DFL); /* inherited "ignore" would lose the status */
    int fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        err_abort("cannot take signals: %s", strerror(errno));
    return fd;
}

/* What cannot be confined runs all the same, but for a job that is to reach no cards but its
 * own: other people's jobs count on that. */
static int
open_cgroup(struct shepherd *a, struct err *e)
{
    const struct spec *spec = &a->spec;
    struct cgroup_limits limits = {
        .mem_mib = spec->mem_mib, .cpus = spec->cpus, .pids = spec->max_processes};
    if (spec->cgroup)
        a->facts.cgroup_fd = cgroup_create(spec->cgroup, &limits, e);
    cgroup_v1_create(spec->cgroup_v1, &limits, a->facts.v1_fds);
    if (spec->n_minors < 0)
        return 0;
    if (a->facts.cgroup_fd < 0)
        return -1;
    return devfilter_attach(a->facts.cgroup_fd, spec->minors, (size_t)spec->n_minors, e);
}

static int64_t
notice_before_us(int64_t limit_us)
{
    return limit_us / NOTICE_PART < NOTICE_MAX_US ? limit_us / NOTICE_PART : NOTICE_MAX_US;
}

/* The command runs: its start is told first, because somebody waits for that. */
static void
begin_running(struct shepherd *a)
{
    auto_buf struct buf words = BUF_INIT;
    crash_point("shepherd-after-exec");
    a->record.started_us = clock_wall_us();
    if (a->spec.limit_ms > 0)
        a->wake_us = a->command.boot_us + a->spec.limit_ms * MS_US;
    if (a->wake_us && a->spec.warn_signal)
        a->warn_us = a->wake_us - a->spec.warn_ms * MS_US;
    if (a->wake_us && a->spec.pty)
        a->notice_us = a->wake_us - notice_before_us(a->spec.limit_ms * MS_US);
    add_hello(a, &words);
    add_started(a, &words);
    ctl_say(a->ctl, buf_str(&words), words.len);
}

static void
end_unstarted(struct shepherd *a, const char *what, const struct err *e)
{
    a->command = (struct command){.pid = -1, .log_fd = -1, .setup_fd = -1};
    snprintf(a->command.text, sizeof a->command.text, "%s%.120s", what, e->text);
    end_attempt(a);
}

static void
start(struct shepherd *a)
{
    struct err e;
    if (spec_read_at(FD_FOLDER, &a->spec, &e) < 0) {
        end_unstarted(a, "cannot read what to run: ", &e);
        return;
    }
    a->attach = attach_open(&a->spec, &e);
    if (!a->attach && e.code) {
        end_unstarted(a, "", &e);
        return;
    }
    if (open_cgroup(a, &e) < 0) {
        end_unstarted(a, "cannot keep it to its cards: ", &e);
        return;
    }
    command_start(&a->spec, FD_LOCK, a->facts.cgroup_fd, a->facts.v1_fds, a->attach,
                  &a->command);
    umask(077);
    (void)chdir("/"); /* keep no file system busy */
    if (a->command.pid > 0)
        begin_running(a);
    else
        end_attempt(a);
}

int
attempt_run(void)
{
    static const struct ctl_handler HANDLER = {on_greet, on_cancel, on_signal, on_recorded};
    struct shepherd a = {.timer_fd = -1};
    a.facts = (struct facts){
        .spec = &a.spec, .command = &a.command, .cgroup_fd = -1, .v1_fds = {-1, -1, -1}};
    crash_point("shepherd-start");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)prctl(PR_SET_NAME, "berth-shepherd");
    a.sig_fd = take_signals();
    a.ctl = ctl_new(FD_CTL, &HANDLER, &a);
    start(&a);
    a.listen_us = clock_boot_us() + LISTEN_AFTER_US;
    listen_if_due(&a);
    while (!a.done)
        one_turn(&a);
    bool kept = a.written || a.recorded;
    ctl_free(a.ctl);
    close(FD_LOCK); /* all that is left is for those who watch */
    close(FD_FOLDER);
    attach_linger(a.attach);
    attach_free(a.attach);
    spec_free(&a.spec);
    return kept ? 0 : 1;
}
