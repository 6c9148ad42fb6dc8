/* Dependencies: for each job that others wait for, the list of its dependents. Maintained by
 * the owner of the jobs (the daemon, a test); contains only ids, so it cannot refer to a freed
 * job. A dependent is in a list once for each of its dependencies on that job. */
#include "core/queue/deps.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/queue/queue.h"
#include "core/queue/singles.h"

struct dependent {
    uint32_t job;
    int32_t task; /* of the array waited for; -1: the whole */
    enum dep_type type;
};

struct awaited {
    uint32_t job;
    struct dependent *list;
    size_t n, cap;
    UT_hash_handle hh;
};

struct deps {
    struct awaited *awaited;
};

struct deps *
deps_new(void)
{
    return xcalloc(1, sizeof(struct deps));
}

static void
awaited_drop(struct deps *d, struct awaited *a)
{
    HASH_DEL(d->awaited, a);
    free(a->list);
    free(a);
}

void
deps_free(struct deps *d)
{
    struct awaited *a, *next;
    if (!d)
        return;
    HASH_ITER(hh, d->awaited, a, next)
    awaited_drop(d, a);
    free(d);
}

static struct awaited *
find(const struct deps *d, uint32_t job)
{
    struct awaited *a;
    HASH_FIND(hh, d->awaited, &job, sizeof job, a);
    return a;
}

static void
enter(struct deps *d, const struct dep *dep, uint32_t job)
{
    struct awaited *a = find(d, dep->job);
    if (!a) {
        a = xcalloc(1, sizeof *a);
        a->job = dep->job;
        HASH_ADD(hh, d->awaited, job, sizeof a->job, a);
    }
    a->list = xgrow(a->list, a->n, &a->cap, sizeof *a->list);
    a->list[a->n++] = (struct dependent){.job = job, .task = dep->task, .type = dep->type};
}

/* --- the rule --- */

static bool
is_met(enum dep_type type, enum job_state ended)
{
    switch (type) {
    case DEP_SUCCESS:
        return ended == JOB_COMPLETED;
    case DEP_FAILED:
        return ended != JOB_COMPLETED;
    case DEP_ANY:
        break;
    }
    return true;
}

static void
add_words(struct buf *out, uint32_t job, int32_t task, enum dep_type type, enum job_state ended)
{
    buf_addf(out, "dependency: job %u", job);
    if (task >= 0)
        buf_addf(out, "_%d", task);
    buf_addf(out, " ended %s", job_state_name(ended));
    if (type == DEP_FAILED)
        buf_adds(out, ", and this job should run only after a failure");
}

/* --- jobs --- */

static bool
dep_has_ended(const struct dep *dep, deps_has_ended has_ended, void *arg, enum job_state *out)
{
    if (!dep->ended)
        return has_ended(arg, dep->job, dep->task, out);
    *out = (enum job_state)dep->ended;
    return true;
}

bool
deps_possible(const struct request *r, deps_has_ended has_ended, void *arg, struct buf *why)
{
    for (int i = 0; i < r->n_deps; i++) {
        const struct dep *dep = &r->deps[i];
        enum job_state ended;
        if (!dep_has_ended(dep, has_ended, arg, &ended) || is_met(dep->type, ended))
            continue;
        add_words(why, dep->job, dep->task, dep->type, ended);
        return false;
    }
    return true;
}

bool
deps_enter(struct deps *d, struct job *job, deps_has_ended has_ended, void *arg,
           struct buf *why)
{
    const struct request *r = &job->req;
    if (!deps_possible(r, has_ended, arg, why))
        return false;
    job->deps_unmet = 0;
    job->parked &= (uint8_t)~PARK_DEPENDENCY;
    for (int i = 0; i < r->n_deps; i++) {
        enum job_state ended;
        if (dep_has_ended(&r->deps[i], has_ended, arg, &ended))
            continue;
        enter(d, &r->deps[i], job->id);
        job->deps_unmet++;
        job->parked |= PARK_DEPENDENCY;
    }
    return true;
}

void
deps_leave(struct deps *d, struct job *job)
{
    /* The job is in one list per unmet dependency. Most jobs have none left here, and the list
     * of a much awaited job is long. */
    int n = job->deps_unmet > 0 ? job->req.n_deps : 0;
    for (int i = 0; i < n; i++) {
        struct awaited *a = find(d, job->req.deps[i].job);
        size_t keep = 0;
        if (!a)
            continue;
        for (size_t k = 0; k < a->n; k++)
            if (a->list[k].job != job->id)
                a->list[keep++] = a->list[k];
        a->n = keep;
        if (!keep)
            awaited_drop(d, a);
    }
    job->deps_unmet = 0;
    job->parked &= (uint8_t)~PARK_DEPENDENCY;
}

