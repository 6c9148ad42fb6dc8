/* Dependencies in the daemon: see depend_turns.h. Called by the methods that make jobs, by
 * job_facts.c for every end, and by recover.c. A chain of any length is resolved in one turn
 * without recursion: ends caused by an end are queued and handled one by one. */
#include "daemon/state/depend_turns.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "core/queue/array.h"
#include "core/queue/deps.h"
#include "core/queue/queue.h"
#include "daemon/state/array_turns.h"
#include "daemon/state/job_facts.h"
#include "daemon/state/state.h"

struct depend {
    struct deps *deps;
    uint32_t *fallen; /* ended jobs whose dependents have not been updated yet */
    size_t n_fallen, cap_fallen;
    bool telling;
};

struct depend *
depend_new(void)
{
    struct depend *x = xcalloc(1, sizeof *x);
    x->deps = deps_new();
    return x;
}

void
depend_free(struct depend *x)
{
    if (!x)
        return;
    deps_free(x->deps);
    free(x->fallen);
    free(x);
}

/* --- looking up jobs --- */

struct wanted {
    uid_t uid;
    const char *name;
};

static bool
has_name(const struct job *job, const void *arg)
{
    const struct wanted *w = arg;
    return job->uid == w->uid && !job->array && job->req.name &&
           strcmp(job->req.name, w->name) == 0;
}

/* The newest job of this user with that name; 0: none. */
static int
find_named(struct state *s, uid_t uid, const char *name, uint32_t *out, struct err *e)
{
    const struct wanted w = {uid, name};
    const struct job *fresh = changes_find_new(&s->changes, has_name, &w);
    struct found_job found;
    *out = fresh ? fresh->id : 0;
    if (fresh)
        return 0;
    if (s->past->find_named(s->past->arg, uid, name, &found, e))
        return -1;
    *out = found.id;
    return 0;
}

/* True if a task that is neither pending in its array nor live has ended; *out: its state. */
static bool
task_has_ended(struct state *s, const struct found_job *array, int32_t task,
               enum job_state *out)
{
    struct found_job found;
    struct err e;
    *out = job_state_is_final(array->state) ? array->state : JOB_CANCELLED;
    if (s->past->find_task(s->past->arg, array->id, task, &found, &e) == 0 && found.id) {
        /* The table knows of an end in this turn; the store does not yet. */
        const struct job *job = queue_get(s->queue, found.id);
        *out = job ? job->state : found.state;
    } else if (*out == JOB_COMPLETED || *out == JOB_FAILED) {
        *out = JOB_CANCELLED; /* never left its array, so it was cancelled with the rest */
    }
    return job_state_is_final(*out);
}

static bool
has_ended(void *arg, uint32_t id, int32_t task, enum job_state *out)
{
    struct state *s = arg;
    const struct job *job = queue_get(s->queue, id);
    struct found_job x = {.id = id};
    struct err e;
    if (job)
        x.state = job->state;
    else if (s->past->find_job(s->past->arg, id, &x, &e) || !x.id)
        x = (struct found_job){.state = JOB_LOST}; /* it has been pruned from the history */
    *out = x.state;
    if (task < 0 || !x.id)
        return job_state_is_final(x.state);
    if (job && job->tasks && task_set_has(&job->tasks->pending, task))
        return false;
    const struct job *live = job ? queue_task(s->queue, job, task) : NULL;
    if (!live)
        return task_has_ended(s, &x, task, out);
    *out = live->state;
    return job_state_is_final(live->state);
}

/* --- requests --- */

