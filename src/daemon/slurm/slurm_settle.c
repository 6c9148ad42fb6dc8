/* Settles attempts from their folders, which alone decide. An exit record is an end, whatever
 * Slurm says. A mark without a record is LOST once Slurm has no such job and no heartbeat
 * arrives. Without a mark the command never ran, and the attempt is sent again. That is always
 * safe: of two Slurm jobs of one attempt, only one can make the mark. An attempt that must end
 * before it began ends when the daemon has made the mark itself. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "core/queue/endings.h"
#include "core/queue/queue.h"
#include "daemon/common/folder_name.h"
#include "daemon/common/instance.h"
#include "daemon/common/turn_due.h"
#include "daemon/slurm/slurm_priv.h"
#include "daemon/state/changes.h"
#include "daemon/state/job_facts.h"
#include "daemon/state/state.h"
#include "slurm/haste.h"
#include "sys/exitrec.h"

#define SCAN_US       (S_US / 2)
#define SCAN_PIECE_US (S_US / 80) /* per piece: a twentieth of the tick */
#define GONE_US       (5 * S_US)  /* before an attempt that never began is sent again */
/* Without heartbeats, before an attempt that Slurm no longer has is lost. A supervisor whose
 * batch script was killed sends none, and may need 30 s of grace and 60 s of killing to end
 * its command. */
#define SILENT_US     (120 * S_US)
#define UNREAD_US     (3600 * S_US) /* of errors with one folder before they count as silence */
#define CAUSE_US      (60 * S_US)   /* for Slurm, once asked, to say why an attempt ended */
#define SENDS_MAX     3
#define AGAIN_DOUBLED 5          /* maximum doublings: up to 160 s */
#define VOID_MARK     "-1\n"     /* the daemon's own mark; a node's begins with a time */
#define PACKED_US     (5 * S_US) /* between two reads of a folder without events, */
#define PACKED_MANY   1000       /* times attempts / this, to spare the file system */

static void
end(struct slurm *s, struct remote *r, const struct ending *ending)
{
    struct job *job = slurm_job_of(s, r);
    r->ended = true;
    s->some_left = true;
    if (!job)
        return;
    log_info("job=%u attempt=%d event=slurm-ended outcome=%s slurm_job=%s", r->job, r->attempt,
             outcome_name(ending->outcome), job->run->sent.id);
    jobs_attempt_ended(s->inst->state, job, ending);
    turn_touch(s->inst);
}

/* Makes the mark in place of a node, so that no Slurm job can begin the attempt any more; that
 * none had begun a moment ago is not enough. False: one has begun, or that cannot be known
 * yet. If the daemon dies before the number is written, the mark looks like a node's: then the
 * attempt is LOST, and does not run twice. */
static bool
take_mark(struct slurm *s, struct remote *r)
{
    char name[32], path[64];
    if (r->is_void || (!slurm_is_packed(r) && !r->is_sent && !r->is_again))
        return true;
    snprintf(path, sizeof path, "%s/started", folder_name(r->job, r->attempt, name));
    auto_close int fd = openat(shared_folder_fd(s->inst), path,
                               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) /* without the folder no node can begin it */
        return errno == ENOENT && slurm_folder_is_gone(s, r);
    (void)file_write_all(fd, VOID_MARK, strlen(VOID_MARK));
    crash_point("slurm-mark-taken");
    return r->is_void = true;
}

void
slurm_refuse(struct slurm *s, struct remote *r, const char *text)
{
    struct job *job = slurm_job_of(s, r);
    if (r->ended || r->began || !take_mark(s, r))
        return;
    struct ending ending = ending_never_ran(0, clock_wall_us());
    auto_free char *words = xasprintf("Slurm: %.*s", (int)strcspn(text, "\n"), text);
    text_copy_cut(ending.text, sizeof ending.text, words);
    end(s, r, &ending);
    if (job && job->state == JOB_PENDING)
        jobs_infeasible(s->inst->state, job, words);
}

/* --- with an exit record --- */

/* True if Slurm may have ended the attempt. Slurm's TERM reaches every process of the command
 * and the supervisor, in any order: a shell whose program was hit first exits with that
 * program's code. */
