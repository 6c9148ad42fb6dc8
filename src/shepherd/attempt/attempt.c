/* The supervisor's task, one attempt: starts it from its spec, then loops over its children's
 * signals, its time limit, connected daemons and attached clients until its outcome is stored.
 * stop.c ends it; berth_shepherd.c and nursery_main.c call this. */
#include "shepherd/attempt/attempt.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/parse.h"
#include "shepherd/attempt/attempt_priv.h"
#include "shepherd/attempt/daemon_link.h"
#include "shepherd/attempt/kill.h"
#include "shepherd/attempt/stop.h"
#include "shepherd/begin/command.h"
#include "shepherd/common/attempt_spec.h"
#include "shepherd/talk/attach_server.h"
#include "shepherd/talk/ctl.h"
#include "sys/nursery_packets.h"
#include "sys/signals.h"

/* ctl.sock is only for a later daemon, and making it costs as much as a short job. */
#define LISTEN_AFTER_US (50 * MS_US)
/* A terminal's user is warned of the limit this long before it, or in its last tenth if that
 * is shorter. */
#define NOTICE_MAX_US (300 * S_US)
#define NOTICE_PART   10
/* poll's timeout is an int of milliseconds, and does not count suspend. */
#define POLL_MAX_US   (60 * S_US)
#define POLL_PAUSE_NS 100000000 /* pause after poll fails for lack of kernel memory */
/* Timeout for the commit, which a hanging disk may delay; then the attempt is started anew. */
#define GO_PATIENCE_US (60 * S_US)

/* --- messages from daemons --- */

static void
on_greet(void *ctx, struct buf *out)
{
    say_greeting(ctx, out);
}

static void
on_cancel(void *ctx, const char *why, const char *by, int64_t grace_ms)
{
    struct shepherd *a = ctx;
    enum cause cause = strcmp(why, "preempt") == 0   ? CAUSE_PREEMPT
                       : strcmp(why, "requeue") == 0 ? CAUSE_REQUEUE
                       : strcmp(why, "exceed") == 0  ? CAUSE_EXCEED
                                                     : CAUSE_CANCEL;
    stop_because(a, cause, by, grace_ms >= 0 ? grace_ms : a->spec.grace_ms);
}

static void
on_signal(void *ctx, int sig)
{
    const struct shepherd *a = ctx;
    if (a->command.pid > 0 && !a->facts.command_gone && a->phase != PHASE_ENDED)
        kill_notify(a->command.pid, sig, &a->own);
}

static void
on_recorded(void *ctx)
{
    stop_recorded(ctx);
}

/* --- attached clients --- */

static bool
on_guest(void *ctx, const struct attach_guest *who, bool came)
{
    return say_attached(ctx, who, came);
}

/* --- time --- */

/* Only once, and best effort: the job is stopped at the limit in any case. */
static void
warn(struct shepherd *a)
{
    a->warn_us = 0;
    if (!a->spec.warn_batch)
        kill_notify(a->command.pid, a->spec.warn_signal, &a->own);
    else if (!a->facts.command_gone)
        kill_command(a->command.pid, a->spec.warn_signal, &a->own); /* not reaped yet */
    a->record.warned_us = clock_wall_us();
    say_warned(a);
}

/* Announces the limit on the job's terminal. */
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
        stop_on_time(a);
}

static int64_t
sooner(int64_t a_us, int64_t b_us)
{
    return !a_us ? b_us : !b_us || a_us < b_us ? a_us : b_us;
}

/* Next time to act; 0: never. */
static int64_t
next_us(const struct shepherd *a)
{
    return sooner(a->notice_us, sooner(a->warn_us, a->wake_us));
}

/* Deadlines within a second use poll's timeout, so a short job needs no timer. */
static bool
is_soon(int64_t at_us)
{
    return at_us && at_us - clock_boot_us() < S_US;
}

/* Uses the boot clock, which counts through suspend and is not affected when the wall clock is
 * set. If the timer cannot be made or set, poll's timeout serves (patience_ms), and it is
 * retried then. */
static void
arm_timer(struct shepherd *a)
{
    int64_t at_us = next_us(a);
    if (at_us == a->armed_us || (a->timer_fd < 0 && (!at_us || is_soon(at_us))))
        return;
    if (a->timer_fd < 0)
        a->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    struct itimerspec when = {
        .it_value = {.tv_sec = at_us / S_US, .tv_nsec = at_us % S_US * 1000},
    };
    if (a->timer_fd < 0 || timerfd_settime(a->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) == 0) {
        a->armed_us = at_us;
        return;
    }
    close(a->timer_fd);
    a->timer_fd = -1;
}

