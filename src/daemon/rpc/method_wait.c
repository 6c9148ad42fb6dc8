/* `wait`: answered when all selected jobs have ended. The jobs are determined in pieces
 * (long_work.h): the ids of all live jobs are noted first and examined later, then the
 * history. The wait (waiters.h) exists from the start and records what happens meanwhile to
 * the jobs already examined. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "core/queue/array.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"
#include "daemon/common/instance.h"
#include "daemon/request/selection.h"
#include "daemon/request/selection_walk.h"
#include "daemon/rpc/long_work.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "daemon/rpc/waiters.h"

#define WAIT_TASKS_MAX 100000 /* tasks in their arrays, per request */
#define LOOK_EACH      50     /* jobs between two checks of the clock */

struct asked {
    struct rpc *rpc;
    struct select select;
    struct select names;     /* the part of select that names jobs, ended ones included */
    const json_t *params;    /* borrowed; valid while the work lasts */
    struct wait *wait;       /* owned; NULL: handed over */
    struct select_live live; /* the jobs that were live when the request came */
    size_t at;
    struct select_past past;
};

/* Adds the selected tasks that have not left their arrays. */
static int
add_tasks(struct instance *inst, const struct select *s, struct wait *x, struct err *e)
{
    int n = 0;
    for (size_t i = 0; i < s->selector.n_sorted; i++) {
        const struct selector_term *t = &s->selector.terms[i];
        const struct job *array =
            t->kind == SELECT_TASKS ? queue_get(inst->queue, t->first) : NULL;
        int32_t task = array && array->tasks ? t->first_task : -1;
        while (task >= 0 &&
               (task = task_set_next(&array->tasks->pending, task, t->last_task)) >= 0) {
            if (n++ == WAIT_TASKS_MAX)
                return err_set(e, ERR_REFUSED,
                               "cannot wait for more than %d tasks of arrays; wait for the "
                               "arrays, or for fewer tasks",
                               WAIT_TASKS_MAX);
            waits_add_task(x, array->id, task++);
        }
    }
    return 0;
}

/* Adds the live jobs. An end that is not committed yet is reported with its commit. False:
 * time ran out. */
static bool
look_at_live(struct asked *a, int64_t until_us)
{
    if (!select_live_list(a->rpc->inst, &a->select, &a->live, until_us))
        return false;
    while (a->at < a->live.n) {
        const struct job *job = queue_get(a->rpc->inst->queue, a->live.ids[a->at++]);
        if (job && select_matches(&a->select, job))
            waits_add_job(a->wait, job->id);
        if (a->at % LOOK_EACH == 0 && clock_boot_us() >= until_us)
            return false;
    }
    return true;
}

static int
on_ended(struct job *job, const char *const *uuids, void *arg)
{
    (void)uuids;
    waits_add_ended(arg, job);
    return 0;
}

/* Ended jobs count only if they were named: `all`, a user or a state select only live jobs, so
 * that a script does not get the exit status of last week's failure. */
static int
step(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out, int64_t until_us,
     struct err *e)
{
    struct asked *a = arg;
    (void)c;
    (void)out;
    if (!look_at_live(a, until_us))
        return WORK_MORE;
    if (!select_names_jobs(&a->select))
        return WORK_DONE;
    int rc = select_past_walk(rpc->inst, &a->names, &a->past, until_us, on_ended, a->wait, e);
    if (rc <= 0)
        return rc < 0 ? -1 : WORK_MORE;
    return waits_is_empty(a->wait) ? select_none(a->params, e) : WORK_DONE;
}

/* A client that may have to repeat its request to another daemon first asks which jobs are
 * selected, because by then `all` or `@` may select others. */
static int
resolve_step(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out,
             int64_t until_us, struct err *e)
{
    const struct asked *a = arg;
    int rc = step(rpc, c, arg, out, until_us, e);
    if (rc == WORK_DONE)
        waits_write_meant(a->wait, out);
    return rc;
}

static void
answer_later(struct rpc *rpc, void *arg, struct ticket *t)
{
    struct asked *a = arg;
    waits_begin(rpc->waits, a->wait, t);
    a->wait = NULL;
}

static void
asked_free(void *arg)
{
    struct asked *a = arg;
    waits_drop(a->rpc->waits, a->wait);
    select_free(&a->select);
    select_free(&a->names);
    select_past_free(&a->past);
    select_live_free(&a->live);
    free(a);
}

static int
begin(struct asked *a, const struct caller *c, struct err *e)
{
    struct rpc *rpc = a->rpc;
    struct select *s = &a->select;
    if (!server_may_wait(rpc->server, c->group))
        return err_set(
            e, ERR_REFUSED,
            "your requests that wait for their answer take half of the memory that one user "
            "may have (user_max_buffer_mib); wait for several jobs in one request");
    int rc = target_find(rpc->roles, c, a->params, s, e);
    if (rc == 0)
        rc = select_read(rpc->roles, c->uid, a->params, &a->names, e);
    select_keep_names(&a->names);
    if (rc == 0 && select_is_all(s)) { /* also an admin waits only for own jobs */
        s->mine = true;
        s->owner = c->uid;
    }
    a->wait = waits_open(rpc->waits, &a->names);
    if (rc || add_tasks(rpc->inst, s, a->wait, e) < 0)
        return -1;
    a->live.order = LINEUP_BY_ID;
    return 0;
}

int
method_wait(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out, struct err *e)
{
    static const struct work_kind wait = {
        .step = step, .free = asked_free, .answer_later = answer_later, .past = true};
    static const struct work_kind resolve = {
        .step = resolve_step, .free = asked_free, .past = true};
    bool asks_only = json_is_true(json_object_get(params, "resolve"));
    struct asked *a = xcalloc(1, sizeof *a);
    a->rpc = rpc;
    a->params = params;
    if (begin(a, c, e) < 0) {
        asked_free(a);
        return -1;
    }
    return work_begin(rpc, c, asks_only ? &resolve : &wait, a, params, out, e);
}
