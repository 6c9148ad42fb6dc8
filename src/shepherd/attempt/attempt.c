/* The shepherd's one job, an attempt: started from its spec, then a loop over its children's
 * signals, its time limit, the daemons that talk to it and the clients that are attached, until
 * its outcome is kept. How it is ended is stop.c's; berth_shepherd.c and nursery_main.c call
 * it. */
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

/* ctl.sock is for a daemon that comes after this one; making it costs what a short job does. */
#define LISTEN_AFTER_US (50 * MS_US)
/* A terminal's user learns of the limit at most so long before, or in its last tenth. */
#define NOTICE_MAX_US (300 * S_US)
#define NOTICE_PART   10
/* Between TERM and KILL when the machine shuts down: half of what dist/berth-jobs@.service.in
 * gives all of it, so that the record is on the disk before. */
#define UNIT_GRACE_MAX_MS 30000
/* poll counts in an int of milliseconds, and does not count a machine's sleep. */
#define POLL_MAX_US   (60 * S_US)
#define POLL_PAUSE_NS 100000000 /* when the kernel has no memory for a poll */
/* For a commit, which takes that long on a disk that hangs: then the attempt is begun anew. */
#define GO_PATIENCE_US (60 * S_US)

/* --- what daemons say --- */

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

/* Once, and whatever comes of it: at the limit it is stopped all the same. */
static void
warn(struct shepherd *a)
{
    a->warn_us = 0;
    if (!a->spec.warn_batch)
        kill_notify(a->command.pid, a->spec.warn_signal, &a->own);
    else if (!a->facts.command_gone)
        kill_command(a->command.pid, a->spec.warn_signal, &a->own); /* ours: not waited for */
    a->record.warned_us = clock_wall_us();
    say_warned(a);
}

/* To the terminal, where the user sees it. */
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

/* When time is to be acted on next; 0: never. */
static int64_t
next_us(const struct shepherd *a)
{
    return sooner(a->notice_us, sooner(a->warn_us, a->wake_us));
}

/* Of what is that near, poll's own patience will do: a short job makes no timer. */
static bool
is_soon(int64_t at_us)
{
    return at_us && at_us - clock_boot_us() < S_US;
}

/* On the boot clock, so that a machine's sleep counts and a clock that is set does not. Where
 * no timer is to be had poll wakes up by itself (patience_ms), and it is tried again then. */
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
    bool children = a->reaps_on, stop = false, unit_stops = false;
    while (read(a->sig_fd, &si, sizeof si) == (ssize_t)sizeof si) {
        children |= si.ssi_signo == SIGCHLD;
        unit_stops |= si.ssi_signo == NURSERY_UNIT_STOPS;
        if (si.ssi_signo == SIGTERM) {
            stop = true;
            stop_note_term(a, si.ssi_pid, si.ssi_uid);
        }
    }
    if (children) /* first: what has ended by itself was not stopped */
        stop_reap(a);
    if (stop)
        stop_because(a, CAUSE_SHUTDOWN, a->term_by, a->spec.grace_ms);
    if (unit_stops)
        stop_because(a, CAUSE_UNIT_STOPS, "",
                     a->spec.grace_ms < UNIT_GRACE_MAX_MS ? a->spec.grace_ms
                                                          : UNIT_GRACE_MAX_MS);
}

/* Until then; -1: for ever. */
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

/* Whether ctl.sock is made in time though a daemon is there. Not at the end, unless that daemon
 * takes long: it says `recorded` in a moment. */
static bool
listens_in_time(const struct shepherd *a)
{
    return a->listen_us && (a->phase != PHASE_ENDED || a->written);
}

/* How long poll may sleep. */
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

/* At once when the daemon goes, so that the next one finds us. */
static void
listen_if_due(struct shepherd *a)
{
    if (!a->listen_us || a->done)
        return;
    if (ctl_peers(a->ctl) > 0 && (!listens_in_time(a) || clock_boot_us() < a->listen_us))
        return;
    /* On a full disk there is no room for its name: again in a while. */
    a->listen_us = ctl_listen(a->ctl, FD_FOLDER, NULL) < 0 ? clock_boot_us() + S_US : 0;
}

/* After a poll that failed: whatever the reason, the job goes on and is looked after. What can
 * be read without waiting is looked at after a pause. */
static void
rest(struct pollfd *fds, size_t n)
{
    const struct timespec pause = {.tv_nsec = POLL_PAUSE_NS};
    for (size_t i = 0; i < n; i++)
        fds[i].revents = 0;
    if (errno == EINTR)
        return;
    nanosleep(&pause, NULL);
    fds[0].revents = POLLIN; /* does not block */
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
    if (fds[0].revents || a->reaps_on) /* before any wish to stop it, for the same reason */
        read_signals(a);
    if (fds[1].revents)
        a->armed_us = -1; /* it has fired: setting it again clears it */
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

/* Everything that could be sent from outside waits in a descriptor or is not looked at. */
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

/* The command runs: its start is reported first, because a client waits for that. */
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

/* That it cannot be held is not the job's fault: the daemon decides whether it runs without. */
static bool
cap_vram(struct shepherd *a)
{
    struct cap_wish *cap = &a->spec.groups.cap;
    struct err e;
    if (cap->mib == 0 || vram_cap_set(cap, a->facts.groups.fd, &e) == 0)
        return true;
    cap->mib = 0; /* nothing is to be lifted */
    end_unstarted(a, "", &e, BLAME_CAP);
    return false;
}

/* Whether it is to end though its command has not begun. What has to be waited for before that
 * can take a minute, in which daemons come and go. */
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

/* Without a record it is an attempt that never ran, which the daemon knows what to make of, and
 * from which clients turn to the next. */
static void
leave_unstarted(struct shepherd *a)
{
    attach_free(TAKE(a->attach));
    mps_leave(&a->facts.mps);
    groups_remove(&a->spec.groups);
    a->done = true;
}

/* The same of MPS as of a bound on VRAM. */
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

/* What leaves nothing behind, wherever this process is killed. */
static int
get_ready(struct shepherd *a, struct err *e)
{
    if (spec_read(FD_LOCK, &a->spec, e) < 0) {
        err_prefix(e, "cannot read the job's specification");
        return -1;
    }
    return take_signals(a, e);
}

/* The daemon has said that the start is durable. False: it cannot say so any more, or does not
 * for so long that something is wrong with it. It then takes the end of this process for what
 * it is, that of an attempt that never ran. */
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

/* Ready before the start is durable, so that nothing but that is waited for. What fails then is
 * tried again by start(): that a process or a descriptor was lacking may be over by then. */
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
    /* What cannot be confined runs all the same, but for a job that is to reach no cards but
     * its own, or has a bound on its memory: other people's jobs count on that. */
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

/* Of what has more to it than a group, a log and processes, this process is the end. */
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
    close(FD_LOCK); /* all that is left is for clients that watch */
    close(FD_FOLDER);
    attach_linger(a.attach);
    attach_free(a.attach);
    spec_free(&a.spec);
    return kept ? 0 : 1;
}
