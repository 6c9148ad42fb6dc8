/* Selectors against jobs: see select.h. Live jobs are in the table, ended ones in the store,
 * which narrows by id and state before anything is matched by name. */
#include "daemon/select.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "core/array.h"
#include "core/plan.h"
#include "core/queue.h"
#include "daemon/daemon.h"
#include "daemon/roles.h"
#include "store/store.h"

static int
on_newest(struct job *job, const char *const *uuids, void *arg)
{
    (void)uuids;
    if (job->array)
        return 0; /* it came with its array */
    *(uint32_t *)arg = job->id;
    return 1;
}

/* The newest job that this user submitted. A job of this very turn is in the store too: not
 * committed, but the store reads its own writes only at commit, so the table is asked as well.
 */
static int
find_last(struct daemon *d, uid_t uid, uint32_t *out, struct err *e)
{
    const struct store_filter f = {.uid = uid, .has_uid = true, .newest_first = true};
    size_t n;
    *out = 0;
    if (store_jobs_select(d->store, &f, on_newest, out, e))
        return -1;
    struct job **live = queue_list_by_id(d->queue, QUEUE_ALL, &n);
    for (size_t i = n; i > 0; i--) {
        if (live[i - 1]->uid != uid || live[i - 1]->array)
            continue;
        if (live[i - 1]->id > *out)
            *out = live[i - 1]->id;
        break;
    }
    free(live);
    return 0;
}

static bool
wants_last(const struct selector *s)
{
    for (size_t i = 0; i < s->n_terms; i++)
        if (s->terms[i].kind == SELECT_LAST)
            return true;
    return false;
}

int
select_read(struct daemon *d, uid_t caller, const json_t *params, struct select *out,
            struct err *e)
{
    const json_t *words = json_object_get(params, "select"), *word;
    size_t i;
    *out = (struct select){.selector = SELECTOR_INIT, .daemon = d};
    out->user = json_string_value(json_object_get(params, "user"));
    out->everything = !words || json_array_size(words) == 0;
    if (words && !json_is_array(words))
        return err_set(e, ERR_USAGE, "\"select\" must be a list of words");
    json_array_foreach(words, i, word)
    {
        const char *text = json_string_value(word);
        if (!text)
            return err_set(e, ERR_USAGE, "\"select\" must be a list of words");
        if (selector_add(&out->selector, text, e))
            return -1;
    }
    return wants_last(&out->selector) ? find_last(d, caller, &out->last_id, e) : 0;
}

static int
read_state(const json_t *name, struct select *s, struct err *e)
{
    enum job_state state;
    auto_buf struct buf all = BUF_INIT;
    const char *text = json_string_value(name);
    if (text && job_state_from_name(text, &state) == 0) {
        s->states |= 1u << state;
        return 0;
    }
    for (int i = 0; i < JOB_STATES; i++)
        buf_addf(&all, " %s", job_state_name((enum job_state)i));
    return err_set(e, ERR_USAGE, "'%s' is no state; there are:%s", text ? text : "?",
                   buf_str(&all));
}

int
select_read_where(const json_t *params, struct select *s, struct err *e)
{
    const json_t *v;
    size_t i;
    json_array_foreach(json_object_get(params, "state"), i,
                       v) if (read_state(v, s, e)) return -1;
    json_array_foreach(json_object_get(params, "gpu"), i, v)
    {
        json_int_t gpu = json_is_integer(v) ? json_integer_value(v) : -1;
        if (gpu < 0 || gpu >= GPU_MAX)
            return err_set(e, ERR_USAGE, "\"gpu\" is a list of GPUs' numbers");
        s->gpus |= UINT64_C(1) << gpu;
    }
    return 0;
}

void
select_free(struct select *s)
{
    selector_free(&s->selector);
}

/* Whether one of the tasks that are meant has not left this array. */
static bool
stands_for_task(const struct select *s, const struct job *job)
{
    for (size_t i = 0; job->tasks && i < s->selector.n_terms; i++) {
        const struct selector_term *t = &s->selector.terms[i];
        if (t->kind != SELECT_TASKS || t->first != job->id)
            continue;
        for (int32_t task = t->first_task; task <= t->last_task; task++)
            if (task_set_has(&job->tasks->pending, task))
                return true;
    }
    return false;
}

static bool
is_named_singly(const struct select *s, const struct job *job)
{
    for (size_t i = 0; i < s->selector.n_terms; i++) {
        const struct selector_term *t = &s->selector.terms[i];
        if ((t->kind == SELECT_IDS && t->first == t->last && t->first == job->id) ||
            (t->kind == SELECT_TASKS && t->first == job->array))
            return true;
    }
    return false;
}

static bool
is_on(const struct job *job, uint64_t gpus)
{
    for (int i = 0; job->run && i < job->run->n_gpus; i++)
        if (gpus >> job->run->gpus[i] & 1)
            return true;
    return false;
}

