/* Watches supervisors: see supervisor_watch.h. There is one watch per attempt, in a hash by
 * job id, until the outcome is committed (watch_settled). The connection is the socket pair
 * made at launch or, after a restart of the daemon, ctl.sock in the attempt's folder.
 *
 * End of file without `ended` means that the supervisor has died. Then a sweeper process waits
 * for the lock, kills what the job left behind and exits. Only after that the folder is read:
 * an exit record counts; otherwise, without a `started` mark the command never ran; otherwise
 * the attempt is LOST. No outcome is ever guessed. supervisor_hear.c handles the messages
 * of supervisors. */
#include "daemon/attempt/supervisor_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>
#include <uv.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/unixsock.h"
#include "core/ledger/ledger.h"
#include "core/queue/endings.h"
#include "core/queue/queue.h"
#include "daemon/attempt/attempt_folder.h"
#include "daemon/attempt/attempts.h"
#include "daemon/attempt/supervisor_watch_priv.h"
#include "daemon/attempt/sweeper.h"
#include "daemon/common/folder_name.h"
#include "daemon/common/instance.h"
#include "daemon/common/peer_lines.h"
#include "daemon/state/changes.h"
#include "daemon/state/job_facts.h"
#include "sys/exitrec.h"
#include "sys/nursery_packets.h"

#define SWEEP_FIRST_MS 100 /* before a failed sweeper is replaced; doubles */
#define SWEEP_MAX_MS   10000
#define YOUNG_MS       500 /* between tries to reach a supervisor that does not listen yet */
/* Upper bound until it listens: with a slow driver, MPS, its user's folders and screen. */
#define YOUNG_US      (150 * INT64_C(1000000))
#define UNREADABLE_US (60 * INT64_C(1000000)) /* for an I/O error to pass */

static void shepherd_gone(struct watcher *w, struct watch *x);
static void reconnect(struct watcher *w, struct watch *x);
static void sweeper_gone(struct watcher *w, struct watch *x);

struct watcher *
watcher_new(struct attempts *a)
{
    struct watcher *w = xcalloc(1, sizeof *w);
    w->attempts = a;
    uv_timer_init(a->inst->loop, &w->sweep_timer);
    w->sweep_timer.data = w;
    return w;
}

void
watch_mps_arrived(struct watch *x)
{
    if (x->mps_fd >= 0)
        close(x->mps_fd);
    x->mps_fd = -1;
}

static void
watch_drop(struct watcher *w, struct watch *x)
{
    peer_lines_close(x->link);
    HASH_DEL(w->watches, x);
    watch_mps_arrived(x);
    free(x->cap_group);
    free(x);
}

void
watcher_close(struct watcher *w)
{
    struct watch *x, *next;
    HASH_ITER(hh, w->watches, x, next)
    watch_drop(w, x);
    uv_close((uv_handle_t *)&w->sweep_timer, NULL);
}

void
watcher_free(struct watcher *w)
{
    free(w);
}

static struct watch *
find(const struct watcher *w, uint32_t job)
{
    struct watch *x;
    HASH_FIND(hh, w->watches, &job, sizeof job, x);
    return x;
}

static struct watch *
add(struct watcher *w, const struct job *job)
{
    struct watch *x = find(w, job->id);
    if (x)
        err_abort("job %u is watched twice", job->id);
    x = xcalloc(1, sizeof *x);
    x->watcher = w;
    x->job = job->id;
    x->attempt = job->run->number;
    x->mps_fd = -1;
    HASH_ADD(hh, w->watches, job, sizeof x->job, x);
    return x;
}

struct job *
watch_job_of(const struct watcher *w, const struct watch *x)
{
    struct job *job = queue_get(w->attempts->inst->queue, x->job);
    return job && job->run && job->run->number == x->attempt ? job : NULL;
}

/* --- messages to a supervisor --- */

static bool
say(struct watch *x, const char *text)
{
    if (!x->link || x->to_sweeper)
        return false;
    int n = peer_lines_say(x->link, text, strlen(text));
    if (n < 0 && n != UV_EPIPE && n != UV_ECONNRESET)
        log_warn("job=%u cannot reach its supervisor: %s", x->job, uv_strerror(n));
    return n >= 0;
}

void
watch_say_stop(struct watch *x, const struct job *job, const char *why, const char *by)
{
    auto_buf struct buf text = BUF_INIT;
    nursery_add_cancel(&text, why, by, job_grace_ms(job));
    say(x, buf_str(&text));
}

void
watch_read_change(struct attempts *a, const struct change *change)
{
    struct watch *x = find(a->watcher, change->job);
    const struct job *job = x && !x->ended ? watch_job_of(a->watcher, x) : NULL;
    if (!job)
        return;
    if (change->type == CHANGE_CANCEL || change->type == CHANGE_CANCEL_MORE)
        watch_say_stop(x, job, NULL, job->cancelled_by);
    else if (change->type == CHANGE_REQUEUE)
        watch_say_stop(x, job, "requeue", change->by);
    else if (change->type == CHANGE_PREEMPT)
        watch_say_stop(x, job, "preempt", NULL);
}

