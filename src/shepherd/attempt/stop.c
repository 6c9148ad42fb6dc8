/* The end of an attempt: see stop.h. A command that must end gets TERM and its grace, then
 * KILL in passes until waitpid says that nothing is left. Then the record is written, `ended`
 * is sent, and `recorded` is awaited. Works the same without a daemon. attempt.c calls it.
 *
 * Invariant: the outcome comes from waitpid alone. Which of limit, cancel or shutdown came
 * first decides its name; code and signal are never changed. */
#include "shepherd/attempt/stop.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/file.h"
#include "shepherd/attempt/attempt.h"
#include "shepherd/attempt/attempt_priv.h"
#include "shepherd/attempt/daemon_link.h"
#include "shepherd/attempt/exit_record.h"
#include "shepherd/attempt/kill.h"
#include "shepherd/begin/container.h"
#include "shepherd/begin/container_removal.h"
#include "shepherd/common/mps_client.h"
#include "shepherd/talk/attach_server.h"
#include "shepherd/talk/ctl.h"
#include "spec/script.h"
#include "sys/aside.h"
#include "sys/procs.h"
#include "sys/signals.h"

#define STRAGGLERS_MAX_US  (2 * S_US)  /* bound on the grace of a command's leftovers */
#define KILL_PASS_FIRST_US (2 * MS_US) /* doubling to KILL_PASS_MAX_US */
#define KILL_PASS_MAX_US   (100 * MS_US)
/* A driver can hold a process where KILL does not reach it. */
#define KILL_GIVE_UP_US    (60 * S_US)
#define RECORDED_WAIT_US   (10 * S_US)
#define RECORDED_SOON_US   (100 * MS_US) /* a healthy daemon answers sooner */
#define REWRITE_FIRST_US   (100 * MS_US) /* doubling to REWRITE_MAX_US */
#define REWRITE_MAX_US     (10 * S_US)
#define REWRITE_GIVE_UP_US (3600 * S_US) /* by then, a full disk has lost more */
/* Passes (1 s in total) in which the screen session may exit by itself and podman remove its
 * container. */
#define GENTLE_PASSES  16
#define REMOVAL_MAX_US (30 * S_US)
#define REAP_MAX       256
#define WORDS_WAIT_MS  1000 /* deadline for writing a few words to the log */
/* slurmstepd sends it within milliseconds, later on a busy node */
#define OWN_TERM_WAIT_NS  1000000000L
#define UNIT_TERM_WAIT_NS 200000000L /* systemd signals a unit's processes in one pass */
/* Grace at machine shutdown: half of the stop timeout in dist/berth-jobs@.service.in, so that
 * the record is on disk before it expires. */
#define UNIT_GRACE_MAX_MS 30000

static void
enter_phase(struct shepherd *a, enum phase phase, int64_t wake_us)
{
    a->phase = phase;
    a->phase_us = clock_boot_us();
    a->wake_us = wake_us;
    a->warn_us = a->notice_us = 0; /* a job that is being ended needs no warning */
}

/* --- the record --- */

/* No daemon will record the outcome: makes it durable here, then finishes. */
static void
keep_and_leave(struct shepherd *a)
{
    (void)record_sync(FD_FOLDER, NULL); /* best effort: the file exists */
    a->done = true;
}

/* True if the attempt's folder still has a name; else nothing can be stored in it. */
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
    if (record_write(FD_FOLDER, &a->record, a->spec.slurm, &e) == 0) {
        a->written = true;
        return;
    }
    /* A daemon that has recorded the outcome removes the folder, so its message is on the
     * way. */
    if (!folder_is_there() && a->noted && ctl_peers(a->ctl) > 0 &&
        clock_boot_us() - a->phase_us < RECORDED_WAIT_US) {
        a->wake_us = a->phase_us + RECORDED_WAIT_US;
        return;
    }
    if (!folder_is_there() || clock_boot_us() - a->phase_us > REWRITE_GIVE_UP_US) {
        fprintf(stderr, "berth-shepherd: job=%" PRIu32 " outcome not kept: %s\n", a->spec.job,
                e.text);
        a->done = true;
        return;
    }
    a->backoff_us = a->backoff_us ? a->backoff_us * 2 : REWRITE_FIRST_US;
    if (a->backoff_us > REWRITE_MAX_US)
        a->backoff_us = REWRITE_MAX_US;
    a->wake_us = clock_boot_us() + a->backoff_us;
}

