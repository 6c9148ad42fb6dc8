/* `file.sync`: compares a jobs file as it is now with what is known of it. Pending means: in
 * the file, not running, not ended. So a line with a new key becomes a job, a pending job
 * takes its line's attributes and place, a pending job whose line is gone leaves the queue,
 * and running or ended jobs are not touched.
 *
 * The pending jobs of a file are ordered as its lines, within the places in the queue that
 * they hold together: shuffling the lines of a file moves no other jobs. file_sync.c holds
 * what is requested and known, file_apply.c makes the changes.
 *
 * A long file is processed in pieces (long_work.h), each durable before the next. If the
 * daemon dies and the request is repeated, it continues where it was: lines that have become
 * jobs are recognised by their keys. Only requests to run ended lines again (`fresh`, `again`)
 * would be carried out twice; so a note in the store gives the job id from which on all jobs
 * come from this very request. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "daemon/attempt/job_confines.h"
#include "daemon/common/instance.h"
#include "daemon/common/turn_due.h"
#include "daemon/common/user_names.h"
#include "daemon/request/admit.h"
#include "daemon/request/file_apply.h"
#include "daemon/request/file_sync.h"
#include "daemon/request/file_upload.h"
#include "daemon/request/request_context.h"
#include "daemon/rpc/long_work.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "store/store.h"

#define FORGET_MOST 500 /* jobs per piece; ended jobs are then ignored */
#define GLANCE      64  /* lines between two checks of the clock */

/* The request. */
struct asked {
    struct rpc *rpc;
    struct sync sync;
    bool has_read;
};

/* --- before anything is changed --- */

/* True if an earlier request is working on the same file. */
static bool
has_to_wait(const struct sync *s)
{
    const struct sync *x = s->admission->syncs;
    while (x != s && x->file != s->file)
        x = x->next;
    return x != s;
}

static int
take_turn(struct sync *s, struct jsonw *out, int64_t until_us, struct err *e)
{
    (void)out, (void)until_us, (void)e;
    if (has_to_wait(s))
        return WORK_MORE;
    if (!s->first_job) {
        s->first_job = store_peek_job_id(s->store);
        s->seq = store_event_last(s->store);
    }
    return WORK_DONE;
}

static int
load(struct sync *s, struct jsonw *out, int64_t until_us, struct err *e)
{
    (void)out;
    int rc = file_load_known(s, until_us, e);
    return rc == WORK_DONE ? file_resolve_deps(s, until_us, e) : rc;
}

/* Admits all new lines or none, except with `fit`, where file_apply.c counts them. Admitted
 * lines count against the limits from now on, though they are not in the queue yet. */
static int
admit(struct sync *s, struct jsonw *out, int64_t until_us, struct err *e)
{
    (void)out;
    while (s->at < s->n) {
        const struct line *line = &s->lines[s->at++];
        bool is_new = file_is_new(s, line);
        s->n_new_lines += is_new;
        if (is_new && !s->note)
            s->note = confines_unenforced(s->attempts, &line->req.demand);
        s->new_text += file_more_text(s, line);
        if (s->at % GLANCE == 0 && clock_boot_us() >= until_us)
            return WORK_MORE;
    }
    if ((!s->fits && admit_pending(s->admission, s->uid, s->n_new_lines, e) < 0) ||
        admit_text(s->admission, s->uid, s->new_text, e) < 0)
        return -1;
    s->n_more = s->fits ? 0 : s->n_new_lines;
    s->more_text = s->new_text;
    return WORK_DONE;
}

/* --- changes --- */

/* `fresh`: ended jobs no longer count for the file's lines. */
static int
forget_ended(struct sync *s, struct jsonw *out, int64_t until_us, struct err *e)
{
    (void)out, (void)until_us;
    if (s->has_forgotten || !s->is_fresh)
        return WORK_DONE;
    int rc = store_file_forget(s->store, s->file, &s->forget_at, FORGET_MOST, e);
    s->has_forgotten_some = true;
    s->has_forgotten = rc == 0;
    return rc < 0 ? -1 : rc > 0 ? WORK_MORE : WORK_DONE;
}

/* Runs after forget_ended, which may make room. Lines that an earlier daemon had admitted stay
 * admitted. */
static int
admit_new_lines(struct sync *s, struct jsonw *out, int64_t until_us, struct err *e)
{
    (void)out, (void)until_us;
    if (s->n_new_lines == 0 || s->is_resumed || admit_lines(s->admission, s->uid, e) == 0)
        return WORK_DONE;
    return -1;
}

