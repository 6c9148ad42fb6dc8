/* The backlog, which all allocations read and only the daemon replaces. Any of them may start
 * any line: the one that makes the mark in the attempt's folder owns the attempt. So nothing
 * is assigned, and lines that an allocation has not started remain when it ends. Lines are
 * tried in order. A line without room is skipped, but after PATIENCE_US nothing behind it is
 * started here until it fits. Called by allocation.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "core/ledger/ledger.h"
#include "shepherd/slurm/allocation_priv.h"

#define BACKLOG_MAX_BYTES (64 << 20)
#define PATIENCE_US       (60 * INT64_C(1000000))
#define TRY_AGAIN_US      (10 * INT64_C(1000000))

/* --- reading --- */

static void
take_job(struct allocation *a, const struct backlog_line *line)
{
    struct waiting *w;
    uint64_t key = (uint64_t)line->job << 32 | (uint32_t)line->attempt;
    HASH_FIND(hh, a->waiting, &key, sizeof key, w);
    bool is_taken = w && w->is_taken;
    int64_t not_before = w ? w->not_before : 0, blocked_us = w ? w->blocked_us : 0;
    if (w)
        HASH_DEL(a->waiting, w); /* reinserted at its new place in the order */
    else
        w = xcalloc(1, sizeof *w);
    *w = (struct waiting){.key = key,
                          .line = *line,
                          .is_taken = is_taken,
                          .is_listed = true,
                          .not_before = not_before,
                          .blocked_us = blocked_us};
    HASH_ADD(hh, a->waiting, key, sizeof w->key, w);
}

static void
take_stop(const struct allocation *a, const struct backlog_line *line)
{
    for (struct running *r = a->running; r; r = r->next)
        if (r->attempt.job == line->job && r->attempt.attempt == line->attempt &&
            r->stops_seen < line->times && node_attempt_pass_on_stop(&r->attempt))
            r->stops_seen = line->times;
}

static void
take_text(struct allocation *a, char *text)
{
    struct backlog_line line;
    struct waiting *w, *next;
    for (w = a->waiting; w; w = w->hh.next)
        w->is_listed = false;
    for (char *end; (end = strchr(text, '\n')); text = end + 1) {
        *end = '\0';
        if (!backlog_read(text, &line))
            continue;
        if (line.word == BACKLOG_JOB)
            take_job(a, &line);
        else if (line.word == BACKLOG_STOP)
            take_stop(a, &line);
        else if (strcmp(line.key, a->key) == 0)
            a->is_leaving = true;
    }
    HASH_ITER(hh, a->waiting, w, next)
    if (!w->is_listed) {
        HASH_DEL(a->waiting, w);
        free(w);
    }
}

/* Opens the backlog by name each time, from a newly opened folder, so that a file system with
 * only close-to-open consistency shows the current file. */
