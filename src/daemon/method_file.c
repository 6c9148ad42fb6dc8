/* `file.sync`: a jobs file as it stands now against what is known of it.
 * Pending means: in the file, not running, not ended. So a line whose key is new becomes a
 * job, one that is pending takes the line's attributes and place, one that is gone leaves
 * the queue, and running or ended ones are not touched.
 *
 * The order of a file's pending jobs is that of its lines, within the places that they hold
 * together: a file whose lines are shuffled moves nobody else's jobs. What is asked for and
 * known is file_sync.c's. */
#include <stdlib.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/shared.h"
#include "core/account.h"
#include "core/ledger.h"
#include "core/queue.h"
#include "daemon/admit.h"
#include "daemon/daemon.h"
#include "daemon/depend.h"
#include "daemon/events.h"
#include "daemon/file_sync.h"
#include "daemon/file_upload.h"
#include "daemon/jobs.h"
#include "daemon/learned.h"
#include "daemon/methods.h"
#include "daemon/reqcontext.h"
#include "daemon/turn.h"
#include "daemon/unique.h"
#include "store/store.h"

/* --- applying
 * ------------------------------------------------------------------------------------ */

static void
add_line(struct sync *s, struct line *line)
{
    struct job *job = job_new();
    request_free(&job->req);
    job->req = line->req;
    request_init(&line->req);
    bool cancel = job->req.cancel;
    job->req.cancel = false;
    job->uid = s->caller->uid;
    job->file = s->file;
    job->line = line->number;
    job->key = xstrdup(line->key);
    reqcontext_apply(&s->context, job);
    line->job = job;
    struct err same = {0};
    bool is_second = unique_check(s->daemon, job, &same) != 0;
    jobs_add(s->daemon, job, &line->refused);
    if (line->over && !job_state_is_final(job->state)) {
        jobs_infeasible(s->daemon, job, line->over);
        line->refused = xstrdup(line->over);
    } else if (is_second && !job_state_is_final(job->state)) {
        jobs_never(s->daemon, job, same.text);
        line->refused = xstrdup(same.text);
    }
    if (cancel && !job_state_is_final(job->state))
        jobs_cancel(s->daemon, job, "the word in its line");
    s->n_new++;
}

/* A demand that was raised after an OOM stays raised until somebody declares another. */
static void
keep_raised_demand(const struct job *job, struct request *fresh)
{
    if (job->req.demand.vram_mib > job->declared_mib &&
        fresh->demand.vram_mib == job->declared_mib)
        fresh->demand.vram_mib = job->req.demand.vram_mib;
}

/* One that is learned is not said in the line. */
static void
keep_learned_demand(const struct job *job, struct request *fresh)
{
    if (job->req.vram_auto && fresh->vram_auto)
        fresh->demand.vram_mib = job->req.demand.vram_mib;
}

static void
take_request(struct sync *s, struct job *job, struct line *line)
{
    struct daemon *d = s->daemon;
    int32_t declared = line->req.demand.vram_mib;
    bool was_hold = job->req.hold, same = file_same_deps(&job->req, &line->req);
    bool same_begin = file_same_begin(&job->req, &line->req);
    auto_buf struct buf why = BUF_INIT;
    struct err e;
    keep_raised_demand(job, &line->req);
    keep_learned_demand(job, &line->req);
    if (file_same_request(&job->req, &line->req))
        return;
    if (!same)
        depend_leave(d, job);
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
    unique_refresh(d, job);
    learned_apply(d, job);
    queue_refile(d->queue, job);
    turn_save(d, job, SAVE_JOB);
    event_plain(d, "updated", job, NULL);
    s->n_updated++;
    if (job->req.hold != was_hold) {
        if (job->req.hold)
            jobs_hold(d, job, &e);
        else
            jobs_release(d, job, &e);
    }
    if (line->over)
        buf_adds(&why, line->over);
    if (line->over || !admit_could_start(d, job->uid, &job->req.demand, &why)) {
        jobs_infeasible(d, job, buf_str(&why));
        line->refused = xstrdup(buf_str(&why));
    } else if (!same && !depend_enter(d, job, &why)) {
        line->refused = xstrdup(buf_str(&why));
    }
}

