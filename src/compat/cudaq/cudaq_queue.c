/* Sends cudaq's pending records to the daemon, as a whole and in file order, whenever they
 * change. cudaq_events.c takes the answers. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/table/render.h"
#include "compat/compat.h"
#include "compat/cudaq/cudaq.h"
#include "compat/engine/compat_paths.h"
#include "compat/py/pytext.h"
#include "sys/procs.h"

#define MANY         1000    /* after sending so many lines, return memory to the system */
#define PID_SLACK_US 5000000 /* between a process's start and the time in its record */

void
cq_find_places(struct cudaq *q)
{
    q->log_root = compat_absolute(q->config.log_dir);
    q->session.path = q->jobs_path = compat_absolute(q->config.jobs_file);
}

static uint64_t
usable(const struct cudaq *q)
{
    return q->config.gpus ? q->config.gpus : UINT64_MAX;
}

bool
cq_has_cards(const struct cudaq *q)
{
    return (q->cards.there & usable(q)) != 0;
}

/* True if some GPU could ever have this much free memory; the daemon would refuse the job
 * otherwise. */
bool
cq_fits_somewhere(const struct cudaq *q)
{
    for (int i = 0; i < GPU_MAX; i++) {
        if (usable(q) >> i & 1 && (q->cards.total_mib[i] == 0 || /* unknown */
                                   (double)q->cards.total_mib[i] >= q->config.min_free_mib))
            return true;
    }
    return false;
}

/* --- jobs that were running at our start --- */

/* True if the record's process still exists: one that started later reuses the pid. */
static bool
is_process_of(const struct cq_job *job)
{
    struct proc p;

    if (job->pid <= 0 || proc_read((pid_t)job->pid, &p) < 0 || p.state == 'Z')
        return false;
    return job->began_us == 0 || proc_began_us(&p) < job->began_us + PID_SLACK_US;
}

/* A job started by the original continues beside us; its result cannot be known. */
static void
judge_foreign(struct cudaq *q, struct cq_job *job)
{
    job->unsure = false;
    job->foreign = is_process_of(job);
    if (!job->foreign)
        cq_job_set(q, job, CQ_UNKNOWN, 0);
}

void
cq_look_at_foreign(struct cudaq *q)
{
    for (size_t i = 0; i < q->n; i++) {
        if (q->lines[i]->foreign && q->lines[i]->status == CQ_RUNNING)
            judge_foreign(q, q->lines[i]);
    }
}

/* --- sending --- */

/* job_20250410_073631.log, then _2 and so on within the same second, so that names are
 * unique. */
static void
choose_log(struct cudaq *q, struct cq_job *job)
{
    int64_t now = clock_wall_us();
    auto_buf struct buf stamp = BUF_INIT;

    if (q->log_second != now / 1000000)
        q->n_in_second = 0;
    q->log_second = now / 1000000;
    py_add_time(&stamp, PY_STAMP, now);
    while (!job->log) {
        auto_free char *name =
            ++q->n_in_second == 1 ? xasprintf("job_%s.log", buf_str(&stamp))
                                  : xasprintf("job_%s_%d.log", buf_str(&stamp), q->n_in_second);
        auto_free char *path = xasprintf("%s/%s", q->log_root, name);

        if (access(path, F_OK) < 0)
            job->log = TAKE(name);
    }
}

/* Assign keys to pending records and write them to the file before the daemon gets the
 * jobs. */
static int
give_keys(struct cudaq *q, struct err *e)
{
    bool any = false;

    for (size_t i = 0; i < q->n; i++) {
        struct cq_job *job = q->lines[i];

        if (!job->command || job->status != CQ_PENDING)
            continue;
        any |= job->dirty;
        if (job->key[0])
            continue;
        cq_job_name(q, job);
        HASH_ADD_KEYPTR(by_key, q->keys, job->key, strlen(job->key), job);
        cq_job_set(q, job, CQ_PENDING, 0);
        any = true;
    }
    return any ? cq_jobs_save(q, e) : 0;
}

/* True if the file changed so often that keys could not be written. */
static bool
is_any_unwritten(const struct cudaq *q)
{
    for (size_t i = 0; i < q->n; i++) {
        if (q->lines[i]->status == CQ_PENDING && q->lines[i]->command && q->lines[i]->dirty)
            return true;
    }
    return false;
}

bool
cq_fill_request(void *cudaq, void *cq_job, struct request *r)
{
    struct cudaq *q = cudaq;
    struct cq_job *job = cq_job;
    double mib = q->config.min_free_mib;

    choose_log(q, job);
    r->command = xstrdup(job->command);
    r->log = compat_log_pattern(*job->log == '/' ? "" : q->log_root, job->log);
    r->gpus_said = true;
    r->demand.vram_mib = mib < 1 ? 1 : (int32_t)mib + ((double)(int32_t)mib < mib);
    r->demand.margin_mib = 0;
    r->demand.placement = PLACING_SPREAD;
    r->demand.devices = q->config.gpus;
    return true;
}