/* --- the loop --- */

static void
read_signals(struct shepherd *a)
{
    struct signalfd_siginfo si;
    bool children = a->reaps_on, unit_stops = false;
    while (read(a->sig_fd, &si, sizeof si) == (ssize_t)sizeof si) {
        children |= si.ssi_signo == SIGCHLD;
        unit_stops |= si.ssi_signo == NURSERY_UNIT_STOPS;
        if (si.ssi_signo == SIGTERM)
            stop_note_term(a, si.ssi_pid, si.ssi_uid);
    }
    if (children) /* first: a command that has exited by itself was not stopped */
        stop_reap(a);
    stop_for_term(a); /* again changes nothing */
    if (unit_stops)
        stop_for_unit(a);
}

/* Milliseconds until at_us, for poll; -1: no timeout. */
static int
wait_ms(int64_t at_us)
{
    int64_t left_us = at_us - clock_boot_us();
    if (!at_us)
        return -1;
    if (left_us > POLL_MAX_US)
        left_us = POLL_MAX_US;
    return left_us > 0 ? (int)(left_us / MS_US) + 1 : 0;
}

/* True if ctl.sock is due although a daemon is connected. After the end, only once the record
 * is written because that daemon took long; normally `recorded` arrives in a moment. */
static bool
listens_in_time(const struct shepherd *a)
{
    return a->listen_us && (a->phase != PHASE_ENDED || a->written);
}

/* Timeout for poll. */
static int
patience_ms(const struct shepherd *a)
{
    if (a->reaps_on)
        return 0;
    int64_t own_us = a->timer_fd < 0 ? next_us(a) : 0;
    int64_t log_us = a->phase == PHASE_ENDED ? 0 : sooner(a->log.next_us, a->errors.next_us);
    own_us = sooner(own_us, log_us);
    int own_ms = wait_ms(sooner(own_us, listens_in_time(a) ? a->listen_us : 0));
    int attach_ms = attach_wait_ms(a->attach);
    return own_ms < 0 || (attach_ms >= 0 && attach_ms < own_ms) ? attach_ms : own_ms;
}

/* Makes ctl.sock at once when the daemon disconnects, so that the next one finds us. */
static void
listen_if_due(struct shepherd *a)
{
    if (!a->listen_us || a->done)
        return;
    if (ctl_peers(a->ctl) > 0 && (!listens_in_time(a) || clock_boot_us() < a->listen_us))
        return;
    /* A full disk has no room for its name: retry later. */
    a->listen_us = ctl_listen(a->ctl, FD_FOLDER, NULL) < 0 ? clock_boot_us() + S_US : 0;
}

/* After a failed poll: whatever the reason, the job keeps running and being supervised.
 * Pauses, then marks everything that can be read without blocking as readable. */
static void
rest(struct pollfd *fds, size_t n)
{
    const struct timespec pause = {.tv_nsec = POLL_PAUSE_NS};
    for (size_t i = 0; i < n; i++)
        fds[i].revents = 0;
    if (errno == EINTR)
        return;
    nanosleep(&pause, NULL);
    fds[0].revents = POLLIN; /* reading it does not block */
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
    if (poll(fds, n + n_attach + 2, patience_ms(a)) < 0)
        rest(fds, n + n_attach + 2);
    if (fds[0].revents || a->reaps_on) /* before any request to stop, for the same reason */
        read_signals(a);
    if (fds[1].revents)
        a->armed_us = -1; /* it fired: setting it again clears it */
    if (a->timer_fd < 0)
        a->armed_us = -1;
    if (fds[1].revents || a->timer_fd < 0)
        act_on_time(a);
    if (a->phase != PHASE_ENDED) {
        loglimit_look(&a->log);
        attach_log_cut(a->attach, a->log.moved_at, a->log.moved_bytes);
        loglimit_look(&a->errors);
    }
    size_t peers = ctl_peers(a->ctl);
    ctl_serve(a->ctl, fds + 2, n);
    attach_serve(a->attach, fds + 2 + n, n_attach);
    if (a->phase == PHASE_ENDED && ctl_peers(a->ctl) < peers && ctl_peers(a->ctl) == 0)
        stop_wait_or_leave(a);
    listen_if_due(a);
}