/* The next daemon finds an outcome noted in the lock file, so the record's own file is only
 * written if no `recorded` arrives soon. */
static void
note_or_write(struct shepherd *a)
{
    a->noted = ctl_peers(a->ctl) > 0 && record_note(FD_LOCK, &a->record) == 0;
    if (a->noted)
        a->wake_us = clock_boot_us() + RECORDED_SOON_US;
    else
        try_to_write(a);
}

/* Waits for `recorded` while a daemon is connected to send it; then for the disk. */
void
stop_wait_or_leave(struct shepherd *a)
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

void
stop_recorded(struct shepherd *a)
{
    if (a->phase != PHASE_ENDED)
        return;
    a->recorded = true;
    a->done = true;
}

static void
tell_attached(struct shepherd *a)
{
    auto_buf struct buf record = BUF_INIT;
    exitrec_encode(&a->record, NULL, &record);
    attach_end(a->attach, buf_str(&record), record.len);
}

/* Nothing of the job is left, or it never started: stores the outcome and reports it. */
void
stop_end(struct shepherd *a)
{
    int64_t lost = attach_drain(a->attach);
    outcome_fill(&a->facts, clock_boot_us(), &a->record);
    mps_leave(&a->facts.mps); /* attached clients may keep this process alive for long */
    a->record.ending.log_cut_bytes = loglimit_end(&a->log) + loglimit_end(&a->errors) + lost;
    attach_log_cut(a->attach, a->log.moved_at, a->log.moved_bytes);
    a->record.ending.ended_us = clock_wall_us();
    enter_phase(a, PHASE_ENDED, 0);
    note_or_write(a);
    /* Before the daemon hears of the end: if this process dies until then, a sweep does this
     * instead. */
    groups_remove(&a->spec.groups);
    say_ended(a);
    tell_attached(a);
    stop_wait_or_leave(a);
}

/* --- stopping --- */

/* Ends the screen session once, the way a person would, so that it leaves no name behind. */
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
    /* Once the command has exited, podman's leftovers only delay the end of the job. */
    bool contains = a->own.in_container && !a->facts.command_gone;
    a->cut_off |= a->own.in_container && a->facts.command_gone;
    bool spares = (a->own.spared > 0 || contains) && a->passes < GENTLE_PASSES;
    if (spares)
        end_screen(a);
    else
        groups_kill(&a->facts.groups);
    struct kill_own own = {.spared = a->own.spared, .in_container = contains};
    (void)kill_pass(kill_find_own, spares ? &own : NULL, a->passes++);
    a->wake_us = clock_boot_us() + a->backoff_us;
    a->backoff_us *= 2;
    if (a->backoff_us > KILL_PASS_MAX_US)
        a->backoff_us = KILL_PASS_MAX_US;
}

static void
stop_with_grace(struct shepherd *a, int64_t grace_us)
{
    if (a->phase == PHASE_STOPPING) { /* a second request can only shorten the grace */
        if (clock_boot_us() + grace_us < a->wake_us)
            a->wake_us = clock_boot_us() + grace_us;
        return;
    }
    if (a->phase != PHASE_RUNNING)
        return;
    enter_phase(a, PHASE_STOPPING, clock_boot_us() + grace_us);
    struct kill_own meant = a->own;
    struct container_end end;
    if (meant.in_container) { /* before the command has begun, podman itself has to end */
        container_read_end(a->command.mark_fd, &end);
        meant.in_container = end.begun;
    }
    /* The command may still send output to attached clients. */
    (void)kill_signal_all(kill_find_own, &meant, SIGTERM);
}

/* True if the log should have Slurm's messages: the job has Slurm's variables and is not on a
 * cluster's node, where Slurm writes them itself. */
static bool
has_slurm_words(const struct spec *spec)
{
    for (char **v = spec->env; !spec->slurm && v && *v; v++)
        if (strcmp(*v, "SLURM_CLUSTER_NAME=" SCRIPT_CLUSTER) == 0)
            return true;
    return false;
}

static void
write_words(const void *ctx)
{
    const char *words = ctx;
    ssize_t rc = write(ASIDE_FILE, words, strlen(words)); /* lost if the disk is full */
    (void)rc;
}