static bool
may_be_slurms(const struct job *job, const struct ending *e)
{
    int number = e->outcome == OUTCOME_SIGNALED ? e->signal
                 : e->outcome == OUTCOME_EXITED ? e->code - 128
                                                : 0;
    bool signalled = number == SIGTERM || number == SIGKILL;
    return !job->cancel_asked && !job->requeue_asked &&
           (e->outcome == OUTCOME_CANCELLED || signalled);
}

/* Also true if an administrator set the node down: Slurm ends what runs there with TERM. */
static bool
has_failed_node(const struct remote *r)
{
    return r->is_known &&
           (strcmp(r->state, "NODE_FAIL") == 0 || strcmp(r->state, "BOOT_FAIL") == 0);
}

/* Sets the cause that the record cannot contain: why Slurm ended the attempt. A command that
 * ran out of memory on a failing node ended by itself. */
static void
name_the_cause(const struct remote *r, const struct job *job, struct exitrec *rec)
{
    struct ending *e = &rec->ending;
    bool limit = strcmp(r->state, "TIMEOUT") == 0 || strcmp(r->state, "DEADLINE") == 0;
    bool says = r->is_known && slurm_is_its_run(r, job);
    if (says && limit) {
        e->outcome = OUTCOME_TIMEOUT;
        snprintf(e->text, sizeof e->text, "Slurm's own time limit reached");
    } else if (says && strcmp(r->state, "PREEMPTED") == 0) {
        e->outcome = OUTCOME_PREEMPTED;
        snprintf(e->text, sizeof e->text, "preempted by another job in Slurm");
    } else if (has_failed_node(r) && e->oom == OOM_NONE) {
        e->outcome = OUTCOME_LOST;
        snprintf(e->text, sizeof e->text, "Slurm ended it because its node failed%s%s",
                 r->node[0] ? ": " : "", r->node);
    } else if (says && !r->is_stuck && strcmp(r->state, "CANCELLED") == 0) {
        e->outcome = OUTCOME_CANCELLED;
        snprintf(e->text, sizeof e->text, "cancelled in Slurm, not by Berth");
        snprintf(rec->by, sizeof rec->by, "Slurm");
    } else if (e->outcome == OUTCOME_CANCELLED) {
        /* TERM came from Slurm or from somebody on the node: a killed slurmctld may forget
         * jobs, and tells nodes that report them to end them. Treating that as cancelled would
         * run the line again with the file. */
        e->outcome = OUTCOME_LOST;
        if (r->is_known)
            snprintf(e->text, sizeof e->text,
                     "it was ended on its node, and Slurm (%s) does not say why", r->state);
        else
            snprintf(e->text, sizeof e->text,
                     "Slurm ended it on its node and does not know it any more");
    }
}

/* Sets the cause for a packed attempt: if it was ended with its allocation, it is requeued for
 * the next. But an attempt that had all of an allocation's time would never end in any. */
static void
name_the_end(const struct remote *r, const struct job *job, struct exitrec *rec)
{
    struct ending *e = &rec->ending;
    const struct alloc *a = r->alloc;
    /* An allocation that exited by itself ended nothing. The record and the event use the same
     * clock. */
    bool by_slurm = a && (a->was_told ? e->ended_us >= a->told_us - S_US
                                      : !a->is_over && slurm_alloc_is_dead(a));
    if (by_slurm && may_be_slurms(job, e)) {
        e->outcome = OUTCOME_REQUEUED;
        snprintf(e->text, sizeof e->text, "its allocation was ended by Slurm (%s)",
                 a->is_known ? a->state : "unknown");
    } else if (a && e->outcome == OUTCOME_REQUEUED && !job->requeue_asked && !a->was_told &&
               job->req.limit_ms == 0 && e->run_ms >= a->spec.limit_ms / 10 * 9) {
        e->outcome = OUTCOME_TIMEOUT;
        snprintf(e->text, sizeof e->text,
                 "it did not end in the time of an allocation (slurm_allocation_s): give it a "
                 "time limit");
    } else if (e->outcome == OUTCOME_REQUEUED && !job->requeue_asked) {
        snprintf(e->text, sizeof e->text, "%s",
                 a && a->was_told ? "its allocation was ended by Slurm"
                                  : "the time of its allocation is over");
    }
}