static void
update_line(struct sync *s, struct line *line)
{
    struct job *job = queue_get(s->daemon->queue, line->known->job);
    line->job = job;
    if (!job || job_state_is_final(job->state))
        return;
    if (line->req.cancel) {
        jobs_cancel(s->daemon, job, "the word in its line");
        return;
    }
    if (job->state != JOB_PENDING && job->state != JOB_HELD)
        return;
    if (job->line != line->number) {
        job->line = line->number;
        turn_save(s->daemon, job, SAVE_JOB);
    }
    take_request(s, job, line);
}

static int
compare_orders(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static bool
is_waiting(const struct line *line)
{
    return line->job && (line->job->state == JOB_PENDING || line->job->state == JOB_HELD);
}

static void
reorder(struct sync *s)
{
    auto_free uint64_t *orders = xcalloc(s->n + 1, sizeof *orders);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (is_waiting(&s->lines[i]))
            orders[n++] = s->lines[i].job->order;
    qsort(orders, n, sizeof *orders, compare_orders);
    n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (!is_waiting(&s->lines[i]))
            continue;
        struct job *job = s->lines[i].job;
        uint64_t order = orders[n++];
        if (job->order == order)
            continue;
        queue_reorder(s->daemon->queue, job, order);
        turn_save(s->daemon, job, SAVE_JOB);
    }
}

/* A line that is gone takes its pending job with it; its key is free for a line to come. */
static void
remove_gone(struct sync *s)
{
    struct known *k, *next;
    s->removed = xcalloc(HASH_COUNT(s->known) + 1, sizeof *s->removed);
    HASH_ITER(hh, s->known, k, next)
    {
        struct job *job = k->in_file ? NULL : queue_get(s->daemon->queue, k->job);
        if (!job || (job->state != JOB_PENDING && job->state != JOB_HELD))
            continue;
        jobs_cancel(s->daemon, job, "an edit that removed its line");
        turn_save(s->daemon, job, SAVE_DETACH);
        s->removed[s->n_removed++] = job->id;
    }
}

/* Now that every line has a job, names become its number. */
static void
fill_deps(struct sync *s, struct line *line)
{
    struct request *r = line->job ? &line->job->req : &line->req;
    for (int i = 0; line->links && i < r->n_deps; i++) {
        if (line->links[i] < 0)
            continue;
        const struct line *to = &s->lines[line->links[i]];
        r->deps[i].job = to->job ? to->job->id : to->known->job;
    }
}

/* Those for which there is room are the first; what is gone has made some. */
static void
leave_out(struct sync *s)
{
    int64_t room = admit_room(s->daemon, s->caller->uid), n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (file_is_new(s, &s->lines[i]))
            s->lines[i].is_left = ++n > room;
    (void)admit_pending(s->daemon, s->caller->uid, n, &s->full);
}

static void
apply(struct sync *s)
{
    if (!s->is_part)
        remove_gone(s);
    if (s->fits)
        leave_out(s);
    for (size_t i = 0; i < s->n; i++)
        if (!s->lines[i].is_left && file_is_new(s, &s->lines[i]))
            add_line(s, &s->lines[i]);
    for (size_t i = 0; i < s->n; i++) {
        struct line *line = &s->lines[i];
        auto_buf struct buf why = BUF_INIT;
        fill_deps(s, line);
        if (!line->job)
            continue;
        if (!depend_enter(s->daemon, line->job, &why) && !line->refused)
            line->refused = xstrdup(buf_str(&why));
    }
    for (size_t i = 0; i < s->n; i++)
        if (!s->lines[i].job && !s->lines[i].is_left)
            update_line(s, &s->lines[i]);
    reorder(s);
}

/* --- answering
 * ------------------------------------------------------------------------------------ */

