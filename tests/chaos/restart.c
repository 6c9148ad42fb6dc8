/* The daemon dies, between two commits or in the middle of a turn. Another one opens the
 * store, and takes the jobs from there and the GPUs as it finds them. The new daemon's state
 * must equal what the first one had in memory at its last commit. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/queue/array.h"
#include "daemon/state/array_turns.h"
#include "daemon/state/depend_turns.h"
#include "daemon/state/job_facts.h"
#include "daemon/turn/runs_kept.h"
#include "store/store.h"
#include "world.h"

struct found {
    struct job **jobs;
    size_t n, cap;
};

static int
on_job(struct job *job, const char *const *uuids, void *arg)
{
    struct found *f = arg;
    (void)uuids;
    if (f->n == f->cap) {
        f->cap = f->cap * 2 + 64;
        f->jobs = xrealloc(f->jobs, f->cap * sizeof(struct job *));
    }
    f->jobs[f->n++] = job;
    return 0;
}

/* --- what was stored against what was in memory --- */

static void
compare_arrays(struct world *w, const struct job *was, const struct job *is)
{
    auto_buf struct buf a = BUF_INIT, b = BUF_INIT;
    CHECK(w, (was->tasks != NULL) == (is->tasks != NULL));
    CHECK(w, was->array == is->array && was->task == is->task);
    if (!was->tasks)
        return;
    task_set_text(&was->tasks->pending, &a);
    task_set_text(&is->tasks->pending, &b);
    CHECK(w, strcmp(buf_str(&a), buf_str(&b)) == 0);
    CHECK(w, was->tasks->total == is->tasks->total && was->tasks->live == is->tasks->live);
    CHECK(w, was->tasks->active == is->tasks->active);
    CHECK(w, memcmp(was->tasks->ended, is->tasks->ended, sizeof is->tasks->ended) == 0);
    CHECK(w, array_exit_status(was->tasks) == array_exit_status(is->tasks));
}

static void
compare_peaks(struct world *w, const struct attempt *was, const struct attempt *is)
{
    for (int i = 0; i < is->n_gpus; i++)
        CHECK(w, was->peak_mib[i] == is->peak_mib[i]);
}

/* For a running attempt the store has the GPUs only; the rest comes from its supervisor. */
static void
compare_runs(struct world *w, const struct attempt *was, const struct attempt *is)
{
    CHECK(w, was->number == is->number && was->vram_mib == is->vram_mib);
    CHECK(w, was->n_gpus == is->n_gpus && memcmp(was->gpus, is->gpus, is->n_gpus) == 0);
    if (is->ending.outcome == OUTCOME_NONE)
        return compare_peaks(w, was, is);
    CHECK(w, was->started_us == is->started_us);
    CHECK(w, was->ending.outcome == is->ending.outcome && was->ending.oom == is->ending.oom);
    CHECK(w, was->ending.code == is->ending.code);
    compare_peaks(w, was, is);
}

/* A begin time that has passed may be dropped, so it compares as 0. */
static int64_t
begin_of(const struct world *w, const struct job *job)
{
    return job->begin_us > w->now_us ? job->begin_us : 0;
}

static void
compare_jobs(struct world *w, const struct job *was, const struct job *is)
{
    CHECK(w, was != NULL);
    CHECK(w, was->uid == is->uid && was->order == is->order);
    CHECK(w, memcmp(&was->req.demand, &is->req.demand, sizeof is->req.demand) == 0);
    CHECK(w, was->req.priority == is->req.priority && was->req.limit_ms == is->req.limit_ms);
    CHECK(w, was->req.preemptible == is->req.preemptible);
    CHECK(w, was->req.requeue == is->req.requeue && was->req.retries == is->req.retries);
    CHECK(w, was->req.n_deps == is->req.n_deps && was->req.array_max == is->req.array_max);
    CHECK(w, was->submitted_us == is->submitted_us && begin_of(w, was) == begin_of(w, is));
    CHECK(w, was->declared_mib == is->declared_mib && was->attempts == is->attempts);
    CHECK(w, was->oom_used == is->oom_used && was->retries_used == is->retries_used);
    CHECK(w, was->misfires == is->misfires && was->requeues_used == is->requeues_used);
    CHECK(w, was->cancel_asked == is->cancel_asked);
    CHECK(w, was->stop_grace_ms == is->stop_grace_ms);
    CHECK(w, was->requeue_asked == is->requeue_asked);
    CHECK(w, was->parked == is->parked && was->deps_unmet == is->deps_unmet);
    if (job_state_is_active(is->state)) {
        CHECK(w, is->state == JOB_STARTING && job_state_is_active(was->state));
    } else {
        CHECK(w, was->state == is->state);
        /* The expected run time of a job that has run comes from estimates of that time. */
        CHECK(w, was->attempts > 0 || was->span_ms == is->span_ms);
    }
    CHECK(w, (was->run != NULL) == (is->run != NULL));
    if (is->run)
        compare_runs(w, was->run, is->run);
    compare_arrays(w, was, is);
}