void
allocation_read_backlog(struct allocation *a)
{
    struct stat st;
    struct err e;
    auto_buf struct buf text = BUF_INIT;
    auto_close int above = openat(a->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_close int fd = above < 0 ? -1 : openat(above, "backlog", O_RDONLY | O_CLOEXEC);
    /* ".." of a removed folder still exists, so check a file in the folder. */
    if (fstatat(a->dir, "spec", &st, AT_SYMLINK_NOFOLLOW) < 0 &&
        (errno == ENOENT || errno == ESTALE))
        a->is_leaving = true; /* the daemon has given up this allocation */
    if (fd < 0 || fstat(fd, &st) < 0)
        return;
    if (st.st_ino == a->backlog.st_ino && st.st_size == a->backlog.st_size &&
        st.st_mtim.tv_sec == a->backlog.st_mtim.tv_sec &&
        st.st_mtim.tv_nsec == a->backlog.st_mtim.tv_nsec)
        return;
    if (file_read_at(above, "backlog", BACKLOG_MAX_BYTES, &text, &e) < 0)
        return; /* it is read again later */
    a->backlog = st;
    buf_addc(&text, '\0');
    take_text(a, text.data);
}

void
allocation_forget_lines(struct allocation *a)
{
    struct waiting *w, *next;
    HASH_ITER(hh, a->waiting, w, next)
    {
        HASH_DEL(a->waiting, w);
        free(w);
    }
}

/* --- starting --- */

static void
add_list(const struct placement *p, struct buf *out)
{
    for (int i = 0; i < p->n; i++)
        buf_addf(out, "%s%d", i ? "," : "", p->gpus[i]);
    if (p->n == 0)
        buf_addc(out, '-');
}

static int
run_marked(struct allocation *a, struct running *r, const struct placement *p, struct err *e)
{
    if (node_attempt_is_stopped(&r->attempt)) {
        if (node_attempt_end_unbegun(&r->attempt, e) < 0)
            return -1;
        allocation_say(a, "ended %u.%d", r->attempt.job, r->attempt.attempt);
        return 1;
    }
    char **vars = allocation_cards_vars(p);
    int rc = node_attempt_start(&r->attempt, vars, &a->measure, e);
    allocation_vars_free(vars);
    if (rc == 0)
        return 0;
    if (node_attempt_end_unstarted(&r->attempt, e->errnum, e) == 0)
        allocation_say(a, "ended %u.%d", r->attempt.job, r->attempt.attempt);
    return 1;
}

/* 0: it runs here now; 1: it is marked but does not run here; -1: it may be retried. */
static int
try_to_run(struct allocation *a, const struct waiting *w, struct running *r,
           const struct placement *p, const struct buf *list, struct err *e)
{
    char name[32];
    auto_free char *more = xasprintf("%s %s", a->key, list->data);
    snprintf(name, sizeof name, "%u.%d", w->line.job, w->line.attempt);
    if (node_attempt_open(&r->attempt, a->jobs, name, e) < 0)
        return -1;
    int mark = node_attempt_mark(&r->attempt, more, e);
    if (mark)
        return mark;
    return run_marked(a, r, p, e);
}

static void
start(struct allocation *a, struct waiting *w, const struct demand *held,
      const struct placement *p)
{
    struct err e = {0};
    auto_buf struct buf list = BUF_INIT;
    struct running *r = xcalloc(1, sizeof *r);
    add_list(p, &list);
    buf_addc(&list, '\0');
    int rc = try_to_run(a, w, r, p, &list, &e);
    w->is_taken = rc >= 0;
    w->blocked_us = 0;
    if (rc) {
        if (rc < 0)
            w->not_before = clock_boot_us() + TRY_AGAIN_US;
        node_attempt_close(&r->attempt);
        free(r);
        return;
    }
    ledger_hold(a->cards.ledger, w->line.job, held, p->gpus, p->n);
    r->next = a->running;
    a->running = r;
    a->n_running++;
    allocation_say(a, "began %u.%d %s %d %d", w->line.job, w->line.attempt, list.data,
                   held->vram_mib, held->share_permille);
}

static bool
may_start(const struct allocation *a, const struct waiting *w, int64_t now_us)
{
    return !w->is_taken && w->not_before <= now_us && allocation_is_fit(&a->spec, &w->line) &&
           allocation_has_time(&a->spec, &w->line, (a->end_us - now_us) / 1000) &&
           !ledger_holds(a->cards.ledger, w->line.job);
}

void
allocation_start_lines(struct allocation *a, int64_t now_us)
{
    bool is_first = true;
    for (struct waiting *w = a->waiting; w && !a->is_leaving; w = w->hh.next) {
        struct demand held;
        struct placement p;
        if (!may_start(a, w, now_us))
            continue;
        if (allocation_cards_place(&a->cards, &w->line.demand, &held, &p)) {
            start(a, w, &held, &p);
            continue;
        }
        if (!is_first || !allocation_cards_could(&a->cards, &w->line.demand))
            continue;
        is_first = false;
        w->blocked_us = w->blocked_us ? w->blocked_us : now_us;
        if (now_us - w->blocked_us > PATIENCE_US)
            return;
    }
}
