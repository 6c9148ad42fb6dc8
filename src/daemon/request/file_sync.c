/* A jobs file as sent, matched with the jobs known for its keys; see file_sync.h. Changes
 * no job. */
#include "daemon/request/file_sync.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/clock.h"
#include "base/err.h"
#include "core/queue/endings.h"
#include "core/queue/queue.h"
#include "daemon/common/caller.h"
#include "daemon/request/file_deps.h"
#include "daemon/state/state.h"
#include "store/store.h"

#define GLANCE 64 /* keys between looks at the clock */

static void
forget_known(struct sync *s)
{
    struct known *k = s->known, *next;
    HASH_CLEAR(hh, s->known);
    for (; k; k = next) {
        next = k->hh.next;
        free(k);
    }
}

static void
line_free(struct line *line)
{
    request_free(&line->req);
    free(line->key);
    free(line->refused);
    free(line->over);
    free(line->links);
}

int
file_sync_clear(struct sync *s, int64_t until_us)
{
    while (s->n > 0) {
        line_free(&s->lines[--s->n]);
        if (s->n % GLANCE == 0 && clock_boot_us() >= until_us)
            return WORK_MORE;
    }
    return WORK_DONE;
}

void
file_sync_free(struct sync *s)
{
    (void)file_sync_clear(s, INT64_MAX);
    free(s->lines);
    free(s->order);
    free(s->deps);
    free(s->note);
    ids_free(&s->removed);
    free(s->ranked);
    forget_known(s);
}

static struct known *
known_put(struct sync *s, const char *key)
{
    struct known *k;
    HASH_FIND_STR(s->known, key, k);
    if (!k) {
        k = xcalloc(1, sizeof *k);
        snprintf(k->key, sizeof k->key, "%s", key);
        HASH_ADD_STR(s->known, key, k);
    }
    return k;
}

/* The job is detached from its line, which the store knows only after the commit. */
static void
known_drop(struct sync *s, const struct job *job)
{
    struct known *k;
    HASH_FIND_STR(s->known, job->key, k);
    if (!k || k->job != job->id)
        return;
    HASH_DEL(s->known, k);
    free(k);
}

static int
exit_status_of(const struct store_key *x)
{
    struct attempt run = {
        .ending = {.outcome = x->outcome, .code = x->code, .signal = x->signal}};
    const struct job job = {.state = x->state, .run = &run};
    return job_exit_status(&job);
}

/* --- known jobs --- */

struct loading {
    struct sync *sync;
    int64_t until_us;
    int n;
};

static int
on_key(const struct store_key *x, void *arg)
{
    struct loading *l = arg;
    const struct sync *s = l->sync;
    bool late = ++l->n % GLANCE == 0 && clock_boot_us() >= l->until_us;
    if (s->is_fresh && job_state_is_final(x->state) && x->job < s->first_job)
        return late;
    struct known *k = known_put(l->sync, x->key);
    k->job = x->job;
    k->state = x->state;
    k->exit_status = job_state_is_final(x->state) ? exit_status_of(x) : -1;
    return late;
}

static void
on_unsaved(const struct job *job, void *arg)
{
    struct sync *s = arg;
    if (job->file != s->file || !job->key)
        return;
    if (job->unsaved & SAVE_DETACH) {
        known_drop(s, job);
        return;
    }
    struct known *k = known_put(s, job->key);
    if (k->job < job->id)
        k->job = job->id;
}

/* Live jobs are more recent than the store, which does not get every step. */
static void
look_at_live(const struct sync *s, struct known *k)
{
    const struct job *job = queue_get(s->state->queue, k->job);
    if (!job)
        return;
    k->state = job->state;
    k->exit_status = job_state_is_final(job->state) ? job_exit_status(job) : -1;
}

/* Matches the line with what is known of its key. Enters a new key too, to detect a second
 * line with it. */
static int
match(struct sync *s, struct line *line, struct err *e)
{
    struct known *k = known_put(s, line->key);
    if (k->in_file)
        return err_set(e, ERR_USAGE, "the key %s is given twice", line->key);
    k->in_file = true;
    if (!k->job)
        return 0;
    line->known = k;
    look_at_live(s, k);
    return 0;
}

/* The store has every committed job of the file; what has happened since in this turn is only
 * in memory. A later piece finds that in the store, or removed from it. */
int
file_load_known(struct sync *s, int64_t until_us, struct err *e)
{
    struct loading l = {.sync = s, .until_us = until_us};
    if (!s->all_loaded) {
        int rc = store_file_keys(s->store, s->file, &s->loaded, on_key, &l, e);
        if (rc < 0)
            return -1;
        changes_each_unsaved(&s->state->changes, on_unsaved, s);
        s->all_loaded = rc == 0;
        if (rc > 0)
            return WORK_MORE;
    }
    while (s->n_matched < s->n) {
        if (match(s, &s->lines[s->n_matched++], e) < 0)
            return -1;
        if (s->n_matched % GLANCE == 0 && clock_boot_us() >= until_us)
            return WORK_MORE;
    }
    return WORK_DONE;
}

/* False: no line has dependencies. */
static bool
link_lines(struct sync *s)
{
    s->deps = xcalloc(s->n + 1, sizeof *s->deps);
    for (size_t i = 0; i < s->n; i++) {
        struct line *line = &s->lines[i];
        const struct known *k = file_is_new(s, line) ? NULL : line->known;
        s->deps[i] = (struct file_dep_line){.req = &line->req,
                                            .number = line->number,
                                            .job = k ? k->job : 0,
                                            .has_ended = k && job_state_is_final(k->state)};
    }
    bool some = file_deps_link(s->deps, s->n);
    for (size_t i = 0; i < s->n; i++)
        s->lines[i].links = s->deps[i].links;
    return some;
}

int
file_resolve_deps(struct sync *s, int64_t until_us, struct err *e)
{
    if (!s->deps && !link_lines(s))
        return WORK_DONE;
    while (s->n_resolved < s->n) {
        struct file_dep_line *line = &s->deps[s->n_resolved++];
        if (file_deps_resolve(s->state, s->uid, line, e) < 0)
            return -1;
        if (s->n_resolved % GLANCE == 0 && clock_boot_us() >= until_us)
            return WORK_MORE;
    }
    return file_deps_put_in_order(s->deps, s->n, &s->order, e) ? -1 : WORK_DONE;
}

/* An ended job runs again once per request, but not again when the same request
 * is repeated. */
static bool
is_to_run_again(const struct sync *s, const struct line *line)
{
    const struct known *k = line->known;
    if (!line->again || !job_state_is_final(k->state) ||
        (s->first_job && k->job >= s->first_job))
        return false;
    const struct job *job = queue_get(s->state->queue, k->job);
    return !job || job_state_is_final(job->state);
}

bool
file_is_new(const struct sync *s, const struct line *line)
{
    if (!line->known || is_to_run_again(s, line))
        return true;
    return line->known->state == JOB_INFEASIBLE && !line->req.cancel && !line->over &&
           state_could_start(s->state, s->uid, &line->req.demand, NULL);
}

int64_t
file_more_text(const struct sync *s, const struct line *line)
{
    const struct job *job = line->known ? queue_get(s->state->queue, line->known->job) : NULL;
    if (!job && !file_is_new(s, line))
        return 0;
    return request_text_bytes(&line->req) - (job ? request_text_bytes(&job->req) : 0);
}
