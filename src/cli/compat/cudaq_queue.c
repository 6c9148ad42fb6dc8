/* cudaq's records and the daemon: what waits is told as a whole, in the file's order, whenever
 * it has changed; starts and ends come back as events. What the daemon knows of an earlier
 * dispatcher's jobs is settled first, so that nothing runs twice and ends are what they were.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/compat/cudaq.h"
#include "cli/compat/pytext.h"
#include "cli/render.h"
#include "sys/procs.h"
#include "wire/client.h"

#define PID_SLACK_US 5000000 /* between a process's start and what its record says */

static struct cq_job *
job_of_id(const struct cudaq *q, int64_t id)
{
    struct cq_job *job;

    HASH_FIND(by_id, q->ids, &id, sizeof id, job);
    return job;
}

static void
set_id(struct cudaq *q, struct cq_job *job, int64_t id)
{
    if (job->id == id)
        return;
    if (job->id)
        HASH_DELETE(by_id, q->ids, job);
    job->id = id;
    HASH_ADD(by_id, q->ids, id, sizeof job->id, job);
}

int
cq_read_cards(struct cudaq *q, struct err *e)
{
    auto_json json_t *result = NULL;
    size_t i;
    json_t *gpu;

    if (compat_call(&q->session, "gpus", NULL, &result, e) < 0)
        return -1;
    q->n_cards = 0;
    for (i = 0; i < GPU_MAX; i++)
        q->totals[i] = -1;
    json_array_foreach(json_object_get(result, "gpus"), i, gpu)
    {
        int64_t index = answer_int(gpu, "index", -1);

        if (index < 0 || index >= GPU_MAX ||
            (q->config.gpus_said && !(q->config.gpus >> index & 1)))
            continue;
        q->totals[index] = answer_int(gpu, "total_mib", 0);
        q->n_cards++;
    }
    return 0;
}

/* Whether some card could ever have so much free. */
static bool
fits_somewhere(const struct cudaq *q)
{
    for (int i = 0; i < GPU_MAX; i++) {
        if (q->totals[i] >= 0 && (double)q->totals[i] >= q->config.min_free_mib)
            return true;
    }
    return false;
}

size_t
cq_sendable(const struct cudaq *q)
{
    return fits_somewhere(q) ? cq_count(q, CQ_PENDING) : 0;
}

bool
cq_any_running(const struct cudaq *q)
{
    for (const struct cq_job *job = q->jobs; job; job = job->hh.next) {
        if (job->status == CQ_RUNNING && !job->foreign)
            return true;
    }
    return false;
}

/* --------------------------------------------------------------- what they were */

static void
take_exit(struct cq_job *job, const json_t *ended)
{
    int64_t sig = answer_int(ended, "signal", 0);

    if (json_is_integer(json_object_get(ended, "exit_code")) || sig > 0) {
        job->exit_code = sig > 0 ? -sig : answer_int(ended, "exit_code", 0);
        job->exit_known = true;
    }
}

static void
take_object(struct cq_job *job, const json_t *object)
{
    const json_t *gpu = json_array_get(json_object_get(object, "gpus"), 0);
    const char *log = answer_str(object, "log"), *slash = strrchr(log, '/');

    job->gpu = answer_int(gpu, "index", job->gpu);
    if (answer_int(object, "pid", 0) > 0)
        job->pid = answer_int(object, "pid", 0);
    job->start_us = answer_time_us(object, "started");
    free(job->log_name);
    job->log_name = xstrdup(slash ? slash + 1 : log);
}

/* A job that an earlier dispatcher had handed on, as it is now. */
static void
settle(struct cudaq *q, struct cq_job *job, const json_t *object)
{
    const char *state = answer_str(object, "state");
    bool has_result = strcmp(state, "CANCELLED") != 0 && strcmp(state, "LOST") != 0 &&
                      strcmp(state, "INFEASIBLE") != 0;

    if (!has_result && job->status == CQ_PENDING)
        return;
    take_object(job, object);
    take_exit(job, object);
    cq_job_set(q, job, strcmp(state, "COMPLETED") == 0 ? CQ_COMPLETED : CQ_FAILED);
}

