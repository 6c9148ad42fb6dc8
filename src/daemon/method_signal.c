/* `signal`: a signal to the processes of running jobs. Nothing of it is kept but the event:
 * what the signal does is the job's affair. */
#include <signal.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "core/job.h"
#include "daemon/arrays.h"
#include "daemon/daemon.h"
#include "daemon/events.h"
#include "daemon/methods.h"
#include "daemon/target.h"
#include "daemon/watch.h"

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

struct sending {
    struct daemon *daemon;
    const char *by;
    int sig;
    struct ids sent;
    struct err last; /* why one was passed over */
};

static void
send_one(struct sending *x, const struct job *job)
{
    if (!is_running(job)) {
        err_set(&x->last, ERR_FAILED, "job %u is not running (%s)", job->id,
                job_state_name(job->state));
    } else if (!watch_signal(x->daemon, job, x->sig)) {
        err_set(&x->last, ERR_FAILED, "job %u: its supervisor cannot be reached", job->id);
    } else {
        ids_add_job(&x->sent, job);
        event_signalled(x->daemon, job, x->sig, x->by);
    }
}

/* An array runs nothing itself: its tasks are meant, but for those that are named as well. */
static void
send_to_tasks(struct sending *x, const struct select *s, const struct job *array)
{
    size_t n = 0, before = x->sent.n;
    auto_free struct job **tasks = arrays_live_tasks(x->daemon, array, &n);
    for (size_t i = 0; i < n; i++)
        if (!select_matches(s, tasks[i]))
            send_one(x, tasks[i]);
    if (x->sent.n == before)
        err_set(&x->last, ERR_FAILED, "no task of array %u is running", array->id);
}

static int
send_all(struct sending *x, const struct caller *c, struct select *s, const json_t *params,
         struct err *e)
{
    auto_free struct job **jobs = NULL;
    size_t n = 0;
    if (target_live(x->daemon, c, s, &jobs, &n, e))
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (jobs[i]->tasks)
            send_to_tasks(x, s, jobs[i]);
        else
            send_one(x, jobs[i]);
    }
    return x->sent.n > 0 ? 0 : target_none(x->daemon, s, params, &x->last, e);
}

int
method_signal(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
              struct err *e)
{
    struct sending x = {.daemon = d, .by = daemon_user_name(c->uid)};
    struct select s = {0};
    int rc = read_signal(params, &x.sig, e);
    if (rc == 0) {
        rc = target_read(d, c, params, &s, e);
        if (rc == 0)
            rc = send_all(&x, c, &s, params, e);
        select_free(&s);
    }
    if (rc == 0) {
        jsonw_object(out);
        ids_write(out, "ids", &x.sent);
        jsonw_end_object(out);
    }
    ids_free(&x.sent);
    return rc;
}