/* Blocks all signals: those that matter are read from a descriptor, others from outside are
 * ignored. */
static int
take_signals(struct shepherd *a, struct err *e)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    a->sig_fd = signals_to_fd((const int[]){SIGCHLD, SIGTERM, NURSERY_UNIT_STOPS, 0}, e);
    return a->sig_fd < 0 ? -1 : 0;
}

static int64_t
notice_before_us(int64_t limit_us)
{
    return limit_us / NOTICE_PART < NOTICE_MAX_US ? limit_us / NOTICE_PART : NOTICE_MAX_US;
}

/* The command runs. Reports its start first, because a client waits for that. */
static void
begin_running(struct shepherd *a)
{
    crash_point("shepherd-after-exec");
    a->record.started_us = clock_wall_us();
    loglimit_begin(&a->log, a->command.log_fd, a->command.log_from, FD_FOLDER,
                   a->spec.log_max_mib, a->spec.log_reserve_mib);
    loglimit_begin(&a->errors, a->command.error_fd, a->command.error_from, FD_FOLDER,
                   a->spec.log_max_mib, a->spec.log_reserve_mib);
    if (a->spec.limit_ms > 0)
        a->wake_us = a->command.boot_us + a->spec.limit_ms * MS_US;
    if (a->wake_us && a->spec.warn_signal)
        a->warn_us = a->wake_us - a->spec.warn_ms * MS_US;
    if (a->wake_us && a->spec.pty)
        a->notice_us = a->wake_us - notice_before_us(a->spec.limit_ms * MS_US);
    a->own = (struct kill_own){.spared = a->command.screen_pid,
                               .in_container = a->spec.container.image != NULL &&
                                               !a->spec.container.apptainer};
    say_started(a);
}

static void
end_unstarted(struct shepherd *a, const char *what, const struct err *e, enum blame blame)
{
    a->command = COMMAND_INIT;
    snprintf(a->command.text, sizeof a->command.text, "%s%.120s", what, e->text);
    a->command.errnum = e->errnum;
    a->command.blame = blame;
    stop_end(a);
}

static void
end_for(struct shepherd *a, const char *what, const struct err *e)
{
    end_unstarted(a, what, e, e->errnum ? BLAME_MACHINE : BLAME_COMMAND);
}

/* A failure to set the cap is not the job's fault: the daemon decides whether the job runs
 * without it. */
static bool
cap_vram(struct shepherd *a)
{
    struct cap_wish *cap = &a->spec.groups.cap;
    struct err e;
    if (cap->mib == 0 || vram_cap_set(cap, a->facts.groups.fd, &e) == 0)
        return true;
    cap->mib = 0; /* no cap to lift later */
    end_unstarted(a, "", &e, BLAME_CAP);
    return false;
}

/* True if the attempt is to end before its command has begun. Preparations can block for a
 * minute, in which daemons connect and disconnect. */
static bool
is_called_off(void *ctx)
{
    struct shepherd *a = ctx;
    struct pollfd fds[CTL_POLL_MAX];
    read_signals(a);
    size_t n = ctl_fill(a->ctl, fds);
    if (poll(fds, n, 0) > 0)
        ctl_serve(a->ctl, fds, n);
    listen_if_due(a);
    return a->facts.cause != CAUSE_NONE;
}

/* Leaves without a record, which the daemon treats as an attempt that never ran; attached
 * clients move on to the next attempt. */
static void
leave_unstarted(struct shepherd *a)
{
    attach_free(TAKE(a->attach));
    mps_leave(&a->facts.mps);
    groups_remove(&a->spec.groups);
    a->done = true;
}

/* A failure to join MPS is handled like that of the VRAM cap. */
static bool
join_mps(struct shepherd *a)
{
    struct err e;
    if (!a->spec.mps.dir || mps_join(&a->spec.mps, is_called_off, a, &a->facts.mps, &e) == 0 ||
        a->facts.cause != CAUSE_NONE)
        return true;
    end_unstarted(a, "", &e, BLAME_MPS);
    return false;
}

/* Preparations that leave nothing behind if this process is killed. */
static int
get_ready(struct shepherd *a, struct err *e)
{
    if (spec_read(FD_LOCK, &a->spec, e) < 0) {
        err_prefix(e, "cannot read the job's specification");
        return -1;
    }
    return take_signals(a, e);
}

