/* Idle moments: see idle_work.h. Called by turn_wiring.c. History goes by age (keep_days), by
 * number (keep_jobs) and by size (keep_mib: of the largest user first), events by number
 * (keep_events); environments go with their last job. A piece is so small that a request that
 * comes meanwhile does not notice. */
#include "daemon/idle_work.h"

#include <inttypes.h>
#include <malloc.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "daemon/common/clock_watch.h"
#include "daemon/common/daemon.h"
#include "daemon/request/admit.h"
#include "daemon/rpc/long_work.h"
#include "store/store.h"

#define PRUNE_AT_ONCE  500 /* jobs: some 10 ms */
#define ROOM_AT_ONCE   100 /* of those that may be large */
#define FILES_AT_ONCE  500
#define ENVS_AT_ONCE   5000
#define EVENTS_AT_ONCE 5000
#define EVENTS_SLACK   1000 /* trimmed when there are this many more than are kept */
#define AFTER_JUMP_US  (INT64_C(3600) * 1000000)
#define AFTER_START_US (INT64_C(600) * 1000000)
#define US_PER_DAY     (INT64_C(86400) * 1000000)

static void
trim_events(struct daemon *d, bool *more, struct err *e)
{
    int64_t keep = d->inst.config.keep_events;
    if (keep <= 0 || store_event_last(d->inst.store) <= keep + d->events_trimmed + EVENTS_SLACK)
        return;
    if (store_events_trim(d->inst.store, keep, EVENTS_AT_ONCE, e) > 0) {
        *more = true;
        return;
    }
    d->events_trimmed = store_event_last(d->inst.store) - keep;
    log_info("event=events-trimmed up_to=%" PRId64, d->events_trimmed);
}

/* Those without a job, once the last of the jobs that go is gone: each is looked at. */
static void
trim_envs(struct daemon *d, bool *more, struct err *e)
{
    if (store_prune_envs(d->inst.store, &d->envs_at, ENVS_AT_ONCE, e) < 0)
        d->envs_at = 0;
    d->pruned_any = d->envs_at > 0;
    *more |= d->pruned_any;
}

/* A clock that is set ahead for a moment makes all of history look old. So nothing goes by its
 * age for an hour after that, nor before the clock has gone evenly for a while. */
static bool
clock_is_trusted(struct daemon *d)
{
    clock_watch_look(&d->inst.clock);
    int64_t now = clock_boot_us();
    int64_t even_us =
        now - (d->inst.clock.jump_us ? d->inst.clock.jumped_boot_us : d->inst.started_boot_us);
    return even_us > (d->inst.clock.jump_us ? AFTER_JUMP_US : AFTER_START_US);
}

/* What was not asked for again: a client that lost its daemon asks within a minute. */
static void
trim_progress(struct daemon *d, struct err *e)
{
    if (clock_is_trusted(d))
        store_progress_trim(d->inst.store, clock_wall_us() - US_PER_DAY, e);
}

/* How many jobs went; -1. */
static int
prune_jobs(struct daemon *d, struct err *e)
{
    int64_t days = d->inst.config.keep_days, jobs = d->inst.config.keep_jobs;
    int64_t next = store_peek_job_id(d->inst.store);
    bool by_age = days > 0 && clock_is_trusted(d);
    int64_t before_us = by_age ? clock_wall_us() - days * US_PER_DAY : INT64_MIN;
    uint32_t below = jobs > 0 && next > jobs ? (uint32_t)(next - jobs) : 0;
    return store_prune(d->inst.store, before_us, below, PRUNE_AT_ONCE, e);
}

/* The oldest of the user with the most: so no user's history goes because of what another one
 * submits. How many; *more: there is more to look at. */
static int
prune_largest_user(struct daemon *d, bool *more, struct err *e)
{
    uint32_t uid;
    int rc = store_largest_user(d->inst.store, &uid, e);
    if (rc <= 0)
        return rc;
    if (uid != d->room_uid)
        d->room_at = 0;
    d->room_uid = uid;
    int n = store_prune_user(d->inst.store, uid, &d->room_at, ROOM_AT_ONCE, e);
    *more = n > 0 || (n == 0 && d->room_at > 0);
    return n;
}

/* Ended jobs, of any age, go while the database is too large. Their environments go before it
 * is measured again, as they may be most of it. What is kept of jobs files does not count: no
 * ended job's leaving makes it less, and admit_lines bounds it. How many were deleted; -1. */
static int
make_room(struct daemon *d, bool *more, struct err *e)
{
    int64_t most = d->inst.config.keep_mib << 20;
    int64_t kept = store_kept_bytes_of_all(d->inst.store, e);
    if (kept < 0)
        return -1;
    if (most == 0 || store_used_bytes(d->inst.store) - kept <= most)
        return 0;
    int n = prune_largest_user(d, more, e);
    if (n == 0 && !*more) {
        n = store_prune(d->inst.store, INT64_MIN, UINT32_MAX, ROOM_AT_ONCE, e);
        *more = n > 0;
    }
    d->pruned_any |= n > 0;
    return n;
}

/* Paths of jobs files with nothing behind them, of a user who may have no more of them. Others'
 * stay: `berth run --watch` may be looking at one that is empty for now. */
static void
trim_files(struct daemon *d, bool *more, struct err *e)
{
    int64_t most = admit_kept_max(d->admission);
    int64_t uid = most > 0 ? store_kept_above(d->inst.store, most, e) : STORE_NOBODY;
    if (uid < 0 || uid == STORE_NOBODY)
        return;
    *more |=
        store_prune_files(d->inst.store, (uint32_t)uid, &d->files_at, FILES_AT_ONCE, e) > 0;
}

static bool
let_go(struct daemon *d)
{
    struct err e = {0};
    int n = prune_jobs(d, &e);
    bool more = n == PRUNE_AT_ONCE;
    d->pruned_any |= n > 0;
    if (n >= 0 && n < PRUNE_AT_ONCE && d->pruned_any)
        trim_envs(d, &more, &e);
    trim_events(d, &more, &e);
    trim_progress(d, &e);
    if (n == 0 && !d->pruned_any)
        n = make_room(d, &more, &e);
    trim_files(d, &more, &e);
    if (store_commit(d->inst.store, &e) < 0) {
        d->pruned_any = true;
        d->envs_at = 0;
        log_warn("event=prune-failed %s", e.text);
        return false;
    }
    if (n > 0)
        log_info("event=pruned jobs=%d", n);
    return more;
}

bool
idle_work(struct daemon *d)
{
    struct err e = {0};
    bool more = false;
    /* What a request of this moment has put into the store is its turn's to commit; and the row
     * of an ended job that is to run again, which nothing is written of before, must stay. */
    if (!store_has_changes(d->inst.store) && d->inst.state->changes.n_unsaved == 0 &&
        !works_read_past(d->rpc))
        more = let_go(d);
    if (store_checkpoint(d->inst.store, &e) < 0)
        log_warn("checkpoint: %s", e.text);
    if (!more && !store_has_changes(d->inst.store) && store_is_mostly_free(d->inst.store)) {
        if (store_compact(d->inst.store, &e) < 0)
            log_warn("event=not-compacted %s", e.text);
        else
            log_info("event=compacted bytes=%" PRId64, store_bytes(d->inst.store));
    }
    /* A file of 100,000 lines leaves 140 MiB of small holes behind it, which the C library
     * would keep for good. */
    malloc_trim(0);
    return more;
}
