/* Compares the lines of gpusched's jobs file with its journal: which to cancel, which are
 * pending. A line is pending if it is in the file and neither running nor finished. All lines
 * are checked when the file has changed, otherwise only those with changes (gs_touch). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "compat/gpusched/gpusched.h"
#include "compat/py/pytext.h"

#define FILE_MAX_BYTES (60UL * 1024 * 1024)

/* --- the jobs file --- */

static int
read_text(const char *path, struct buf *text, struct buf *words)
{
    struct err e = {0};
    struct stat st;

    if (stat(path, &st) < 0 || access(path, R_OK) < 0) {
        py_add_oserror(words, errno, path);
        return -1;
    }
    if (S_ISDIR(st.st_mode)) {
        py_add_oserror(words, EISDIR, path);
        return -1;
    }
    if (file_read(path, FILE_MAX_BYTES, text, &e) < 0) {
        buf_adds(words, e.text);
        return -1;
    }
    return 0;
}

static void
complain(struct gpusched *g, const struct buf *words)
{
    if (strcmp(buf_str(words), buf_str(&g->said_broken)) == 0)
        return;
    buf_clear(&g->said_broken);
    buf_adds(&g->said_broken, buf_str(words));
    gs_warn(g, "jobs file unreadable, keeping previous queue: %s", buf_str(words));
}

static void
set_waits(struct gpusched *g, struct gs_job *job, bool waits)
{
    if (waits && !job->waits)
        g->n_pending++;
    else if (!waits && job->waits)
        g->n_pending--;
    job->waits = waits;
}

/* Make these lines the queue. */
static void
take_specs(struct gpusched *g, struct gs_jobs *specs)
{
    struct gs_job *job, *next;

    HASH_ITER(hh, g->jobs, job, next)
    {
        job->spec = NULL;
        set_waits(g, job, false);
    }
    gs_jobs_free(&g->specs);
    g->specs = *specs;
    for (size_t i = 0; i < g->specs.n; i++) {
        g->specs.at[i].job = gs_job_of(g, g->specs.at[i].key);
        g->specs.at[i].job->spec = &g->specs.at[i];
    }
    g->look_due = g->sync_due = true;
}

int
gs_read_file(struct gpusched *g, bool first, struct buf *words)
{
    auto_buf struct buf text = BUF_INIT;
    struct gs_jobs specs;

    if (read_text(g->opt.jobs_path, &text, words) < 0) {
        if (!first)
            complain(g, words);
        return -1;
    }
    if (!first && text.len == 0 && g->last_text.len > 0 && !g->empty_seen) {
        g->empty_seen = true;
        return 0;
    }
    g->empty_seen = false;
    if (!first && text.len == g->last_text.len &&
        memcmp(buf_str(&text), buf_str(&g->last_text), text.len) == 0) {
        buf_clear(&g->said_broken);
        return 0;
    }
    if (gs_jobs_parse(buf_str(&text), text.len, &specs, words) < 0) {
        if (!first)
            complain(g, words);
        return -2;
    }
    buf_clear(&g->said_broken);
    take_specs(g, &specs);
    buf_clear(&g->last_text);
    buf_add(&g->last_text, text.data, text.len);
    return 0;
}

/* --- checking lines --- */

void
gs_touch(struct gpusched *g, struct gs_job *job)
{
    if (job->touched)
        return;
    g->touched = xgrow(g->touched, g->n_touched, &g->cap_touched, sizeof *g->touched);
    job->touched = true;
    g->touched[g->n_touched++] = job;
}

/* Handle a line with `cancel`; ids of running jobs to cancel go to ids. */
static void
cancel_line(struct gpusched *g, const struct gs_spec *spec, json_t *ids)
{
    struct gs_job *job = spec->job;

    gs_seen(g, job, spec->command);
    if (job->run && !job->run->cancelled) {
        gs_warn(g, "job %lld CANCELLED by user — SIGTERM to its process group",
                (long long)job->no);
        job->run->cancelled = true;
        job->run->killed_boot_us = clock_boot_us();
        json_array_append_new(ids, json_integer(job->id));
    } else if (!job->run && !job->terminal && !job->was_running) {
        gs_say(g, "job %lld cancelled before start: %s", (long long)job->no, spec->command);
        gs_note_done(g, job, "cancelled", 0, NULL, -1);
        gs_add_result(g, job, 0, 0, "cancelled");
    }
}

/* True if the line is pending. */
static bool
is_pending(struct gpusched *g, const struct gs_spec *spec)
{
    struct gs_job *job = spec->job;

    gs_seen(g, job, spec->command);
    if (job->run || gs_is_orphan(g, job) || spec->cancel)
        return false;
    if (!job->terminal)
        return true;
    if (job->before && job->ok && !job->skip_said)
        gs_say(g, "job %lld already completed ok — skipping (journal): %s", (long long)job->no,
               spec->command);
    job->skip_said = true;
    return false;
}

/* Lines to cancel get their numbers before the others. */
static void
look_at_all(struct gpusched *g, json_t *ids)
{
    g->look_due = g->orphans = false;
    for (size_t i = 0; i < g->specs.n; i++) {
        if (g->specs.at[i].cancel)
            cancel_line(g, &g->specs.at[i], ids);
    }
    for (size_t i = 0; i < g->specs.n; i++)
        gs_touch(g, g->specs.at[i].job);
}

/* The loop may append to touched. */
static void
look_at_touched(struct gpusched *g, json_t *ids)
{
    for (size_t i = 0; i < g->n_touched; i++) {
        struct gs_job *job = g->touched[i];

        job->touched = false;
        if (job->spec && job->spec->cancel)
            cancel_line(g, job->spec, ids);
        set_waits(g, job, job->spec && is_pending(g, job->spec));
    }
    g->n_touched = 0;
}

static int
look_at_lines(struct gpusched *g, struct err *e)
{
    json_t *ids = json_array();

    if (g->look_due)
        look_at_all(g, ids);
    look_at_touched(g, ids);
    return compat_call_for(&g->session, "cancel", ids, NULL, NULL, e);
}

/* Cancel unwanted jobs; a job whose line is back belongs to it again. On a full disk nothing
 * starts, and the drop stays due. */
static int
drop_unwanted(struct gpusched *g, struct err *e)
{
    json_t *ids = json_array();
    int rc;

    for (struct gs_job *job = g->jobs; job; job = job->hh.next) {
        if (job->unwanted && !job->spec)
            json_array_append_new(ids, json_integer(job->id));
        else if (job->unwanted)
            g->n_unwanted--;
        job->unwanted &= !job->spec;
    }
    rc = compat_call_for(&g->session, "cancel", ids, NULL, NULL, e);
    g->drop_due = rc < 0;
    return rc < 0 && e->code != ERR_NO_SPACE ? -1 : 0;
}

int
gs_tick(struct gpusched *g, struct err *e)
{
    if (look_at_lines(g, e) < 0 || (g->drop_due && drop_unwanted(g, e) < 0))
        return -1;
    if (g->sync_due && g->trouble.len == 0 && (gs_sync(g, e) < 0 || look_at_lines(g, e) < 0))
        return -1;
    return 0;
}
