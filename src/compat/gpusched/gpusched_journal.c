/* gpusched's journal: events by key, which tell what is finished, what was started, and what
 * the next attempt demands. The format is the original's, so that either program can continue
 * the other's run. Lines are noted as things happen and written together, before they are
 * reported. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "cli/ask/answer.h"
#include "compat/engine/line_records.h"
#include "compat/gpusched/gpusched.h"
#include "compat/py/pytext.h"

struct gs_job *
gs_job_of(struct gpusched *g, const char *key)
{
    struct gs_job *job;

    HASH_FIND_STR(g->jobs, key, job);
    if (job)
        return job;
    job = xcalloc(1, sizeof *job);
    snprintf(job->key, sizeof job->key, "%s", key);
    job->oom_base = -1;
    HASH_ADD_STR(g->jobs, key, job);
    return job;
}

/* --- reading --- */

/* A static string; NULL: not a final status. */
static const char *
terminal_status(const char *status)
{
    static const char *const all[] = {"ok",         "failed",     "timeout",
                                      "infeasible", "failed_oom", "cancelled"};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(status, all[i]) == 0)
            return all[i];
    }
    return NULL;
}

static void
fold_seen(struct gpusched *g, struct gs_job *job, const json_t *ev)
{
    job->no = answer_int(ev, "no", 0);
    free(job->command);
    job->command = xstrdup(answer_str(ev, "command"));
    if (job->no >= g->next_no)
        g->next_no = job->no + 1;
}

static void
fold(struct gpusched *g, const json_t *ev)
{
    const char *key = answer_str(ev, "key"), *kind = answer_str(ev, "event");
    struct gs_job *job;

    if (!key[0] || strlen(key) >= GS_KEY_SIZE)
        return;
    job = gs_job_of(g, key);
    if (strcmp(kind, "seen") == 0) {
        fold_seen(g, job, ev);
        return;
    }
    if (strcmp(kind, "started") == 0) {
        job->was_running = true;
        job->running_pgid = answer_int(ev, "pgid", 0);
        job->terminal = job->ok = false;
        return;
    }
    if (strcmp(kind, "oom") == 0) {
        job->attempts = answer_int(ev, "attempts", job->attempts + 1);
        if (json_object_get(ev, "next_vram"))
            job->next_vram = answer_int(ev, "next_vram", 0);
    } else if (strcmp(kind, "done") == 0) {
        const char *status = answer_str(ev, "status");

        job->attempts++;
        job->status = terminal_status(status[0] ? status : "failed");
        job->code = answer_int(ev, "returncode", 1);
        job->terminal = job->status;
        job->ok = strcmp(status, "ok") == 0;
    } else if (strcmp(kind, "interrupted") != 0) {
        return;
    }
    job->was_running = false;
    job->running_pgid = 0;
    if (strcmp(kind, "done") != 0)
        job->terminal = job->ok = false;
}

int
gs_journal_load(struct gpusched *g, struct err *e)
{
    struct records r;
    struct gs_job *job, *next;
    struct stat st;

    g->next_no = 1;
    if (stat(g->journal_path, &st) == 0)
        g->journal_us = (int64_t)st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000;
    /* Without a journal the next run would run everything again. */
    if (access(g->journal_path, W_OK) < 0 && errno != ENOENT)
        return err_errno(e, ERR_FAILED, errno, "cannot write %s", g->journal_path);
    if (records_load(g->journal_path, &r, e) < 0)
        return -1;
    g->anew = r.n == 0;
    for (size_t i = 0; i < r.n; i++)
        fold(g, r.at[i].value);
    records_free(&r);
    HASH_ITER(hh, g->jobs, job, next)
    {
        job->before = job->terminal;
        job->known = job->no > 0 || job->was_running;
    }
    return 0;
}

/* --- writing --- */

static int
append(const struct gpusched *g, struct err *e)
{
    struct err why = {0};

    if (file_mkdirs(g->opt.log_dir, 0777, e) < 0)
        return -1;
    if (records_append(g->journal_path, &g->journal, true, &why) < 0)
        return err_set(e, why.code, "cannot write %s", why.text);
    return 0;
}

void
gs_journal_flush(struct gpusched *g)
{
    struct err e = {0};

    if (g->journal.len == 0)
        return;
    if (append(g, &e) == 0) {
        buf_clear(&g->journal);
        g->journal_broken = false;
    } else if (!g->journal_broken) {
        g->journal_broken = true;
        gs_warn(g, "%s; what happens is kept in memory and written once that works", e.text);
    }
}

/* Steals event. */
static void
note(struct gpusched *g, json_t *event)
{
    py_add_json(&g->journal, event, 0);
    buf_addc(&g->journal, '\n');
    json_decref(event);
}

int64_t
gs_seen(struct gpusched *g, struct gs_job *job, const char *command)
{
    if (!job->command || strcmp(job->command, command) != 0) {
        free(job->command);
        job->command = xstrdup(command);
    }
    if (job->no)
        return job->no;
    job->no = g->next_no++;
    note(g, json_pack("{s:s,s:s,s:I,s:s}", "key", job->key, "event", "seen", "no",
                      (json_int_t)job->no, "command", command));
    return job->no;
}

void
gs_note_started(struct gpusched *g, struct gs_job *job)
{
    json_t *gpus = json_array();

    for (int i = 0; i < job->run->n_gpus; i++)
        json_array_append_new(gpus, json_integer(job->run->gpus[i]));
    job->run->journaled = true;
    note(g,
         json_pack("{s:s,s:s,s:o,s:o}", "key", job->key, "event", "started", "pgid",
                   job->run->pgid ? json_integer(job->run->pgid) : json_null(), "gpus", gpus));
}

void
gs_note_interrupted(struct gpusched *g, struct gs_job *job)
{
    job->was_running = false;
    job->running_pgid = 0;
    job->orphan_said = false;
    gs_touch(g, job);
    note(g, json_pack("{s:s,s:s}", "key", job->key, "event", "interrupted"));
}

void
gs_note_oom(struct gpusched *g, struct gs_job *job, int64_t next_vram)
{
    job->attempts++;
    job->next_vram = next_vram;
    job->was_running = false;
    gs_touch(g, job);
    note(g, json_pack("{s:s,s:s,s:I,s:o}", "key", job->key, "event", "oom", "attempts",
                      (json_int_t)job->attempts, "next_vram",
                      next_vram ? json_integer(next_vram) : json_null()));
}

void
gs_note_done(struct gpusched *g, struct gs_job *job, const char *status, int64_t code,
             const struct gs_run *run, double util)
{
    json_t *peaks = json_object();

    for (int i = 0; run && i < run->n_gpus; i++) {
        char card[12];

        snprintf(card, sizeof card, "%d", run->gpus[i]);
        if (run->peak_mib[i] > 0)
            json_object_set_new(peaks, card, json_integer(run->peak_mib[i]));
    }
    job->attempts++;
    job->terminal = true;
    job->ok = strcmp(status, "ok") == 0;
    job->was_running = false;
    gs_touch(g, job);
    note(g, json_pack("{s:s,s:s,s:s,s:I,s:o,s:o}", "key", job->key, "event", "done", "status",
                      status, "returncode", (json_int_t)code, "peak_mib", peaks, "avg_util",
                      util >= 0 ? json_real(util) : json_null()));
}