/* A failure of the node is not the job's fault: the attempt is sent again, later each time,
 * because it may get the same node. */
static void
excuse(const struct remote *r, struct exitrec *rec)
{
    struct ending *e = &rec->ending;
    if (e->outcome != OUTCOME_NOT_STARTED || rec->blame == BLAME_COMMAND)
        return;
    log_warn("job=%u attempt=%d event=not-started %s", r->job, r->attempt, e->text);
    e->outcome = OUTCOME_NEVER_RAN;
    e->errno_value = 0;
}

static void
take_packed_record(struct slurm *s, struct remote *r, struct job *job, struct exitrec *rec)
{
    name_the_end(r, job, rec);
    if (rec->ending.outcome == OUTCOME_CANCELLED && !job->cancelled_by && rec->by[0])
        job->cancelled_by = xstrdup(rec->by);
    if (rec->started_us > 0)
        jobs_attempt_started(s->inst->state, job, rec->started_us);
    crash_point("slurm-before-record-taken");
    end(s, r, &rec->ending);
}

/* True while Slurm may still report why the attempt ended. It may take a while until it can be
 * asked. */
static bool
may_hear_cause(const struct slurm *s, struct remote *r, int64_t now)
{
    r->record_us = r->record_us ? r->record_us : now;
    if (!r->cause_us && s->polled_us > r->record_us)
        r->cause_us = now;
    return !r->gone_us && (!r->cause_us || now - r->cause_us < slurm_haste(CAUSE_US));
}

static void
take_record(struct slurm *s, struct remote *r, struct job *job, struct exitrec *rec,
            int64_t now)
{
    bool asks = may_be_slurms(job, &rec->ending);
    excuse(r, rec);
    if (slurm_is_packed(r)) {
        take_packed_record(s, r, job, rec);
        return;
    }
    if (asks && may_hear_cause(s, r, now)) {
        slurm_poll_soon(s);
        return; /* Slurm will say why in a moment */
    }
    if (asks)
        name_the_cause(r, job, rec);
    crash_point("slurm-before-record-taken");
    if (rec->ending.outcome == OUTCOME_CANCELLED && !job->cancelled_by && rec->by[0])
        job->cancelled_by = xstrdup(rec->by);
    if (rec->started_us > 0)
        jobs_attempt_started(s->inst->state, job, rec->started_us);
    end(s, r, &rec->ending);
}

/* --- without an exit record --- */

static void
set_lost(const struct remote *r, struct ending *e)
{
    *e = ending_never_ran(0, clock_wall_us());
    e->outcome = OUTCOME_LOST;
    if (r->folder_gone)
        snprintf(e->text, sizeof e->text, "its folder was removed");
    else if (r->is_stuck)
        snprintf(e->text, sizeof e->text, "nothing was heard of it any more%s%s",
                 r->node[0] ? " on " : "", r->node);
    else if (r->is_known)
        snprintf(e->text, sizeof e->text,
                 "Slurm ended it (%s%s%s) before it could record the end", r->state,
                 r->node[0] ? ", " : "", r->node);
    else
        snprintf(e->text, sizeof e->text,
                 "Slurm does not know it any more, and it has recorded no end");
}

/* Slurm's word alone is not enough: if its controller cannot reach a node, it says that the
 * job has failed while the command continues. */
static void
lose(struct slurm *s, struct remote *r, int64_t now)
{
    struct ending e;
    int64_t since = r->gone_us > r->pulse_us ? r->gone_us : r->pulse_us;
    since = since > s->back_us ? since : s->back_us;
    if (now - since < slurm_haste(SILENT_US))
        return;
    set_lost(r, &e);
    end(s, r, &e);
}

static void
cancel_unbegun(struct slurm *s, struct remote *r, struct job *job)
{
    struct ending e = ending_never_ran(0, clock_wall_us());
    if (r->ended || r->began || !take_mark(s, r))
        return;
    if (!job->requeue_asked || job->cancel_asked) {
        e.outcome = OUTCOME_CANCELLED;
        e.code = -1;
        snprintf(e.text, sizeof e.text, "cancelled before its command ran%s",
                 job->cancel_asked ? "" : ", in Slurm");
        if (!job->cancelled_by)
            job->cancelled_by = xstrdup("Slurm");
    }
    end(s, r, &e);
}

