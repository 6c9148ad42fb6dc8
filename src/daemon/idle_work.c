/* Maintenance while idle: see idle_work.h. Called by turn_wiring.c. Prunes history by age
 * (keep_days), number (keep_jobs) and size (keep_mib, largest user first), events by number
 * (keep_events), and environments with their last job. Each piece is small enough that a
 * concurrent request does not notice. */
#include "daemon/idle_work.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/queue/queue.h"
#include "daemon/common/clock_watch.h"
#include "daemon/common/instance.h"
#include "daemon/common/pace.h"
#include "daemon/request/admit.h"
#include "daemon/rpc/long_work.h"
#include "daemon/state/state.h"
#include "store/store.h"

#define PRUNE_AT_ONCE  500 /* jobs, about 10 ms; but never longer than: */
#define PRUNE_US       10000
#define PRUNE_EACH     10 /* jobs between looks at the clock: each may have megabytes */
#define FILES_AT_ONCE  500
#define ENVS_AT_ONCE   5000
#define EVENTS_AT_ONCE 5000
#define EVENTS_SLACK   1000 /* events above the limit before they are trimmed */
#define AFTER_JUMP_US  (INT64_C(3600) * 1000000)
#define AFTER_START_US (INT64_C(600) * 1000000)
#define US_PER_DAY     (INT64_C(86400) * 1000000)

struct idle_work {
    struct instance *inst;
    const struct admission *admission;
    const struct rpc *rpc;
    struct pace *pace;
    int64_t events_trimmed;     /* events up to this number are gone */
    int n_pruned;               /* jobs since the last log entry about it */
    bool pruned_any;            /* unused environments are to be searched for */
    int64_t envs_at;            /* last environment visited; 0: none */
    uint32_t files_at;          /* last jobs file visited */
    uint32_t room_uid, room_at; /* user being pruned; last job visited, 0: none */
};

struct idle_work *
idle_work_new(struct instance *inst, const struct admission *admission, const struct rpc *rpc,
              struct pace *pace)
{
    struct idle_work *w = xcalloc(1, sizeof *w);
    w->inst = inst;
    w->admission = admission;
    w->rpc = rpc;
    w->pace = pace;
    w->pruned_any = true; /* the previous daemon may have exited half-way */
    return w;
}

void
idle_work_free(struct idle_work *w)
{
    free(w);
}

static void
trim_events(struct idle_work *w, bool *more, struct err *e)
{
    int64_t keep = w->inst->config.keep_events;
    if (keep <= 0 ||
        store_event_last(w->inst->store) <= keep + w->events_trimmed + EVENTS_SLACK)
        return;
    if (store_events_trim(w->inst->store, keep, EVENTS_AT_ONCE, e) > 0) {
        *more = true;
        return;
    }
    w->events_trimmed = store_event_last(w->inst->store) - keep;
    log_info("event=events-trimmed up_to=%" PRId64, w->events_trimmed);
}

/* Removes environments without a job. Visits all of them, so it runs once after a round of
 * pruning jobs. */
static void
trim_envs(struct idle_work *w, bool *more, struct err *e)
{
    if (store_prune_envs(w->inst->store, &w->envs_at, ENVS_AT_ONCE, e) < 0)
        w->envs_at = 0;
    w->pruned_any = w->envs_at > 0;
    *more |= w->pruned_any;
}

/* A clock set ahead for a moment makes all history look old. So nothing is pruned by age
 * within an hour of a step of the clock, or before it has run steadily for a while. */
static bool
clock_is_trusted(struct idle_work *w)
{
    clock_watch_look(&w->inst->clock);
    int64_t now = clock_boot_us();
    int64_t even_us = now - (w->inst->clock.jump_us ? w->inst->clock.jumped_boot_us
                                                    : w->inst->started_boot_us);
    return even_us > (w->inst->clock.jump_us ? AFTER_JUMP_US : AFTER_START_US);
}

/* Removes progress records that no client asked for again: one that lost its daemon asks
 * within a minute. */
static void
trim_progress(struct idle_work *w, struct err *e)
{
    if (clock_is_trusted(w))
        store_progress_trim(w->inst->store, clock_wall_us() - US_PER_DAY, e);
}

/* Calls store_prune for at most one piece's time. *more: set if others may be left. */
static int
prune_for_a_while(struct idle_work *w, int64_t before_us, uint32_t below, bool *more,
                  struct err *e)
{
    int64_t until_us = clock_boot_us() + PRUNE_US;
    int n, all = 0;
    do {
        n = store_prune(w->inst->store, before_us, below, PRUNE_EACH, e);
        all += n > 0 ? n : 0;
    } while (n == PRUNE_EACH && all < PRUNE_AT_ONCE && clock_boot_us() < until_us);
    *more |= n == PRUNE_EACH;
    return n < 0 ? -1 : all;
}

/* Number of jobs pruned, or -1. *more: set if others may be left. */
static int
prune_jobs(struct idle_work *w, bool *more, struct err *e)
{
    int64_t days = w->inst->config.keep_days, jobs = w->inst->config.keep_jobs;
    int64_t next = store_peek_job_id(w->inst->store);
    bool by_age = days > 0 && clock_is_trusted(w);
    int64_t before_us = by_age ? clock_wall_us() - days * US_PER_DAY : INT64_MIN;
    jobs += jobs > 0 ? (int64_t)queue_n(w->inst->queue) : 0; /* live jobs take numbers too */
    uint32_t below = jobs > 0 && next > jobs ? (uint32_t)(next - jobs) : 0;
    return prune_for_a_while(w, before_us, below, more, e);
}

