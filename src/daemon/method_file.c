/* `file.sync`: a jobs file as it stands now against what is known of it.
 * Pending means: in the file, not running, not ended. So a line whose key is new becomes a
 * job, one that is pending takes the line's attributes and place, one that is gone leaves
 * the queue, and running or ended ones are not touched.
 *
 * The order of a file's pending jobs is that of its lines, within the places that they hold
 * together: a file whose lines are shuffled moves nobody else's jobs. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "core/account.h"
#include "core/ledger.h"
#include "core/queue.h"
#include "daemon/admit.h"
#include "daemon/daemon.h"
#include "daemon/depend.h"
#include "daemon/events.h"
#include "daemon/file_deps.h"
#include "daemon/file_sync.h"
#include "daemon/jobs.h"
#include "daemon/learned.h"
#include "daemon/methods.h"
#include "daemon/modelfile.h"
#include "daemon/reqcontext.h"
#include "daemon/reqjson.h"
#include "daemon/roles.h"
#include "daemon/turn.h"
#include "daemon/unique.h"
#include "store/store.h"

void
file_sync_free(struct sync *s)
{
    struct known *k, *next;
    for (size_t i = 0; i < s->n; i++) {
        request_free(&s->lines[i].req);
        free(s->lines[i].refused);
        free(s->lines[i].over);
        free(s->lines[i].links);
    }
    free(s->lines);
    free(s->removed);
    HASH_ITER(hh, s->known, k, next)
    {
        HASH_DEL(s->known, k);
        free(k);
    }
}

/* --- reading
 * ------------------------------------------------------------------------------------ */

static int
read_line(const struct sync *s, const json_t *j, const struct models *models, int default_oom,
          struct line *line, struct err *e)
{
    const struct daemon *d = s->daemon;
    static const char *const ours[] = {"key", "line", "again", NULL};
    line->key = json_string_value(json_object_get(j, "key"));
    line->number = (int32_t)json_integer_value(json_object_get(j, "line"));
    line->again = json_is_true(json_object_get(j, "again"));
    if (!line->key || !line->key[0] || strlen(line->key) >= sizeof((struct known *)0)->key)
        return err_set(e, ERR_USAGE, "a line needs a \"key\" of 1 to 63 bytes");
    if (reqjson_read(j, ours, models, &line->req, e) ||
        roles_check_priority(d, line->req.priority, e))
        return err_prefix(e, "line %d", line->number);
    if (admit_time(d, &line->req, e)) {
        if (!s->fits)
            return err_prefix(e, "line %d", line->number);
        line->over = xstrdup(e->text);
    }
    if (line->req.array.n)
        return err_set(e, ERR_USAGE, "line %d: a line is one job, and no array", line->number);
    if (s->fits && line->req.n_deps)
        return err_set(e, ERR_USAGE, "line %d: \"fit\" and \"after\" exclude each other",
                       line->number);
    /* The larger of the two, as a line can only ask for more than the run does. */
    if (line->req.oom_retries < default_oom)
        line->req.oom_retries = default_oom;
    admit_unsaid(d, &line->req);
    return 0;
}

