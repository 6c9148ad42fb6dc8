/* Determines the outcome of an attempt. stop.c asks once, when nothing of the job is left.
 * Invariant: code and signal are waitpid's or absent; the supervisor's actions affect only the
 * outcome's name. */
#include "shepherd/attempt/outcome.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/parse.h"
#include "shepherd/attempt/container_outcome.h"
#include "shepherd/attempt/oom.h"
#include "shepherd/begin/command.h"
#include "shepherd/begin/setup.h"
#include "shepherd/common/attempt_spec.h"
#include "sys/exitrec.h"

__attribute__((format(printf, 2, 3))) static void
set_text(struct ending *en, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(en->text, sizeof en->text, fmt, ap);
    va_end(ap);
}

static void
fill_status(const struct facts *f, struct ending *en)
{
    en->code = -1;
    if (!f->command_gone)
        return; /* KILL did not end it, so there is no status */
    if (WIFEXITED(f->status))
        en->code = WEXITSTATUS(f->status);
    else if (WIFSIGNALED(f->status))
        en->signal = WTERMSIG(f->status);
    en->outcome = en->signal ? OUTCOME_SIGNALED : OUTCOME_EXITED;
    container_fill_status(f, en);
}

static void
fill_cause(const struct facts *f, struct exitrec *r)
{
    struct ending *en = &r->ending;
    char limit[24];
    const char *how = f->was_killed ? ", killed after the grace period" : "";
    switch (f->cause) {
    case CAUSE_NONE:
        if (f->screen_closed && en->signal == SIGHUP)
            set_text(en, "its screen session was closed");
        return;
    case CAUSE_LIMIT:
        en->outcome = OUTCOME_TIMEOUT;
        set_text(en, "time limit of %s reached%s", format_duration(f->spec->limit_ms, limit),
                 how);
        return;
    case CAUSE_CANCEL:
        set_text(en, "cancelled%s%s%s", f->by[0] ? " by " : "", f->by, how);
        break;
    case CAUSE_PREEMPT:
        en->outcome = OUTCOME_PREEMPTED;
        set_text(en, "preempted by a job of higher priority%s", how);
        return;
    case CAUSE_REQUEUE:
        en->outcome = OUTCOME_REQUEUED;
        set_text(en, "stopped to run again%s%s%s", f->by[0] ? ", asked for by " : "", f->by,
                 how);
        memcpy(r->by, f->by, sizeof r->by);
        return;
    case CAUSE_EXCEED:
        en->outcome = OUTCOME_EXCEEDED;
        set_text(en, "used more VRAM than it declared%s", how);
        return;
    case CAUSE_UNIT_STOPS:
        /* Like a power loss: no user asked for it, and the job may run again (--requeue). */
        en->outcome = OUTCOME_LOST;
        set_text(en, "%s%s",
                 f->spec->slurm ? "its batch script on the node was killed"
                                : "the machine was shut down, or the unit of its jobs stopped",
                 how);
        return;
    case CAUSE_SHUTDOWN:
        set_text(en, "its supervisor was stopped (TERM from %s)%s", f->by, how);
        break;
    }
    en->outcome = OUTCOME_CANCELLED;
    memcpy(r->by, f->by, sizeof r->by);
}

/* A process that ended before the command began, unless we ended it. */
static void
fill_setup(const struct facts *f, struct exitrec *r)
{
    struct ending *en = &r->ending;
    if (f->cause != CAUSE_NONE || container_fill_failure(f, r))
        return;
    if (f->command->setup_fd >= 0 &&
        !setup_was_done(f->spec, f->command->setup_fd, en->text, sizeof en->text))
        en->outcome = OUTCOME_SETUP_FAILED;
}

static int64_t
us_of(const struct timeval *t)
{
    return (int64_t)t->tv_sec * 1000000 + t->tv_usec;
}

void
outcome_add_usage(struct facts *f, const struct rusage *ru)
{
    f->used.any = true;
    f->used.cpu_us += us_of(&ru->ru_utime) + us_of(&ru->ru_stime);
    if (ru->ru_maxrss > f->used.max_rss_kib)
        f->used.max_rss_kib = ru->ru_maxrss;
}