void
watch_exceeded(struct attempts *a, const struct job *job)
{
    struct watch *x = find(a->watcher, job->id);
    if (x)
        watch_say_stop(x, job, "exceed", NULL);
}

bool
watch_signal(struct attempts *a, const struct job *job, int sig)
{
    struct watch *x = find(a->watcher, job->id);
    char text[48];
    snprintf(text, sizeof text, "{\"op\":\"signal\",\"signal\":%d}\n", sig);
    return x && !x->ended && say(x, text);
}

void
watch_settled(struct attempts *a, const struct job *job)
{
    struct watch *x = find(a->watcher, job->id);
    if (!x || x->attempt != job->run->number) { /* an attempt on Slurm */
        folder_remove(a, job);
        return;
    }
    say(x, "{\"op\":\"recorded\"}\n");
    watch_drop(a->watcher, x);
    folder_done(a, job);
}

static void
on_line(void *arg, const char *line, size_t len)
{
    struct watch *x = arg;
    struct watcher *w = x->watcher;
    if (line) {
        watch_hear(w, x, line, len);
        return;
    }
    peer_lines_close(TAKE(x->link));
    if (x->to_sweeper)
        sweeper_gone(w, x);
    else if (x->not_forked)
        watch_not_forked(w, x, x->not_forked);
    else
        shepherd_gone(w, x);
}

/* Takes ownership of the descriptor. */
static int
open_link(struct watch *x, int fd, bool to_sweeper, struct err *e)
{
    x->to_sweeper = to_sweeper;
    x->link = peer_lines_open(x->watcher->attempts->inst->loop, fd, on_line, x, e);
    return x->link ? 0 : -1;
}

int
watch_attempt(struct attempts *a, struct job *job, int fd, struct err *e)
{
    struct watch *x = add(a->watcher, job);
    x->linked_us = clock_boot_us();
    return open_link(x, fd, false, e);
}

void
watch_hold_mps(struct attempts *a, uint32_t job, int fd)
{
    struct watch *x = find(a->watcher, job);
    if (x)
        x->mps_fd = fd;
    else if (fd >= 0)
        close(fd);
}

int
watch_say_go(struct attempts *a, uint32_t job)
{
    const struct watch *x = find(a->watcher, job);
    int fd = x && x->link ? peer_lines_fd(x->link) : -1;
    if (fd < 0)
        return 0;
    ssize_t sent;
    do
        sent = send(fd, NURSERY_GO, sizeof NURSERY_GO - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent == sizeof NURSERY_GO - 1)
        return 1;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
        return 0;
    log_warn("job=%u cannot tell its supervisor to start: %s", job, strerror(errno));
    (void)shutdown(fd, SHUT_RDWR);
    return -1;
}

void
watch_forget(struct attempts *a, uint32_t job)
{
    struct watch *x = find(a->watcher, job);
    if (x)
        watch_drop(a->watcher, x);
}

bool
watch_has_silent(const struct attempts *a, int64_t for_us)
{
    int64_t before_us = clock_boot_us() - for_us;
    const struct watch *x;
    for (x = a->watcher->watches; x; x = x->hh.next)
        if (x->linked_us && !x->shepherd && !x->ended && x->link && x->linked_us <= before_us)
            return true;
    return false;
}

bool
watch_has_of_before(const struct attempts *a)
{
    const struct watch *x;
    for (x = a->watcher->watches; x; x = x->hh.next)
        if (x->rebooted && !x->ended)
            return true;
    return false;
}

size_t
watch_n_unswept(const struct attempts *a)
{
    size_t n = 0;
    const struct watch *x;
    for (x = a->watcher->watches; x; x = x->hh.next)
        n += x->sweep_us > 0 && !x->young_until_us;
    return n;
}

/* --- after a supervisor's death --- */

/* True if reading failed for a temporary reason. An I/O error may be temporary, or a damaged
 * block for good, so it counts as temporary for a limited time. */
static bool
passes(struct watch *x, const struct err *e)
{
    int64_t now = clock_boot_us();
    if (e->errnum == EIO && !x->io_error_us)
        x->io_error_us = now;
    if (e->errnum == EIO)
        return now - x->io_error_us < UNREADABLE_US;
    return e->errnum == EMFILE || e->errnum == ENFILE || e->errnum == ENOMEM ||
           e->errnum == EINTR || e->errnum == EAGAIN;
}