static int
remove_gone(struct sync *s, struct jsonw *out, int64_t until_us, struct err *e)
{
    (void)out, (void)e;
    return file_apply_removed(s, until_us);
}

static int
change_lines(struct sync *s, struct jsonw *out, int64_t until_us, struct err *e)
{
    (void)out, (void)e;
    return file_apply_lines(s, until_us);
}

static int
put_in_order(struct sync *s, struct jsonw *out, int64_t until_us, struct err *e)
{
    (void)out, (void)e;
    return file_apply_order(s, until_us);
}

/* --- the answer --- */

static void
write_line(struct jsonw *out, const struct line *line)
{
    jsonw_object(out);
    jsonw_kstr(out, "key", line->key);
    if (line->is_left) {
        jsonw_kbool(out, "left", true);
        jsonw_end_object(out);
        return;
    }
    jsonw_kint(out, "id", line->job);
    jsonw_kstr(out, "state", job_state_name(line->state));
    if (line->exit_status >= 0)
        jsonw_kint(out, "exit", line->exit_status);
    jsonw_end_object(out);
}

static int
write_lines(struct sync *s, struct jsonw *out, int64_t until_us, struct err *e)
{
    (void)e;
    if (s->at == 0) {
        jsonw_object(out);
        jsonw_kint(out, "file", s->file);
        jsonw_kint(out, "seq", s->seq);
        jsonw_karray(out, "lines");
    }
    while (s->at < s->n) {
        write_line(out, &s->lines[s->at++]);
        if (s->at % GLANCE == 0 && clock_boot_us() >= until_us)
            return WORK_MORE;
    }
    jsonw_end_array(out);
    return WORK_DONE;
}

static void
write_removed(const struct sync *s, struct jsonw *out)
{
    if (s->full.code)
        jsonw_kstr(out, "full", s->full.text);
    if (s->note)
        jsonw_kstr(out, "note", s->note);
    jsonw_kint(out, "new", s->n_new);
    jsonw_kint(out, "updated", s->n_updated);
    jsonw_karray(out, "removed");
    for (size_t i = 0; i < s->removed.n; i++)
        jsonw_int(out, s->removed.v[i]);
    jsonw_end_array(out);
}

static int
write_refused(struct sync *s, struct jsonw *out, int64_t until_us, struct err *e)
{
    (void)e;
    if (s->at == 0) {
        write_removed(s, out);
        jsonw_karray(out, "refused");
    }
    while (s->at < s->n) {
        const struct line *line = &s->lines[s->at++];
        if (line->refused && !line->is_left) {
            jsonw_object(out);
            jsonw_kstr(out, "key", line->key);
            jsonw_kint(out, "line", line->number);
            jsonw_kstr(out, "error", line->refused);
            jsonw_end_object(out);
        }
        if (s->at % GLANCE == 0 && clock_boot_us() >= until_us)
            return WORK_MORE;
    }
    jsonw_end_array(out);
    jsonw_end_object(out);
    log_info("event=file-sync file=%u path=\"%s\" lines=%zu new=%d updated=%d removed=%zu",
             s->file, s->path, s->n, s->n_new, s->n_updated, s->removed.n);
    return WORK_DONE;
}

static int
clear(struct sync *s, struct jsonw *out, int64_t until_us, struct err *e)
{
    (void)out, (void)e;
    return file_sync_clear(s, until_us);
}

/* --- the request --- */

/* Finds the file's number; a new path is stored too. */
static int
find_file(struct sync *s, struct err *e)
{
    struct store *store = s->store;
    if (store_file_find(store, s->uid, s->path, &s->file, e) < 0)
        return -1;
    if (s->file)
        return 0;
    return admit_lines(s->admission, s->uid, e) < 0
               ? -1
               : store_file_id(store, s->uid, s->path, &s->file, e);
}

static void
enter(struct sync *s)
{
    struct sync **at = &s->admission->syncs;
    while (*at)
        at = &(*at)->next;
    *at = s;
}

/* Reads its lines and the number of the file. */
static int
read_all(struct asked *a, const struct caller *c, int64_t until_us, struct err *e)
{
    struct sync *s = &a->sync;
    int rc = file_upload_read(a->rpc->uploads, c, s, s->params, until_us, e);
    if (rc != WORK_DONE)
        return rc;
    if (find_file(s, e) < 0)
        return -1;
    a->has_read = true;
    enter(s);
    return WORK_DONE;
}

typedef int (*phase_fn)(struct sync *s, struct jsonw *out, int64_t until_us, struct err *e);

