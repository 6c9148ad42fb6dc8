/* `submit`: a list of jobs, all or none. A job that can never start here is refused with the
 * reason before anything is changed.
 *
 * A long list is read and checked in pieces (long_work.h), which change nothing; then all jobs
 * enter in one piece and thus in one commit. As the results of the checks may be outdated by
 * then, permissions, feasibility and uniqueness are checked again, and a dependency that has
 * failed meanwhile cancels the job that waits for it, as it does after a submit. A name in a
 * dependency means the same job for the whole list. */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/ledger/ledger.h"
#include "core/place/place.h"
#include "daemon/attempt/job_confines.h"
#include "daemon/attempt/job_container.h"
#include "daemon/common/instance.h"
#include "daemon/common/turn_due.h"
#include "daemon/common/user_names.h"
#include "daemon/gpu/card_names.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/model_file.h"
#include "daemon/gpu/prober.h"
#include "daemon/outbox/outbox_fill.h"
#include "daemon/request/admit.h"
#include "daemon/request/budget.h"
#include "daemon/request/request_context.h"
#include "daemon/request/roles.h"
#include "daemon/rpc/long_work.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "daemon/slurm/slurm_engine.h"
#include "daemon/state/depend_turns.h"
#include "daemon/state/job_facts.h"
#include "daemon/state/learned_demands.h"
#include "daemon/state/unique.h"
#include "wire/request_read.h"

#define ENTER_WITH_READING 100 /* maximum number of jobs read and entered in the same slice */
#define RANGE_TEXT         8   /* bytes per range of tasks in an array's row */
#define GLANCE             8 /* jobs between two checks of the clock: each may depend on many */

/* The jobs of the request so far, by fingerprint. */
struct same {
    const char *fingerprint; /* borrowed from its job */
    size_t number;           /* of the first job with it */
    UT_hash_handle hh;
};

/* The job that a dependency's name means in this request. */
struct meaning {
    char *name; /* owned */
    uint32_t job;
    UT_hash_handle hh;
};

struct submission {
    const json_t *list; /* borrowed from the params, which stay valid while the work lasts */
    struct reqcontext context;
    struct job **jobs; /* owned until the jobs have entered */
    size_t n, n_read;
    int64_t text; /* bytes of the jobs read so far */
    struct same *own, *seen;
    struct meaning *meant;
    bool paused; /* other requests have been served since it began */
};

int
daemon_accepts_work(const struct instance *inst, struct err *e)
{
    if (inst->stopping)
        return err_set(e, ERR_REFUSED, "the daemon is stopping");
    const struct err *trouble = turn_disk_trouble(inst);
    if (trouble)
        return err_set(
            e, trouble->code,
            "%s. No new jobs are accepted until this is solved; running jobs continue",
            trouble->text);
    return 0;
}

static int
check_feasible(struct instance *inst, const struct request *r, size_t i, size_t n,
               struct err *e)
{
    auto_buf struct buf why = BUF_INIT;
    if (place_feasible(&r->demand, inst->ledger, &why))
        return 0;
    err_set(e, ERR_REFUSED, "it can never start here: %s", buf_str(&why));
    return n > 1 ? err_prefix(e, "job %zu of %zu", i + 1, n) : -1;
}

/* Fills in names that earlier jobs of the list have used, as another job may have got such a
 * name meanwhile. */
static void
recall_names(const struct submission *s, struct request *r)
{
    for (int32_t i = 0; i < r->n_deps; i++) {
        struct dep *dep = &r->deps[i];
        struct meaning *x = NULL;
        if (!dep->job && dep->name)
            HASH_FIND_STR(s->meant, dep->name, x);
        if (x)
            dep->job = x->job;
    }
}

static void
note_name(struct submission *s, const struct dep *dep)
{
    struct meaning *x;
    HASH_FIND_STR(s->meant, dep->name, x);
    if (x)
        return;
    x = xcalloc(1, sizeof *x);
    x->name = xstrdup(dep->name);
    x->job = dep->job;
    HASH_ADD_KEYPTR(hh, s->meant, x->name, strlen(x->name), x);
}

