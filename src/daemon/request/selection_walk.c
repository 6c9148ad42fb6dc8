/* The jobs that a request acts on: see selection_walk.h. Called by method_control.c,
 * method_signal.c and similar methods. */
#include "daemon/request/selection_walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "core/queue/array.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"
#include "daemon/common/caller.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "daemon/request/roles.h"
#include "daemon/state/array_turns.h"
#include "daemon/state/changes.h"

#define TARGET_TASKS_MAX 1000               /* split off their arrays by one request */
#define TASKS_AT_ONCE    100                /* tasks of an array that are changed together */
#define LOOK_EACH        50                 /* jobs between looks at the clock */
#define CHANGE_EACH      250                /* jobs written by one commit: about 20 ms */
#define TEXT_EACH        (INT64_C(2) << 20) /* bytes of their texts; a job may have 2 MB */

/* The array whose tasks the term names, while it exists in the table; NULL: none. */
static struct job *
array_of(const struct instance *inst, const struct selector_term *t)
{
    struct job *array = t->kind == SELECT_TASKS ? queue_get(inst->queue, t->first) : NULL;
    return array && array->tasks ? array : NULL;
}

/* Each task becomes a job, a row and an event; too many in one request would delay
 * all clients. */
static int
check_number(const struct instance *inst, const struct caller *c, const struct select *s,
             struct err *e)
{
    int n = 0;
    for (size_t i = 0; i < s->selector.n_sorted; i++) {
        const struct selector_term *t = &s->selector.terms[i];
        const struct job *array = array_of(inst, t);
        int32_t task =
            array ? task_set_next(&array->tasks->pending, t->first_task, t->last_task) : -1;
        if (task >= 0 && target_check_owner(c, array, e) < 0)
            return -1;
        for (; task >= 0 && n <= TARGET_TASKS_MAX; n++)
            task = task_set_next(&array->tasks->pending, task + 1, t->last_task);
    }
    if (n <= TARGET_TASKS_MAX)
        return 0;
    return err_set(
        e, ERR_REFUSED,
        "more than %d pending tasks of arrays are selected; select fewer, or the whole array",
        TARGET_TASKS_MAX);
}

/* Makes the named tasks jobs of their own, so that they can be changed one by one. */
static int
single_out(const struct instance *inst, const struct caller *c, const struct select *s,
           struct err *e)
{
    if (check_number(inst, c, s, e) < 0)
        return -1;
    for (size_t i = 0; i < s->selector.n_sorted; i++) {
        const struct selector_term *t = &s->selector.terms[i];
        struct job *array = array_of(inst, t);
        int32_t task = array ? t->first_task : -1;
        while (array && (task = task_set_next(&array->tasks->pending, task, t->last_task)) >= 0)
            arrays_split(inst->state, array, task++, 0);
    }
    return 0;
}

int
target_find(const struct roles *roles, const struct caller *c, const json_t *params,
            struct select *s, struct err *e)
{
    if (select_read(roles, c->uid, params, s, e) < 0)
        return -1;
    if (s->everything)
        return err_set(e, ERR_USAGE, "name the jobs: 12, 12-20, @, name:x*, or --all");
    return select_check_ids(roles->inst, s, e);
}

int
target_read(const struct roles *roles, const struct caller *c, const json_t *params,
            struct select *s, struct err *e)
{
    if (target_find(roles, c, params, s, e) < 0)
        return -1;
    return single_out(roles->inst, c, s, e);
}

/* For requests that change jobs: name:x*, ranges, states and --all select only the caller's
 * own jobs (an admin's: all users'). A job of another user named by id is an error before
 * anything is changed. */
static void
keep_mine(const struct caller *c, struct select *s)
{
    s->mine = !c->admin;
    s->owner = c->uid;
}