bool
deps_met(struct job *job)
{
    if (job->deps_unmet <= 0 || --job->deps_unmet > 0)
        return false;
    job->parked &= (uint8_t)~PARK_DEPENDENCY;
    return true;
}

#define TASK_ANY -2

/* Takes the jobs that wait for this task (-1: for the whole) out of the list of `job`. They
 * must leave the table before they are reported, because the callback may change the table. */
static struct dependent *
take(struct deps *d, uint32_t job, int32_t task, size_t *n)
{
    struct awaited *a = find(d, job);
    struct dependent *taken;
    size_t keep = 0;
    *n = 0;
    if (!a)
        return NULL;
    taken = xcalloc(a->n, sizeof *taken);
    for (size_t i = 0; i < a->n; i++) {
        if (a->list[i].task == task || task == TASK_ANY)
            taken[(*n)++] = a->list[i];
        else
            a->list[keep++] = a->list[i];
    }
    a->n = keep;
    if (!keep)
        awaited_drop(d, a);
    return taken;
}

static void
tell(struct deps *d, uint32_t job, int32_t task, enum job_state state, deps_on_dependent cb,
     void *arg)
{
    size_t n;
    struct dependent *list = take(d, job, task, &n);
    for (size_t i = 0; i < n; i++) {
        auto_buf struct buf why = BUF_INIT;
        bool met = is_met(list[i].type, state);
        if (!met)
            add_words(&why, job, list[i].task, list[i].type, state);
        cb(arg, list[i].job, met, met ? NULL : buf_str(&why));
    }
    free(list);
}

void
deps_ended(struct deps *d, uint32_t job, uint32_t array, int32_t task, enum job_state state,
           deps_on_dependent cb, void *arg)
{
    tell(d, job, -1, state, cb, arg);
    /* Of an array: tasks that were split off have reported their own ends; the others ended
     * with the array. */
    tell(d, job, TASK_ANY, state == JOB_INFEASIBLE ? state : JOB_CANCELLED, cb, arg);
    if (array)
        tell(d, array, task, state, cb, arg);
}

/* --- circles --- */

/* A job that waits for the given job, directly or not. */
struct follower {
    uint32_t job;
    bool single;    /* through a singleton's wait */
    bool is_single; /* a singleton: those behind it are in the table too */
    UT_hash_handle hh;
};

static void
note_follower(struct follower **all, const struct follower *x)
{
    struct follower *f;
    HASH_FIND(hh, *all, &x->job, sizeof x->job, f);
    if (f)
        return;
    f = xmalloc(sizeof *f);
    *f = *x;
    HASH_ADD(hh, *all, job, sizeof f->job, f);
}

/* Adds the jobs that wait for this one. */
static void
note_next(const struct deps *d, const struct job *job, const struct follower *at,
          struct follower **all)
{
    const struct awaited *a = find(d, at->job);
    for (size_t i = 0; a && i < a->n; i++)
        note_follower(all, &(struct follower){.job = a->list[i].job, .single = at->single});
    if (at->is_single || !job)
        return;
    for (const struct job *s = singles_next(job); s; s = singles_next(s))
        note_follower(all, &(struct follower){.job = s->id, .single = true, .is_single = true});
}

static bool
waits_for(const struct job *job, uint32_t id)
{
    for (int i = 0; i < job->req.n_deps; i++)
        if (job->req.deps[i].job == id)
            return true;
    return false;
}

/* No job that waits for this job may be one that it would wait for. The followers are also a
 * list, which grows while it is walked. */
bool
deps_is_circular(const struct deps *d, const struct queue *q, const struct job *job,
                 struct circle *out)
{
    struct follower *all = NULL, *x, *next;
    bool is_circle = false;
    if (job->req.n_deps == 0 && !job->req.singleton)
        return false;
    note_follower(&all, &(struct follower){.job = job->id});
    for (const struct follower *at = all; at && !is_circle; at = at->hh.next) {
        const struct job *other = at->job == job->id ? job : queue_get(q, at->job);
        bool behind = other && singles_is_behind(job, other);
        is_circle = behind || waits_for(job, at->job);
        *out = (struct circle){at->job, at->single || behind};
        note_next(d, other, at, &all);
    }
    HASH_ITER(hh, all, x, next)
    {
        HASH_DEL(all, x);
        free(x);
    }
    return is_circle;
}