static int
resolve_names(struct instance *inst, uid_t uid, struct submission *s, struct request *r,
              struct err *e)
{
    recall_names(s, r);
    auto_free bool *is_new = xcalloc((size_t)r->n_deps + 1, sizeof *is_new);
    for (int32_t i = 0; i < r->n_deps; i++)
        is_new[i] = !r->deps[i].job && r->deps[i].name;
    if (depend_resolve(inst->state, uid, r, e) < 0)
        return -1;
    for (int32_t i = 0; i < r->n_deps; i++)
        if (is_new[i])
            note_name(s, &r->deps[i]);
    return 0;
}

static int
read_job(struct rpc *rpc, const json_t *j, const struct caller *c, struct submission *s,
         struct job *job, struct err *e)
{
    request_free(&job->req);
    if (reqjson_read(j, NULL, modelfile_current(rpc->models, &rpc->inst->config), &job->req,
                     e) < 0 ||
        cardnames_resolve(rpc->inst, &job->req, e) < 0 ||
        budget_check_text(rpc->budget, c->uid, &job->req, e) < 0 ||
        roles_check_priority(rpc->roles, job->req.priority, e) < 0 ||
        roles_check_grace(rpc->roles, job->req.grace_ms, e) < 0 ||
        resolve_names(rpc->inst, c->uid, s, &job->req, e) < 0 ||
        depend_check(rpc->inst->state, &job->req, e) < 0)
        return -1;
    admit_unsaid(rpc->admission, &job->req);
    job->uid = c->uid;
    reqcontext_apply(&s->context, job);
    learned_apply(rpc->inst->state, job);
    return unique_check(rpc->inst->state, job, e);
}

/* Two equal jobs in one request also violate `unique`. */
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

/* Reads the next job, which counts as read even on an error. */
static int
read_next(struct rpc *rpc, const struct caller *c, struct submission *s, struct err *e)
{
    size_t i = s->n_read++;
    struct job *job = s->jobs[i] = job_new();
    if (read_job(rpc, json_array_get(s->list, i), c, s, job, e) < 0 ||
        check_pair(&s->seen, &s->own[i], job, i + 1, e) < 0)
        return s->n > 1 ? err_prefix(e, "job %zu of %zu", i + 1, s->n) : -1;
    s->text += request_text_bytes(&job->req) + RANGE_TEXT * job->req.array.n;
    if (budget_check_submit(rpc->budget, c->uid, s->text, e) < 0)
        return -1;
    return check_feasible(rpc->inst, &job->req, i, s->n, e);
}

/* WORK_DONE: all are read. */
static int
read_jobs(struct rpc *rpc, const struct caller *c, struct submission *s, int64_t until_us,
          struct err *e)
{
    while (s->n_read < s->n) {
        if (read_next(rpc, c, s, e) < 0)
            return -1;
        if (s->n_read % GLANCE == 0 && clock_boot_us() >= until_us)
            return WORK_MORE;
    }
    return WORK_DONE;
}

static int
check_job_again(struct rpc *rpc, struct job *job, struct err *e)
{
    if (roles_check_priority(rpc->roles, job->req.priority, e) < 0 ||
        roles_check_grace(rpc->roles, job->req.grace_ms, e) < 0)
        return -1;
    return job->req.unique ? unique_check(rpc->inst->state, job, e) : 0;
}

/* Repeats the checks whose result others may have changed since a job was read: the queue, the
 * settings, the GPUs. */
static int
check_again(struct rpc *rpc, const struct caller *c, const struct submission *s, struct err *e)
{
    if (daemon_accepts_work(rpc->inst, e) < 0 ||
        reqcontext_check_room(rpc->admission, c->uid, &s->context, e) < 0)
        return -1;
    for (size_t i = 0; i < s->n; i++) {
        if (check_job_again(rpc, s->jobs[i], e) < 0)
            return err_prefix(e, "job %zu of %zu", i + 1, s->n);
        if (check_feasible(rpc->inst, &s->jobs[i]->req, i, s->n, e) < 0)
            return -1;
    }
    return 0;
}

/* Checks that Slurm is usable if any job needs it, and that containers can be run if any job
 * needs one. */
static int
check_engines(const struct instance *inst, const struct submission *s, struct err *e)
{
    bool on_slurm = false;
    for (size_t i = 0; i < s->n; i++) {
        on_slurm |= s->jobs[i]->req.demand.engine == ENGINE_SLURM;
        if (container_check(inst, s->jobs[i], e) < 0)
            return -1;
    }
    return on_slurm ? slurm_is_usable(inst, e) : 0;
}