/* Prunes the oldest jobs of the user with the most data, so that no user loses history because
 * of another's submissions. Returns the number pruned; *more: set if there is more to
 * look at. */
static int
prune_largest_user(struct idle_work *w, bool *more, struct err *e)
{
    uint32_t uid;
    int rc = store_largest_user(w->inst->store, &uid, e);
    if (rc <= 0)
        return rc;
    if (uid != w->room_uid)
        w->room_at = 0;
    w->room_uid = uid;
    int64_t until_us = clock_boot_us() + PRUNE_US;
    int n, all = 0;
    do {
        n = store_prune_user(w->inst->store, uid, &w->room_at, PRUNE_EACH, e);
        all += n > 0 ? n : 0;
    } while (n == PRUNE_EACH && all < PRUNE_AT_ONCE && clock_boot_us() < until_us);
    *more |= all > 0 || (n == 0 && w->room_at > 0);
    return n < 0 ? -1 : all;
}

/* Prunes ended jobs of any age while the database is too large. Their environments, perhaps
 * most of the data, are pruned before the next measurement. Stored lines of jobs files do not
 * count: pruning jobs does not reduce them, and admit_lines bounds them. Returns the number
 * pruned, or -1. */
static int
make_room(struct idle_work *w, bool *more, struct err *e)
{
    int64_t most = w->inst->config.keep_mib << 20;
    int64_t kept = store_kept_bytes_of_all(w->inst->store, e);
    if (kept < 0)
        return -1;
    if (most == 0 || store_used_bytes(w->inst->store) - kept <= most)
        return 0;
    int n = prune_largest_user(w, more, e);
    if (n == 0 && !*more) {
        n = prune_for_a_while(w, INT64_MIN, UINT32_MAX, more, e);
        *more |= n > 0;
    }
    w->pruned_any |= n > 0;
    return n;
}

/* Removes paths of jobs files without content, of a user who has reached the limit on them.
 * Other users' stay: `berth run --watch` may be watching a file that is empty for now. */
static void
trim_files(struct idle_work *w, bool *more, struct err *e)
{
    int64_t most = admit_kept_max(w->admission);
    int64_t uid = most > 0 ? store_kept_above(w->inst->store, most, e) : STORE_NOBODY;
    if (uid < 0 || uid == STORE_NOBODY)
        return;
    *more |=
        store_prune_files(w->inst->store, (uint32_t)uid, &w->files_at, FILES_AT_ONCE, e) > 0;
}

/* Accounts the time since the last call under this name. */
static void
spent(struct idle_work *w, const char *what)
{
    pace_spent(w->pace, what, UINT32_MAX);
}

static bool
let_go(struct idle_work *w)
{
    struct err e = {0};
    bool more = false;
    int n = prune_jobs(w, &more, &e);
    w->pruned_any |= n > 0;
    spent(w, "prune-jobs");
    if (n >= 0 && !more && w->pruned_any)
        trim_envs(w, &more, &e);
    spent(w, "prune-environments");
    trim_events(w, &more, &e);
    trim_progress(w, &e);
    spent(w, "prune-events");
    if (n == 0 && !w->pruned_any)
        n = make_room(w, &more, &e);
    spent(w, "make-room");
    trim_files(w, &more, &e);
    spent(w, "prune-files");
    if (store_commit(w->inst->store, &e) < 0) {
        w->pruned_any = true;
        w->envs_at = 0;
        log_warn("event=prune-failed %s", e.text);
        return false;
    }
    w->n_pruned += n > 0 ? n : 0;
    if (!more && w->n_pruned > 0) {
        log_info("event=pruned jobs=%d", w->n_pruned);
        w->n_pruned = 0;
    }
    return more;
}

bool
idle_work_do(struct idle_work *w)
{
    struct err e = {0};
    bool more = false;
    /* Uncommitted changes in the store belong to the turn that made them. Also, the row of an
     * ended job that is being requeued must stay: until its commit, only memory knows of
     * the requeue. */
    if (!store_has_changes(w->inst->store) && w->inst->state->changes.n_unsaved == 0 &&
        !works_read_past(w->rpc))
        more = let_go(w);
    spent(w, "upkeep");
    if (store_checkpoint(w->inst->store, &e) < 0)
        log_warn("checkpoint: %s", e.text);
    spent(w, "checkpoint");
    if (!more && !store_has_changes(w->inst->store) && store_is_mostly_free(w->inst->store)) {
        if (store_compact(w->inst->store, &e) < 0)
            log_warn("event=not-compacted %s", e.text);
        else
            log_info("event=compacted bytes=%" PRId64, store_bytes(w->inst->store));
    }
    /* A jobs file of 100,000 lines leaves 140 MiB of small holes in the heap, which the C
     * library would never return by itself. */
    spent(w, "compact");
    malloc_trim(0);
    spent(w, "trim");
    return more;
}