/* Scripts that resubmit themselves search the log for these messages of Slurm. Only regular
 * files are written, because anything else could block. A file whose server is gone blocks
 * too, hence the separate process. */
static void
say_as_slurm(const struct shepherd *a, enum cause cause)
{
    static const char *const because[] = {[CAUSE_LIMIT] = " DUE TO TIME LIMIT",
                                          [CAUSE_CANCEL] = "",
                                          [CAUSE_PREEMPT] = " DUE TO PREEMPTION",
                                          [CAUSE_REQUEUE] = " DUE TO JOB REQUEUE"};
    const char *why = cause < sizeof because / sizeof because[0] ? because[cause] : NULL;
    int fd = a->command.error_fd >= 0 ? a->command.error_fd : a->command.log_fd;
    time_t now = (time_t)(clock_wall_us() / 1000000);
    char host[256] = "", at[32], line[384];
    struct stat st;
    struct tm local;

    if (!why || !has_slurm_words(&a->spec) || fd < 0 || file_look(fd, &st) < 0 ||
        !S_ISREG(st.st_mode))
        return;
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    localtime_r(&now, &local);
    strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%S", &local);
    snprintf(line, sizeof line,
             "slurmstepd: error: *** JOB %" PRIu32 " ON %s CANCELLED AT %s%s ***\n",
             a->spec.job, host, at, why);
    (void)aside_run(fd, write_words, line, WORDS_WAIT_MS, NULL, 0);
}

/* True if a user now cancels a job that was being stopped only to run again. */
static bool
is_graver(enum cause now, enum cause before)
{
    return now == CAUSE_CANCEL && (before == CAUSE_PREEMPT || before == CAUSE_REQUEUE);
}

/* The first cause counts. If the command has exited by itself, only its leftovers are stopped.
 * The log message comes last: a slow log disk must not delay ending the command. */
void
stop_because(struct shepherd *a, enum cause cause, const char *by, int64_t grace_ms)
{
    if (a->phase == PHASE_ENDED)
        return;
    bool counts = !a->facts.command_gone &&
                  (a->facts.cause == CAUSE_NONE || is_graver(cause, a->facts.cause));
    if (counts) {
        a->facts.cause = cause;
        snprintf(a->facts.by, sizeof a->facts.by, "%s", by);
    }
    stop_with_grace(a, grace_ms * MS_US);
    if (counts)
        say_as_slurm(a, cause);
}

/* --- ended children --- */

/* Closing the session hangs up the job, as closing a terminal does. A killed session says
 * nothing about the job: only the view is lost. */
static void
on_screen_gone(struct shepherd *a, int status)
{
    auto_buf struct buf words = BUF_INIT;
    a->command.screen_pid = a->own.spared = 0;
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
        (void)kill_signal_all(kill_find_own, &a->own, SIGHUP);
    }
}

/* Podman, or its monitor, which outlives it, removes the container after a normal end. After
 * any other end, or one at which they were killed, a record and files may remain; true: their
 * removal is under way. */
static bool
begin_removal(struct shepherd *a)
{
    if (!a->own.in_container || a->removal_pid ||
        (WIFEXITED(a->facts.status) && container_has_ended(a->command.mark_fd) && !a->cut_off))
        return false;
    outcome_count(&a->facts);
    a->removal_pid = container_start_removal(&a->spec, &a->facts.groups);
    if (a->removal_pid > 0)
        enter_phase(a, PHASE_REMOVING, clock_boot_us() + REMOVAL_MAX_US);
    return a->removal_pid > 0;
}

/* Ends what a command that exited by itself left behind. In a container the kernel has already
 * ended its processes, and podman's own (the keeper of the user's namespace) ends on KILL
 * alone. */
static void
end_stragglers(struct shepherd *a)
{
    int64_t grace_us = a->spec.grace_ms * MS_US;
    if (a->own.in_container && a->phase != PHASE_KILLING)
        kill_now(a);
    else if (a->phase == PHASE_RUNNING)
        stop_with_grace(a, grace_us < STRAGGLERS_MAX_US ? grace_us : STRAGGLERS_MAX_US);
}

/* Without the unit's file (the package was removed while jobs ran), systemd forgets KillSignal=
 * and sends its default. */