static int
fetch(struct cudaq *q, json_t *select, json_t **jobs, struct err *e)
{
    auto_json json_t *result = NULL;

    *jobs = NULL;
    if (json_array_size(select) == 0) {
        json_decref(select);
        return 0;
    }
    if (compat_call(&q->session, "jobs", json_pack("{s:o,s:b}", "select", select, "all", 1),
                    &result, e) < 0)
        return -1;
    *jobs = json_incref(json_object_get(result, "jobs"));
    return 0;
}

/* Whether the process that a record names is still that: one that began later is another. */
static bool
is_process_of(const struct cq_job *job)
{
    struct proc p;
    int64_t ticks = sysconf(_SC_CLK_TCK), began_us;

    if (job->pid <= 0 || proc_read((pid_t)job->pid, &p) < 0 || p.state == 'Z')
        return false;
    began_us = (int64_t)p.start_ticks * 1000000 / ticks + clock_wall_us() - clock_boot_us();
    return job->began_us == 0 || began_us < job->began_us + PID_SLACK_US;
}

/* Begun by the original: it runs on beside us, or its end is not to be known any more. */
static void
judge_foreign(struct cudaq *q, struct cq_job *job)
{
    job->foreign = is_process_of(job);
    if (!job->foreign)
        cq_job_set(q, job, CQ_FAILED);
}

void
cq_look_at_foreign(struct cudaq *q)
{
    for (struct cq_job *job = q->jobs; job; job = job->hh.next) {
        if (job->foreign && job->status == CQ_RUNNING && !is_process_of(job))
            cq_job_set(q, job, CQ_UNKNOWN);
    }
}

static bool
was_handed_on(const struct cq_job *job)
{
    return job->in_file && (job->status == CQ_RUNNING ||
                            (job->status == CQ_PENDING && job->noted_id && !job->was_started));
}

/* What the daemon says of them, by key. */
static int
ask_of_earlier(struct cudaq *q, json_t **result, struct err *e)
{
    json_t *lines = json_array();

    for (const struct cq_job *job = q->jobs; job; job = job->hh.next) {
        if (was_handed_on(job))
            json_array_append_new(lines, json_pack("{s:s,s:s,s:i}", "key", job->key, "command",
                                                   job->command, "line", 1));
    }
    if (json_array_size(lines) == 0) {
        json_decref(lines);
        return 0;
    }
    return compat_call(&q->session, "file.plan",
                       json_pack("{s:s,s:o,s:s,s:i,s:[]}", "path", q->sync_path, "jobs", lines,
                                 "cwd", "/", "umask", 0, "env"),
                       result, e);
}

int
cq_recall(struct cudaq *q, struct err *e)
{
    auto_json json_t *result = NULL, *jobs = NULL;
    json_t *select = json_array(), *line;
    struct cq_job *job;
    size_t i;

    if (ask_of_earlier(q, &result, e) < 0) {
        json_decref(select);
        return -1;
    }
    json_array_foreach(json_object_get(result, "lines"), i, line)
    {
        int64_t id = answer_int(line, "id", 0);

        HASH_FIND_STR(q->jobs, answer_str(line, "key"), job);
        if (!job || !id || (job->noted_id && job->noted_id != id))
            continue;
        set_id(q, job, id);
        if (render_state_is_final(answer_str(line, "state")))
            json_array_append_new(select, json_sprintf("%lld", (long long)id));
    }
    for (job = q->jobs; job; job = job->hh.next) {
        if (job->in_file && job->status == CQ_RUNNING && !job->id)
            judge_foreign(q, job);
    }
    if (fetch(q, select, &jobs, e) < 0)
        return -1;
    json_array_foreach(jobs, i, line)
    {
        job = job_of_id(q, answer_int(line, "id", 0));
        if (job)
            settle(q, job, line);
    }
    q->fresh_due = q->sync_due = true;
    return 0;
}