/* Waits for the daemon to confirm that the start is durable. False: it no longer can, or
 * something is wrong, because it takes too long. The daemon then treats this process's exit as
 * that of an attempt that never ran. */
static bool
hear_go(void)
{
    char word[sizeof NURSERY_GO - 1];
    size_t n = 0;
    int64_t until_us = clock_boot_us() + GO_PATIENCE_US;
    while (n < sizeof word) {
        struct pollfd p = {.fd = FD_CTL, .events = POLLIN};
        int64_t left_us = until_us - clock_boot_us();
        if (left_us <= 0)
            return false;
        int polled = poll(&p, 1, (int)(left_us / MS_US) + 1);
        if (polled < 0)
            rest(&p, 1);
        if (polled <= 0)
            continue;
        ssize_t part = recv(FD_CTL, word + n, sizeof word - n, MSG_DONTWAIT);
        if (part == 0 || (part < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        n += part > 0 ? (size_t)part : 0;
    }
    return memcmp(word, NURSERY_GO, sizeof word) == 0;
}

/* Prepares before the start is durable, so that nothing else remains to wait for. start()
 * retries whatever fails here, because a lack of processes or descriptors may be over by
 * then. */
static bool
wait_ahead(struct shepherd *a)
{
    struct err ignored;
    a->ready = get_ready(a, &ignored) == 0;
    if (!a->ready)
        spec_free(&a->spec);
    crash_point("shepherd-waits");
    if (!hear_go())
        return false;
    crash_point("shepherd-has-go");
    return true;
}

static void
start(struct shepherd *a)
{
    struct err e;
    if (!a->ready && get_ready(a, &e) < 0) {
        end_for(a, "", &e);
        return;
    }
    a->attach = attach_open(&a->spec, &e);
    if (!a->attach && e.code) {
        end_for(a, "", &e);
        return;
    }
    attach_tell(a->attach, on_guest, a);
    /* Best effort, except for a job that must not reach other GPUs or has a memory bound:
     * other users' jobs depend on those. */
    if (groups_make(&a->spec.groups, &a->facts.groups, &e) < 0) {
        end_for(a, "cannot confine it: ", &e);
        return;
    }
    if (!cap_vram(a) || !join_mps(a))
        return;
    bool has_waited = a->spec.mps.dir || a->spec.groups.cap.mib > 0;
    if (has_waited && is_called_off(a)) {
        leave_unstarted(a);
        return;
    }
    command_start(&a->spec, FD_LOCK, &a->facts.groups, a->attach, &a->command);
    umask(077);
    (void)!chdir("/"); /* keep no file system busy */
    if (a->command.pid > 0)
        begin_running(a);
    else
        stop_end(a);
}

/* True if this process may be reused: the attempt had no more than a group, a log and
 * processes, and all of its processes are gone. */
static bool
is_clean(const struct shepherd *a)
{
    const struct spec *s = &a->spec;
    return a->recorded && a->command.pid > 0 && !a->facts.stuck[0] && !a->attach &&
           !s->container.image && !s->mps.dir && s->groups.cap.mib == 0 && !s->slurm &&
           waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

int
attempt_run(bool ahead, bool *clean)
{
    static const struct ctl_handler HANDLER = {on_greet, on_cancel, on_signal, on_recorded};
    struct shepherd a = {.sig_fd = -1, .timer_fd = -1};
    a.facts = (struct facts){
        .spec = &a.spec, .command = &a.command, .groups = GROUPS_NONE, .mps = MPS_CLIENT_NONE};
    crash_point("shepherd-start");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)prctl(PR_SET_NAME, "berth-shepherd");
    if (ahead && !wait_ahead(&a))
        return 0;
    a.ctl = ctl_new(FD_CTL, &HANDLER, &a);
    a.listen_us = clock_boot_us() + LISTEN_AFTER_US;
    start(&a);
    listen_if_due(&a);
    while (!a.done)
        one_turn(&a);
    bool kept = a.written || a.recorded;
    if (clean)
        *clean = is_clean(&a);
    attach_tell(a.attach, NULL, NULL);
    ctl_free(a.ctl);
    close(FD_LOCK); /* only clients that watch are left */
    close(FD_FOLDER);
    attach_linger(a.attach);
    attach_free(a.attach);
    spec_free(&a.spec);
    return kept ? 0 : 1;
}