static int
check_there(struct state *s, const struct dep *dep, struct err *e)
{
    const struct job *job = queue_get(s->queue, dep->job);
    struct found_job found = {0};
    struct task_set tasks = {NULL, 0};
    if (!job && s->past->find_job(s->past->arg, dep->job, &found, e))
        return -1;
    if (!job && !found.id)
        return err_set(e, ERR_REFUSED, "it should run after job %u, which does not exist",
                       dep->job);
    if (dep->task < 0)
        return 0;
    if (!job && s->past->array_tasks(s->past->arg, dep->job, &tasks, e))
        return -1;
    bool has = task_set_has(job ? &job->req.array : &tasks, dep->task);
    task_set_free(&tasks);
    if (has)
        return 0;
    return err_set(e, ERR_REFUSED, "it should run after %u_%d, but job %u has no such task",
                   dep->job, dep->task, dep->job);
}

int
depend_resolve(struct state *s, uid_t uid, struct request *r, struct err *e)
{
    for (int i = 0; i < r->n_deps; i++) {
        struct dep *dep = &r->deps[i];
        if (!dep->job && find_named(s, uid, dep->name ? dep->name : "", &dep->job, e) < 0)
            return -1;
        if (!dep->job)
            return err_set(e, ERR_REFUSED,
                           "it should run after '%s', but none of your jobs has that name",
                           dep->name ? dep->name : "");
        if (check_there(s, dep, e) < 0)
            return -1;
    }
    return 0;
}

int
depend_check(struct state *s, const struct request *r, struct err *e)
{
    auto_buf struct buf why = BUF_INIT;
    if (deps_possible(r, has_ended, s, &why))
        return 0;
    return err_set(e, ERR_REFUSED, "it can never start: %s", buf_str(&why));
}

bool
depend_has_ended(struct state *s, const struct dep *dep)
{
    enum job_state unused;
    return dep->ended || has_ended(s, dep->job, dep->task, &unused);
}

bool
depend_is_gone(struct state *s, uint32_t id)
{
    struct found_job found;
    struct err unused;
    return !queue_get(s->queue, id) &&
           s->past->find_job(s->past->arg, id, &found, &unused) == 0 && !found.id;
}

/* Marks the dependency as met for good, whatever happens to the job that it names. */
static void
mark_met(struct dep *dep)
{
    dep->ended = dep->type == DEP_FAILED ? JOB_FAILED : JOB_COMPLETED;
}

void
depend_renew(struct state *s, struct request *r)
{
    for (int i = 0; i < r->n_deps; i++) {
        struct dep *dep = &r->deps[i];
        if (!depend_is_gone(s, dep->job))
            dep->ended = 0;
        else if (!dep->ended)
            mark_met(dep);
    }
}

void
depend_on_line(struct state *s, struct dep *dep, uint32_t id, enum job_state state)
{
    bool gone = job_state_is_final(state) && depend_is_gone(s, id);
    dep->job = id;
    dep->ended = gone ? (uint8_t)state : 0;
}

/* --- waiting jobs --- */

static bool
is_circular(struct state *s, const struct job *job, struct buf *words)
{
    struct circle circle;
    if (!deps_is_circular(s->depend->deps, s->queue, job, &circle))
        return false;
    if (!circle.single)
        buf_adds(words, "dependency: it would wait for itself");
    else
        buf_addf(words,
                 "dependency: it would wait for job %u, which waits for it: singletons of one "
                 "name run in the order in which they were submitted",
                 circle.over);
    return true;
}

/* Cancels a job that can never start. Always false. */
static bool
fall(struct state *s, struct job *job, const struct buf *words, struct buf *why)
{
    if (why)
        buf_adds(why, buf_str(words));
    jobs_never(s, job, buf_str(words));
    return false;
}

bool
depend_renamed(struct state *s, struct job *job, struct buf *why)
{
    auto_buf struct buf words = BUF_INIT;
    if (job_state_is_final(job->state) || !is_circular(s, job, &words))
        return true;
    return fall(s, job, &words, why);
}

bool
depend_enter(struct state *s, struct job *job, struct buf *why)
{
    auto_buf struct buf words = BUF_INIT;
    if (job_state_is_final(job->state))
        return true;
    deps_leave(s->depend->deps, job);
    bool can =
        !is_circular(s, job, &words) && deps_enter(s->depend->deps, job, has_ended, s, &words);
    queue_refile(s->queue, job);
    if (!can)
        return fall(s, job, &words, why);
    for (int i = 0; i < job->req.n_deps; i++)
        if (depend_has_ended(s, &job->req.deps[i]))
            mark_met(&job->req.deps[i]);
    return true;
}