/* ---------------------------------------------------------------- telling it */

/* job_20250410_073631.log, and _2 and so on within a second: no two jobs share one. */
static void
choose_log(struct cudaq *q, struct cq_job *job)
{
    int64_t now = clock_wall_us();
    auto_buf struct buf stamp = BUF_INIT;

    if (job->log_name)
        return;
    if (q->log_second != now / 1000000)
        q->n_in_second = 0;
    q->log_second = now / 1000000;
    py_add_time(&stamp, PY_STAMP, now);
    for (;;) {
        auto_free char *name =
            ++q->n_in_second == 1 ? xasprintf("job_%s.log", buf_str(&stamp))
                                  : xasprintf("job_%s_%d.log", buf_str(&stamp), q->n_in_second);
        auto_free char *path = xasprintf("%s/%s", q->log_root, name);

        if (access(path, F_OK) == 0)
            continue;
        job->log_name = TAKE(name);
        return;
    }
}

static char *
log_of(const struct cudaq *q, const struct cq_job *job)
{
    auto_buf struct buf out = BUF_INIT;

    for (const char *p = q->log_root; *p; p++) {
        if (*p == '%')
            buf_addc(&out, '%');
        buf_addc(&out, *p);
    }
    buf_addf(&out, "/%s", job->log_name);
    return buf_take(&out);
}

static void
fill_request(struct cudaq *q, struct cq_job *job, struct request *r)
{
    double mib = q->config.min_free_mib;

    choose_log(q, job);
    request_init(r);
    r->command = job->command;
    r->log = log_of(q, job);
    r->gpus_said = true;
    r->demand.vram_mib = mib < 1 ? 1 : (int32_t)mib + ((double)(int32_t)mib < mib);
    r->demand.margin_mib = 0;
    r->demand.placement = PLACING_SPREAD;
    r->demand.devices = q->config.gpus;
}

static int
by_order(const void *a, const void *b)
{
    int64_t x = (*(struct cq_job *const *)a)->order, y = (*(struct cq_job *const *)b)->order;

    return x < y ? -1 : x > y;
}

static size_t
choose_lines(struct cudaq *q, struct cq_job **chosen)
{
    bool fits = fits_somewhere(q);
    size_t n = 0;

    for (struct cq_job *job = q->jobs; job; job = job->hh.next) {
        if (job->in_file && ((job->status == CQ_PENDING && fits) ||
                             (job->status == CQ_RUNNING && !job->foreign)))
            chosen[n++] = job;
    }
    qsort(chosen, n, sizeof *chosen, by_order);
    return n;
}

static int
send_lines(struct cudaq *q, struct cq_job **chosen, size_t n, json_t **result, struct err *e)
{
    auto_free struct request *requests = xcalloc(n + 1, sizeof *requests);
    auto_free struct compat_line *lines = xcalloc(n + 1, sizeof *lines);
    int rc;

    for (size_t i = 0; i < n; i++) {
        fill_request(q, chosen[i], &requests[i]);
        lines[i] =
            (struct compat_line){chosen[i]->key, (int)chosen[i]->order + 1, &requests[i]};
    }
    rc = compat_sync(&q->session, q->sync_path, lines, n, q->fresh_due, result, e);
    for (size_t i = 0; i < n; i++)
        free(requests[i].log);
    if (rc == 0)
        q->sync_due = q->fresh_due = false;
    return rc;
}

/* True when what waits here is remembered there as ended: it is to run again. */
static bool
take_answer(struct cudaq *q, struct cq_job **chosen, const json_t *result, json_t *running)
{
    bool stale = false;
    size_t i;
    json_t *line;

    json_array_foreach(json_object_get(result, "lines"), i, line)
    {
        struct cq_job *job = chosen[i];
        const char *state = answer_str(line, "state");

        set_id(q, job, answer_int(line, "id", 0));
        if (job->status != CQ_PENDING)
            continue;
        stale |= render_state_is_final(state);
        if (render_state_is_active(state))
            json_array_append_new(running, json_sprintf("%lld", (long long)job->id));
        if (job->noted_id != job->id) {
            job->noted_id = job->id;
            cq_job_set(q, job, CQ_PENDING);
        }
    }
    return stale;
}