/* unread: why the folder could not be read; NULL: it was read and has no outcome. */
static void
set_lost(const struct watch *x, const struct err *unread, struct ending *ending)
{
    const char *why = x->rebooted ? "the machine went down while the job ran"
                      : x->folder_gone
                          ? "its folder was removed while the job ran"
                          : "its supervisor vanished before it could record the end";
    ending->outcome = OUTCOME_LOST;
    if (!unread)
        snprintf(ending->text, sizeof ending->text, "%s", why);
    else
        snprintf(ending->text, sizeof ending->text, "%s; its record cannot be read: %.60s", why,
                 unread->errnum ? strerror(unread->errnum) : unread->text);
}

/* The outcome of an attempt without a supervisor, from its folder: an exit record, or else
 * NEVER_RAN or LOST in rec->ending. -1: cannot be read now. */
static int
read_outcome(struct watcher *w, struct watch *x, struct exitrec *rec, struct err *e)
{
    char name[32];
    int32_t pid;
    int rc = 0;
    auto_close int dir =
        openat(w->attempts->inst->jobs_fd, folder_name(x->job, x->attempt, name),
               O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0)
        rc = exitrec_read_at(dir, x->job, x->attempt, rec, e);
    else if (errno != ENOENT)
        rc = err_errno(e, ERR_FAILED, errno, "cannot open the attempt's folder %s", name);
    if (rc == 1)
        return 0;
    if (rc == 0 && dir >= 0)
        rc = exitrec_started_at(dir, &pid, NULL, e);
    if (rc < 0 && passes(x, e))
        return -1;
    if (rc < 0)
        log_error("job=%u attempt=%d event=unreadable %s", x->job, x->attempt, e->text);
    *rec = (struct exitrec){.ending = ending_never_ran(0, clock_wall_us())};
    /* The `started` mark is not fsynced, so its absence proves something only within
     * one boot. */
    if (rc != 0 || dir < 0 || x->rebooted || x->folder_gone)
        set_lost(x, rc < 0 ? e : NULL, &rec->ending);
    return 0;
}

static void on_sweep_timer(uv_timer_t *timer);

/* Arms the timer for ms from now, unless it expires sooner. */
static void
wake_sweeps(struct watcher *w, int64_t ms)
{
    if (!uv_is_active((uv_handle_t *)&w->sweep_timer) ||
        uv_timer_get_due_in(&w->sweep_timer) > (uint64_t)ms)
        uv_timer_start(&w->sweep_timer, on_sweep_timer, (uint64_t)ms, 0);
}

/* Schedules another sweeper or, if one has finished, another look at the folder. The attempt
 * stays unsettled until then, because its processes may still run. */
static void
sweep_later(struct watcher *w, struct watch *x)
{
    int64_t ms = SWEEP_FIRST_MS;
    for (int i = 0; i < x->sweeps && ms < SWEEP_MAX_MS; i++)
        ms *= 2;
    ms = ms < SWEEP_MAX_MS ? ms : SWEEP_MAX_MS;
    x->sweeps++;
    x->sweep_us = clock_boot_us() + ms * 1000;
    wake_sweeps(w, ms);
}

static void
settle_from_folder(struct watcher *w, struct watch *x)
{
    struct job *job = watch_job_of(w, x);
    struct err e = {0};
    if (!job || x->ended)
        return;
    struct exitrec rec;
    if (read_outcome(w, x, &rec, &e) < 0) {
        log_error("job=%u attempt=%d its outcome cannot be read now: %s", x->job, x->attempt,
                  e.text);
        sweep_later(w, x);
        return;
    }
    log_info("job=%u attempt=%d event=settled-from-folder outcome=%s", x->job, x->attempt,
             outcome_name(rec.ending.outcome));
    watch_take_record(w, x, job, &rec);
    if (x->rebooted) /* no VRAM use survives a reboot, and the end belongs in this turn */
        jobs_check_clear(w->attempts->inst->state, job, true);
}

static void
on_sweep_timer(uv_timer_t *timer)
{
    struct watcher *w = timer->data;
    int64_t now = clock_boot_us(), first = INT64_MAX;
    struct watch *x, *next;
    HASH_ITER(hh, w->watches, x, next)
    {
        if (x->sweep_us && x->sweep_us <= now) {
            x->sweep_us = 0;
            if (x->swept)
                settle_from_folder(w, x);
            else if (x->young_until_us)
                reconnect(w, x);
            else
                shepherd_gone(w, x);
        } else if (x->sweep_us && x->sweep_us < first) {
            first = x->sweep_us;
        }
    }
    if (first != INT64_MAX)
        wake_sweeps(w, (first - now) / 1000 + 1);
}

static void
sweeper_gone(struct watcher *w, struct watch *x)
{
    if (x->swept) {
        settle_from_folder(w, x);
        return;
    }
    /* A sweeper that died has killed nothing, and perhaps never got the lock. */
    log_warn("job=%u attempt=%d event=sweeper-died starting another", x->job, x->attempt);
    sweep_later(w, x);
}

