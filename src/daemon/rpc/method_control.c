/* `cancel`, `hold`, `release` and `priority`: changes to existing jobs. */
#include <ctype.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "daemon/request/roles.h"
#include "daemon/request/selection_walk.h"
#include "daemon/rpc/long_work.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "daemon/state/job_facts.h"

#define WHY_MAX 24 /* bytes */

typedef int (*control_fn)(struct state *state, struct job *job, int32_t n, struct err *e);

/* A change to many jobs, in pieces (long_work.h): each piece is committed before the next
 * begins, however many jobs there are. */
struct control {
    struct target_walk walk;
    const json_t *params; /* borrowed; valid while the work lasts */
    struct ids touched, ended;
    struct select_past past; /* cancel: selected jobs that had ended before */
    bool past_done;
    control_fn act, alone; /* alone: for an array without the tasks that have left it */
    int32_t number;
    uint32_t array; /* the array whose tasks are being processed; 0: none */
    bool array_ok, tasks_count;
    struct err array_why;
    struct err last; /* why a job could not be changed */
};

static void
control_free(void *arg)
{
    struct control *k = arg;
    target_walk_free(&k->walk);
    select_past_free(&k->past);
    ids_free(&k->touched);
    ids_free(&k->ended);
    free(k);
}

static size_t
n_done(const void *arg)
{
    const struct control *k = arg;
    return k->touched.n;
}

static void
so_far(void *arg, struct buf *out)
{
    struct control *k = arg;
    if (k->touched.n + k->ended.n == k->touched.n_saved + k->ended.n_saved)
        return;
    ids_save(&k->touched, out);
    ids_save(&k->ended, out);
}

static void
resume(void *arg, const char *text)
{
    struct control *k = arg;
    struct ids *before = &k->walk.before;
    ids_load(before, ids_load(before, text));
    ids_put_in_order(before);
    ids_load(&k->ended, ids_load(&k->touched, text));
}

static int
begin(struct rpc *rpc, struct caller *c, const struct work_kind *kind, struct control *k,
      json_t *params, struct jsonw *out, struct err *e)
{
    k->params = params;
    if (target_read(rpc->roles, c, params, &k->walk.select, e) < 0) {
        control_free(k);
        return -1;
    }
    return work_begin(rpc, c, kind, k, params, out, e);
}

/* --- cancel --- */

static int
on_ended(struct job *job, const char *const *uuids, void *arg)
{
    struct control *k = arg;
    (void)uuids;
    if (!ids_has(&k->walk.before, job->id))
        ids_add_job(&k->ended, job);
    return 0;
}

/* Cancels the array itself first, so that no task leaves it while its tasks end. It counts as
 * done only when its tasks are: a repeated request goes through all of them again. */
static bool
cancel_large(struct instance *inst, struct control *k, struct job *array, const char *by)
{
    if (!target_walk_into(&k->walk, array))
        return false;
    jobs_cancel_alone(inst->state, array, by);
    k->array = array->id;
    k->array_ok = true;
    return true;
}

static void
cancel_task(struct instance *inst, struct job *task, const char *by)
{
    const struct job *array = queue_get(inst->queue, task->array);
    if (array)
        jobs_set_stop_grace(inst->state, task, array->stop_grace_ms);
    jobs_cancel(inst->state, task, by);
}

/* If the tasks of an array were being processed and the last is done, counts the array. */
static void
end_array(struct control *k)
{
    if (!k->array || k->walk.array)
        return;
    if (k->array_ok)
        ids_add(&k->touched, k->array);
    else
        k->last = k->array_why;
    k->array = 0;
}

static struct job *
next(struct instance *inst, struct control *k, int64_t until_us)
{
    struct job *job = target_walk_next(inst, &k->walk, until_us);
    end_array(k);
    return job;
}

static void
cancel_one(struct instance *inst, const struct caller *c, struct control *k, struct job *job)
{
    const json_t *grace = json_object_get(k->params, "grace_ms");
    const char *why = json_string_value(json_object_get(k->params, "why"));
    const char *name = daemon_user_name(c->uid);
    auto_free char *by = why ? xasprintf("%s (%s)", name, why) : xstrdup(name);
    if (k->walk.array) {
        cancel_task(inst, job, by);
        return;
    }
    jobs_set_stop_grace(inst->state, job, grace ? json_integer_value(grace) : -1);
    if (!cancel_large(inst, k, job, by))
        ids_add_job(jobs_cancel(inst->state, job, by) ? &k->ended : &k->touched, job);
}

/* The history is searched before anything is cancelled, because the jobs cancelled here appear
 * in it once they are committed. */
static int
cancel_step(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out,
            int64_t until_us, struct err *e)
{
    struct control *k = arg;
    const struct select *s = &k->walk.select;
    struct job *job;
    int rc = k->walk.chosen ? 1 : target_walk_choose(rpc->inst, c, &k->walk, until_us, e);
    if (rc > 0 && !k->past_done && select_names_jobs(s))
        rc = select_past_walk(rpc->inst, s, &k->past, until_us, on_ended, k, e);
    k->walk.paused |= rc == 0; /* the chosen jobs may have changed meanwhile */
    if (rc <= 0)
        return rc < 0 ? -1 : WORK_MORE;
    k->past_done = true;
    while ((job = next(rpc->inst, k, until_us)))
        cancel_one(rpc->inst, c, k, job);
    if (k->walk.stopped)
        return WORK_MORE;
    if (!select_is_all(s) && k->touched.n + k->ended.n == 0)
        return select_none(k->params, e);
    jsonw_object(out);
    ids_write(out, "ids", &k->touched);
    ids_write(out, "ended", &k->ended);
    jsonw_end_object(out);
    return WORK_DONE;
}