/* Backoff, so that a slurmctld that does not answer in time does not get the same array every
 * few seconds. */
static int64_t
again_in_us(int sends)
{
    return sends > 1 ? slurm_haste(GONE_US << (sends < AGAIN_DOUBLED ? sends : AGAIN_DOUBLED))
                     : 0;
}

/* Sends an attempt again that never began and of which no Slurm job is left. */
static void
send_again(struct slurm *s, struct remote *r, const struct job *job, int64_t now)
{
    char words[200];
    if (now - r->gone_us < slurm_haste(GONE_US) || r->gone_polls < 2)
        return;
    if (!r->was_listed && job->run->sent.id[0] && r->sends >= SENDS_MAX) {
        slurm_refuse(s, r,
                     "squeue does not list it once it was sent: do slurm_options, or a plugin "
                     "of Slurm, set another comment, user or cluster?");
        return;
    }
    if (r->is_known && r->sends >= SENDS_MAX) {
        snprintf(
            words, sizeof words,
            "its jobs end (%s) without reaching its folder: do the nodes see that? the setting "
            "slurm_folder can name one that they see; slurm.log beside its log says more",
            r->state);
        slurm_refuse(s, r, words);
        return;
    }
    log_warn("job=%u attempt=%d event=sent-again slurm=%s", r->job, r->attempt,
             r->is_known ? r->state : "unknown");
    r->is_sent = r->is_stuck = false;
    r->is_again = true;
    r->runs_us = r->stop_us = 0;
    r->is_known = false;
    r->gone_us = 0;
    r->lot->waits = true;
    r->lot->due_us = now + again_in_us(r->sends);
}

/* True if a person cancelled it: a slurmctld that lost jobs reuses their numbers, and Slurm
 * itself then cancels the new jobs, which nodes take for the old. Such jobs have a node, as
 * have those cancelled because a prolog failed: squeue shows no difference. */
static bool
was_cancelled(const struct remote *r)
{
    return r->is_known && !r->is_stuck && !r->is_again && !r->node[0] &&
           strcmp(r->state, "CANCELLED") == 0;
}

/* An earlier daemon made the mark and died before it recorded why; the next attempt will show
 * it. */
static void
give_up(struct slurm *s, struct remote *r)
{
    struct ending e = ending_never_ran(0, clock_wall_us());
    end(s, r, &e);
}

static void
settle_gone(struct slurm *s, struct remote *r, struct job *job, int64_t now)
{
    if (r->began || r->folder_gone)
        lose(s, r, now);
    else if (r->stop_asked || was_cancelled(r))
        cancel_unbegun(s, r, job);
    else if (r->is_void)
        give_up(s, r);
    else
        send_again(s, r, job, now);
}

/* --- the folders --- */

/* The number in a file, or 1 if the file is empty; if size is not 0, word gets the text after
 * the number. 0: there is no such file. */
static int64_t
read_number(int dir, const char *name, char *word, size_t size)
{
    char text[128];
    auto_close int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    char *end;
    if (n < 0)
        return 0;
    text[n] = '\0';
    long long v = strtoll(text, &end, 10);
    if (size && *end == ' ')
        snprintf(word, size, "%.*s", (int)strcspn(end + 1, "\n"), end + 1);
    return v ? v : 1; /* it exists, but its text is not written yet */
}

static void
look_at_mark(struct slurm *s, struct remote *r, struct job *job, int dir)
{
    struct sent *sent = &job->run->sent;
    char words[128] = "", peak[24] = "";
    int64_t at_us = r->began ? 0 : read_number(dir, "started", words, sizeof words);
    int64_t pulse = r->began || at_us ? read_number(dir, "pulse", peak, sizeof peak) : 0;
    if (pulse != r->pulse)
        r->pulse_us = clock_boot_us();
    r->pulse = pulse;
    long mib = strtol(peak, NULL, 10);
    if (peak[0] && mib > sent->peak_mib && mib <= VRAM_MAX_MIB)
        sent->peak_mib = (int32_t)mib;
    r->is_void |= at_us < 0;
    if (at_us <= 0 || (slurm_is_packed(r) && !slurm_packed_began(s, r, words)))
        return;
    r->began = true;
    s->some_left = true;
    r->is_sent = !slurm_is_packed(r);
    if (words[0])
        snprintf(sent->node, sizeof sent->node, "%.*s", (int)strcspn(words, " "), words);
    if (!jobs_attempt_started(s->inst->state, job, at_us > 1 ? at_us : clock_wall_us()))
        return;
    struct change *change = changes_add(&s->inst->state->changes, CHANGE_LAUNCHED);
    change->job = job->id;
    change->at_us = job->run->started_us;
    turn_touch_unplanned(s->inst);
    slurm_poll_soon(s); /* squeue tells the node */
}