/* Runs already, and no event has told. */
static int
adopt(struct cudaq *q, json_t *select, struct err *e)
{
    auto_json json_t *jobs = NULL;
    size_t i;
    json_t *object;

    if (fetch(q, select, &jobs, e) < 0)
        return -1;
    json_array_foreach(jobs, i, object)
    {
        struct cq_job *job = job_of_id(q, answer_int(object, "id", 0));

        if (!job || job->status != CQ_PENDING ||
            !render_state_is_active(answer_str(object, "state")))
            continue;
        take_object(job, object);
        cq_job_set(q, job, CQ_RUNNING);
    }
    return 0;
}

/* The process of what was executed before we followed. */
static int
find_pids(struct cudaq *q, struct err *e)
{
    json_t *select = json_array();
    auto_json json_t *jobs = NULL;
    size_t i;
    json_t *object;

    for (const struct cq_job *job = q->jobs; job; job = job->hh.next) {
        if (job->status == CQ_RUNNING && !job->foreign && !job->pid)
            json_array_append_new(select, json_sprintf("%lld", (long long)job->id));
    }
    if (fetch(q, select, &jobs, e) < 0)
        return -1;
    json_array_foreach(jobs, i, object)
    {
        struct cq_job *job = job_of_id(q, answer_int(object, "id", 0));

        if (job && answer_int(object, "pid", 0) > 0) {
            job->pid = answer_int(object, "pid", 0);
            cq_job_set(q, job, job->status);
        }
    }
    return 0;
}

int
cq_sync(struct cudaq *q, struct err *e)
{
    auto_free struct cq_job **chosen =
        xcalloc(HASH_COUNT(q->jobs) + 1, sizeof(struct cq_job *));
    json_t *running = json_array();
    auto_json json_t *result = NULL, *again = NULL;
    size_t n = choose_lines(q, chosen);
    bool stale, begins = !q->following;

    if (send_lines(q, chosen, n, &result, e) < 0 ||
        (begins && compat_follow(&q->session, e) < 0)) {
        json_decref(running);
        return -1;
    }
    q->following = true;
    stale = take_answer(q, chosen, result, running);
    cq_take_events(q);
    if (stale) {
        n = choose_lines(q, chosen);
        q->fresh_due = true;
        if (send_lines(q, chosen, n, &again, e) < 0) {
            json_decref(running);
            return -1;
        }
        (void)take_answer(q, chosen, again, running);
        cq_take_events(q);
    }
    if (adopt(q, running, e) < 0)
        return -1;
    return begins ? find_pids(q, e) : 0;
}

/* ------------------------------------------------------------------ being told */

struct starts {
    const json_t *gpus; /* the daemon's cards as they are now */
    int left[GPU_MAX];  /* starts of this batch on a card that are not told yet */
};

/* What was free before it, as far as this batch goes: what is left now and what the jobs that
 * came with it and after it were given. */
static int64_t
free_before(const struct cudaq *q, struct starts *s, int64_t card)
{
    size_t i;
    json_t *gpu;

    json_array_foreach(s->gpus, i, gpu)
    {
        if (answer_int(gpu, "index", -1) == card)
            return answer_int(gpu, "free_mib", 0) +
                   (int64_t)((double)s->left[card]-- * q->config.min_free_mib);
    }
    return 0;
}

static void
say_assigned(struct cudaq *q, const struct cq_job *job, struct starts *s)
{
    auto_buf struct buf out = BUF_INIT;
    int64_t mib = job->gpu >= 0 && job->gpu < GPU_MAX ? free_before(q, s, job->gpu) : 0;

    buf_addf(&out, "[cudaq] Assigning job '%s' to GPU %lld (free memory ~ %lld MB).\n",
             job->command, (long long)job->gpu, (long long)mib);
    (void)cli_put(&out);
}