/* --- the new daemon --- */

static void
find_jobs(struct world *w, struct found *f)
{
    struct err e;
    store_close(w->store);
    w->store = NULL;
    if (store_open(w->dir, &w->store, &e) < 0 ||
        store_jobs_load_live(w->store, on_job, f, &e) < 0)
        err_abort("%s", e.text);
}

/* Add jobs by ascending number, so that an array precedes its tasks. */
static void
build_queue(struct world *w, const struct found *f)
{
    for (size_t i = 0; i < f->n; i++) {
        past_of(w, f->jobs[i]->id)->ended = 0;
        jobs_recover(&w->s, f->jobs[i]);
    }
    depend_recover(&w->s);
}

static void
book_cards(struct world *w)
{
    for (struct job *job = queue_active(w->q); job; job = queue_active_next(job)) {
        const struct attempt *run = job->run;
        ledger_hold(w->l, job->id, &job->req.demand, run->gpus, run->n_gpus);
        ledger_rebind(w->l, job->id, (uint64_t)run->nodes);
        for (int s = 0; s < run->n_gpus; s++)
            ledger_restore_peak(w->l, run->gpus[s], job->id, run->peak_mib[s]);
    }
}

static struct fair *
restore_usage(struct world *w, struct fair *was)
{
    struct fair *f = fair_new(3600 * 1000);
    for (uint32_t uid = 0; uid < USERS; uid++) {
        double usage = fair_usage(was, uid, w->now_us);
        fair_restore(f, uid, usage, w->now_us);
        CHECK(w, fair_usage(f, uid, w->now_us) == usage);
    }
    fair_free(was);
    return f;
}

/* Supervisors repeat their earlier reports to the new daemon. */
static void
hear_again(struct world *w, const struct queue *before)
{
    for (size_t i = 0; i < w->n_procs; i++) {
        const struct job *was = queue_get(before, w->procs[i].job);
        struct job *job = queue_get(w->q, w->procs[i].job);
        CHECK(w, was && job && was->run->number == job->run->number);
        if (was->run->started_us)
            jobs_attempt_started(&w->s, job, was->run->started_us);
        if (was->state == JOB_COMPLETING)
            jobs_attempt_ended(&w->s, job, &was->run->ending);
    }
    cards_clear_ended(w);
}

void
restart_daemon(struct world *w, bool committed)
{
    struct found f = {0};
    struct err e;
    struct queue *was = w->q;
    world_say(w, "the daemon is restarted");
    if (committed)
        turns_commit(w);
    turn_free(w->turn);
    find_jobs(w, &f);
    state_close(&w->s);
    ledger_free(w->l);
    planner_free(w->planner);
    memset(w->used, 0, sizeof w->used);
    memset(w->other_peaks, 0, sizeof w->other_peaks);
    for (int i = 0; i < w->n_cards; i++) {
        for (int s = 0; s < STRANGERS; s++)
            w->others[i][s].peak = 0;
    }
    w->q = queue_new();
    w->l = cards_ledger(w);
    w->fair = restore_usage(w, w->fair);
    w->planner = planner_new(&w->rules, w->fair);
    world_make_state(w);
    turns_make(w);
    if (runs_load(w->store, w->s.history, w->planner, &e) < 0)
        err_abort("%s", e.text);
    build_queue(w, &f);
    book_cards(w);
    arrays_recovered(&w->s);
    CHECK(w, !committed || queue_n(was) == f.n);
    for (size_t i = 0; committed && i < f.n; i++)
        compare_jobs(w, queue_get(was, f.jobs[i]->id), f.jobs[i]);
    hear_again(w, was);
    queue_free(was);
    free(f.jobs);
    cards_sample(w);
}
