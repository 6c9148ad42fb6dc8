/* See counters.h. There are two copies: the committed counts, and those after this turn's
 * commit. If the commit fails, the first stays, and the same marks are counted again with the
 * next one. Stored as a note; each user's GPU time in a row. */
#include "daemon/common/counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/queue/array.h"
#include "daemon/common/counters_note.h"
#include "daemon/state/changes.h"
#include "daemon/state/state.h"
#include "store/store.h"

#define NOTE    "tally"
#define S       INT64_C(1000000)
#define MS      INT64_C(1000)
#define LATELY  (600 * S) /* how long a slow commit is remembered */
#define N_OF(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* From waits that no user notices to those that users complain about. */
static const int64_t wait_bounds[] = {S / 10,    S,         10 * S,     60 * S,    300 * S,
                                      900 * S,   1800 * S,  3600 * S,   7200 * S,  14400 * S,
                                      43200 * S, 86400 * S, 259200 * S, 604800 * S};
static const int64_t run_bounds[] = {S,         10 * S,     60 * S,    300 * S,   900 * S,
                                     1800 * S,  3600 * S,   7200 * S,  14400 * S, 43200 * S,
                                     86400 * S, 172800 * S, 604800 * S};
static const int64_t pass_bounds[] = {10,      30,      100,      300,      MS,       3 * MS,
                                      10 * MS, 30 * MS, 100 * MS, 300 * MS, 1000 * MS};
static const int64_t commit_bounds[] = {100,       300,       MS,        3 * MS,
                                        10 * MS,   30 * MS,   100 * MS,  300 * MS,
                                        1000 * MS, 3000 * MS, 10000 * MS};

static const int64_t round_bounds[] = {MS,       3 * MS,   10 * MS,   30 * MS,  50 * MS,
                                       100 * MS, 300 * MS, 1000 * MS, 3000 * MS};

struct tally {
    struct tally_jobs saved, next;
    bool counted;                /* next differs from saved */
    int32_t dropped[JOB_STATES]; /* not in saved yet */
    struct tally_user *users;
    size_t n_users;
    struct tally_times times;
};

static void
jobs_init(struct tally_jobs *j)
{
    *j = (struct tally_jobs){0};
    histogram_init(&j->waits, wait_bounds, N_OF(wait_bounds));
    histogram_init(&j->runs, run_bounds, N_OF(run_bounds));
}

struct tally *
tally_new(void)
{
    struct tally *t = xcalloc(1, sizeof *t);
    jobs_init(&t->saved);
    histogram_init(&t->times.plans, pass_bounds, N_OF(pass_bounds));
    histogram_init(&t->times.commits, commit_bounds, N_OF(commit_bounds));
    histogram_init(&t->times.rounds, round_bounds, N_OF(round_bounds));
    return t;
}

void
tally_free(struct tally *t)
{
    free(t->users);
    free(t);
}

static struct tally_user *
user_of(struct tally *t, uint32_t uid)
{
    for (size_t i = 0; i < t->n_users; i++)
        if (t->users[i].uid == uid)
            return &t->users[i];
    t->users = xrealloc(t->users, (t->n_users + 1) * sizeof *t->users);
    t->users[t->n_users] = (struct tally_user){.uid = uid};
    return &t->users[t->n_users++];
}

static void
on_total(uint32_t uid, int64_t gpu_ms, void *arg)
{
    user_of(arg, uid)->gpu_ms = gpu_ms;
}

int
tally_load(struct tally *t, struct store *store, struct err *e)
{
    auto_free char *note = store_note_get(store, NOTE);
    if (note && tally_note_read(note, &t->saved))
        log_warn("event=tally-lost the saved counters are invalid; counting from zero");
    return store_totals_load(store, on_total, t, e);
}

/* --- counting --- */

static enum again
again_of(const struct ending *e)
{
    if (e->oom == OOM_CUDA || e->outcome == OUTCOME_EXCEEDED)
        return AGAIN_OOM;
    if (e->outcome == OUTCOME_TIMEOUT)
        return AGAIN_TIMEOUT;
    if (e->outcome == OUTCOME_LOST || e->outcome == OUTCOME_NEVER_RAN)
        return AGAIN_LOST;
    if (e->outcome == OUTCOME_PREEMPTED)
        return AGAIN_PREEMPTED;
    if (e->outcome == OUTCOME_REQUEUED || (e->outcome == OUTCOME_EXITED && e->code == 0))
        return AGAIN_ASKED;
    return AGAIN_FAILURE;
}