/* Fetch jobs that are further than the record says. */
enum compat_found
cq_found(void *cudaq, void *cq_job, const char *state)
{
    const struct cq_job *job = cq_job;

    (void)cudaq;
    return (job->status == CQ_PENDING && render_state_is_final(state)) ||
                   (!job->pid && render_state_is_active(state))
               ? COMPAT_LOOK
               : COMPAT_WELL;
}

/* Keys are never reused, so this job is the record's. */
void
cq_known(void *cudaq, void *cq_job, const char *state)
{
    struct cq_job *job = cq_job;

    if (!render_state_is_final(state) && !render_state_is_active(state)) {
        job->unsure = false; /* the start failed; pending again */
        cq_job_set(cudaq, job, CQ_PENDING, 0);
    }
}

static void
add_line(struct compat_line *lines, size_t *n, struct cq_job *job)
{
    lines[*n] = (struct compat_line){
        .key = job->key, .number = (int)*n + 1, .job = job, .id = &job->id};
    ++*n;
}

int
cq_recall(struct cudaq *q, struct err *e)
{
    auto_free struct compat_line *lines = xcalloc(q->n + 1, sizeof *lines);
    size_t n = 0;

    for (size_t i = 0; i < q->n; i++) {
        if (q->lines[i]->unsure && q->lines[i]->key[0])
            add_line(lines, &n, q->lines[i]);
    }
    if (compat_recall(&q->session, lines, n, e) < 0)
        return -1;
    for (size_t i = 0; i < q->n; i++) {
        if (q->lines[i]->unsure && q->lines[i]->status == CQ_RUNNING)
            judge_foreign(q, q->lines[i]);
        q->lines[i]->unsure = false;
    }
    return 0;
}

/* Running jobs are sent too, so that a requeued one remains in the queue. */
static size_t
choose_lines(struct cudaq *q, struct compat_line *lines)
{
    bool fits = cq_fits_somewhere(q);
    size_t n = 0;

    for (size_t i = 0; i < q->n; i++) {
        struct cq_job *job = q->lines[i];

        if (job->key[0] && !job->gone &&
            ((job->status == CQ_PENDING && fits) ||
             (job->status == CQ_RUNNING && job->id && !job->foreign)))
            add_line(lines, &n, job);
    }
    return n;
}

static int
tell(struct cudaq *q, struct err *e)
{
    struct compat_line *lines;
    size_t n;
    int rc;

    if (cq_recall(q, e) < 0 || give_keys(q, e) < 0)
        return -1;
    if (is_any_unwritten(q)) {
        q->sync_due = true;
        return 0;
    }
    lines = xcalloc(q->n + 1, sizeof *lines);
    n = choose_lines(q, lines);
    rc = compat_sync(&q->session, lines, n, e);
    free(lines);
    if (n >= MANY)
        malloc_trim(0);
    return rc;
}

int
cq_sync(struct cudaq *q, struct err *e)
{
    const char *full;

    q->sync_due = false; /* changes during the sync make it due again */
    if (tell(q, e) < 0) {
        q->sync_due = true;
        return -1;
    }
    full = compat_full(&q->session);
    if (full)
        compat_say("[Warning] Commands wait until there is room in the queue: %s", full);
    return 0;
}

void
cq_doubt(struct cudaq *q)
{
    for (size_t i = 0; i < q->n; i++)
        q->lines[i]->unsure |= q->lines[i]->status == CQ_RUNNING && !q->lines[i]->foreign;
    q->sync_due = true;
}

static bool
runs_here(const struct cq_job *job)
{
    return job->status == CQ_RUNNING && job->id && !job->foreign;
}

/* Remove pending jobs first, then end running ones, including those started in between. */
int
cq_stop(void *cudaq, struct err *e)
{
    struct cudaq *q = cudaq;
    json_t *ids;

    if (q->leaving) /* called again after the daemon was lost */
        cq_doubt(q);
    q->leaving = true;
    if (compat_clear(&q->session, e) < 0 || cq_recall(q, e) < 0)
        return -1;
    ids = json_array();
    for (size_t i = 0; i < q->n; i++) {
        if (runs_here(q->lines[i]))
            json_array_append_new(ids, json_integer(q->lines[i]->id));
    }
    return compat_call_for(&q->session, "cancel", ids, NULL, NULL, e);
}

bool
cq_any_running(const void *cudaq)
{
    const struct cudaq *q = cudaq;

    for (size_t i = 0; i < q->n; i++) {
        if (runs_here(q->lines[i]))
            return true;
    }
    return false;
}