int
target_walk_choose(const struct instance *inst, const struct caller *c, struct target_walk *w,
                   int64_t until_us, struct err *e)
{
    keep_mine(c, &w->select);
    if (!select_live_list(inst, &w->select, &w->live, until_us)) {
        w->paused = true;
        return 0;
    }
    while (w->at < w->live.n) {
        const struct job *job = queue_get(inst->queue, w->live.ids[w->at++]);
        if (job && select_matches(&w->select, job) && !ids_has(&w->before, job->id)) {
            if (target_check_owner(c, job, e) < 0)
                return -1;
            w->live.ids[w->kept++] = job->id;
        }
        if (w->at % LOOK_EACH == 0 && clock_boot_us() >= until_us) {
            w->paused = true;
            return 0;
        }
    }
    w->live.n = w->kept;
    w->at = 0;
    w->chosen = true;
    return 1;
}

bool
target_walk_into(struct target_walk *w, const struct job *array)
{
    const struct tasks *t = array->tasks;
    if (!t || t->live <= TASKS_AT_ONCE)
        return false;
    w->array = array->id;
    w->n_tasks = (size_t)t->live;
    w->tasks = xcalloc(w->n_tasks, sizeof *w->tasks);
    memcpy(w->tasks, t->live_ids, w->n_tasks * sizeof *w->tasks);
    return true;
}

static void
leave_array(struct target_walk *w)
{
    free(w->tasks);
    w->tasks = NULL;
    w->n_tasks = w->task_at = 0;
    w->array = 0;
}

/* The job may have changed since it was chosen, or be gone. */
static struct job *
next_task(const struct instance *inst, struct target_walk *w)
{
    struct job *job = queue_get(inst->queue, w->tasks[w->task_at++]);
    return job && job->array == w->array ? job : NULL;
}

static struct job *
next_meant(const struct instance *inst, struct target_walk *w)
{
    struct job *job = queue_get(inst->queue, w->live.ids[w->at++]);
    return job && w->paused && !select_matches(&w->select, job) ? NULL : job;
}

struct job *
target_walk_next(const struct instance *inst, struct target_walk *w, int64_t until_us)
{
    struct job *job = NULL;
    while (!job) {
        bool in_array = w->task_at < w->n_tasks;
        if (!in_array)
            leave_array(w);
        if (!in_array && w->at == w->live.n)
            return NULL;
        bool is_late = w->n_piece % LOOK_EACH == 0 && clock_boot_us() >= until_us;
        bool is_full = w->n_piece == CHANGE_EACH || w->text_piece >= TEXT_EACH;
        if (w->n_piece > 0 && (is_late || is_full)) {
            w->paused = w->stopped = true;
            w->n_piece = 0;
            w->text_piece = 0;
            return NULL;
        }
        w->stopped = false;
        w->n_piece++;
        job = in_array ? next_task(inst, w) : next_meant(inst, w);
    }
    w->text_piece += request_text_bytes(&job->req);
    return job;
}

void
target_walk_free(struct target_walk *w)
{
    leave_array(w);
    select_free(&w->select);
    ids_free(&w->before);
    select_live_free(&w->live);
    select_past_free(&w->past);
}

static int
on_too_late(struct job *job, const char *const *uuids, void *arg)
{
    (void)uuids;
    err_set(arg, ERR_FAILED, "job %s has ended (%s)", job_words(job).text,
            job_state_name(job->state));
    return 1;
}

int
target_none(const struct instance *inst, struct target_walk *w, const json_t *params,
            int64_t until_us, struct err *last, struct err *e)
{
    if (!last->code && select_names_jobs(&w->select)) {
        w->past.newest_first = true;
        int rc = select_past_walk(inst, &w->select, &w->past, until_us, on_too_late, last, e);
        if (rc < 0 || (rc == 0 && !last->code))
            return rc;
    }
    if (!last->code)
        select_none(params, last);
    *e = *last;
    return -1;
}

int
target_check_owner(const struct caller *c, const struct job *job, struct err *e)
{
    if (roles_may_touch(c, job))
        return 0;
    return err_set(e, ERR_PERMISSION, "job %s belongs to %s", job_words(job).text,
                   daemon_owner_name(job));
}