static struct selector_job
describe(const struct select *s, const struct job *job)
{
    bool hidden = roles_is_hidden(s->daemon, job->uid); /* a name that is guessed stays so */
    return (struct selector_job){
        .id = job->id,
        .array = job->array,
        .task = job->task,
        .name = hidden ? NULL : job->req.name,
        .user = daemon_user_name(job->uid),
        .state = job_state_name(job->state),
        .tags = hidden ? NULL : (const char *const *)job->req.tags,
        .is_last = job->id == s->last_id,
    };
}

bool
select_matches(const struct select *s, const struct job *job)
{
    if ((s->states && !(s->states >> job->state & 1)) || (s->gpus && !is_on(job, s->gpus)))
        return false;
    if (s->mine && job->uid != s->owner && !is_named_singly(s, job))
        return false;
    if (s->user && strcmp(s->user, daemon_user_name(job->uid)) != 0)
        return false;
    const struct selector_job x = describe(s, job);
    return s->everything || selector_matches(&s->selector, &x) ||
           (s->arrays_for_tasks && stands_for_task(s, job));
}

bool
select_is_by_state(const struct select *s, const struct job *job, unsigned *states)
{
    const struct selector_job x = describe(s, job);
    bool by_state = !s->everything;
    *states = 0;
    for (size_t i = 0; i < s->selector.n_terms; i++) {
        enum job_state state;
        struct selector_term *t = &s->selector.terms[i];
        const struct selector alone = {t, 1};
        if (t->kind != SELECT_STATE)
            by_state = by_state && !selector_matches(&alone, &x);
        else if (job_state_from_name(t->pattern, &state) == 0)
            *states |= 1u << state;
    }
    return by_state;
}

static bool
is_single(const struct selector_term *t)
{
    return t->kind == SELECT_IDS && t->first == t->last;
}

static bool
exists(struct daemon *d, uint32_t id)
{
    struct err e;
    if (queue_get(d->queue, id))
        return true;
    struct job *job = store_job_load(d->store, id, &e);
    job_free(job);
    return job != NULL;
}

static bool
exists_task(struct daemon *d, const struct selector_term *t)
{
    struct err e;
    const struct job *job = queue_get(d->queue, t->first);
    struct job *old = job ? NULL : store_job_load(d->store, t->first, &e);
    const struct request *r = job ? &job->req : old ? &old->req : NULL;
    bool found = false;
    for (int32_t task = t->first_task; r && !found && task <= t->last_task; task++)
        found = task_set_has(&r->array, task);
    job_free(old);
    return found;
}

static bool
is_missing(struct daemon *d, const struct selector_term *t)
{
    if (t->kind == SELECT_TASKS)
        return !exists_task(d, t);
    return is_single(t) && !exists(d, t->first);
}

int
select_check_ids(struct daemon *d, const struct select *s, struct err *e)
{
    auto_buf struct buf missing = BUF_INIT;
    int n = 0;
    for (size_t i = 0; i < s->selector.n_terms; i++) {
        const struct selector_term *t = &s->selector.terms[i];
        if (!is_missing(d, t) || ++n > 10)
            continue;
        buf_addf(&missing, "%s%u", n > 1 ? ", " : "", t->first);
        if (t->kind == SELECT_TASKS)
            buf_addf(&missing, "_%d", t->first_task);
    }
    if (n == 0)
        return 0;
    return err_set(e, ERR_NO_JOB, "there is no job %s%s; `berth queue --all` lists them",
                   buf_str(&missing), n > 10 ? ", ..." : "");
}

/* Jobs that are all named by id are looked up; everything else is a walk over the queue. */
static bool
look_up(struct daemon *d, const struct select *s, struct job ***jobs, size_t *n)
{
    if (s->everything || s->selector.n_terms == 0)
        return false;
    for (size_t i = 0; i < s->selector.n_terms; i++)
        if (!is_single(&s->selector.terms[i]))
            return false;
    *jobs = xcalloc(s->selector.n_terms, sizeof(struct job *));
    *n = 0;
    for (size_t i = 0; i < s->selector.n_terms; i++) {
        struct job *job = queue_get(d->queue, s->selector.terms[i].first);
        bool twice = false;
        for (size_t k = 0; k < *n; k++)
            twice |= (*jobs)[k] == job;
        if (job && !twice && select_matches(s, job))
            (*jobs)[(*n)++] = job;
    }
    return true;
}

/* As people read a queue: what is on the machine, who waits in the order of their turns, who is
 * held. */
static struct job **
list_in_turn(struct daemon *d, size_t *n)
{
    const unsigned waiting = 1u << JOB_PENDING, held = 1u << JOB_HELD;
    size_t n_other, n_waiting, n_held;
    struct job **jobs = queue_list_in_order(d->queue, QUEUE_ALL & ~(waiting | held), &n_other);
    struct job **turns =
        plan_list_in_turn(d->planner, d->queue, d->ledger, clock_wall_us(), &n_waiting);
    struct job **last = queue_list_in_order(d->queue, held, &n_held);
    *n = n_other + n_waiting + n_held;
    jobs = xrealloc(jobs, (*n + 1) * sizeof(struct job *));
    for (size_t i = 0; i < n_waiting; i++)
        jobs[n_other + i] = turns[i];
    for (size_t i = 0; i < n_held; i++)
        jobs[n_other + n_waiting + i] = last[i];
    free(turns);
    free(last);
    return jobs;
}

