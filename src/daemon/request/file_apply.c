/* Turns the lines of a jobs file into jobs; see file_apply.h. Called by method_file.c. */
#include "daemon/request/file_apply.h"

#include <stdlib.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/counted_text.h"
#include "base/err.h"
#include "core/queue/endings.h"
#include "core/queue/queue.h"
#include "daemon/common/caller.h"
#include "daemon/request/admit.h"
#include "daemon/request/file_sync.h"
#include "daemon/state/depend_turns.h"
#include "daemon/state/job_facts.h"
#include "daemon/state/learned_demands.h"
#include "daemon/state/state.h"
#include "daemon/state/unique.h"
#include "store/store.h"

/* Jobs changed per piece: writing a job takes three times as long as changing it. */
#define PIECE 500

/* Records the line's part of the answer; later changes are reported as events. */
static void
has_become(struct line *line, const struct job *job)
{
    line->job = job->id;
    line->state = job->state;
    line->exit_status = job_exit_status(job);
}

/* Resolves the line's links; the lines they mean have been applied already. */
static void
fill_deps(const struct sync *s, struct line *line)
{
    for (int i = 0; line->links && i < line->req.n_deps; i++) {
        const struct line *to = line->links[i] >= 0 ? &s->lines[line->links[i]] : NULL;
        if (to)
            depend_on_line(s->state, &line->req.deps[i], to->job, to->state);
    }
}

static void
add_line(struct sync *s, struct line *line)
{
    auto_buf struct buf why = BUF_INIT;
    struct job *job = job_new();
    request_free(&job->req);
    job->req = line->req;
    request_init(&line->req);
    bool cancel = job->req.cancel;
    job->req.cancel = false;
    job->uid = s->uid;
    job->file = s->file;
    job->line = line->number;
    job->key = xstrdup(line->key);
    if (line->place) {
        job->id = line->job;
        job->order = line->place;
    }
    reqcontext_apply(&s->context, job);
    struct err same = {0};
    bool is_second = unique_check(s->state, job, &same) < 0;
    jobs_add(s->state, job, &line->refused);
    if (line->over && !job_state_is_final(job->state)) {
        jobs_infeasible(s->state, job, line->over);
        line->refused = xstrdup(line->over);
    } else if (is_second && !job_state_is_final(job->state)) {
        jobs_never(s->state, job, same.text);
        line->refused = xstrdup(same.text);
    }
    if (cancel && !job_state_is_final(job->state))
        jobs_cancel(s->state, job, "the word in its line");
    if (!depend_enter(s->state, job, &why) && !line->refused)
        line->refused = xstrdup(buf_str(&why));
    has_become(line, job);
    s->n_new++;
    s->n_more--;
    s->n_changed++;
}

/* A demand raised after an OOM stays raised until the user declares another. */
static void
keep_raised_demand(const struct job *job, struct request *fresh)
{
    if (job->req.demand.vram_mib > job->declared_mib &&
        fresh->demand.vram_mib == job->declared_mib)
        fresh->demand.vram_mib = job->req.demand.vram_mib;
}

/* Keeps a learned demand, because the line does not have it. */
static void
keep_learned_demand(const struct job *job, struct request *fresh)
{
    if (job->req.vram_auto && fresh->vram_auto)
        fresh->demand.vram_mib = job->req.demand.vram_mib;
}

static bool
is_same_name(const struct request *a, const struct request *b)
{
    return a->singleton == b->singleton &&
           strcmp(a->name ? a->name : "", b->name ? b->name : "") == 0;
}

