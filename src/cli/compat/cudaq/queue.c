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

static uint64_t
usable(const struct cudaq *q)
{
    return q->config.gpus_said ? q->config.gpus : UINT64_MAX;
}

int
cq_count_cards(const struct cudaq *q)
{
    return __builtin_popcountll(q->cards.there & usable(q));
}

/* Whether some card could ever have so much free. */
static bool
fits_somewhere(const struct cudaq *q)
{
    for (int i = 0; i < GPU_MAX; i++) {
        if (usable(q) >> i & 1 && q->cards.total_mib[i] >= 0 &&
            (double)q->cards.total_mib[i] >= q->config.min_free_mib)
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
cq_any_running(const void *cudaq)
{
    const struct cudaq *q = cudaq;

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

static bool
fill_request(void *cudaq, void *cq_job, struct request *r)
{
    struct cudaq *q = cudaq;
    struct cq_job *job = cq_job;
    double mib = q->config.min_free_mib;

    choose_log(q, job);
    r->command = xstrdup(job->command);
    r->log = compat_log_pattern(q->log_root, job->log_name);
    r->gpus_said = true;
    r->demand.vram_mib = mib < 1 ? 1 : (int32_t)mib + ((double)(int32_t)mib < mib);
    r->demand.margin_mib = 0;
    r->demand.placement = PLACING_SPREAD;
    r->demand.devices = q->config.gpus;
    return true;
}

static int
by_order(const void *a, const void *b)
{
    int x = ((const struct compat_line *)a)->number,
        y = ((const struct compat_line *)b)->number;

    return (x > y) - (x < y);
}

static size_t
choose_lines(struct cudaq *q, struct compat_line *lines)
{
    bool fits = fits_somewhere(q);
    size_t n = 0;

    for (struct cq_job *job = q->jobs; job; job = job->hh.next) {
        if (job->in_file && ((job->status == CQ_PENDING && fits) ||
                             (job->status == CQ_RUNNING && !job->foreign)))
            lines[n++] = (struct compat_line){
                .key = job->key, .number = (int)job->order + 1, .job = job, .id = &job->id};
    }
    qsort(lines, n, sizeof *lines, by_order);
    return n;
}

/* What waits here and is remembered there as ended is to run again. The process of what was
 * executed before we followed is known by looking. */
static enum compat_found
on_found(void *cudaq, void *cq_job, const char *state)
{
    struct cq_job *job = cq_job;

    if (job->status == CQ_PENDING && job->noted_id != job->id) {
        job->noted_id = job->id;
        cq_job_set(cudaq, job, CQ_PENDING);
    }
    if (job->status == CQ_PENDING && render_state_is_final(state))
        return COMPAT_AGAIN;
    return render_state_is_active(state) &&
                   (job->status == CQ_PENDING || (job->status == CQ_RUNNING && !job->pid))
               ? COMPAT_LOOK
               : COMPAT_WELL;
}

struct compat_file
cq_file(struct cudaq *q)
{
    static const char *const kinds[] = {"started", "launched", "requeued", "ended", NULL};

    return (struct compat_file){.path = q->sync_path,
                                .kinds = kinds,
                                .ctx = q,
                                .fill = fill_request,
                                .take_events = cq_take_events,
                                .found = on_found,
                                .adopt = cq_adopt};
}

int
cq_sync(struct cudaq *q, struct err *e)
{
    auto_free struct compat_line *lines = xcalloc(HASH_COUNT(q->jobs) + 1, sizeof *lines);
    const struct compat_file file = cq_file(q);

    q->sync_due = false; /* what comes meanwhile may ask for it again */
    if (compat_sync(&q->session, &file, lines, choose_lines(q, lines), e) == 0)
        return 0;
    q->sync_due = true;
    return -1;
}

int
cq_stop(struct cudaq *q, struct err *e)
{
    json_t *ids = json_array();
    const struct compat_file file = cq_file(q);

    q->leaving = true;
    for (const struct cq_job *job = q->jobs; job; job = job->hh.next) {
        if (job->status == CQ_RUNNING && !job->foreign && job->id)
            json_array_append_new(ids, json_integer(job->id));
    }
    if (compat_send(&q->session, &file, NULL, 0, e) < 0) {
        json_decref(ids);
        return -1;
    }
    return compat_cancel(&q->session, ids, e);
}
