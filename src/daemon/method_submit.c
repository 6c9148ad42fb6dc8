/* `submit`: a list of jobs, all or none. A job that can never start here is refused with the
 * reason, before anything is changed. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/ledger.h"
#include "core/place.h"
#include "core/queue.h"
#include "daemon/daemon.h"
#include "daemon/jobs.h"
#include "daemon/methods.h"
#include "daemon/reqjson.h"
#include "daemon/roles.h"
#include "daemon/turn.h"

int
daemon_accepts_work(const struct daemon *d, size_t n, struct err *e)
{
    if (d->stopping)
        return err_set(e, ERR_REFUSED, "the daemon is stopping");
    if (turn_store_is_full(d))
        return err_set(e, ERR_NO_SPACE,
                       "the disk that holds %s is full: nothing new is accepted until there is "
                       "room; running jobs go on",
                       d->places.state);
    if (queue_n(d->queue) + n > (size_t)d->config.pending_max)
        return err_set(e, ERR_REFUSED, "the queue is full: %zu jobs, at most %lld",
                       queue_n(d->queue), (long long)d->config.pending_max);
    return 0;
}

static int
check_feasible(struct daemon *d, const struct request *r, size_t i, size_t n, struct err *e)
{
    auto_buf struct buf why = BUF_INIT;
    if (place_feasible(&r->demand, d->ledger, &why))
        return 0;
    err_set(e, ERR_REFUSED, "it can never start here: %s", buf_str(&why));
    return n > 1 ? err_prefix(e, "job %zu of %zu", i + 1, n) : -1;
}

static int
read_jobs(struct daemon *d, const json_t *list, struct job **jobs, struct err *e)
{
    size_t i;
    const json_t *j;
    json_array_foreach(list, i, j)
    {
        jobs[i] = job_new();
        request_free(&jobs[i]->req);
        if (reqjson_read(j, NULL, &jobs[i]->req, e)) {
            if (json_array_size(list) > 1)
                err_prefix(e, "job %zu of %zu", i + 1, json_array_size(list));
            return -1;
        }
        if (roles_check_priority(d, jobs[i]->req.priority, e))
            return -1;
        if (check_feasible(d, &jobs[i]->req, i, json_array_size(list), e))
            return -1;
    }
    return 0;
}

int
method_submit(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
              struct err *e)
{
    const json_t *list = json_object_get(params, "jobs");
    size_t n = json_array_size(list);
    struct reqjson_context ctx;
    if (n == 0)
        return err_set(e, ERR_USAGE, "\"jobs\" must be a list of at least one job");
    if (daemon_accepts_work(d, n, e) || reqjson_context(d, params, &ctx, e))
        return -1;
    struct job **jobs = xcalloc(n, sizeof(struct job *));
    int rc = read_jobs(d, list, jobs, e);
    if (rc == 0) {
        jsonw_object(out);
        jsonw_key(out, "ids");
        jsonw_array(out);
    }
    for (size_t i = 0; i < n; i++) {
        if (rc) {
            job_free(jobs[i]);
            continue;
        }
        jobs[i]->uid = c->uid;
        reqjson_apply(&ctx, jobs[i]);
        jobs_add(d, jobs[i], NULL);
        jsonw_int(out, jobs[i]->id);
    }
    free(jobs);
    if (rc)
        return -1;
    jsonw_end_array(out);
    jsonw_end_object(out);
    return 0;
}