size_t
select_live(struct daemon *d, const struct select *s, struct job ***jobs)
{
    size_t n, kept = 0;
    if (look_up(d, s, jobs, &kept))
        return kept;
    *jobs = s->in_turn ? list_in_turn(d, &n) : queue_list_in_order(d->queue, QUEUE_ALL, &n);
    for (size_t i = 0; i < n; i++)
        if (select_matches(s, (*jobs)[i]))
            (*jobs)[kept++] = (*jobs)[i];
    return kept;
}

struct walk {
    struct daemon *daemon;
    const struct select *select;
    select_cb cb;
    void *arg;
};

static int
on_job(struct job *job, const char *const *uuids, void *arg)
{
    const struct walk *w = arg;
    /* One whose end is not committed yet is still in the table, and listed from there. */
    if (!queue_get(w->daemon->queue, job->id) && select_matches(w->select, job))
        w->cb(job, uuids, w->arg);
    return 0;
}

void
select_ranges_add(struct select_ranges *r, uint32_t first, uint32_t last)
{
    if (r->n == r->cap) {
        r->cap = r->cap ? r->cap * 2 : 16;
        r->v = xrealloc(r->v, (size_t)r->cap * sizeof *r->v);
    }
    r->v[r->n++] = (struct store_range){first, last};
}

struct task_walk {
    const struct selector_term *term;
    struct select_ranges *ranges;
};

static int
on_task(uint32_t id, int32_t task, enum job_state state, void *arg)
{
    const struct task_walk *w = arg;
    (void)state;
    if (task >= w->term->first_task && task <= w->term->last_task)
        select_ranges_add(w->ranges, id, id);
    return 0;
}

int
select_narrow(struct daemon *d, const struct select *s, struct select_ranges *ranges,
              struct err *e)
{
    if (s->everything)
        return 0;
    for (size_t i = 0; i < s->selector.n_terms; i++) {
        const struct selector_term *t = &s->selector.terms[i];
        struct task_walk w = {t, ranges};
        if (t->kind == SELECT_IDS)
            select_ranges_add(ranges, t->first, t->last);
        else if (t->kind == SELECT_LAST)
            select_ranges_add(ranges, s->last_id, s->last_id);
        else if (t->kind != SELECT_TASKS)
            return 0;
        else if (store_tasks_walk(d->store, t->first, on_task, &w, e))
            return -1;
    }
    return 1;
}

int
select_ended(struct daemon *d, const struct select *s, int64_t limit, select_cb cb, void *arg,
             struct err *e)
{
    struct walk w = {.daemon = d, .select = s, .cb = cb, .arg = arg};
    struct select_ranges ranges = {0};
    struct store_filter f = {.states = SELECT_FINAL_STATES, .limit = limit};
    int rc = select_narrow(d, s, &ranges, e);
    if (rc > 0) {
        f.ranges = ranges.v;
        f.n_ranges = ranges.n;
    }
    if (rc == 0 || ranges.n > 0)
        rc = rc < 0 ? -1 : store_jobs_select(d->store, &f, on_job, &w, e);
    free(ranges.v);
    return rc < 0 ? -1 : 0;
}

static bool
names_jobs(const struct selector_term *t)
{
    return t->kind != SELECT_ALL && t->kind != SELECT_USER && t->kind != SELECT_STATE;
}

bool
select_names_jobs(const struct select *s)
{
    for (size_t i = 0; i < s->selector.n_terms; i++)
        if (names_jobs(&s->selector.terms[i]))
            return true;
    return false;
}

void
select_keep_names(struct select *s)
{
    struct selector_term *terms = s->selector.terms;
    size_t kept = 0;
    for (size_t i = 0; i < s->selector.n_terms; i++) {
        if (names_jobs(&terms[i]))
            terms[kept++] = terms[i];
        else
            free(terms[i].pattern);
    }
    s->selector.n_terms = kept;
}

bool
select_is_all(const struct select *s)
{
    for (size_t i = 0; i < s->selector.n_terms; i++)
        if (s->selector.terms[i].kind != SELECT_ALL)
            return false;
    return true;
}

int
select_none(const json_t *params, struct err *e)
{
    const json_t *words = json_object_get(params, "select"), *word;
    auto_buf struct buf text = BUF_INIT;
    size_t i;
    json_array_foreach(words, i, word)
        buf_addf(&text, "%s%s", i ? " " : "", json_string_value(word));
    if (text.len == 0)
        return err_set(e, ERR_NO_JOB, "there is no job");
    return err_set(e, ERR_NO_JOB, "no job matches %s; `berth queue --all` lists them",
                   buf_str(&text));
}
