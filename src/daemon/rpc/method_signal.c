/* `signal`: sends a signal to the processes of running jobs. Only the event is stored: the
 * effect of the signal is up to the job. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "core/queue/job.h"
#include "daemon/attempt/supervisor_watch.h"
#include "daemon/common/event_say.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "daemon/request/roles.h"
#include "daemon/request/selection_walk.h"
#include "daemon/rpc/long_work.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "daemon/slurm/slurm_engine.h"
#include "daemon/state/array_turns.h"

static int
read_signal(const json_t *params, int *sig, struct err *e)
{
    const json_t *v = json_object_get(params, "signal");
    if (json_is_string(v))
        return parse_signal(json_string_value(v), sig, e);
    *sig = json_is_integer(v) && json_integer_value(v) < 65 ? (int)json_integer_value(v) : 0;
    return *sig > 0 ? 0 : err_set(e, ERR_USAGE, "\"signal\" must be a name or 1..64");
}

static bool
is_running(const struct job *job)
{
    return job->state == JOB_STARTING || job->state == JOB_RUNNING;
}

/* Sent in pieces (long_work.h), as many jobs may be running. */
struct sending {
    struct target_walk walk;
    const json_t *params; /* borrowed; valid while the work lasts */
    int sig;
    struct ids sent;
    uint32_t array;       /* the array whose tasks are being processed; 0: none */
    size_t n_sent_before; /* sent.n when that array began */
    struct err last;      /* why a job was skipped */
};

static void
send_one(struct rpc *rpc, struct sending *x, const struct job *job)
{
    if (!is_running(job)) {
        err_set(&x->last, ERR_FAILED, "job %s is not running (%s)", job_words(job).text,
                job_state_name(job->state));
    } else if (job->req.demand.engine == ENGINE_SLURM &&
               !slurm_signal(rpc->slurm, job, x->sig)) {
        err_set(&x->last, ERR_FAILED, "job %s: its command has not begun on Slurm",
                job_words(job).text);
    } else if (job->req.demand.engine != ENGINE_SLURM &&
               !watch_signal(rpc->attempts, job, x->sig)) {
        err_set(&x->last, ERR_FAILED, "job %s: its supervisor cannot be reached",
                job_words(job).text);
    } else {
        ids_add_job(&x->sent, job);
        event_signalled(rpc->inst, job, x->sig, daemon_user_name(rpc->roles->caller->uid));
    }
}

static void
send_to_task(struct rpc *rpc, struct sending *x, const struct job *task)
{
    if (!select_matches(&x->walk.select, task) && !ids_has(&x->walk.before, task->id))
        send_one(rpc, x, task);
}

/* All tasks of the array have been processed; an error if none received the signal. */
static void
end_array(struct sending *x, uint32_t array)
{
    if (x->sent.n == x->n_sent_before)
        err_set(&x->last, ERR_FAILED, "no task of array %u is running", array);
}

/* An array runs nothing itself: the signal goes to its tasks, except those selected
 * themselves. */
static void
send_to_tasks(struct rpc *rpc, struct sending *x, const struct job *array)
{
    size_t n = 0;
    x->n_sent_before = x->sent.n;
    if (target_walk_into(&x->walk, array)) {
        x->array = array->id;
        return;
    }
    auto_free struct job **tasks = arrays_live_tasks(rpc->inst->state, array, &n);
    for (size_t i = 0; i < n; i++)
        send_to_task(rpc, x, tasks[i]);
    end_array(x, array->id);
}

static struct job *
next(struct instance *inst, struct sending *x, int64_t until_us)
{
    struct job *job = target_walk_next(inst, &x->walk, until_us);
    if (x->array && !x->walk.array) {
        end_array(x, x->array);
        x->array = 0;
    }
    return job;
}

static int
step(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out, int64_t until_us,
     struct err *e)
{
    struct sending *x = arg;
    struct job *job;
    int rc = x->walk.chosen ? 1 : target_walk_choose(rpc->inst, c, &x->walk, until_us, e);
    if (rc <= 0)
        return rc < 0 ? -1 : WORK_MORE;
    while ((job = next(rpc->inst, x, until_us))) {
        if (x->walk.array)
            send_to_task(rpc, x, job);
        else if (job->tasks)
            send_to_tasks(rpc, x, job);
        else
            send_one(rpc, x, job);
    }
    if (x->walk.stopped)
        return WORK_MORE;
    if (x->sent.n == 0)
        return target_none(rpc->inst, &x->walk, x->params, until_us, &x->last, e);
    jsonw_object(out);
    ids_write(out, "ids", &x->sent);
    jsonw_end_object(out);
    return WORK_DONE;
}

static void
sending_free(void *arg)
{
    struct sending *x = arg;
    target_walk_free(&x->walk);
    ids_free(&x->sent);
    free(x);
}

static size_t
n_done(const void *arg)
{
    const struct sending *x = arg;
    return x->sent.n;
}

static void
so_far(void *arg, struct buf *out)
{
    struct sending *x = arg;
    if (x->sent.n > x->sent.n_saved)
        ids_save(&x->sent, out);
}

static void
resume(void *arg, const char *text)
{
    struct sending *x = arg;
    ids_load(&x->sent, text);
    ids_load(&x->walk.before, text);
    ids_put_in_order(&x->walk.before);
}

int
method_signal(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
              struct err *e)
{
    static const struct work_kind kind = {.step = step,
                                          .free = sending_free,
                                          .changes = true,
                                          .n_done = n_done,
                                          .so_far = so_far,
                                          .resume = resume};
    struct sending *x = xcalloc(1, sizeof *x);
    x->params = params;
    if (read_signal(params, &x->sig, e) < 0 ||
        target_read(rpc->roles, c, params, &x->walk.select, e) < 0) {
        sending_free(x);
        return -1;
    }
    return work_begin(rpc, c, &kind, x, params, out, e);
}
