/* Matches selectors with jobs: see selection.h. Live jobs are in the table, ended ones in the
 * store, which narrows by id and state before jobs are matched by name. */
#include "daemon/request/selection.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/ids.h"
#include "core/plan/lineup.h"
#include "core/plan/plan.h"
#include "core/queue/array.h"
#include "core/queue/queue.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "daemon/request/roles.h"
#include "daemon/state/changes.h"
#include "daemon/state/state.h"
#include "store/store.h"

#define PAST_PIECE   500 /* ids, many of which may not exist */
#define LOOK_EACH    50  /* tasks between looks at the clock */
#define MISSING_SAID 10  /* nonexistent ids that are listed */

static bool
is_of_user(const struct job *job, const void *arg)
{
    return job->uid == *(const uid_t *)arg && !job->array;
}

/* The newest job submitted by this user, apart from tasks, which came with their array. Jobs
 * of this turn are not in the store yet. */
static int
find_last(const struct instance *inst, uid_t uid, uint32_t *out, struct err *e)
{
    struct found_job found;
    if (store_find_newest(inst->store, uid, &found, e) < 0)
        return -1;
    *out = found.id;
    const struct job *job = changes_find_new(&inst->state->changes, is_of_user, &uid);
    if (job && job->id > *out)
        *out = job->id;
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
select_read(const struct roles *roles, uid_t caller, const json_t *params, struct select *out,
            struct err *e)
{
    const json_t *words = json_object_get(params, "select"), *word;
    size_t i;
    *out = (struct select){.selector = SELECTOR_INIT, .roles = roles};
    out->user = json_string_value(json_object_get(params, "user"));
    out->everything = !words || json_array_size(words) == 0;
    if (words && !json_is_array(words))
        return err_set(e, ERR_USAGE, "\"select\" must be a list of words");
    json_array_foreach(words, i, word)
    {
        const char *text = json_string_value(word);
        if (!text)
            return err_set(e, ERR_USAGE, "\"select\" must be a list of words");
        if (selector_add(&out->selector, text, e) < 0)
            return -1;
    }
    if (selector_tidy(&out->selector, e) < 0)
        return -1;
    return wants_last(&out->selector) ? find_last(roles->inst, caller, &out->last_id, e) : 0;
}

static int
read_state(const json_t *name, struct select *s, struct err *e)
{
    enum job_state state;
    auto_buf struct buf all = BUF_INIT;
    const char *text = json_string_value(name);
    if (text && job_state_from_name(text, &state) == 0) {
        s->states |= 1U << state;
        return 0;
    }
    job_states_text(~0U, &all);
    return err_set(e, ERR_USAGE, "unknown state '%s'; the states are %s", text ? text : "?",
                   buf_str(&all));
}

int
select_read_where(const json_t *params, struct select *s, struct err *e)
{
    const json_t *v;
    size_t i;
    json_array_foreach(json_object_get(params, "state"), i,
                       v) if (read_state(v, s, e) < 0) return -1;
    json_array_foreach(json_object_get(params, "gpu"), i, v)
    {
        json_int_t gpu = json_is_integer(v) ? json_integer_value(v) : -1;
        if (gpu < 0 || gpu >= GPU_MAX)
            return err_set(e, ERR_USAGE, "\"gpu\" must be a list of GPU indices");
        s->gpus |= UINT64_C(1) << gpu;
    }
    return 0;
}

void
select_free(struct select *s)
{
    selector_free(&s->selector);
}

/* True if one of the selected tasks has not left this array. */
static bool
stands_for_task(const struct select *s, const struct job *job)
{
    for (size_t i = 0; job->tasks && i < s->selector.n_terms; i++) {
        const struct selector_term *t = &s->selector.terms[i];
        if (t->kind != SELECT_TASKS || t->first != job->id)
            continue;
        if (task_set_next(&job->tasks->pending, t->first_task, t->last_task) >= 0)
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
    bool hidden = roles_is_hidden(s->roles, job->uid); /* guesses must not reveal its name */
    return (struct selector_job){
        .id = job->id,
        .array = job->array,
        .task = job->task,
        .name = hidden ? NULL : job->req.name,
        .user = daemon_owner_name(job),
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
    if (s->mine && job->uid != s->owner && !selector_names(&s->selector, job->id, job->array))
        return false;
    if (s->user && strcmp(s->user, daemon_owner_name(job)) != 0)
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
        const struct selector alone = {.terms = t, .n_terms = 1};
        if (t->kind != SELECT_STATE)
            by_state = by_state && !selector_matches(&alone, &x);
        else if (job_state_from_name(t->pattern, &state) == 0)
            *states |= 1U << state;
    }
    return by_state;
}

/* Appends the ids of the term that exist neither in the table nor in the history. */
static int
find_missing(const struct instance *inst, const struct selector_term *t, struct buf *missing,
             int *n, struct err *e)
{
    for (uint32_t id = t->first; t->each && *n <= MISSING_SAID; id++) {
        struct found_job found = {0};
        if (!queue_get(inst->queue, id) && store_find_job(inst->store, id, &found, e) < 0)
            return -1;
        if (!queue_get(inst->queue, id) && !found.id && ++*n <= MISSING_SAID)
            buf_addf(missing, "%s%u", *n > 1 ? ", " : "", id);
        if (id == t->last)
            break;
    }
    return 0;
}

/* Terms for tasks of the same array are adjacent, so its tasks are loaded once. set: the tasks
 * of the term's array; empty if there is no such array. */
static void
find_missing_tasks(const struct selector_term *t, const struct task_set *set,
                   struct buf *missing, int *n)
{
    if (task_set_next(set, t->first_task, t->last_task) >= 0 || ++*n > MISSING_SAID)
        return;
    buf_addf(missing, "%s%u_%d", *n > 1 ? ", " : "", t->first, t->first_task);
}

static int
load_tasks(const struct instance *inst, uint32_t array, struct task_set *out, struct err *e)
{
    const struct job *job = queue_get(inst->queue, array);
    task_set_free(out);
    *out = (struct task_set){NULL, 0};
    if (!job)
        return store_array_tasks(inst->store, array, out, e);
    task_set_copy(out, &job->req.array);
    return 0;
}

int
select_check_ids(const struct instance *inst, const struct select *s, struct err *e)
{
    auto_buf struct buf missing = BUF_INIT;
    struct task_set tasks = {NULL, 0};
    uint32_t array = 0;
    int n = 0, rc = 0;
    for (size_t i = 0; i < s->selector.n_sorted && rc == 0; i++) {
        const struct selector_term *t = &s->selector.terms[i];
        if (t->kind == SELECT_IDS) {
            rc = find_missing(inst, t, &missing, &n, e);
            continue;
        }
        if (t->first != array)
            rc = load_tasks(inst, t->first, &tasks, e);
        array = t->first;
        find_missing_tasks(t, &tasks, &missing, &n);
    }
    task_set_free(&tasks);
    if (n == 0 || rc)
        return rc;
    return err_set(e, ERR_NO_JOB, "no job %s%s; `berth queue --all` lists all jobs",
                   buf_str(&missing), n > MISSING_SAID ? ", ..." : "");
}

/* Looks the jobs up if all words are ids. False: the queue must be walked. */
static bool
look_up(const struct instance *inst, const struct select *s, struct job ***jobs, size_t *n)
{
    size_t most = 0, kept = 0;
    if (s->everything || s->selector.n_terms == 0)
        return false;
    for (size_t i = 0; i < s->selector.n_terms; i++) {
        const struct selector_term *t = &s->selector.terms[i];
        if (!t->each)
            return false;
        most += (size_t)(t->last - t->first) + 1;
    }
    *jobs = xcalloc(most + 1, sizeof(struct job *));
    for (size_t i = 0; i < s->selector.n_terms; i++) {
        const struct selector_term *t = &s->selector.terms[i];
        for (size_t k = 0; k <= t->last - t->first; k++) {
            struct job *job = queue_get(inst->queue, t->first + (uint32_t)k);
            if (job && select_matches(s, job))
                (*jobs)[kept++] = job;
        }
    }
    *n = kept;
    return true;
}

struct walk {
    const struct instance *inst;
    const struct select *select;
    select_cb cb;
    void *arg;
};

static int
on_job(struct job *job, const char *const *uuids, void *arg)
{
    const struct walk *w = arg;
    /* A job whose end is not committed yet is still in the table, and listed from there. */
    if (!queue_get(w->inst->queue, job->id) && select_matches(w->select, job))
        return w->cb(job, uuids, w->arg);
    return 0;
}

static void
add_range(struct select_ranges *r, uint32_t first, uint32_t last)
{
    r->v = xgrow(r->v, r->n, &r->cap, sizeof *r->v);
    r->v[r->n++] = (struct store_range){first, last};
}

struct task_walk {
    struct select_past *past;
    int64_t until_us;
    bool stopped;
};

static int
on_task(uint32_t id, int32_t task, enum job_state state, void *arg)
{
    struct task_walk *w = arg;
    (void)state;
    add_range(&w->past->ranges, id, id);
    w->past->task = task + 1;
    w->stopped = w->past->ranges.n % LOOK_EACH == 0 && clock_boot_us() >= w->until_us;
    return w->stopped;
}

/* Adds the ranges of one term. *done: true if complete. */
static int
narrow_term(const struct instance *inst, const struct select *s, struct select_past *past,
            int64_t until_us, bool *done, struct err *e)
{
    const struct selector_term *t = &s->selector.terms[past->term];
    struct task_walk w = {past, until_us, false};
    if (t->kind == SELECT_IDS)
        add_range(&past->ranges, t->first, t->last);
    else if (t->kind == SELECT_LAST)
        add_range(&past->ranges, s->last_id, s->last_id);
    else if (t->kind != SELECT_TASKS)
        past->wide = true;
    else if (store_tasks_walk(inst->store, t->first,
                              past->task > t->first_task ? past->task : t->first_task,
                              t->last_task, on_task, &w, e) < 0)
        return -1;
    *done = !w.stopped;
    return 0;
}

/* Finds the id ranges of the words. Ids, tasks and the last job can be looked up; names, users
 * and states need the whole walk (`wide`). Continues until the boot clock reaches until_us: 1:
 * complete; 0: more to do; -1 with e: the store failed. */
static int
narrow(const struct instance *inst, const struct select *s, struct select_past *past,
       int64_t until_us, struct err *e)
{
    past->wide |= s->everything;
    while (!past->wide && past->term < s->selector.n_terms) {
        bool done = false;
        if (narrow_term(inst, s, past, until_us, &done, e) < 0)
            return -1;
        if (done) {
            past->term++;
            past->task = 0;
        }
        if (clock_boot_us() >= until_us && past->term < s->selector.n_terms)
            return 0;
    }
    return 1;
}

static bool
names_jobs(const struct selector_term *t)
{
    return t->kind != SELECT_ALL && t->kind != SELECT_USER && t->kind != SELECT_STATE;
}

/* --- in pieces --- */

static int
compare_ranges(const void *a, const void *b)
{
    const struct store_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Sorts the ranges, bounds them by the newest id, and merges adjacent ones, which most tasks
 * of an array are. */
static void
tidy_ranges(struct select_ranges *r, uint32_t newest)
{
    int n = 0;
    if (r->n > 1)
        qsort(r->v, (size_t)r->n, sizeof *r->v, compare_ranges);
    for (int i = 0; i < r->n && r->v[i].first <= newest; i++) {
        const struct store_range x = {r->v[i].first,
                                      r->v[i].last < newest ? r->v[i].last : newest};
        struct store_range *last = n ? &r->v[n - 1] : NULL;
        if (!last || x.first > (int64_t)last->last + 1)
            r->v[n++] = x;
        else if (x.last > last->last)
            last->last = x.last;
    }
    r->n = n;
}

/* Determines the ids to walk over. Returns as narrow does. */
static int
begin_past(const struct instance *inst, const struct select *s, struct select_past *past,
           int64_t until_us, struct err *e)
{
    struct select_ranges *r = &past->ranges;
    int rc = narrow(inst, s, past, until_us, e);
    if (rc <= 0)
        return rc;
    if (past->wide) {
        r->n = 0;
        add_range(r, 0, UINT32_MAX);
    }
    tidy_ranges(r, store_peek_job_id(inst->store));
    past->at = past->newest_first ? r->n - 1 : 0;
    past->begun = true;
    return 1;
}

/* The next ids of the current range, at most PAST_PIECE. False: the range is exhausted. */
static bool
next_ids(const struct select_past *past, struct store_range *r)
{
    *r = past->ranges.v[past->at];
    if (!past->newest_first) {
        r->first = r->first < past->next ? past->next : r->first;
        if (r->first <= r->last && r->last - r->first >= PAST_PIECE)
            r->last = r->first + PAST_PIECE - 1;
        return r->first <= r->last;
    }
    r->first = r->first ? r->first : 1;
    r->last = past->next && r->last >= past->next ? past->next - 1 : r->last;
    if (r->first <= r->last && r->last - r->first >= PAST_PIECE)
        r->first = r->last - PAST_PIECE + 1;
    return r->first <= r->last;
}

/* Marks these ids as visited. */
static void
go_past(struct select_past *past, struct store_range ids)
{
    past->next = past->newest_first ? ids.first : ids.last + 1;
    if (past->next == 0) /* beyond the highest possible id */
        past->at = past->ranges.n;
}

int
select_past_walk(const struct instance *inst, const struct select *s, struct select_past *past,
                 int64_t until_us, select_cb cb, void *arg, struct err *e)
{
    int begun = past->begun ? 1 : begin_past(inst, s, past, until_us, e);
    struct walk w = {inst, s, cb, arg};
    struct store_filter f = {.states = SELECT_FINAL_STATES};
    struct store_range ids;
    if (begun <= 0)
        return begun;
    if (past->where)
        f = *past->where;
    f.states &= s->states ? s->states : UINT32_MAX;
    f.ranges = &ids;
    f.n_ranges = 1;
    f.newest_first = past->newest_first;
    while (f.states && past->at >= 0 && past->at < past->ranges.n) {
        if (!next_ids(past, &ids)) {
            past->at += past->newest_first ? -1 : 1;
            continue;
        }
        struct store_pass pass = {.stop_us = until_us};
        if (store_jobs_pass(inst->store, &f, &pass, on_job, &w, e) < 0)
            return -1;
        if (pass.stopped)
            ids.first = ids.last = pass.last;
        go_past(past, ids);
        if (pass.stopped || clock_boot_us() >= until_us)
            return 0;
    }
    return 1;
}

void
select_past_turn(struct select_past *past, uint32_t from)
{
    past->newest_first = false;
    past->next = from;
    past->at = 0;
}

void
select_past_free(struct select_past *past)
{
    free(past->ranges.v);
    past->ranges = (struct select_ranges){0};
}

static void
begin_live(const struct instance *inst, const struct select *s, struct select_live *live)
{
    struct job **jobs = NULL;
    bool in_turn = live->order == LINEUP_IN_TURN;
    if (!look_up(inst, s, &jobs, &live->n)) {
        live->run = lineup_begin(in_turn ? inst->planner : NULL, inst->queue,
                                 in_turn ? inst->ledger : NULL, clock_wall_us(), live->order);
        return;
    }
    live->ids = xcalloc(live->n + 1, sizeof *live->ids);
    for (size_t i = 0; i < live->n; i++)
        live->ids[i] = jobs[i]->id;
    free(jobs);
    if (live->order == LINEUP_BY_ID)
        ids_sort(live->ids, live->n);
}

bool
select_live_list(const struct instance *inst, const struct select *s, struct select_live *live,
                 int64_t until_us)
{
    if (!live->ids && !live->run)
        begin_live(inst, s, live);
    while (!live->ids) {
        if (!lineup_step(live->run))
            live->ids = lineup_ids(live->run, &live->n);
        else if (clock_boot_us() >= until_us)
            return false;
    }
    lineup_free(live->run);
    live->run = NULL;
    return true;
}

void
select_live_free(struct select_live *live)
{
    lineup_free(live->run);
    free(live->ids);
    *live = (struct select_live){.order = live->order};
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
        return err_set(e, ERR_NO_JOB, "no job");
    return err_set(e, ERR_NO_JOB, "no job matches %s; `berth queue --all` lists all jobs",
                   buf_str(&text));
}
