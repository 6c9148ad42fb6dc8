/* `jobs`: the data of `queue`, `show` and every list. With `fields` the answer is rows of just
 * those fields, which suits lists of many thousands. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/ids.h"
#include "base/jsonw.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"
#include "daemon/common/instance.h"
#include "daemon/request/selection.h"
#include "daemon/rpc/long_work.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "daemon/view/history_page.h"
#include "daemon/view/job_view.h"
#include "store/store.h"

#define LOOK_EACH 50 /* jobs between two checks of the clock */

struct listing {
    struct rpc *rpc;
    struct jsonw *out;
    const struct jobjson_entry **fields; /* owned; NULL: write whole objects */
    size_t n_fields;
    size_t n;

    /* The selected jobs, listed in pieces (long_work.h). */
    struct select select;
    const json_t *params; /* borrowed; valid while the work lasts */
    bool only_ended, ended_left;
    struct select_past past;
    struct select_live live;
    bool is_noted;
    uint32_t *sorted; /* owned; the same ids, if ended jobs are listed before the live ones */
    size_t at;
    int64_t limit;      /* maximum number of jobs; 0: no limit */
    int64_t ended_room; /* part of limit kept for ended jobs, however many are live */
    int64_t n_newest;   /* counted towards limit: live jobs first, then the newest ended ones */
    uint32_t oldest;    /* the oldest ended job counted */
    bool chosen;
    struct page page;
};

/* Not 0: the answer has become too long. */
static int
put_job(const struct job *job, const char *const *uuids, struct listing *l)
{
    const struct jobjson x = {.views = l->rpc->views, .job = job, .uuids = uuids};
    l->n++;
    if (!l->fields) {
        jobjson_object(&x, l->out);
        return l->out->full;
    }
    jsonw_array(l->out);
    for (size_t i = 0; i < l->n_fields; i++)
        jobjson_value(l->fields[i], &x, l->out);
    jsonw_end_array(l->out);
    return l->out->full;
}

/* Jobs that were live when the listing began are listed among the live ones, once each, even
 * if they have ended since. */
static bool
is_noted(const struct listing *l, uint32_t id)
{
    return l->sorted && bsearch(&id, l->sorted, l->live.n, sizeof id, ids_compare);
}

static bool
is_full(const struct listing *l)
{
    return l->limit > 0 && (int64_t)l->n >= l->limit;
}

static int
on_ended(struct job *job, const char *const *uuids, void *arg)
{
    struct listing *l = arg;
    return is_noted(l, job->id) || is_full(l) ? 0 : put_job(job, uuids, l);
}

static bool
has_field(const struct listing *l, const struct jobjson_entry *field)
{
    for (size_t i = 0; i < l->n_fields; i++)
        if (l->fields[i] == field)
            return true;
    return false;
}

static int
read_fields(const json_t *names, struct listing *l, struct err *e)
{
    size_t i, most = jobjson_count();
    const json_t *name;
    if (!names)
        return 0;
    if (!json_is_array(names))
        return err_set(e, ERR_USAGE, "\"fields\" must be a list of names");
    l->fields = xcalloc(most, sizeof *l->fields);
    json_array_foreach(names, i, name)
    {
        const char *text = json_string_value(name);
        const struct jobjson_entry *field = text ? jobjson_find(text) : NULL;
        if (!field)
            return err_set(e, ERR_USAGE, "a job has no field \"%.60s\"", text ? text : "?");
        if (has_field(l, field))
            return err_set(e, ERR_USAGE, "\"fields\" names \"%s\" twice", text);
        l->fields[l->n_fields++] = field;
    }
    return 0;
}

static int
read_order(const json_t *order, struct select_live *live, struct err *e)
{
    const char *text = json_string_value(order);
    bool in_turn = text && strcmp(text, "turn") == 0;
    live->order = in_turn ? LINEUP_IN_TURN : LINEUP_BY_PRIORITY;
    if (!order || in_turn || (text && strcmp(text, "priority") == 0))
        return 0;
    return err_set(e, ERR_USAGE, "\"order\" is \"priority\" or \"turn\"");
}

/* Writes a job of the list of live jobs, which may have ended since the list was made. */
static int
put_live(struct listing *l, uint32_t id)
{
    struct err unused;
    const struct job *job = queue_get(l->rpc->inst->queue, id);
    struct job *old = job ? NULL : store_job_load(l->rpc->inst->store, id, &unused);
    job = job ? job : old;
    int rc = 0;
    if (job && select_matches(&l->select, job))
        rc = put_job(job, NULL, l);
    job_free(old);
    return rc;
}

/* False: there is more to do. */
static bool
note_live(struct instance *inst, struct listing *l, int64_t until_us)
{
    if (l->is_noted || l->only_ended)
        return true;
    if (!select_live_list(inst, &l->select, &l->live, until_us))
        return false;
    l->is_noted = true;
    if (l->ended_left)
        l->sorted = ids_sorted(l->live.ids, l->live.n);
    return true;
}

/* --- the newest --- */

/* Counts the live jobs, as far as they leave room for the ended ones. False: there is more to
 * do. */