static void
on_started(struct cudaq *q, struct cq_job *job, const json_t *ev, struct starts *s)
{
    job->gpu = json_integer_value(json_array_get(json_object_get(ev, "gpus"), 0));
    job->start_us = answer_int(ev, "at_us", clock_wall_us());
    job->pid = 0;
    job->exit_known = false;
    q->assigned = true;
    cq_job_set(q, job, CQ_RUNNING);
    say_assigned(q, job, s);
}

static void
on_ended(struct cudaq *q, struct cq_job *job, const json_t *ev)
{
    bool ran = job->status == CQ_RUNNING;

    /* Whose record was taken out, and who waits when the dispatcher is stopped, is not over. */
    if (!ran && (q->leaving || !job->in_file || job->status != CQ_PENDING))
        return;
    take_exit(job, ev);
    cq_job_set(q, job,
               strcmp(answer_str(ev, "state"), "COMPLETED") == 0 ? CQ_COMPLETED : CQ_FAILED);
}

static void
take_event(struct cudaq *q, const json_t *ev, struct starts *s)
{
    const char *kind = answer_str(ev, "kind");
    int64_t seq = answer_int(ev, "seq", 0);
    struct cq_job *job = job_of_id(q, answer_int(ev, "job", 0));

    if (seq > q->session.seq)
        q->session.seq = seq;
    else if (seq > 0)
        return;
    if (!job)
        return;
    if (strcmp(kind, "started") == 0) {
        on_started(q, job, ev, s);
    } else if (strcmp(kind, "launched") == 0 && job->status == CQ_RUNNING) {
        job->pid = answer_int(ev, "pid", 0);
        cq_job_set(q, job, CQ_RUNNING);
    } else if (strcmp(kind, "requeued") == 0) {
        cq_job_set(q, job, CQ_PENDING);
    } else if (strcmp(kind, "ended") == 0) {
        on_ended(q, job, ev);
    }
}

static int
count_starts(const struct cudaq *q, struct starts *s)
{
    int64_t newest = q->session.seq; /* some may have come twice */
    int n = 0;
    size_t i;
    json_t *ev;

    json_array_foreach(q->session.events, i, ev)
    {
        int64_t seq = answer_int(ev, "seq", 0);
        int64_t card = json_integer_value(json_array_get(json_object_get(ev, "gpus"), 0));

        if (strcmp(answer_str(ev, "kind"), "started") != 0 || seq <= newest || card < 0 ||
            card >= GPU_MAX)
            continue;
        newest = seq;
        s->left[card]++;
        n++;
    }
    return n;
}

void
cq_take_events(struct cudaq *q)
{
    struct starts s = {NULL, {0}};
    auto_json json_t *result = NULL;
    auto_json json_t *events = q->session.events;
    size_t i;
    json_t *ev;

    /* What comes while we ask belongs to the next batch. */
    if (count_starts(q, &s) > 0) {
        q->session.events = json_array();
        if (compat_call(&q->session, "gpus", NULL, &result, NULL) == 0)
            s.gpus = json_object_get(result, "gpus");
    } else {
        q->session.events = json_array();
    }
    json_array_foreach(events, i, ev) take_event(q, ev, &s);
}

int
cq_stop(struct cudaq *q, struct err *e)
{
    json_t *ids = json_array();
    auto_json json_t *result = NULL;

    q->leaving = true;
    for (const struct cq_job *job = q->jobs; job; job = job->hh.next) {
        if (job->status == CQ_RUNNING && !job->foreign && job->id)
            json_array_append_new(ids, json_integer(job->id));
    }
    if (compat_sync(&q->session, q->sync_path, NULL, 0, false, &result, e) < 0) {
        json_decref(ids);
        return -1;
    }
    return compat_cancel(&q->session, ids, e);
}
