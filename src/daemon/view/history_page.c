/* Pages: see history_page.h. Called by method_jobs.c. The store is walked downwards in pieces
 * of ids, which is the order of submission, until the page is full or its time is over; the
 * jobs that it found are then read once more in the order in which they are shown. */
#include "daemon/view/history_page.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"
#include "daemon/common/caller.h"
#include "daemon/common/instance.h"
#include "store/store.h"
#include "wire/members.h"

#define PIECE_IDS    2000 /* of which many may be gone: a piece is a fraction of a ms to 10 ms */
#define PAGE_TIME_US 20000 /* then no further piece is begun */
#define RANGES_CUT   64    /* of more ranges than this the pieces are not cut out */
#define SEARCH_MAX   200

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
    const char *text = json_string_value(name);
    if (!text || job_state_from_name(text, &state) < 0 || !job_state_is_final(state))
        return err_set(e, ERR_USAGE,
                       "'%s' is not a state of ended jobs; these are COMPLETED, "
                       "FAILED, CANCELLED, TIMEOUT, OUT_OF_MEMORY",
                       text ? text : "?");
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
        .uid = c->uid,
        .only_own = inst->places.system && inst->config.private && !c->admin,
    };
    if (members_read(params, members, out, e) < 0 ||
        read_states(json_object_get(params, "state"), &out->states, e) < 0 ||
        read_search(json_object_get(params, "search"), out, e) < 0)
        return -1;
    if (out->limit < 1 || out->limit > most)
        out->limit = most;
    return 0;
}

void
page_free(struct page *p)
{
    free(p->search);
    p->search = NULL;
}

struct found {
    const struct instance *inst;
    const struct select *select;
    uint32_t *ids; /* as found: descending */
    int64_t n, limit;
};

static int
on_found(struct job *job, const char *const *uuids, void *arg)
{
    struct found *f = arg;
    (void)uuids;
    /* One whose end is not committed yet is still in the table. */
    if (queue_get(f->inst->queue, job->id) || !select_matches(f->select, job))
        return 0;
    f->ids[f->n++] = job->id;
    return f->n == f->limit;
}

/* Those of the ranges that lie in first..last, cut; a copy that the caller frees. */
static struct store_range *
cut_ranges(const struct store_range *ranges, int n, struct store_range piece, int *n_out)
{
    struct store_range *out = xcalloc((size_t)n + 1, sizeof *out);
    *n_out = 0;
    for (int i = 0; i < n; i++) {
        struct store_range r = ranges[i];
        r.first = r.first < piece.first ? piece.first : r.first;
        r.last = r.last > piece.last ? piece.last : r.last;
        if (r.first <= r.last)
            out[(*n_out)++] = r;
    }
    return out;
}

/* One piece of ids. */
static int
walk_piece(const struct instance *inst, const struct page *p, struct select_ranges *ranges,
           struct store_range piece, struct found *found, struct err *e)
{
    int n;
    auto_free struct store_range *cut = cut_ranges(ranges->v, ranges->n, piece, &n);
    const struct store_filter f = {.ranges = cut,
                                   .n_ranges = n,
                                   .states = p->states,
                                   .since_us = p->since_us,
                                   .until_us = p->until_us,
                                   .search = p->search,
                                   .search_uid = p->uid,
                                   .has_search_uid = p->only_own,
                                   .newest_first = true};
    return n ? store_jobs_select(inst->store, &f, on_found, found, e) : 0;
}

/* From the newest down. *older: where the next page begins. */
static int
find(const struct instance *inst, const struct page *p, struct select_ranges *ranges,
     struct found *found, uint32_t *older, struct err *e)
{
    int64_t begun = clock_boot_us();
    uint32_t next = store_peek_job_id(inst->store);
    uint32_t step = ranges->n > RANGES_CUT ? UINT32_MAX : PIECE_IDS;
    if (p->before_id && p->before_id < next)
        next = p->before_id;
    while (next > 1) {
        struct store_range piece = {next > step ? next - step : 1, next - 1};
        if (walk_piece(inst, p, ranges, piece, found, e) < 0)
            return -1;
        next = found->n == found->limit ? found->ids[found->n - 1] : piece.first;
        if (found->n == found->limit || clock_boot_us() - begun > PAGE_TIME_US)
            break;
    }
    *older = next > 1 ? next : 0;
    return 0;
}

struct shown {
    select_cb cb;
    void *arg;
};

static int
on_shown(struct job *job, const char *const *uuids, void *arg)
{
    const struct shown *s = arg;
    return s->cb(job, uuids, s->arg);
}

static int
show(const struct instance *inst, const struct found *found, select_cb cb, void *arg,
     struct err *e)
{
    auto_free struct store_range *ids = xcalloc((size_t)found->n + 1, sizeof *ids);
    const struct store_filter f = {.ranges = ids, .n_ranges = (int)found->n};
    struct shown shown = {cb, arg};
    for (int64_t i = 0; i < found->n; i++)
        ids[i] = (struct store_range){found->ids[i], found->ids[i]};
    return found->n ? store_jobs_select(inst->store, &f, on_shown, &shown, e) : 0;
}

int
page_walk(const struct instance *inst, const struct select *s, const struct page *p,
          select_cb cb, void *arg, uint32_t *older, struct err *e)
{
    auto_free uint32_t *ids = xcalloc((size_t)p->limit, sizeof *ids);
    struct found found = {.inst = inst, .select = s, .ids = ids, .limit = p->limit};
    struct select_ranges ranges = {0};
    int rc = select_narrow(inst, s, &ranges, e);
    if (rc == 0) { /* they are not named by id */
        free(ranges.v);
        ranges = (struct select_ranges){0};
        select_ranges_add(&ranges, 0, UINT32_MAX);
    }
    if (rc >= 0)
        rc = find(inst, p, &ranges, &found, older, e);
    if (rc >= 0)
        rc = show(inst, &found, cb, arg, e);
    free(ranges.v);
    return rc < 0 ? -1 : 0;
}