static int
step(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out, int64_t until_us,
     struct err *e)
{
    static const phase_fn phases[] = {
        take_turn,       load,          admit,        forget_ended,
        admit_new_lines, remove_gone,   change_lines, put_in_order,
        write_lines,     write_refused, clear};
    struct asked *a = arg;
    struct sync *s = &a->sync;
    int rc = a->has_read ? WORK_DONE : read_all(a, c, until_us, e);
    s->context.user = users_name(c->uid);
    s->n_changed = 0;
    s->has_forgotten_some = false;
    while (rc == WORK_DONE && s->phase < (int)(sizeof phases / sizeof phases[0])) {
        rc = phases[s->phase](s, out, until_us, e);
        if (rc != WORK_DONE)
            break;
        s->phase++;
        s->at = 0;
    }
    if (s->n_changed > 0)
        turn_touch(rpc->inst);
    if (s->has_forgotten_some)
        turn_touch_unplanned(rpc->inst);
    return rc;
}

/* Step of a request that holds only part of the file. */
static int
keep_step(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out,
          int64_t until_us, struct err *e)
{
    struct asked *asked = arg;
    return file_upload_part(rpc->uploads, c, &asked->sync, until_us, out, e);
}

static size_t
n_done(const void *arg)
{
    const struct sync *s = &((const struct asked *)arg)->sync;
    return (size_t)(s->n_new + s->n_updated) + s->removed.n;
}

/* Saves where the request began, and its counts so far. */
static void
so_far(void *arg, struct buf *out)
{
    struct sync *s = &((struct asked *)arg)->sync;
    if (!s->first_job || (s->is_kept && s->n_changed == 0)) /* it has only waited or compared */
        return;
    s->is_kept = true;
    buf_addf(out, "%u %lld %d %d %d;", s->first_job, (long long)s->seq, s->has_forgotten,
             s->n_new, s->n_updated);
    ids_save(&s->removed, out);
}

static void
resume(void *arg, const char *text)
{
    struct sync *s = &((struct asked *)arg)->sync;
    unsigned first_job;
    long long seq;
    int has_forgotten, n_new, n_updated, end = 0;
    if (sscanf(text, "%u %lld %d %d %d;%n", &first_job, &seq, &has_forgotten, &n_new,
               &n_updated, &end) != 5 ||
        end == 0)
        return;
    s->is_resumed = s->is_kept = true;
    s->first_job = first_job;
    s->seq = seq;
    s->has_forgotten = has_forgotten != 0;
    s->n_new = n_new;
    s->n_updated = n_updated;
    ids_load(&s->removed, text + end);
}

/* Until reads is set, the context of its lines is in earlier requests of the connection. */
static bool
has_begun(const void *arg)
{
    const struct asked *a = arg;
    return a->sync.reads;
}

static void
leave(void *arg)
{
    struct asked *a = arg;
    struct sync *s = &a->sync, **at = &s->admission->syncs;
    while (*at && *at != s)
        at = &(*at)->next;
    if (*at)
        *at = s->next;
    file_upload_leave(a->rpc->uploads, s);
    file_sync_free(s);
    free(a);
}

int
method_file_sync(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
                 struct err *e)
{
    static const struct work_kind all = {.step = step,
                                         .free = leave,
                                         .n_done = n_done,
                                         .lines = true,
                                         .so_far = so_far,
                                         .resume = resume,
                                         .has_begun = has_begun,
                                         .past = true,
                                         .changes = true};
    static const struct work_kind part = {.step = keep_step, .free = leave};
    struct asked *a = xcalloc(1, sizeof *a);
    struct sync *s = &a->sync;
    a->rpc = rpc;
    *s = (struct sync){.admission = rpc->admission,
                       .state = rpc->inst->state,
                       .store = rpc->inst->store,
                       .attempts = rpc->attempts,
                       .uid = c->uid,
                       .params = params,
                       .is_part = json_is_true(json_object_get(params, "part")),
                       .fits = json_is_true(json_object_get(params, "fit")),
                       .is_fresh = json_is_true(json_object_get(params, "fresh"))};
    if (file_upload_check(rpc->uploads, c, s, params, e) < 0 ||
        daemon_accepts_work(rpc->inst, e) < 0 ||
        (!s->has_more && reqcontext_read(s->admission, c, params, &s->context, e) < 0)) {
        leave(a);
        return -1;
    }
    return work_begin(rpc, c, s->has_more ? &part : &all, a, params, out, e);
}