/* For recovery: a job's end and what it means for its dependents are in the same commit. So if
 * a live job waits for a job that is no longer live, that dependency was met; otherwise the
 * dependent would have ended too. Older daemons did not store that it was met. */
struct waiting {
    struct state *state;
    const struct job *job;
};

static bool
had_ended(void *arg, uint32_t id, int32_t task, enum job_state *out)
{
    const struct waiting *r = arg;
    const struct request *req = &r->job->req;
    if (queue_get(r->state->queue, id) && !has_ended(r->state, id, task, out))
        return false;
    *out = JOB_COMPLETED;
    for (int i = 0; i < req->n_deps; i++)
        if (req->deps[i].job == id && req->deps[i].task == task &&
            req->deps[i].type == DEP_FAILED)
            *out = JOB_FAILED;
    return true;
}

void
depend_join(struct state *s, struct job *task)
{
    auto_buf struct buf unused = BUF_INIT;
    struct waiting r = {s, task}; /* as for its array */
    deps_enter(s->depend->deps, task, had_ended, &r, &unused);
    queue_refile(s->queue, task);
}

void
depend_leave(struct state *s, struct job *job)
{
    deps_leave(s->depend->deps, job);
}

/* --- ends --- */

struct fallen {
    struct state *state;
    uint32_t id, array;
    int32_t task;
};

static bool
names(const struct dep *dep, const struct fallen *x)
{
    return dep->job == x->id || (x->array && dep->job == x->array && dep->task == x->task);
}

static void
on_dependent(void *arg, uint32_t id, bool met, const char *why)
{
    const struct fallen *x = arg;
    struct state *s = x->state;
    struct job *job = queue_get(s->queue, id);
    if (!job || (job->state != JOB_PENDING && job->state != JOB_HELD))
        return;
    if (!met) {
        jobs_never(s, job, why);
        return;
    }
    for (int i = 0; i < job->req.n_deps; i++)
        if (names(&job->req.deps[i], x))
            mark_met(&job->req.deps[i]);
    state_save(s, job, SAVE_JOB);
    if (deps_met(job)) {
        job->waiting_told = 0;
        queue_refile(s->queue, job);
        changes_wake(&s->changes, true);
    }
}

void
depend_ended(struct state *s, const struct job *job)
{
    struct depend *x = s->depend;
    x->fallen = xgrow(x->fallen, x->n_fallen, &x->cap_fallen, sizeof *x->fallen);
    x->fallen[x->n_fallen++] = job->id;
    if (x->telling)
        return; /* the loop below is running and will handle it */
    x->telling = true;
    for (size_t i = 0; i < x->n_fallen; i++) {
        const struct job *fallen = queue_get(s->queue, x->fallen[i]);
        if (!fallen || !job_state_is_final(fallen->state))
            continue;
        struct fallen arg = {s, fallen->id, fallen->array, fallen->task};
        deps_ended(x->deps, fallen->id, fallen->array, fallen->task, fallen->state,
                   on_dependent, &arg);
    }
    x->n_fallen = 0;
    x->telling = false;
}

/* --- after a restart --- */

void
depend_recover(struct state *s)
{
    size_t n;
    auto_buf struct buf unused = BUF_INIT;
    auto_free struct job **jobs =
        queue_list_by_id(s->queue, 1U << JOB_PENDING | 1U << JOB_HELD, &n);
    for (size_t i = 0; i < n; i++) {
        if (!jobs[i]->req.n_deps)
            continue;
        struct waiting r = {s, jobs[i]};
        deps_enter(s->depend->deps, jobs[i], had_ended, &r, &unused);
        queue_refile(s->queue, jobs[i]);
    }
}