int
file_read_lines(struct sync *s, const json_t *params, struct err *e)
{
    const json_t *list = json_object_get(params, "jobs"), *j;
    const struct models *models = modelfile_current(s->daemon);
    const json_t *oom = json_object_get(params, "oom_retries");
    int default_oom = oom ? (int)json_integer_value(oom) : -1;
    size_t i;
    s->path = json_string_value(json_object_get(params, "path"));
    if (!s->path || s->path[0] != '/')
        return err_set(e, ERR_USAGE, "\"path\" must be an absolute path");
    if (strlen(s->path) >= PATH_MAX)
        return err_set(e, ERR_USAGE, "\"path\" is %zu bytes long; the most is %d",
                       strlen(s->path), PATH_MAX - 1);
    if (!json_is_array(list))
        return err_set(e, ERR_USAGE, "\"jobs\" must be a list");
    s->lines = xcalloc(json_array_size(list) + 1, sizeof *s->lines);
    json_array_foreach(list, i, j)
    {
        s->n = i + 1;
        request_init(&s->lines[i].req);
        if (read_line(s, j, models, default_oom, &s->lines[i], e))
            return -1;
    }
    return 0;
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

/* Its line is gone, which the store does not know before the commit. */
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

static int
on_key(const struct store_key *x, void *arg)
{
    struct known *k = known_put(arg, x->key);
    k->job = x->job;
    k->state = x->state;
    k->exit_status = job_state_is_final(x->state) ? exit_status_of(x) : -1;
    return 0;
}

/* Joins the lines with what is known of their keys; a new key is entered too, so that its
 * second appearance is seen. */
static int
match_lines(struct sync *s, struct err *e)
{
    for (size_t i = 0; i < s->n; i++) {
        struct line *line = &s->lines[i];
        struct known *k = known_put(s, line->key);
        if (k->in_file)
            return err_set(e, ERR_USAGE, "the key %s comes twice", line->key);
        k->in_file = true;
        line->known = k->job ? k : NULL;
    }
    return 0;
}

/* The store knows every job of the file that has been committed; what happened since in this
 * turn is known to the table only. */
int
file_load_known(struct sync *s, struct err *e)
{
    struct queue *q = s->daemon->queue;
    size_t n;
    if (store_file_keys(s->daemon->store, s->file, on_key, s, e))
        return -1;
    auto_free struct job **live = queue_list_by_id(q, QUEUE_ALL, &n);
    for (size_t i = 0; i < n; i++) {
        const struct job *job = live[i];
        if (job->file != s->file || !job->key)
            continue;
        if (job->unsaved & SAVE_DETACH) {
            known_drop(s, job);
            continue;
        }
        struct known *k = known_put(s, job->key);
        k->job = job->id;
        k->state = job->state;
        k->exit_status = job_state_is_final(job->state) ? job_exit_status(job) : -1;
    }
    return match_lines(s, e);
}

int
file_resolve_deps(struct sync *s, struct err *e)
{
    auto_free struct file_dep_line *lines = xcalloc(s->n + 1, sizeof *lines);
    for (size_t i = 0; i < s->n; i++)
        lines[i] = (struct file_dep_line){&s->lines[i].req, s->lines[i].number, NULL};
    int rc = file_deps_resolve(s->daemon, s->caller->uid, lines, s->n, e);
    for (size_t i = 0; i < s->n; i++)
        s->lines[i].links = lines[i].links;
    return rc;
}

/* --- applying
 * ------------------------------------------------------------------------------------ */

bool
file_is_new(const struct sync *s, const struct line *line)
{
    if (!line->known || (line->again && job_state_is_final(line->known->state)))
        return true;
    return line->known->state == JOB_INFEASIBLE && !line->req.cancel && !line->over &&
           admit_could_start(s->daemon, s->caller->uid, &line->req.demand, NULL);
}

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
    int64_t begin_us = job->req.begin_us;
    auto_buf struct buf why = BUF_INIT;
    struct err e;
    keep_raised_demand(job, &line->req);
    keep_learned_demand(job, &line->req);
    if (file_same_request(&job->req, &line->req))
        return;
    if (!same)
        depend_leave(d, job);
    request_free(&job->req);
    job->req = line->req;
    request_init(&line->req);
    job->req.cancel = false;
    job->declared_mib = declared;
    if (!begin_us != !job->req.begin_us)
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
    struct known *k, *next;
    if (store_file_forget(s->daemon->store, s->file, e))
        return -1;
    HASH_ITER(hh, s->known, k, next)
    {
        HASH_DEL(s->known, k);
        free(k);
    }
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

static int64_t
new_text(const struct sync *s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += file_is_new(s, &s->lines[i]) ? admit_text_of(&s->lines[i].req) : 0;
    return n;
}

static int
run_sync(struct sync *s, json_t *params, struct jsonw *out, struct err *e)
{
    struct daemon *d = s->daemon;
    s->is_part = json_is_true(json_object_get(params, "part"));
    s->fits = json_is_true(json_object_get(params, "fit"));
    if (file_read_lines(s, params, e) || daemon_accepts_work(d, e) ||
        reqcontext_read(d, params, &s->context, e) ||
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
