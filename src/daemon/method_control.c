/* `cancel`, `hold`, `release`, `priority` and `wait`: what people do to jobs that are there. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/array.h"
#include "core/job.h"
#include "core/queue.h"
#include "daemon/daemon.h"
#include "daemon/jobs.h"
#include "daemon/methods.h"
#include "daemon/roles.h"
#include "daemon/target.h"
#include "daemon/waits.h"
#include "daemon/work.h"

#define WAIT_TASKS_MAX 100000 /* that have not left their arrays, in one request */
#define WHY_MAX        24     /* bytes */

typedef int (*control_fn)(struct daemon *d, struct job *job, int32_t n, struct err *e);

/* What is done to jobs, in pieces (work.h): however many there are, each piece is committed
 * before the next one begins. */
struct control {
    struct target_walk walk;
    const json_t *params; /* borrowed; they stay while it lasts */
    struct ids touched, ended;
    struct select_past past; /* cancel: those of the meant that had ended before */
    bool past_done;
    control_fn act;
    int32_t number;
    struct err last; /* why one could not be */
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

static int
begin(struct daemon *d, struct caller *c, const struct work_kind *kind, struct control *k,
      json_t *params, struct jsonw *out, struct err *e)
{
    k->params = params;
    if (target_read(d, c, params, &k->walk.select, e)) {
        control_free(k);
        return -1;
    }
    return work_begin(d, c, kind, k, params, out, e);
}

/* --- cancel
 * ---------------------------------------------------------------------------------------- */

static int
on_ended(struct job *job, const char *const *uuids, void *arg)
{
    (void)uuids;
    ids_add_job(arg, job);
    return 0;
}

static void
cancel_one(struct daemon *d, const struct caller *c, struct control *k, struct job *job)
{
    json_int_t grace = json_integer_value(json_object_get(k->params, "grace_ms"));
    const char *why = json_string_value(json_object_get(k->params, "why"));
    const char *name = daemon_user_name(c->uid);
    auto_free char *by = why ? xasprintf("%s (%s)", name, why) : xstrdup(name);
    if (json_object_get(k->params, "grace_ms") && grace >= 0)
        job->req.grace_ms = grace;
    ids_add_job(jobs_cancel(d, job, by) ? &k->ended : &k->touched, job);
}

/* The history is looked through before anything is done: what is cancelled here is in it too,
 * once it is committed. */
static int
cancel_step(struct daemon *d, const struct caller *c, void *arg, struct jsonw *out,
            int64_t until_us, struct err *e)
{
    struct control *k = arg;
    const struct select *s = &k->walk.select;
    struct job *job;
    int rc = k->walk.chosen ? 1 : target_walk_choose(d, c, &k->walk, until_us, e);
    if (rc > 0 && !k->past_done && select_names_jobs(s))
        rc = select_past_walk(d, s, &k->past, until_us, on_ended, &k->ended, e);
    k->walk.paused |= rc == 0; /* the chosen may have become others */
    if (rc <= 0)
        return rc < 0 ? -1 : WORK_MORE;
    k->past_done = true;
    while ((job = target_walk_next(d, &k->walk, until_us)))
        cancel_one(d, c, k, job);
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

/* It is kept with the name of the user, in the exit record too. */
static int
check_why(const json_t *params, struct err *e)
{
    const json_t *why = json_object_get(params, "why");
    if (!why || (json_is_string(why) && json_string_length(why) <= WHY_MAX))
        return 0;
    return err_set(e, ERR_USAGE, "\"why\" is text of at most %d bytes", WHY_MAX);
}

int
method_cancel(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
              struct err *e)
{
    static const struct work_kind kind = {
        .step = cancel_step, .free = control_free, .changes = true};
    if (roles_check_grace(d, json_integer_value(json_object_get(params, "grace_ms")), e) ||
        check_why(params, e))
        return -1;
    return begin(d, c, &kind, xcalloc(1, sizeof(struct control)), params, out, e);
}

/* --- hold and release
 * -------------------------------------------------------------------------------- */

/* Jobs named one by one must all allow it; of a wider choice those that do are taken, which may
 * be none. */
static int
control_step(struct daemon *d, const struct caller *c, void *arg, struct jsonw *out,
             int64_t until_us, struct err *e)
{
    struct control *k = arg;
    struct job *job;
    int rc = k->walk.chosen ? 1 : target_walk_choose(d, c, &k->walk, until_us, e);
    if (rc <= 0)
        return rc < 0 ? -1 : WORK_MORE;
    while ((job = target_walk_next(d, &k->walk, until_us)))
        if (k->act(d, job, k->number, &k->last) == 0)
            ids_add_job(&k->touched, job);
    if (k->walk.stopped)
        return WORK_MORE;
    if (k->touched.n == 0 && (k->last.code || !select_is_all(&k->walk.select)))
        return target_none(d, &k->walk.select, k->params, &k->last, e);
    jsonw_object(out);
    ids_write(out, "ids", &k->touched);
    jsonw_end_object(out);
    return WORK_DONE;
}

static int
control(struct daemon *d, struct caller *c, json_t *params, control_fn act, int32_t number,
        struct jsonw *out, struct err *e)
{
    static const struct work_kind kind = {
        .step = control_step, .free = control_free, .changes = true};
    struct control *k = xcalloc(1, sizeof *k);
    k->act = act;
    k->number = number;
    return begin(d, c, &kind, k, params, out, e);
}

static int
hold(struct daemon *d, struct job *job, int32_t unused, struct err *e)
{
    (void)unused;
    return jobs_hold(d, job, e);
}

static int
release(struct daemon *d, struct job *job, int32_t unused, struct err *e)
{
    (void)unused;
    return jobs_release(d, job, e);
}

int
method_hold(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
            struct err *e)
{
    return control(d, c, params, hold, 0, out, e);
}

int
method_release(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
               struct err *e)
{
    return control(d, c, params, release, 0, out, e);
}

int
method_priority(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
                struct err *e)
{
    const json_t *v = json_object_get(params, "priority");
    json_int_t n = json_integer_value(v);
    if (!json_is_integer(v) || n < PRIORITY_MIN || n > PRIORITY_MAX)
        return err_set(e, ERR_USAGE, "\"priority\" must be a whole number from %d to %d",
                       PRIORITY_MIN, PRIORITY_MAX);
    if (roles_check_priority(d, (int32_t)n, e))
        return -1;
    return control(d, c, params, jobs_set_priority, (int32_t)n, out, e);
}

/* --- wait
 * ---------------------------------------------------------------------------------------------
 */

/* Those of the meant that have ended. */
struct done {
    struct buf text;
    struct ids ids;
};

static int
on_done(struct job *job, const char *const *uuids, void *arg)
{
    (void)uuids;
    struct done *done = arg;
    waits_write(&done->text, job);
    ids_add(&done->ids, job->id);
    return 0;
}

/* Who may have to ask again, of another daemon, asks first who is meant: by then `all` or `@`
 * may mean others. */
static void
write_meant(const struct waited *whom, const struct done *done, struct jsonw *out)
{
    char word[32];
    jsonw_object(out);
    jsonw_key(out, "select");
    jsonw_array(out);
    for (size_t i = 0; i < whom->n_ids + done->ids.n; i++) {
        snprintf(word, sizeof word, "%u",
                 i < whom->n_ids ? whom->ids[i] : done->ids.v[i - whom->n_ids]);
        jsonw_str(out, word);
    }
    for (size_t i = 0; i < whom->n_tasks; i++) {
        snprintf(word, sizeof word, "%u_%d", whom->tasks[i].array, whom->tasks[i].task);
        jsonw_str(out, word);
    }
    jsonw_end_array(out);
    jsonw_end_object(out);
}

/* Tasks that are meant and have not left their arrays. */
static int
add_tasks(struct daemon *d, const struct select *s, struct waited *whom, struct err *e)
{
    for (size_t i = 0; i < s->selector.n_sorted; i++) {
        const struct selector_term *t = &s->selector.terms[i];
        const struct job *array =
            t->kind == SELECT_TASKS ? queue_get(d->queue, t->first) : NULL;
        int32_t task = array && array->tasks ? t->first_task : -1;
        while (task >= 0 &&
               (task = task_set_next(&array->tasks->pending, task, t->last_task)) >= 0) {
            if (whom->n_tasks == WAIT_TASKS_MAX)
                return err_set(e, ERR_REFUSED,
                               "more than %d tasks of arrays are waited for; wait for the "
                               "arrays, or for fewer at once",
                               WAIT_TASKS_MAX);
            waited_add_task(whom, array->id, task++);
        }
    }
    return 0;
}

/* What has ended counts only where it was named: `all`, a user or a state mean what there is
 * now, so that a script does not get the exit status of last week's failure. */
int
method_wait(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
            struct err *e)
{
    struct select s;
    struct waited whom = {0};
    struct done done = {.text = BUF_INIT};
    auto_free struct job **jobs = NULL;
    bool asks_only = json_is_true(json_object_get(params, "resolve"));
    int rc = target_find(d, c, params, &s, e);
    if (rc == 0 && select_is_all(&s)) { /* an admin, too, waits for jobs of one's own */
        s.mine = true;
        s.owner = c->uid;
    }
    size_t n = rc ? 0 : select_live(d, &s, &jobs);
    for (size_t i = 0; i < n; i++) /* an end that is not committed yet comes with its commit */
        waited_add(&whom, jobs[i]->id);
    if (rc == 0)
        rc = add_tasks(d, &s, &whom, e);
    if (rc == 0 && select_names_jobs(&s)) {
        select_keep_names(&s);
        rc = select_ended(d, &s, 0, on_done, &done, e);
        if (rc == 0 && whom.n_ids == 0 && whom.n_tasks == 0 && done.ids.n == 0)
            rc = select_none(params, e);
    }
    select_free(&s);
    if (rc == 0 && asks_only) {
        write_meant(&whom, &done, out);
    } else if (rc == 0) {
        waits_add(d, server_ticket(c), &whom, buf_str(&done.text));
        rc = METHOD_LATER;
    }
    waited_free(&whom);
    buf_free(&done.text);
    ids_free(&done.ids);
    return rc;
}
