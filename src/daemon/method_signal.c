/* `signal`: a signal to the processes of running jobs. Nothing of it is kept but the event:
 * what the signal does is the job's affair. */
#include <signal.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "core/job.h"
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

static int
send_one(struct daemon *d, const struct caller *c, const struct job *job, int sig,
         struct ids *sent, struct err *last)
{
    if (!is_running(job)) {
        err_set(last, ERR_FAILED, "job %u is not running (%s)", job->id,
                job_state_name(job->state));
    } else if (!watch_signal(d, job, sig)) {
        err_set(last, ERR_FAILED, "job %u: its supervisor cannot be reached", job->id);
    } else {
        ids_add(sent, job->id);
        event_signalled(d, job, sig, daemon_user_name(c->uid));
    }
    return 0;
}

static int
send_all(struct daemon *d, const struct caller *c, struct select *s, const json_t *params,
         int sig, struct ids *sent, struct err *e)
{
    auto_free struct job **jobs = NULL;
    struct err last = {0};
    size_t n = 0;
    if (target_live(d, c, s, &jobs, &n, e))
        return -1;
    for (size_t i = 0; i < n; i++)
        send_one(d, c, jobs[i], sig, sent, &last);
    if (sent->n > 0)
        return 0;
    if (!last.code)
        return select_none(params, e);
    *e = last;
    return -1;
}

int
method_signal(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
              struct err *e)
{
    struct select s = {0};
    struct ids sent = {0};
    int sig;
    int rc = read_signal(params, &sig, e);
    if (rc == 0) {
        rc = target_read(d, c, params, &s, e);
        if (rc == 0)
            rc = send_all(d, c, &s, params, sig, &sent, e);
        select_free(&s);
    }
    if (rc == 0) {
        jsonw_object(out);
        ids_write(out, "ids", &sent);
        jsonw_end_object(out);
    }
    ids_free(&sent);
    return rc;
}