/* Notes in one line; the second is freed. */
static void
add_note(struct buf *notes, char *text)
{
    if (text)
        buf_addf(notes, "%s%s", notes->len > 0 ? "; " : "", text);
    free(text);
}

static void
enter_all(struct rpc *rpc, struct submission *s, struct jsonw *out)
{
    int64_t limit_ms = s->jobs[0]->req.limit_ms;
    const struct demand *demand = &s->jobs[0]->req.demand;
    bool wants_gpu = demand_n_gpus(demand) > 0 && demand->engine == ENGINE_HERE;
    auto_buf struct buf notes = BUF_INIT;
    jsonw_object(out);
    jsonw_karray(out, "ids");
    for (size_t i = 0; i < s->n; i++) {
        struct job *job = TAKE(s->jobs[i]);
        if (notes.len == 0) {
            add_note(&notes, hooks_missing(&rpc->inst->config, job));
            add_note(&notes, confines_unenforced(rpc->attempts, &job->req.demand));
        }
        jobs_add(rpc->inst->state, job, NULL);
        depend_enter(rpc->inst->state, job, NULL);
        jsonw_int(out, job->id);
    }
    jsonw_end_array(out);
    if (wants_gpu &&
        (!ledger_is_known(rpc->inst->ledger) || prober_unknown_since_us(rpc->cards->prober)))
        add_note(&notes,
                 xasprintf("no GPU can be read now (%s); the job waits until one can",
                           prober_error(rpc->cards->prober) ? prober_error(rpc->cards->prober)
                                                            : "the probe does not answer"));
    if (notes.len > 0)
        jsonw_kstr(out, "note", buf_str(&notes));
    if (limit_ms > 0)
        jsonw_kint(out, "limit_ms", limit_ms);
    jsonw_end_object(out);
}

/* Reading and entering, which may be a commit of 1,000 jobs, do not share a slice unless both
 * are short. */
static int
step(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out, int64_t until_us,
     struct err *e)
{
    struct submission *s = arg;
    bool was_read = s->n_read == s->n;
    s->context.user = users_name(c->uid);
    int rc = read_jobs(rpc, c, s, until_us, e);
    if (rc < 0)
        return -1;
    if (rc == WORK_MORE || (!was_read && s->n > ENTER_WITH_READING)) {
        s->paused = true;
        return WORK_MORE;
    }
    if ((s->paused && check_again(rpc, c, s, e) < 0) || check_engines(rpc->inst, s, e) < 0 ||
        admit_jobs(rpc->admission, c->uid, s->jobs, s->n, e) < 0)
        return -1;
    enter_all(rpc, s, out);
    return WORK_DONE;
}

static void
submission_free(void *arg)
{
    struct submission *s = arg;
    struct meaning *x, *next;
    HASH_CLEAR(hh, s->seen);
    HASH_ITER(hh, s->meant, x, next)
    {
        HASH_DEL(s->meant, x);
        free(x->name);
        free(x);
    }
    for (size_t i = 0; i < s->n_read; i++)
        job_free(s->jobs[i]);
    free(s->jobs);
    free(s->own);
    free(s);
}

int
method_submit(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
              struct err *e)
{
    /* past: keeps the environment, to which no job refers yet, from being deleted meanwhile */
    static const struct work_kind kind = {.step = step,
                                          .free = submission_free,
                                          .past = true,
                                          .changes = true,
                                          .last_changes = true};
    const json_t *list = json_object_get(params, "jobs");
    size_t n = json_array_size(list);
    struct reqcontext context;
    if (n == 0)
        return err_set(e, ERR_USAGE, "\"jobs\" must be a list of at least one job");
    if (daemon_accepts_work(rpc->inst, e) < 0 ||
        budget_check_jobs(rpc->budget, c->uid, list, e) < 0 ||
        admit_pending(rpc->admission, c->uid, (int64_t)n, e) < 0 ||
        reqcontext_read(rpc->admission, c, params, &context, e) < 0)
        return -1;
    struct submission *s = xcalloc(1, sizeof *s);
    *s = (struct submission){.list = list, .context = context, .n = n};
    s->jobs = xcalloc(n, sizeof(struct job *));
    s->own = xcalloc(n, sizeof *s->own);
    return work_begin(rpc, c, &kind, s, params, out, e);
}