/* True if the error is temporary: one of this process, this machine or the file server; the
 * read is retried. But a folder that stays unreadable while the shared folder is fine must not
 * hold its job forever. */
static bool
is_passing(const struct slurm *s, struct remote *r, int errnum, int64_t now)
{
    bool is_gone = errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP;
    if (slurm_is_lack(errnum))
        return true;
    if (!errnum || is_gone || !shared_folder_is_apart(s->inst))
        return false;
    r->unread_us = r->unread_us > s->back_us ? r->unread_us : now;
    return now - r->unread_us < slurm_haste(UNREAD_US);
}

/* Opens everything anew each time, so that a file system with only close-to-open consistency
 * shows the current state. */
static void
look(struct slurm *s, struct remote *r, int64_t now)
{
    char name[32];
    struct exitrec rec;
    struct err e = {0};
    struct job *job = slurm_job_of(s, r);
    if (!job || r->ended)
        return;
    auto_close int dir =
        openat(shared_folder_fd(s->inst), folder_name(r->job, r->attempt, name),
               O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 && is_passing(s, r, errno, now))
        return;
    r->folder_gone = dir < 0 && errno == ENOENT;
    if (dir >= 0) {
        look_at_mark(s, r, job, dir);
        r->seen_us = now;
    }
    if (slurm_is_packed(r))
        slurm_packed_look(s, r, job, now);
    int rc = dir < 0 ? 0 : exitrec_read_at(dir, r->job, r->attempt, &rec, &e);
    if (rc == 1) {
        take_record(s, r, job, &rec, now);
        return;
    }
    if (rc < 0 && (!r->gone_us || is_passing(s, r, e.errnum, now)))
        return; /* it is being written */
    if (rc == 0 && dir >= 0)
        r->unread_us = 0;
    if (r->gone_us)
        settle_gone(s, r, job, now);
}

/* Ends an attempt that was stopped before it was sent. */
static void
drop_unsent(struct slurm *s, struct remote *r)
{
    struct job *job = slurm_job_of(s, r);
    if (job && r->stop_asked && !r->is_sent && !r->ended && r->lot != s->sending)
        cancel_unbegun(s, r, job);
}

/* The allocation reports events; besides, the folder is read now and then, and when an
 * allocation has ended. */
static void
look_at_packed(struct slurm *s, struct remote *r, int64_t now)
{
    int64_t many = HASH_COUNT(s->remotes) / PACKED_MANY;
    if (r->look_us > now && s->round > s->sweep_round)
        return;
    r->look_us = now + (r->has_left            ? SCAN_US
                        : r->began || many < 1 ? PACKED_US
                                               : PACKED_US * many);
    look(s, r, now);
    struct job *job = r->ended || r->began ? NULL : slurm_job_of(s, r);
    if (job && r->stop_asked)
        cancel_unbegun(s, r, job);
    else if (job && r->is_void)
        give_up(s, r);
}

/* Runs in pieces, so that a slow file system does not delay the daemon's clients. */
void
slurm_scan(struct slurm *s)
{
    int64_t now = clock_boot_us();
    if (s->scan_us > now)
        return;
    for (struct remote *r = s->remotes; r; r = r->hh.next) {
        if (r->round == s->round)
            continue;
        if (clock_boot_us() - now > SCAN_PIECE_US)
            return;
        r->round = s->round;
        slurm_write_word(s, r);
        if (slurm_is_packed(r)) {
            look_at_packed(s, r, now);
            continue;
        }
        if (r->is_sent || r->is_again)
            look(s, r, now);
        if (!r->is_sent)
            drop_unsent(s, r);
    }
    s->round++;
    s->scan_us = now + SCAN_US;
}