static void
shepherd_gone(struct watcher *w, struct watch *x)
{
    struct err e = {0};
    struct job *job = watch_job_of(w, x);
    if (x->ended || !job)
        return; /* it reported its end and exited; the commit is under way */
    x->swept = false;
    x->not_forked = 0;
    int fd = sweeper_start(w->attempts, job, &x->folder_gone, &e);
    if (fd >= 0 && open_link(x, fd, true, &e) == 0)
        return;
    log_error("job=%u cannot end what its supervisor left: %s", x->job, e.text);
    sweep_later(w, x);
}

/* --- after a restart --- */

static int
connect_ctl(int dir)
{
    struct sockaddr_un addr;
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || unixsock_at(dir, "ctl.sock", &addr) < 0 ||
        connect(fd, (struct sockaddr *)&addr, sizeof addr))
        return -1;
    return TAKE_FD(fd);
}

/* A supervisor holds the lock from its birth and listens a moment later; a daemon killed and
 * restarted in between finds one that does not listen yet. Blocks, but only at start-up and
 * for at most 0.2 s; the caller handles what is still not listening. */
static int
connect_young(int dir)
{
    const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
    int fd = connect_ctl(dir);
    for (int i = 0; fd < 0 && i < 40 && file_is_locked_at(dir, "lock", NULL) == 1; i++) {
        nanosleep(&pause, NULL);
        fd = connect_ctl(dir);
    }
    return fd;
}

/* The process that listens on ctl.sock. Its hello also says so, but a sample may arrive before
 * that, and would take the job's processes for foreign ones. */
static pid_t
listener_of(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 ? who.pid : 0;
}

/* Without a connection the supervisor is dead, or does not listen yet (which may take a
 * while), or an earlier daemon's sweeper is at work; the latter two hold the lock. After that
 * while, a new sweeper waits for the lock. Takes ownership of fd (-1: not connected). */
static void
link_or_sweep(struct watcher *w, struct watch *x, int dir, int fd)
{
    struct err e = {0};
    if (fd >= 0)
        x->shepherd = listener_of(fd);
    if (fd >= 0 && open_link(x, fd, false, &e) == 0) {
        log_info("job=%u attempt=%d event=reconnected", x->job, x->attempt);
        x->young_until_us = 0;
    } else if (dir >= 0 && clock_boot_us() < x->young_until_us &&
               file_is_locked_at(dir, "lock", NULL) == 1) {
        x->sweep_us = clock_boot_us() + YOUNG_MS * INT64_C(1000);
        wake_sweeps(w, YOUNG_MS);
    } else {
        x->young_until_us = 0;
        shepherd_gone(w, x);
    }
}

static void
reconnect(struct watcher *w, struct watch *x)
{
    char name[32];
    auto_close int dir =
        openat(w->attempts->inst->jobs_fd, folder_name(x->job, x->attempt, name),
               O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    link_or_sweep(w, x, dir, dir < 0 ? -1 : connect_ctl(dir));
}

void
watch_recover(struct attempts *a, struct job *job)
{
    char name[32];
    struct watch *x = add(a->watcher, job);
    auto_close int dir = openat(a->inst->jobs_fd, folder_name(job->id, job->run->number, name),
                                O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (a->rebooted && (dir < 0 || file_is_locked_at(dir, "lock", NULL) != 1)) {
        x->rebooted = x->swept = true;
        settle_from_folder(a->watcher, x);
        return;
    }
    x->young_until_us = clock_boot_us() + YOUNG_US;
    link_or_sweep(a->watcher, x, dir, dir < 0 ? -1 : connect_young(dir));
}

uint32_t
watch_job_of_shepherd(const struct attempts *a, pid_t pid)
{
    const struct watch *x;
    for (x = a->watcher->watches; x; x = x->hh.next)
        if (x->shepherd == pid)
            return x->job;
    return 0;
}

static void
add_groups(const struct attempts *a, struct watch *x, const struct job *job, struct buf *out)
{
    if (!x->cap_group)
        x->cap_group = folder_read_cap_group(a, job);
    for (int i = 0; x->cap_group && i < job->run->n_gpus; i++)
        buf_addf(out, "group %s %s\n",
                 ledger_card(a->inst->ledger, job->run->gpus[i])->info.uuid, x->cap_group);
}

void
watch_add_capped(const struct attempts *a, struct buf *out)
{
    for (struct job *job = queue_active(a->inst->queue); job; job = queue_active_next(job)) {
        struct watch *x = find(a->watcher, job->id);
        if (x && x->attempt == job->run->number && job->run->cap_mib > 0 &&
            job->state != JOB_COMPLETING)
            add_groups(a, x, job, out);
    }
}
