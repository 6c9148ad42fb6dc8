/* cudaq's records and the daemon: what waits is told as a whole, in the file's order, whenever
 * it has changed. Who was there before is recall.c's, what comes back events.c's.
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
#include "cli/compat/cudaq/cudaq.h"
#include "cli/compat/paths.h"
#include "cli/compat/pytext.h"
#include "cli/render.h"
#include "sys/procs.h"
#include "wire/client.h"

int
cq_read_cards(struct cudaq *q, struct err *e)
{
    auto_json json_t *result = NULL;
    size_t i;
    json_t *gpu;

    if (compat_call(&q->session, "gpus", NULL, &result, e) < 0)
        return -1;
    q->n_cards = 0;
    json_array_foreach(json_object_get(result, "gpus"), i, gpu)
    {
        int64_t index = answer_int(gpu, "index", -1), total = answer_int(gpu, "total_mib", 0);

        if (index < 0 || index >= GPU_MAX || strcmp(answer_str(gpu, "state"), "lost") == 0 ||
            (q->config.gpus_said && !(q->config.gpus >> index & 1)))
            continue;
        q->totals[index] = total > 0 || q->totals[index] < 0 ? total : q->totals[index];
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

/* ------------------------------------------------------------- telling it */

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

static void
fill_request(struct cudaq *q, struct cq_job *job, struct request *r)
{
    double mib = q->config.min_free_mib;

    choose_log(q, job);
    request_init(r);
    r->command = job->command;
    r->log = compat_log_pattern(q->log_root, job->log_name);
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
        lines[i] = (struct compat_line){chosen[i]->key, (int)chosen[i]->order + 1, &requests[i],
                                        false};
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

        cq_set_id(q, job, answer_int(line, "id", 0));
        if (job->status != CQ_PENDING)
            continue;
        stale |= render_state_is_final(state);
        if (render_state_is_active(state))
            json_array_append_new(running, json_integer(job->id));
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

    if (compat_fetch(&q->session, select, &jobs, e) < 0)
        return -1;
    json_array_foreach(jobs, i, object)
    {
        struct cq_job *job = cq_job_of_id(q, answer_int(object, "id", 0));

        if (!job || job->status != CQ_PENDING ||
            !render_state_is_active(answer_str(object, "state")))
            continue;
        cq_take_object(job, object);
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
            json_array_append_new(select, json_integer(job->id));
    }
    if (compat_fetch(&q->session, select, &jobs, e) < 0)
        return -1;
    json_array_foreach(jobs, i, object)
    {
        struct cq_job *job = cq_job_of_id(q, answer_int(object, "id", 0));

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
