/* `submit`: a list of jobs, all or none. A job that can never start here is refused with the
 * reason, before anything is changed. */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/ledger/ledger.h"
#include "core/place/place.h"
#include "daemon/attempt/job_confines.h"
#include "daemon/common/daemon.h"
#include "daemon/common/turn_due.h"
#include "daemon/gpu/model_file.h"
#include "daemon/gpu/prober.h"
#include "daemon/outbox/outbox_fill.h"
#include "daemon/request/admit.h"
#include "daemon/request/budget.h"
#include "daemon/request/request_context.h"
#include "daemon/request/request_read.h"
#include "daemon/request/roles.h"
#include "daemon/rpc/methods.h"
#include "daemon/state/depend_turns.h"
#include "daemon/state/job_facts.h"
#include "daemon/state/learned_demands.h"
#include "daemon/state/unique.h"

int
daemon_accepts_work(const struct daemon *d, struct err *e)
{
    if (d->stopping)
        return err_set(e, ERR_REFUSED, "the daemon is stopping");
    const struct err *trouble = turn_disk_trouble(d);
    if (trouble)
        return err_set(
            e, trouble->code,
            "%s. No new jobs are accepted until this is solved; running jobs continue",
            trouble->text);
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
read_job(struct daemon *d, const json_t *j, const struct caller *c,
         const struct reqcontext *ctx, struct job *job, struct err *e)
{
    request_free(&job->req);
    if (reqjson_read(j, NULL, modelfile_current(d), &job->req, e) ||
        budget_check_text(d, c->uid, &job->req, e) ||
        roles_check_priority(d, job->req.priority, e) ||
        roles_check_grace(d, job->req.grace_ms, e) ||
        depend_resolve(&d->state, c->uid, &job->req, e) ||
        depend_check(&d->state, &job->req, e))
        return -1;
    admit_unsaid(d, &job->req);
    job->uid = c->uid;
    reqcontext_apply(ctx, job);
    learned_apply(&d->state, job);
    return unique_check(&d->state, job, e);
}

/* The jobs of a request so far, by what they run. */
struct same {
    const char *fingerprint; /* borrowed from its job */
    size_t number;           /* of the first with it */
    UT_hash_handle hh;
};

/* Two of the same in one request are the same as well. */
static int
check_pair(struct same **seen, struct same *own, const struct job *job, size_t number,
           struct err *e)
{
    struct same *x;
    HASH_FIND_STR(*seen, job->fingerprint, x);
    if (x && job->req.unique)
        return err_set(e, ERR_REFUSED, "it is the same as job %zu of this request", x->number);
    if (x)
        return 0;
    *own = (struct same){.fingerprint = job->fingerprint, .number = number};
    HASH_ADD_KEYPTR(hh, *seen, own->fingerprint, strlen(own->fingerprint), own);
    return 0;
}

static int
read_jobs(struct daemon *d, const json_t *list, const struct caller *c,
          const struct reqcontext *ctx, struct job **jobs, struct err *e)
{
    size_t i, n = json_array_size(list);
    const json_t *j;
    auto_free struct same *own = xcalloc(n, sizeof *own);
    struct same *seen = NULL;
    int rc = 0;
    json_array_foreach(list, i, j)
    {
        jobs[i] = job_new();
        if (read_job(d, j, c, ctx, jobs[i], e) || check_pair(&seen, &own[i], jobs[i], i + 1, e))
            rc = n > 1 ? err_prefix(e, "job %zu of %zu", i + 1, n) : -1;
        else
            rc = check_feasible(d, &jobs[i]->req, i, n, e);
        if (rc)
            break;
    }
    HASH_CLEAR(hh, seen);
    return rc;
}

int
method_submit(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
              struct err *e)
{
    const json_t *list = json_object_get(params, "jobs");
    size_t n = json_array_size(list);
    struct reqcontext ctx;
    if (n == 0)
        return err_set(e, ERR_USAGE, "\"jobs\" must be a list of at least one job");
    if (daemon_accepts_work(d, e) || budget_check_jobs(d, c->uid, list, e) ||
        admit_pending(d, c->uid, (int64_t)n, e) || reqcontext_read(d, params, &ctx, e))
        return -1;
    struct job **jobs = xcalloc(n, sizeof(struct job *));
    auto_free char *note = NULL;
    int rc = read_jobs(d, list, c, &ctx, jobs, e);
    if (rc == 0)
        rc = admit_jobs(d, c->uid, jobs, n, e);
    int64_t limit_ms = rc == 0 ? jobs[0]->req.limit_ms : 0;
    bool wants_gpu = rc == 0 && demand_n_gpus(&jobs[0]->req.demand) > 0;
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
        if (!note)
            note = hooks_missing(d, jobs[i]);
        if (!note)
            note = confines_unenforced(d, jobs[i]);
        jobs_add(&d->state, jobs[i], NULL);
        depend_enter(&d->state, jobs[i], NULL);
        jsonw_int(out, jobs[i]->id);
    }
    free(jobs);
    if (rc)
        return -1;
    jsonw_end_array(out);
    if (!note && wants_gpu &&
        (!ledger_is_known(d->ledger) || prober_unknown_since_us(d->prober)))
        note = xasprintf("no GPU can be read now (%s); the job waits until one can",
                         prober_error(d->prober) ? prober_error(d->prober)
                                                 : "the probe does not answer");
    if (note)
        jsonw_kstr(out, "note", note);
    if (limit_ms > 0)
        jsonw_kint(out, "limit_ms", limit_ms);
    jsonw_end_object(out);
    return 0;
}