static bool
count_live(struct listing *l, int64_t until_us)
{
    const struct queue *queue = l->rpc->inst->queue;
    while (l->at < l->live.n && l->n_newest < l->limit - l->ended_room) {
        const struct job *job = queue_get(queue, l->live.ids[l->at++]);
        l->n_newest += job && select_matches(&l->select, job);
        if (l->at % LOOK_EACH == 0 && clock_boot_us() >= until_us)
            return false;
    }
    return true;
}

static int
on_newest(struct job *job, const char *const *uuids, void *arg)
{
    struct listing *l = arg;
    (void)uuids;
    if (is_noted(l, job->id))
        return 0;
    l->oldest = job->id;
    return ++l->n_newest == l->limit;
}

/* Finds the ended job to begin with, so that no more are listed than the live jobs leave room
 * for. Returns as step does. */
static int
choose(struct listing *l, int64_t until_us, struct err *e)
{
    int rc = 1;
    if (!count_live(l, until_us))
        return WORK_MORE;
    l->past.newest_first = true;
    if (l->n_newest < l->limit)
        rc = select_past_walk(l->rpc->inst, &l->select, &l->past, until_us, on_newest, l, e);
    if (rc <= 0 && (rc < 0 || l->n_newest < l->limit))
        return rc;
    l->ended_left = l->oldest > 0;
    select_past_turn(&l->past, l->oldest);
    l->at = 0;
    l->chosen = true;
    return 1;
}

/* --- the list --- */

/* Ended jobs come first, so that a list ends with what is live. */
static int
step(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out, int64_t until_us,
     struct err *e)
{
    struct listing *l = arg;
    int rc = 1;
    (void)c;
    l->out = out;
    if (!note_live(rpc->inst, l, until_us))
        return WORK_MORE;
    if (l->limit > 0 && l->ended_left && !l->chosen)
        rc = choose(l, until_us, e);
    if (rc > 0 && l->ended_left)
        rc = select_past_walk(rpc->inst, &l->select, &l->past, until_us, on_ended, l, e);
    if (rc <= 0)
        return rc < 0 ? -1 : WORK_MORE;
    l->ended_left = false;
    while (l->at < l->live.n && !is_full(l)) {
        if (put_live(l, l->live.ids[l->at++]))
            return WORK_MORE; /* if full, run_slice reports it after each piece */
        if (clock_boot_us() >= until_us)
            return WORK_MORE; /* one job may have two megabytes */
    }
    if (l->n == 0 && !l->select.everything)
        return select_none(l->params, e);
    jsonw_end_array(out);
    jsonw_end_object(out);
    return WORK_DONE;
}

/* Writes a page of the history, and where the next one begins. */
static int
page_step(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out,
          int64_t until_us, struct err *e)
{
    struct listing *l = arg;
    (void)c;
    l->out = out;
    int rc = page_walk(rpc->inst, &l->select, &l->page, until_us, on_ended, l, e);
    if (rc <= 0)
        return rc < 0 ? -1 : WORK_MORE;
    jsonw_end_array(out);
    if (l->page.older)
        jsonw_kint(out, "before_id", l->page.older);
    else
        jsonw_knull(out, "before_id");
    jsonw_end_object(out);
    return WORK_DONE;
}

static void
listing_free(void *arg)
{
    struct listing *l = arg;
    free(l->fields);
    select_live_free(&l->live);
    free(l->sorted);
    select_past_free(&l->past);
    page_free(&l->page);
    select_free(&l->select);
    free(l);
}

/* A selection that names jobs includes the history; without one the list is the queue, unless
 * `all` is set. */
static int
begin_list(const json_t *params, struct listing *l, struct err *e)
{
    l->limit = json_integer_value(json_object_get(params, "limit"));
    l->only_ended = json_is_true(json_object_get(params, "ended"));
    l->ended_left =
        l->only_ended || !l->select.everything || json_is_true(json_object_get(params, "all"));
    l->ended_room = json_integer_value(json_object_get(params, "ended_room"));
    if (l->limit < 0 || l->ended_room < 0)
        return err_set(e, ERR_USAGE, "\"%s\" must not be negative",
                       l->limit < 0 ? "limit" : "ended_room");
    return select_read_where(params, &l->select, e);
}

static int
begin(struct rpc *rpc, const struct caller *c, const json_t *params, bool paged,
      struct listing *l, struct err *e)
{
    l->rpc = rpc;
    l->params = params;
    if (select_read(rpc->roles, c->uid, params, &l->select, e) < 0)
        return -1;
    l->select.arrays_for_tasks = true;
    if (read_order(json_object_get(params, "order"), &l->live, e) < 0 ||
        read_fields(json_object_get(params, "fields"), l, e) < 0)
        return -1;
    if ((paged ? page_read(rpc->inst, c, params, &l->page, e) : begin_list(params, l, e)) < 0)
        return -1;
    return select_check_ids(rpc->inst, &l->select, e);
}

int
method_jobs(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out, struct err *e)
{
    static const struct work_kind list = {.step = step, .free = listing_free};
    static const struct work_kind page = {.step = page_step, .free = listing_free};
    struct listing *l = xcalloc(1, sizeof *l);
    bool paged = page_is_wanted(params);
    if (begin(rpc, c, params, paged, l, e) < 0) {
        listing_free(l);
        return -1;
    }
    jsonw_object(out);
    jsonw_karray(out, l->fields ? "rows" : "jobs");
    return work_begin(rpc, c, paged ? &page : &list, l, params, out, e);
}