static void
take_request(struct sync *s, struct job *job, struct line *line)
{
    struct state *state = s->state;
    int32_t declared = line->req.demand.vram_mib;
    bool was_hold = job->req.hold, same = file_same_deps(&job->req, &line->req);
    bool same_name = is_same_name(&job->req, &line->req);
    bool same_begin = file_same_begin(&job->req, &line->req);
    auto_buf struct buf why = BUF_INIT;
    struct err e;
    keep_raised_demand(job, &line->req);
    keep_learned_demand(job, &line->req);
    if (file_same_request(&job->req, &line->req))
        return;
    if (!same)
        depend_leave(state, job);
    for (int i = 0; same && i < job->req.n_deps; i++) /* met dependencies stay met */
        line->req.deps[i].ended = job->req.deps[i].ended;
    if (same_begin)
        line->req.begin_us = job->req.begin_us;
    if (line->req.chdir || job->req.chdir) {
        shared_free(job->cwd);
        job->cwd = shared_new(line->req.chdir ? line->req.chdir : s->context.cwd);
    }
    request_free(&job->req);
    job->req = line->req;
    request_init(&line->req);
    job->req.cancel = false;
    job->declared_mib = declared;
    if (!same_begin)
        job->begin_us = job->req.begin_us;
    unique_refresh(state, job);
    learned_apply(state, job);
    queue_refile(state->queue, job);
    state_save(state, job, SAVE_JOB);
    state_note(state, CHANGE_UPDATED, job);
    s->n_updated++;
    s->n_changed++;
    if (job->req.hold != was_hold) {
        if (job->req.hold)
            jobs_hold(state, job, &e);
        else
            jobs_release(state, job, &e);
    }
    if (line->over)
        buf_adds(&why, line->over);
    if (line->over || !state_could_start(state, job->uid, &job->req.demand, &why)) {
        jobs_infeasible(state, job, buf_str(&why));
        line->refused = xstrdup(buf_str(&why));
    } else if ((!same && !depend_enter(state, job, &why)) ||
               (same && !same_name && !depend_renamed(state, job, &why))) {
        line->refused = xstrdup(buf_str(&why));
    }
}

static void
update_job(struct sync *s, struct line *line, struct job *job)
{
    if (job_state_is_final(job->state))
        return;
    if (line->req.cancel) {
        jobs_cancel(s->state, job, "the word in its line");
        s->n_changed++;
        return;
    }
    if (job->state != JOB_PENDING && job->state != JOB_HELD)
        return;
    if (job->line != line->number) {
        job->line = line->number;
        state_save(s->state, job, SAVE_JOB);
        s->n_changed++;
    }
    take_request(s, job, line);
}

/* For a job that an earlier daemon made for this request and that can never start: reports
 * that, because it has not been answered yet. */
static void
tell_refusal(const struct sync *s, struct line *line)
{
    struct err unused;
    if (!s->is_resumed || line->job < s->first_job || !job_state_is_final(line->state))
        return;
    struct job *job = store_job_load(s->store, line->job, &unused);
    if (job && job->never_text && !line->refused)
        line->refused = xstrdup(job->never_text);
    job_free(job);
}

static void
update_line(struct sync *s, struct line *line)
{
    const struct known *k = line->known;
    struct job *job = queue_get(s->state->queue, k->job);
    if (job) {
        update_job(s, line, job);
        has_become(line, job);
        return;
    }
    line->job = k->job;
    line->state = k->state;
    line->exit_status = k->exit_status;
    tell_refusal(s, line);
}

static bool
is_over(const struct sync *s, int64_t until_us)
{
    return s->n_changed >= PIECE || clock_boot_us() >= until_us;
}

/* --- removed lines --- */

/* Cancels the job and frees its key for a future line. */
static void
remove_job(struct sync *s, struct job *job)
{
    jobs_cancel(s->state, job, "an edit that removed its line");
    state_save(s->state, job, SAVE_DETACH);
    ids_add(&s->removed, job->id);
    s->n_changed++;
}

int
file_apply_removed(struct sync *s, int64_t until_us)
{
    if (s->is_part)
        return WORK_DONE;
    if (!s->walks_gone) {
        s->walks_gone = true;
        s->gone_next = s->known;
    }
    while (s->gone_next) {
        const struct known *k = s->gone_next;
        struct job *job = k->in_file ? NULL : queue_get(s->state->queue, k->job);
        s->gone_next = k->hh.next;
        if (job && (job->state == JOB_PENDING || job->state == JOB_HELD))
            remove_job(s, job);
        if (is_over(s, until_us))
            return WORK_MORE;
    }
    return WORK_DONE;
}

/* --- present lines --- */

