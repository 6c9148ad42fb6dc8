/* An allocation: a Slurm job with whole GPUs, which attempts share by VRAM; see allocation.h
 * and docs/slurm.md. While it has room and time, this process takes lines from the backlog
 * (allocation_lines.c), forks a supervisor for each, and appends to the file `events` in its
 * folder what the daemon should look at. It does not judge how an attempt ended: the attempts'
 * folders record that. The daemon may exit and restart meanwhile.
 *
 * It ends when it has been idle for a while, when the daemon or Slurm asks it to, and at the
 * end of its time: running attempts are then stopped, to run again elsewhere. */
#include "shepherd/slurm/allocation.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "core/ledger/ledger.h"
#include "shepherd/attempt/kill.h"
#include "shepherd/slurm/allocation_priv.h"
#include "shepherd/slurm/stand_in.h"

#define LOOK_MS        500 /* between two readings of the backlog */
#define PROBE_MS       10000
#define SPEC_MAX_BYTES 512
/* Interval and deadline for killing what a killed supervisor left, as in attempt/stop.c. */
#define ORPHANS_PASS_MS 10
#define ORPHANS_MAX_US  INT64_C(60000000)

/* --- events --- */

void
allocation_say(struct allocation *a, const char *format, ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    buf_addf(&a->events, "%" PRId64 " %s\n", clock_wall_us(), line);
}

/* Closes the file each time, so that the daemon's machine sees the data. */
static void
write_events(struct allocation *a)
{
    auto_close int fd =
        a->events.len == 0 ? -1 : openat(a->dir, "events", O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd >= 0 && file_write_all(fd, a->events.data, a->events.len) == 0)
        buf_clear(&a->events);
}

/* --- running attempts --- */

static void
remove_running(struct allocation *a, struct running *r)
{
    for (struct running **at = &a->running; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    measure_drop(&a->measure, &r->attempt.seen);
    ledger_release(a->cards.ledger, r->attempt.job);
    allocation_say(a, "ended %u.%d", r->attempt.job, r->attempt.attempt);
    node_attempt_close(&r->attempt);
    free(r);
    a->n_running--;
    a->idle_us = clock_boot_us();
}

static struct running *
find_running(const struct allocation *a, pid_t pid)
{
    struct running *r = a->running;
    while (r && r->attempt.supervisor != pid)
        r = r->next;
    return r;
}

/* A killed supervisor leaves processes that may still use its GPU, so its room stays reserved
 * until they are gone. */
static void
on_supervisor_gone(struct allocation *a, struct running *r, int status)
{
    node_attempt_left(&r->attempt, status);
    if (!WIFSIGNALED(status)) {
        remove_running(a, r);
        return;
    }
    r->attempt.supervisor = -1; /* the pid may be reused soon */
    r->killed_us = clock_boot_us();
    a->has_orphans = true;
    a->passes = 0;
}

static void
reap(struct allocation *a)
{
    pid_t pid;
    int status;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        struct running *r = find_running(a, pid);
        if (pid == a->measure.probe)
            a->measure.probe = 0;
        if (r)
            on_supervisor_gone(a, r, status);
    }
}

static bool
is_ours(const void *whose, pid_t pid)
{
    const struct allocation *a = whose;
    return pid == a->measure.probe || find_running(a, pid);
}

/* One pass over what killed supervisors have left. Processes that do not end on KILL do not
 * reserve room forever: that is the machine's problem by then. */
static void
end_orphans(struct allocation *a, int64_t now_us)
{
    struct kill_known known = {is_ours, a};
    struct running *next;
    if (!a->has_orphans)
        return;
    bool any_left = kill_pass(kill_find_orphans, &known, a->passes++) > 0;
    a->has_orphans = false;
    for (struct running *r = a->running; r; r = next) {
        next = r->next;
        if (r->killed_us == 0)
            continue;
        if (any_left && now_us - r->killed_us < ORPHANS_MAX_US)
            a->has_orphans = true;
        else
            remove_running(a, r);
    }
}

/* Stops attempts before the allocation ends, each early enough for its own grace. */
static void
cut(struct allocation *a, int64_t now_us)
{
    for (struct running *r = a->running; r; r = r->next) {
        int64_t early_us = (r->attempt.grace_ms - ALLOCATION_GRACE_MS) * 1000;
        int64_t at_us = a->end_us - (early_us > 0 ? early_us : 0);
        if (r->attempt.limit_ms > 0)
            at_us += ALLOCATION_SLACK_MS * INT64_C(1000);
        if (r->is_cut || (!a->was_told && now_us < at_us))
            continue;
        node_attempt_requeue(&r->attempt, a->was_told ? "Slurm" : "the allocation's end");
        r->is_cut = true;
    }
}

/* --- the loop --- */

/* Fills in all descriptors; the first two are the signals' and the probe's. */
static nfds_t
fill_polls(const struct allocation *a, struct pollfd *p)
{
    nfds_t n = 0;
    p[n++] = (struct pollfd){.fd = a->sig_fd, .events = POLLIN};
    p[n++] = (struct pollfd){.fd = a->measure.fd, .events = POLLIN};
    for (const struct running *r = a->running; r; r = r->next)
        p[n++] = (struct pollfd){.fd = r->attempt.talk, .events = POLLIN};
    return n;
}

