/* Asks Slurm to end jobs: of attempts that are pending or running there and must end, and of
 * allocations that are not needed. slurm_calls.c decides when a call is due.
 *
 * A supervisor on a node checks every ten seconds by itself whether it must end, so Slurm is
 * only needed to make that faster; and scancel makes a call to slurmctld for each argument,
 * and for each running job. So each scancel gets a few arguments, and the next command waits
 * as if each had been a command of its own.
 *
 * A slurmctld that lost jobs reuses their numbers. So after a failed call nothing is ended
 * until squeue says which numbers are ours now. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crash.h"
#include "daemon/slurm/slurm_priv.h"
#include "slurm/cancel_ids.h"
#include "slurm/haste.h"

#define STOP_AGAIN_US (10 * S_US)
#define STUCK_US      (300 * S_US) /* a running job must make its mark within this time, and */
#define SILENT_US     (600 * S_US) /* then send heartbeats, unless its node has lost it */
#define WORDS_MAX     5

enum stop { STOP_NONE, STOP_WAITING, STOP_RUNNING, STOP_NOW };

/* True if it was seen to be silent for that long, not just unseen. A suspended job is silent
 * too. */
static bool
is_silent(const struct slurm *s, const struct remote *r)
{
    int64_t since = r->pulse_us > s->back_us ? r->pulse_us : s->back_us;
    bool could_speak = strcmp(r->state, "RUNNING") == 0 || r->phase == SLURM_WAITS;
    return r->began && !slurm_is_packed(r) && r->is_known && could_speak &&
           r->seen_us - since > slurm_haste(SILENT_US);
}

/* A node that dies at the wrong moment leaves jobs that Slurm believes to be running, some
 * until the node next reports its jobs, which may take long. A started one must be ended too,
 * since only its batch script may have been killed. An attempt whose folder cannot be read now
 * is not known to be stuck. */
static bool
is_stuck(const struct slurm *s, const struct remote *r, int64_t now)
{
    int64_t since = r->runs_us > s->back_us ? r->runs_us : s->back_us;
    if (s->is_away)
        return false;
    return is_silent(s, r) || (r->runs_us && !r->began && now - since > slurm_haste(STUCK_US));
}

static enum stop
stop_of(const struct slurm *s, const struct remote *r, int64_t now)
{
    bool asked = r->stop_asked || is_stuck(s, r, now);
    if (!asked || r->stop_us > now || !r->is_sent || r->ended || !r->is_known ||
        r->phase == SLURM_IS_OVER)
        return STOP_NONE;
    bool boots = !r->began && strcmp(r->state, "CONFIGURING") == 0; /* no script to signal */
    if ((r->kill_us && r->kill_us <= now) || boots || is_stuck(s, r, now))
        return STOP_NOW;
    return r->phase == SLURM_WAITS && !r->began ? STOP_WAITING : STOP_RUNNING;
}

/* The same, but only for an attempt whose Slurm id is known; fills *id. */
static enum stop
stop_with_id(const struct slurm *s, const struct remote *r, int64_t now, struct cancel_id *id)
{
    enum stop how = stop_of(s, r, now);
    const struct job *job = how == STOP_NONE ? NULL : slurm_job_of(s, r);
    return job && cancel_id_read(job->run->sent.id, id) ? how : STOP_NONE;
}

/* How to end the attempt or allocation that is due longest, because some take long and are
 * asked for repeatedly. */
static enum stop
next_stop(const struct slurm *s, int64_t now)
{
    enum stop how = STOP_NONE;
    int64_t since = INT64_MAX;
    struct cancel_id id;
    for (const struct remote *r = s->remotes; r; r = r->hh.next) {
        enum stop its = r->stop_us < since ? stop_with_id(s, r, now, &id) : STOP_NONE;
        if (its != STOP_NONE) {
            how = its;
            since = r->stop_us;
        }
    }
    for (const struct alloc *a = s->allocs; a; a = a->hh.next)
        if (a->stop_us < since && slurm_alloc_is_to_stop(a, now)) {
            how = STOP_WAITING;
            since = a->stop_us;
        }
    return how;
}

static int
compare_due(const void *a, const void *b)
{
    const struct remote *x = ((const struct cancel_id *)a)->owner;
    const struct remote *y = ((const struct cancel_id *)b)->owner;
    return (x->stop_us > y->stop_us) - (x->stop_us < y->stop_us);
}

/* The attempts to end in this way; of running ones, those due longest. The caller frees the
 * list. */
static struct cancel_id *
find_ids(const struct slurm *s, enum stop how, int64_t now, size_t *n)
{
    struct cancel_id *ids = xcalloc(HASH_COUNT(s->remotes) + 1, sizeof *ids);
    *n = 0;
    for (struct remote *r = s->remotes; r; r = r->hh.next)
        if (stop_with_id(s, r, now, &ids[*n]) == how)
            ids[(*n)++].owner = r;
    if (how != STOP_WAITING && *n > WORDS_MAX) {
        qsort(ids, *n, sizeof *ids, compare_due);
        *n = WORDS_MAX;
    }
    return ids;
}

static int
add_attempts(const struct slurm *s, enum stop how, int64_t now, struct buf *args)
{
    size_t n;
    auto_free struct cancel_id *ids = find_ids(s, how, now, &n);
    size_t begin = args->len;
    int words = 0;
    n = cancel_ids_add(ids, n, WORDS_MAX, args);
    for (size_t i = 0; i < n; i++) {
        struct remote *r = ids[i].owner;
        r->stop_us = now + STOP_AGAIN_US;
        r->is_stuck |= is_stuck(s, r, now);
    }
    for (size_t i = begin; i < args->len; i++)
        words += args->data[i] == '\0';
    return how == STOP_WAITING ? words : (int)n;
}

/* Only pending ones, as jobs may run in an allocation that Slurm has started meanwhile. */
static int
add_allocs(const struct slurm *s, int64_t now, struct buf *args)
{
    static const char pending[] = "--state=PENDING";
    int n = 0;
    buf_add(args, pending, sizeof pending);
    for (struct alloc *a = s->allocs; a && n < WORDS_MAX; a = a->hh.next)
        if (slurm_alloc_is_to_stop(a, now)) {
            buf_addz(args, a->id);
            a->stop_us = now + STOP_AGAIN_US;
            n++;
        }
    return n;
}

/* For a running job only the batch script gets TERM: it tells the supervisor, which ends the
 * command with its grace. A job that was pending a moment ago and runs now gets Slurm's
 * TERM. */
bool
slurm_ask_stops(struct slurm *s)
{
    static const char term[] = "--signal=TERM", batch[] = "--batch";
    auto_buf struct buf args = BUF_INIT;
    int64_t now = clock_boot_us();
    enum stop how = s->are_ids_old ? STOP_NONE : next_stop(s, now);
    if (how == STOP_NONE)
        return false;
    if (how == STOP_RUNNING) {
        buf_add(&args, term, sizeof term);
        buf_add(&args, batch, sizeof batch);
    }
    int n = add_attempts(s, how, now, &args);
    bool is_of_allocs = how == STOP_WAITING && n == 0;
    if (is_of_allocs)
        n = add_allocs(s, now, &args);
    if (n == 0)
        return false;
    if (is_of_allocs)
        crash_point("slurm-allocation-unwanted");
    (void)slurm_start_call(s, CALL_SCANCEL, &args, NULL);
    if (is_of_allocs)
        crash_point("slurm-allocation-stop-asked");
    s->next_call_us = now + n * S_US;
    slurm_poll_soon(s);
    return true;
}