static void
write_line_answer(struct jsonw *out, const struct line *line)
{
    const struct job *job = line->job;
    jsonw_object(out);
    jsonw_kstr(out, "key", line->key);
    if (line->is_left) {
        jsonw_kbool(out, "left", true);
        jsonw_end_object(out);
        return;
    }
    jsonw_kint(out, "id", job ? job->id : line->known->job);
    jsonw_kstr(out, "state", job_state_name(job ? job->state : line->known->state));
    int status = job ? job_exit_status(job) : line->known->exit_status;
    if (status >= 0)
        jsonw_kint(out, "exit", status);
    jsonw_end_object(out);
}

static void
write_answer(const struct sync *s, struct jsonw *out)
{
    jsonw_object(out);
    jsonw_kint(out, "file", s->file);
    jsonw_kint(out, "seq", store_event_last(s->daemon->store));
    jsonw_key(out, "lines");
    jsonw_array(out);
    for (size_t i = 0; i < s->n; i++)
        write_line_answer(out, &s->lines[i]);
    jsonw_end_array(out);
    if (s->full.code)
        jsonw_kstr(out, "full", s->full.text);
    jsonw_kint(out, "new", s->n_new);
    jsonw_kint(out, "updated", s->n_updated);
    jsonw_key(out, "removed");
    jsonw_array(out);
    for (size_t i = 0; i < s->n_removed; i++)
        jsonw_int(out, s->removed[i]);
    jsonw_end_array(out);
    jsonw_key(out, "refused");
    jsonw_array(out);
    for (size_t i = 0; i < s->n; i++) {
        if (!s->lines[i].refused || s->lines[i].is_left)
            continue;
        jsonw_object(out);
        jsonw_kstr(out, "key", s->lines[i].key);
        jsonw_kint(out, "line", s->lines[i].number);
        jsonw_kstr(out, "error", s->lines[i].refused);
        jsonw_end_object(out);
    }
    jsonw_end_array(out);
    jsonw_end_object(out);
}

static int
forget_ended(struct sync *s, struct err *e)
{
    if (store_file_forget(s->daemon->store, s->file, e))
        return -1;
    file_forget_known(s);
    return 0;
}

static int64_t
count_new(const struct sync *s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += file_is_new(s, &s->lines[i]);
    return n;
}

/* Bytes that its lines add to what is kept of the user's jobs. */
static int64_t
new_text(const struct sync *s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct line *line = &s->lines[i];
        const struct job *job =
            line->known ? queue_get(s->daemon->queue, line->known->job) : NULL;
        if (job || file_is_new(s, line))
            n += request_text_bytes(&line->req) - (job ? request_text_bytes(&job->req) : 0);
    }
    return n;
}

static int
run_sync(struct sync *s, json_t *params, struct jsonw *out, struct err *e)
{
    struct daemon *d = s->daemon;
    bool more = json_is_true(json_object_get(params, "more"));
    s->is_part = json_is_true(json_object_get(params, "part"));
    s->fits = json_is_true(json_object_get(params, "fit"));
    if (daemon_accepts_work(d, e) || file_upload_take(s, params, e) < 0)
        return -1;
    if (more) {
        jsonw_object(out);
        jsonw_end_object(out);
        return 0;
    }
    if (reqcontext_read(d, params, &s->context, e) ||
        store_file_id(d->store, s->caller->uid, s->path, &s->file, e))
        return -1;
    if (json_is_true(json_object_get(params, "fresh")) && forget_ended(s, e))
        return -1;
    if (file_load_known(s, e) || file_resolve_deps(s, e) ||
        (!s->fits && admit_pending(d, s->caller->uid, count_new(s), e)) ||
        admit_text(d, s->caller->uid, new_text(s), e))
        return -1;
    apply(s);
    log_info("event=file-sync file=%u path=\"%s\" lines=%zu new=%d updated=%d removed=%zu",
             s->file, s->path, s->n, s->n_new, s->n_updated, s->n_removed);
    write_answer(s, out);
    turn_touch(d);
    return 0;
}

int
method_file_sync(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
                 struct err *e)
{
    struct sync s = {.daemon = d, .caller = c};
    int rc = run_sync(&s, params, out, e);
    file_sync_free(&s);
    return rc;
}