static void
wait_and_read(struct allocation *a)
{
    auto_free struct pollfd *p = xcalloc((size_t)a->n_running + 2, sizeof *p);
    nfds_t n = fill_polls(a, p);
    int ms = measure_ask(&a->measure);
    if (ms < 0 || ms > LOOK_MS)
        ms = LOOK_MS;
    if (a->has_orphans && ms > ORPHANS_PASS_MS)
        ms = ORPHANS_PASS_MS;
    if (poll(p, n, ms) < 0 && errno != EINTR)
        return;
    if (stand_in_was_told(a->sig_fd) && !a->was_told) {
        a->was_told = a->is_leaving = true;
        allocation_say(a, "told");
        write_events(a);
    }
    if (p[1].revents)
        measure_read(&a->measure);
    n = 2;
    for (struct running *r = a->running; r; r = r->next)
        if (p[n++].revents)
            node_attempt_read(&r->attempt);
    reap(a);
}

static bool
is_over(const struct allocation *a, int64_t now_us)
{
    if (a->running)
        return false;
    return a->is_leaving || now_us >= a->end_us ||
           now_us - a->idle_us >= a->spec.idle_ms * 1000;
}

static void
serve(struct allocation *a)
{
    int64_t look_us = 0;
    a->idle_us = clock_boot_us();
    for (;;) {
        int64_t now_us = clock_boot_us();
        int before = a->n_running;
        if (now_us >= look_us) {
            allocation_read_backlog(a);
            look_us = now_us + LOOK_MS * INT64_C(1000);
        }
        end_orphans(a, now_us);
        cut(a, now_us);
        if (now_us < a->end_us)
            allocation_start_lines(a, now_us);
        for (struct running *r = a->running; r; r = r->next)
            node_attempt_pulse(&r->attempt, now_us);
        if (a->n_running > before)
            a->idle_us = now_us;
        write_events(a);
        if (is_over(a, now_us))
            return;
        wait_and_read(a);
    }
}

/* --- begin and end --- */

static int
open_folders(struct allocation *a, const char *folder, struct err *e)
{
    char text[SPEC_MAX_BYTES + 1];
    const char *slash = strrchr(folder, '/');
    const char *name = slash ? slash + 1 : folder;
    memcpy(a->key, name, strnlen(name, sizeof a->key - 1));
    a->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    a->jobs =
        a->dir < 0 ? -1 : openat(a->dir, "../../jobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_close int fd = a->jobs < 0 ? -1 : openat(a->dir, "spec", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, SPEC_MAX_BYTES);
    if (n < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot read %s", folder);
    text[n] = '\0';
    if (!allocation_spec_read(text, &a->spec))
        return err_set(e, ERR_FAILED, "%s/spec is not an allocation's", folder);
    return 0;
}

/* If an uncertain submission made two Slurm jobs with one key, the first one stays. */
static int
make_events(const struct allocation *a)
{
    auto_close int fd =
        openat(a->dir, "events", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? -1 : 0;
}

/* Waits until the probe has listed the GPUs, with a deadline. */
static void
await_probe(struct allocation *a)
{
    int64_t until = clock_boot_us() + PROBE_MS * INT64_C(1000);
    while (a->measure.fd >= 0 && a->measure.samples == 0 && clock_boot_us() < until) {
        struct pollfd p = {.fd = a->measure.fd, .events = POLLIN};
        int ms = measure_ask(&a->measure);
        if (poll(&p, 1, ms < 0 || ms > LOOK_MS ? LOOK_MS : ms) > 0)
            measure_read(&a->measure);
    }
}

static void
say_cards(struct allocation *a)
{
    auto_buf struct buf text = BUF_INIT;
    char host[65] = "";
    (void)gethostname(host, sizeof host - 1);
    for (int i = 0; i < a->cards.n; i++)
        buf_addf(&text, " %d", a->cards.mib[i]);
    allocation_say(a, "here %s%s", host, buf_str(&text));
}

static int
run(struct allocation *a, struct err *e)
{
    int64_t began_us = clock_boot_us();
    a->sig_fd = stand_in_signals(e);
    if (a->sig_fd < 0)
        return SLURM_UNREADABLE;
    if (make_events(a) < 0) {
        (void)err_errno(e, ERR_FAILED, errno, "cannot make the events of %s", a->key);
        return SLURM_TAKEN;
    }
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* to inherit what a killed supervisor leaves */
    a->end_us = began_us + a->spec.limit_ms * 1000;
    measure_begin(&a->measure);
    await_probe(a);
    if (allocation_cards_find(&a->cards, a->spec.gpus, a->spec.gpu_mib, &a->measure, e) < 0) {
        allocation_say(a, "failed %s", e->text);
        write_events(a);
        return 1;
    }
    say_cards(a);
    serve(a);
    allocation_say(a, "over");
    write_events(a);
    return 0;
}

int
allocation_run(const char *folder)
{
    struct allocation a = {.dir = -1, .jobs = -1, .sig_fd = -1};
    struct err e = {0};
    int status = open_folders(&a, folder, &e) < 0 ? SLURM_UNREADABLE : run(&a, &e);
    if (e.code)
        fprintf(stderr, "berth-shepherd: %s\n", e.text);
    allocation_forget_lines(&a);
    if (a.cards.ledger)
        allocation_cards_free(&a.cards);
    buf_free(&a.events);
    return status;
}
