/* Pages: see history_page.h. Called by method_jobs.c. Walks the store by descending id, which
 * is the order of submission, until the page is full or its time is over; then rereads the
 * jobs found in the order in which they are shown. */
#include "daemon/view/history_page.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"
#include "daemon/common/caller.h"
#include "daemon/common/instance.h"
#include "store/store.h"
#include "wire/members.h"

#define SEARCH_MAX_US 10000
#define SEARCH_MAX    200

bool
page_is_wanted(const json_t *params)
{
    return json_is_true(json_object_get(params, "ended")) &&
           (json_integer_value(json_object_get(params, "limit")) > 0 ||
            json_object_get(params, "before_id"));
}

static const struct member members[] = {
    {MEMBER(NUMBER, page, limit), .max = INT64_MAX},
    {MEMBER(NUMBER, page, before_id), .max = UINT32_MAX},
    {MEMBER(NUMBER, page, since_us), .max = INT64_MAX},
    {MEMBER(NUMBER, page, until_us), .max = INT64_MAX},
    {0},
};

static int
read_state(const json_t *name, uint32_t *states, struct err *e)
{
    enum job_state state;
    auto_buf struct buf all = BUF_INIT;
    const char *text = json_string_value(name);
    job_states_text(SELECT_FINAL_STATES, &all);
    if (!text || job_state_from_name(text, &state) < 0 || !job_state_is_final(state))
        return err_set(e, ERR_USAGE, "'%s' is not a state of ended jobs; these are %s",
                       text ? text : "?", buf_str(&all));
    *states |= 1U << state;
    return 0;
}

static int
read_states(const json_t *v, uint32_t *states, struct err *e)
{
    size_t i;
    const json_t *name;
    *states = 0;
    if (v && !json_is_array(v))
        return read_state(v, states, e);
    json_array_foreach(v, i, name) if (read_state(name, states, e) < 0) return -1;
    if (*states == 0)
        *states = SELECT_FINAL_STATES;
    return 0;
}

static int
read_search(const json_t *v, struct page *p, struct err *e)
{
    const char *text = json_string_value(v);
    if (!v || json_is_null(v))
        return 0;
    if (!text || strlen(text) > SEARCH_MAX)
        return err_set(e, ERR_USAGE, "\"search\" must be a text of at most %d bytes",
                       SEARCH_MAX);
    p->search = xstrdup(text);
    for (char *c = p->search; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return 0;
}

int
page_read(const struct instance *inst, const struct caller *c, const json_t *params,
          struct page *out, struct err *e)
{
    int64_t most = json_object_get(params, "fields") ? PAGE_JOBS_MAX : PAGE_OBJECTS_MAX;
    *out = (struct page){
        .limit = most,
        .search_max_us = SEARCH_MAX_US,
        .uid = c->uid,
        .only_own = inst->places.system && inst->config.private && !c->admin,
    };
    if (members_read(params, members, out, e) < 0 ||
        read_states(json_object_get(params, "state"), &out->states, e) < 0 ||
        read_search(json_object_get(params, "search"), out, e) < 0)
        return -1;
    if (out->limit < 1 || out->limit > most)
        out->limit = most;
    out->past.newest_first = true;
    out->past.next = out->before_id;
    out->ids = xcalloc((size_t)out->limit, sizeof *out->ids);
    return 0;
}

void
page_free(struct page *p)
{
    free(p->search);
    free(p->ids);
    select_past_free(&p->past);
    *p = (struct page){0};
}

/* --- in pieces --- */

static int
on_found(struct job *job, const char *const *uuids, void *arg)
{
    struct page *p = arg;
    (void)uuids;
    p->ids[p->n++] = job->id;
    return p->n == p->limit;
}

/* Collects ids from the newest down. 1: the page is full, its time is over, or the history
 * ended. */
static int
find(const struct instance *inst, const struct select *s, struct page *p, int64_t until_us,
     struct err *e)
{
    int64_t begun_us = clock_boot_us();
    bool begun = p->past.begun;
    p->where = (struct store_filter){.states = p->states,
                                     .since_us = p->since_us,
                                     .until_us = p->until_us,
                                     .search = p->search,
                                     .search_uid = p->uid,
                                     .has_search_uid = p->only_own};
    p->past.where = &p->where;
    int rc = select_past_walk(inst, s, &p->past, until_us, on_found, p, e);
    if (rc) {
        p->older = 0;
        return rc;
    }
    /* The first piece, which resolves the selection, does not count against the search time:
     * the next page would start with the same work. */
    if (begun)
        p->searched_us += clock_boot_us() - begun_us;
    p->older = p->past.next > 1 ? p->past.next : 0;
    return p->n == p->limit || (begun && p->searched_us >= p->search_max_us);
}

struct shown {
    const struct instance *inst;
    select_cb cb;
    void *arg;
    int rc;
};

static int
on_shown(struct job *job, const char *const *uuids, void *arg)
{
    struct shown *x = arg;
    if (!queue_get(x->inst->queue, job->id)) /* otherwise the job is being run again */
        x->rc = x->cb(job, uuids, x->arg);
    return x->rc;
}

static int
show(const struct instance *inst, struct page *p, int64_t until_us, select_cb cb, void *arg,
     struct err *e)
{
    struct shown x = {.inst = inst, .cb = cb, .arg = arg};
    while (p->shown < p->n) {
        const uint32_t id = p->ids[p->n - ++p->shown];
        const struct store_range one = {id, id};
        const struct store_filter f = {.ranges = &one, .n_ranges = 1, .states = p->states};
        if (store_jobs_select(inst->store, &f, on_shown, &x, e) < 0)
            return -1;
        if (x.rc || clock_boot_us() >= until_us)
            return 0;
    }
    return 1;
}

int
page_walk(const struct instance *inst, const struct select *s, struct page *p, int64_t until_us,
          select_cb cb, void *arg, struct err *e)
{
    int rc = p->found ? 1 : find(inst, s, p, until_us, e);
    if (rc <= 0)
        return rc;
    p->found = true;
    return show(inst, p, until_us, cb, arg, e);
}