void
stop_note_term(struct shepherd *a, uint32_t pid, uint32_t uid)
{
    if (signals_is_systemd(pid))
        a->unit_term = true;
    else
        snprintf(a->term_by, sizeof a->term_by, "pid %" PRIu32 ", uid %" PRIu32, pid, uid);
}

void
stop_for_unit(struct shepherd *a)
{
    stop_because(a, CAUSE_UNIT_STOPS, "",
                 a->spec.grace_ms < UNIT_GRACE_MAX_MS ? a->spec.grace_ms : UNIT_GRACE_MAX_MS);
}

void
stop_for_term(struct shepherd *a)
{
    if (a->term_by[0])
        stop_because(a, CAUSE_SHUTDOWN, a->term_by, a->spec.grace_ms);
    if (a->unit_term)
        stop_for_unit(a);
}

/* A shell whose child got the signal exits with that child's status. */
static bool
is_end_by_term(int status)
{
    return (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) ||
           (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM);
}

/* For a command that ended by TERM. Slurm on a cluster's node, and systemd if the file of our
 * unit is gone, send TERM to every process, one after the other, so it reaches this process
 * too; if it does not, only the command was signalled. If anybody else ends both, the command
 * still counts as signalled. No client is served meanwhile, because little is left to
 * report. */
static void
await_own_term(struct shepherd *a)
{
    const long ns = a->spec.slurm ? OWN_TERM_WAIT_NS : UNIT_TERM_WAIT_NS;
    const struct timespec wait = {.tv_sec = ns / 1000000000L, .tv_nsec = ns % 1000000000L};
    siginfo_t from;
    sigset_t term;
    int got = 0;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    while (!a->term_by[0] && !a->unit_term && (got = sigtimedwait(&term, &from, &wait)) < 0 &&
           errno == EINTR)
        ;
    if (got == SIGTERM)
        stop_note_term(a, (uint32_t)from.si_pid, from.si_uid);
    if (a->spec.slurm || a->unit_term)
        stop_for_term(a);
}

/* Reaps ended children first, then checks what is left. The number per turn is bounded,
 * because a job may create children as fast as they are reaped. */
void
stop_reap(struct shepherd *a)
{
    struct rusage used;
    int status, n = 0;
    pid_t pid = 0;
    while (n++ < REAP_MAX && (pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
        outcome_add_usage(&a->facts, &used);
        if (pid == a->command.screen_pid)
            on_screen_gone(a, status);
        if (pid == a->removal_pid)
            a->removal_pid = -1;
        if (pid != a->command.pid)
            continue;
        if (a->facts.cause == CAUSE_NONE && is_end_by_term(status) &&
            (a->spec.slurm || signals_has_systemd()))
            await_own_term(a);
        a->facts.command_gone = true;
        a->facts.status = status;
        crash_point("shepherd-child-exited");
    }
    a->reaps_on = pid > 0;
    if (!a->facts.command_gone || a->phase == PHASE_ENDED)
        return;
    end_screen(a);
    /* A process started elsewhere but moved into our group (a container) is not our child. */
    if (pid < 0 && errno == ECHILD && !groups_are_populated(&a->facts.groups)) {
        if (!begin_removal(a))
            stop_end(a);
    } else if (a->removal_pid <= 0) {
        end_stragglers(a);
    }
}

/* Some process does not end on KILL. Reports it and leaves it to the machine. */
static void
give_up(struct shepherd *a)
{
    auto_procs struct procs left = PROCS_INIT;
    if (procs_read_descendants(getpid(), &left) == 0 && left.n > 0)
        snprintf(a->facts.stuck, sizeof a->facts.stuck,
                 "%zu of its processes do not end on KILL (pid %d is in state %c)", left.n,
                 (int)left.v[0].pid, left.v[0].state);
    stop_end(a);
}

void
stop_on_time(struct shepherd *a)
{
    a->wake_us = 0;
    switch (a->phase) {
    case PHASE_RUNNING:
        stop_because(a, CAUSE_LIMIT, "", a->spec.grace_ms);
        return;
    case PHASE_STOPPING:
        kill_now(a);
        return;
    case PHASE_REMOVING:
        a->removal_pid = -1; /* whatever holds up the removal, the job has ended */
        kill_now(a);
        return;
    case PHASE_KILLING:
        stop_reap(a); /* an emptied cgroup sends no signal */
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
        stop_wait_or_leave(a);
        return;
    }
}