static void
count_start(struct tally_jobs *j, const struct job *job)
{
    int64_t from_us = job->submitted_us > job->begin_us ? job->submitted_us : job->begin_us;
    j->started++;
    if (job->run->number == 1)
        histogram_add(&j->waits, clock_wall_us() - from_us);
}

static void
count_settled(struct tally *t, const struct job *job)
{
    const struct attempt *run = job->run;
    t->next.outcomes[run->ending.outcome]++;
    if (job->state == JOB_PENDING)
        t->next.again[again_of(&run->ending)]++;
    if (run->ending.outcome == OUTCOME_NEVER_RAN || run->ending.outcome == OUTCOME_NOT_STARTED)
        return;
    histogram_add(&t->next.runs, run->ending.run_ms * MS);
    if (run->n_gpus > 0 && run->ending.run_ms > 0)
        user_of(t, job->uid)->more_ms += run->ending.run_ms * run->n_gpus;
}

static void
count(struct tally *t, const struct job *job)
{
    const unsigned counts = SAVE_INSERT | SAVE_ATTEMPT_NEW | SAVE_SETTLED | SAVE_ENDED;
    t->counted |= (job->unsaved & counts) != 0;
    if (job->unsaved & SAVE_INSERT && !job->array)
        t->next.submitted += job->tasks ? (uint64_t)job->tasks->total : 1;
    if (job->unsaved & SAVE_ATTEMPT_NEW)
        count_start(&t->next, job);
    if (job->unsaved & SAVE_SETTLED)
        count_settled(t, job);
    if (job->unsaved & SAVE_ENDED && !job->tasks)
        t->next.ended[job->state]++;
}

void
tally_read(struct tally *t, const struct change *x)
{
    if (x->type == CHANGE_DROPPED)
        t->dropped[x->state] += x->number;
}

void
tally_write(struct tally *t, struct store *store, struct job *const *jobs, size_t n)
{
    struct err ignored; /* errors stick to the store; its commit reports them */
    t->next = t->saved;
    t->counted = false;
    for (size_t i = 0; i < t->n_users; i++)
        t->users[i].more_ms = 0;
    for (size_t i = 0; i < n; i++)
        count(t, jobs[i]);
    for (int s = 0; s < JOB_STATES; s++) {
        t->next.ended[s] += (uint64_t)t->dropped[s];
        t->counted |= t->dropped[s] > 0;
    }
    if (t->counted) {
        auto_buf struct buf note = BUF_INIT;
        tally_note_write(&t->next, &note);
        store_note_put(store, NOTE, buf_str(&note), &ignored);
    }
    for (size_t i = 0; i < t->n_users; i++)
        if (t->users[i].more_ms > 0)
            store_total_put(store, t->users[i].uid, t->users[i].gpu_ms + t->users[i].more_ms,
                            &ignored);
}

void
tally_written(struct tally *t)
{
    t->saved = t->next;
    memset(t->dropped, 0, sizeof t->dropped);
    for (size_t i = 0; i < t->n_users; i++) {
        t->users[i].gpu_ms += t->users[i].more_ms;
        t->users[i].more_ms = 0;
    }
}

void
tally_plan(struct tally *t, int64_t us)
{
    histogram_add(&t->times.plans, us);
}

void
tally_round(struct tally *t, int64_t us)
{
    histogram_add(&t->times.rounds, us);
}

void
tally_commit(struct tally *t, int64_t us, const struct err *failed)
{
    struct tally_times *times = &t->times;
    histogram_add(&times->commits, us);
    times->commit_us = us;
    times->committed_us = clock_boot_us();
    times->commits_failed += failed != NULL;
    snprintf(times->error, sizeof times->error, "%.*s", (int)sizeof times->error - 1,
             failed ? failed->text : "");
    if (us < times->slow_us && times->committed_us - times->slow_at_us < LATELY)
        return;
    times->slow_us = us;
    times->slow_at_us = times->committed_us;
}

const struct tally_jobs *
tally_jobs(const struct tally *t)
{
    return &t->saved;
}

const struct tally_times *
tally_times(const struct tally *t)
{
    return &t->times;
}

const struct tally_user *
tally_users(const struct tally *t, size_t *n)
{
    *n = t->n_users;
    return t->users;
}
