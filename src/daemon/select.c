/* Selectors against jobs: see select.h. Live jobs are in the table, ended ones in the store,
 * which narrows by id and state before anything is matched by name. */
#include "daemon/select.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/queue.h"
#include "daemon/daemon.h"
#include "daemon/roles.h"
#include "store/store.h"

#define FINAL_STATES ((1u << JOB_STATES) - (1u << JOB_COMPLETED))

static int
on_newest(struct job *job, const char *const *uuids, void *arg)
{
    (void)uuids;
    *(uint32_t *)arg = job->id;
    return 1;
}

/* The newest job of this user. A job of this very turn is in the store too: not committed,
 * but the store reads its own writes only at commit, so the table is asked as well. */
static int
find_last(struct daemon *d, uid_t uid, uint32_t *out, struct err *e)
{
    const struct store_filter f = {
        .uid = uid, .has_uid = true, .limit = 1, .newest_first = true};
    size_t n;
    *out = 0;
    if (store_jobs_select(d->store, &f, on_newest, out, e))
        return -1;
    struct job **live = queue_list_by_id(d->queue, QUEUE_ALL, &n);
    for (size_t i = n; i > 0; i--) {
        if (live[i - 1]->uid != uid)
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

void
select_free(struct select *s)
{
    selector_free(&s->selector);
}

bool
select_matches(const struct select *s, const struct job *job)
{
    if (s->user && strcmp(s->user, daemon_user_name(job->uid)) != 0)
        return false;
    bool hidden = roles_is_hidden(s->daemon, job->uid); /* a name that is guessed stays so */
    return s->everything ||
           selector_matches(&s->selector, job->id, hidden ? NULL : job->req.name,
                            daemon_user_name(job->uid), job_state_name(job->state),
                            job->id == s->last_id);
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

int
select_check_ids(struct daemon *d, const struct select *s, struct err *e)
{
    auto_buf struct buf missing = BUF_INIT;
    int n = 0;
    for (size_t i = 0; i < s->selector.n_terms; i++) {
        const struct selector_term *t = &s->selector.terms[i];
        if (!is_single(t) || exists(d, t->first))
            continue;
        if (++n <= 10)
            buf_addf(&missing, "%s%u", n > 1 ? ", " : "", t->first);
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

size_t
select_live(struct daemon *d, const struct select *s, struct job ***jobs)
{
    size_t n, kept = 0;
    if (look_up(d, s, jobs, &kept))
        return kept;
    *jobs = queue_list_in_order(d->queue, QUEUE_ALL, &n);
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

/* Ids alone (and the last job) can be looked up; names, users and states need the walk. */
static bool
narrow(const struct select *s, struct store_range *ranges, int *n)
{
    *n = 0;
    if (s->everything)
        return false;
    for (size_t i = 0; i < s->selector.n_terms; i++) {
        const struct selector_term *t = &s->selector.terms[i];
        if (t->kind == SELECT_IDS)
            ranges[(*n)++] = (struct store_range){t->first, t->last};
        else if (t->kind == SELECT_LAST)
            ranges[(*n)++] = (struct store_range){s->last_id, s->last_id};
        else
            return false;
    }
    return true;
}

int
select_ended(struct daemon *d, const struct select *s, int64_t limit, select_cb cb, void *arg,
             struct err *e)
{
    struct walk w = {.daemon = d, .select = s, .cb = cb, .arg = arg};
    struct store_range *ranges = xcalloc(s->selector.n_terms + 1, sizeof *ranges);
    struct store_filter f = {.states = FINAL_STATES, .ranges = ranges, .limit = limit};
    int n;
    if (narrow(s, ranges, &n))
        f.n_ranges = n;
    int rc = store_jobs_select(d->store, &f, on_job, &w, e);
    free(ranges);
    return rc;
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