static void
read_usage(const struct facts *f, int64_t *cpu_ms, int64_t *max_rss_kib)
{
    *cpu_ms = f->used.any ? f->used.cpu_us / 1000 : -1;
    *max_rss_kib = f->used.any ? f->used.max_rss_kib : -1;
}

void
outcome_count(struct facts *f)
{
    struct counted *c = &f->counted;
    read_usage(f, &c->cpu_ms, &c->max_rss_kib);
    c->oom_kills = groups_oom_kills(&f->groups, &c->own_oom);
    c->is_set = true;
}

static void
fill_usage(const struct facts *f, struct ending *en)
{
    if (!f->counted.is_set) {
        read_usage(f, &en->cpu_ms, &en->max_rss_kib);
        return;
    }
    en->cpu_ms = f->counted.cpu_ms;
    en->max_rss_kib = f->counted.max_rss_kib;
}

/* True if the kernel's OOM killer was involved; the text says whose memory ran out. */
static bool
find_host_oom(const struct facts *f, struct ending *en)
{
    bool own = f->counted.own_oom;
    int64_t kills =
        f->counted.is_set ? f->counted.oom_kills : groups_oom_kills(&f->groups, &own);
    if (kills == 0)
        return false;
    if (own && f->spec->groups.limits.mem_mib > 0)
        set_text(en, "out of host memory (the limit was %d MiB)",
                 f->spec->groups.limits.mem_mib);
    else
        set_text(en, "killed by the kernel's OOM killer: the machine, or all jobs together, "
                     "ran out of memory");
    return true;
}

/* Only for jobs that ended by themselves: a job that we stopped did not run out of memory. */
static void
fill_oom(const struct facts *f, struct ending *en)
{
    if (f->cause != CAUSE_NONE || en->outcome == OUTCOME_SETUP_FAILED ||
        en->outcome == OUTCOME_NOT_STARTED || (en->outcome == OUTCOME_EXITED && en->code == 0))
        return;
    if (find_host_oom(f, en))
        en->oom = OOM_HOST;
    else if (oom_find_in_log(f->command->error_fd, f->command->error_from,
                             f->spec->oom_patterns, en->text, sizeof en->text) ||
             oom_find_in_log(f->command->log_fd, f->command->log_from, f->spec->oom_patterns,
                             en->text, sizeof en->text))
        en->oom = OOM_CUDA;
}

/* Explains a lost control daemon, because the errors its clients got may not. */
static void
fill_mps(const struct facts *f, struct ending *en)
{
    char why[120], text[sizeof en->text];
    if (f->cause != CAUSE_NONE || (en->outcome == OUTCOME_EXITED && en->code == 0))
        return;
    mps_lost(&f->mps, why, sizeof why);
    if (!why[0])
        return;
    snprintf(text, sizeof text, "MPS ended under it: %.90s%s%.40s", why,
             en->text[0] ? "; " : "", en->text);
    memcpy(en->text, text, sizeof text);
}

static void
fill_not_started(const struct facts *f, struct exitrec *r)
{
    struct ending *en = &r->ending;
    en->outcome = OUTCOME_NOT_STARTED;
    en->code = -1;
    en->errno_value = f->command->errnum;
    r->blame = f->command->blame;
    snprintf(en->text, sizeof en->text, "%s", f->command->text);
}

void
outcome_fill(const struct facts *f, int64_t now_boot_us, struct exitrec *out)
{
    struct ending *en = &out->ending;
    out->job = f->spec->job;
    out->attempt = f->spec->attempt;
    snprintf(out->boot_id, sizeof out->boot_id, "%s", clock_boot_id());
    en->cpu_ms = en->max_rss_kib = -1;
    if (f->command->pid < 0) {
        fill_not_started(f, out);
        return;
    }
    en->run_ms = (now_boot_us - f->command->boot_us) / 1000;
    fill_status(f, en);
    fill_cause(f, out);
    fill_setup(f, out);
    fill_usage(f, en);
    fill_oom(f, en);
    fill_mps(f, en);
    if (f->stuck[0])
        set_text(en, "%s", f->stuck);
}