/* Assigns ids and places in file order, whatever order the lines become jobs in. */
static void
give_places(struct sync *s)
{
    const struct past *past = s->state->past;
    for (size_t i = 0; i < s->n; i++) {
        struct line *line = &s->lines[i];
        if (!file_is_new(s, line))
            continue;
        line->job = past->next_job_id(past->arg);
        line->place = past->next_order(past->arg);
    }
}

/* The first lines get the room that is left, including what removed lines have freed. */
static bool
is_left_out(struct sync *s)
{
    return s->fits && s->room-- <= 0;
}

static void
apply_line(struct sync *s, struct line *line)
{
    bool is_new = file_is_new(s, line);
    s->more_text -= file_more_text(s, line);
    if (is_new || queue_get(s->state->queue, line->known->job))
        fill_deps(s, line);
    if (!is_new)
        update_line(s, line);
    else if (is_left_out(s))
        line->is_left = true;
    else
        add_line(s, line);
}

int
file_apply_lines(struct sync *s, int64_t until_us)
{
    if (s->at == 0 && s->order)
        give_places(s);
    if (s->at == 0 && s->fits) {
        s->room = admit_room(s->admission, s->uid);
        (void)admit_pending(s->admission, s->uid, s->n_new_lines, &s->full);
        s->n_more = s->n_new_lines < s->room ? s->n_new_lines : s->room;
    }
    while (s->at < s->n) {
        size_t i = s->at++;
        apply_line(s, &s->lines[s->order ? (size_t)s->order[i] : i]);
        if (is_over(s, until_us))
            return WORK_MORE;
    }
    return WORK_DONE;
}

/* --- order --- */

/* Two tables in one, both by index: the waiting jobs in file order, and the places in the
 * queue that they occupy. place_of and job_at are inverse. A job that has started meanwhile
 * stays in the tables but is not moved; its place stays unused. */
struct ranked {
    uint32_t job;
    size_t place_of; /* of this job: index of its place */
    uint64_t place;
    size_t job_at; /* of this place: index of its job */
};

static bool
is_waiting(const struct job *job)
{
    return job && (job->state == JOB_PENDING || job->state == JOB_HELD);
}

static int
compare_places(const void *a, const void *b)
{
    uint64_t x = ((const struct ranked *)a)->place, y = ((const struct ranked *)b)->place;
    return x < y ? -1 : x > y;
}

static void
rank(struct sync *s)
{
    auto_free uint32_t *jobs = xcalloc(s->n + 1, sizeof *jobs);
    struct ranked *x = xcalloc(s->n + 1, sizeof *x);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct job *job = queue_get(s->state->queue, s->lines[i].job);
        if (s->lines[i].is_left || !is_waiting(job))
            continue;
        jobs[n] = job->id;
        x[n] = (struct ranked){.place = job->order, .job_at = n};
        n++;
    }
    qsort(x, n, sizeof *x, compare_places);
    for (size_t i = 0; i < n; i++) {
        x[i].job = jobs[i];
        x[x[i].job_at].place_of = i;
    }
    s->ranked = x;
    s->n_ranked = n;
}

/* No-op if the job has started since, or was moved. */
static void
move(struct sync *s, uint32_t id, uint64_t from, uint64_t to)
{
    struct job *job = queue_get(s->state->queue, id);
    if (!is_waiting(job) || job->order != from)
        return;
    queue_reorder(s->state->queue, job, to);
    state_save(s->state, job, SAVE_JOB);
    s->n_changed++;
}

/* Swaps places so that the i-th job gets the i-th place. So between two pieces no two jobs
 * have the same place. */
static void
put_in_place(struct sync *s, size_t i)
{
    struct ranked *x = s->ranked;
    size_t old = x[i].place_of, other = x[i].job_at;
    if (old == i)
        return;
    move(s, x[i].job, x[old].place, x[i].place);
    move(s, x[other].job, x[i].place, x[old].place);
    x[old].job_at = other;
    x[other].place_of = old;
}

int
file_apply_order(struct sync *s, int64_t until_us)
{
    if (!s->ranked)
        rank(s);
    while (s->at < s->n_ranked) {
        put_in_place(s, s->at++);
        if (is_over(s, until_us))
            return WORK_MORE;
    }
    return WORK_DONE;
}