/* The reason is stored with the user's name, also in the exit record. */
static int
check_why(const json_t *params, struct err *e)
{
    const json_t *why = json_object_get(params, "why");
    const char *at = json_string_value(why);
    if (!why)
        return 0;
    /* Characters that could make the reason look like another user's name are refused. */
    while (at && (isalnum((unsigned char)*at) || *at == ' '))
        at++;
    if (at && !*at && json_string_length(why) <= WHY_MAX)
        return 0;
    return err_set(e, ERR_USAGE, "\"why\" must be at most %d letters, digits and spaces",
                   WHY_MAX);
}

int
method_cancel(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
              struct err *e)
{
    static const struct work_kind kind = {.step = cancel_step,
                                          .free = control_free,
                                          .changes = true,
                                          .n_done = n_done,
                                          .so_far = so_far,
                                          .resume = resume};
    if (roles_check_grace(rpc->roles, json_integer_value(json_object_get(params, "grace_ms")),
                          e) < 0 ||
        check_why(params, e) < 0)
        return -1;
    return begin(rpc, c, &kind, xcalloc(1, sizeof(struct control)), params, out, e);
}

/* --- hold and release --- */

static void
control_one(struct rpc *rpc, struct control *k, struct job *job)
{
    struct err ignored;
    if (k->walk.array) {
        k->array_ok |=
            k->act(rpc->inst->state, job, k->number, &ignored) == 0 && k->tasks_count;
    } else if (target_walk_into(&k->walk, job)) {
        int rc = k->alone(rpc->inst->state, job, k->number, &k->array_why);
        k->array = job->id;
        k->array_ok = rc == 0;
        k->tasks_count = rc > 0;
    } else if (k->act(rpc->inst->state, job, k->number, &k->last) == 0) {
        ids_add_job(&k->touched, job);
    }
}

/* Changes the jobs that allow it. An error if none could be changed, unless all jobs were
 * meant and there are none. */
static int
control_step(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out,
             int64_t until_us, struct err *e)
{
    struct control *k = arg;
    struct job *job;
    int rc = k->walk.chosen ? 1 : target_walk_choose(rpc->inst, c, &k->walk, until_us, e);
    if (rc <= 0)
        return rc < 0 ? -1 : WORK_MORE;
    while ((job = next(rpc->inst, k, until_us)))
        control_one(rpc, k, job);
    if (k->walk.stopped)
        return WORK_MORE;
    if (k->touched.n == 0 && (k->last.code || !select_is_all(&k->walk.select)))
        return target_none(rpc->inst, &k->walk, k->params, until_us, &k->last, e);
    jsonw_object(out);
    ids_write(out, "ids", &k->touched);
    jsonw_end_object(out);
    return WORK_DONE;
}

static int
control(struct rpc *rpc, struct caller *c, json_t *params, control_fn act, control_fn alone,
        int32_t number, struct jsonw *out, struct err *e)
{
    static const struct work_kind kind = {.step = control_step,
                                          .free = control_free,
                                          .changes = true,
                                          .n_done = n_done,
                                          .so_far = so_far,
                                          .resume = resume};
    struct control *k = xcalloc(1, sizeof *k);
    k->act = act;
    k->alone = alone;
    k->number = number;
    return begin(rpc, c, &kind, k, params, out, e);
}

static int
hold(struct state *state, struct job *job, int32_t unused, struct err *e)
{
    (void)unused;
    return jobs_hold(state, job, e);
}

static int
release(struct state *state, struct job *job, int32_t unused, struct err *e)
{
    (void)unused;
    return jobs_release(state, job, e);
}

static int
hold_alone(struct state *state, struct job *array, int32_t unused, struct err *e)
{
    (void)unused;
    return jobs_hold_alone(state, array, e);
}

static int
release_alone(struct state *state, struct job *array, int32_t unused, struct err *e)
{
    (void)unused;
    return jobs_release_alone(state, array, e);
}

int
method_hold(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out, struct err *e)
{
    return control(rpc, c, params, hold, hold_alone, 0, out, e);
}

int
method_release(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
               struct err *e)
{
    return control(rpc, c, params, release, release_alone, 0, out, e);
}

int
method_priority(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
                struct err *e)
{
    const json_t *v = json_object_get(params, "priority");
    json_int_t n = json_integer_value(v);
    if (!json_is_integer(v) || n < PRIORITY_MIN || n > PRIORITY_MAX)
        return err_set(e, ERR_USAGE, "\"priority\" must be a whole number from %d to %d",
                       PRIORITY_MIN, PRIORITY_MAX);
    if (roles_check_priority(rpc->roles, (int32_t)n, e) < 0)
        return -1;
    return control(rpc, c, params, jobs_set_priority, jobs_set_priority_alone, (int32_t)n, out,
                   e);
}
