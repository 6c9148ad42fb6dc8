/* Sends a jobs file to the daemon: reads it with the user's rights, parses it here and sends
 * all of it. A file that cannot be read or parsed changes nothing: the last valid queue stays,
 * with one warning per distinct reason. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/jsonw.h"
#include "cli/ask/answer.h"
#include "cli/ask/bulk.h"
#include "cli/ask/job_places.h"
#include "cli/ask/request_write.h"
#include "cli/common/cli.h"
#include "cli/run/run_verb.h"
#include "cli/submit/submit_options.h"
#include "cli/table/render.h"
#include "cli/verbs/screens_verb.h"
#include "spec/attr.h"
#include "spec/when.h"
#include "wire/client.h"

#define FILE_MAX_BYTES (60UL * 1024 * 1024)
#define EMPTY_WAIT_US  1000000

static void
take_mark(struct run_file *f)
{
    struct stat st;

    memset(&f->mark, 0, sizeof f->mark);
    if (!f->is_stdin && stat(f->shown, &st) == 0)
        f->mark = (struct stat_mark){st.st_dev, st.st_ino, st.st_size, st.st_mtim};
}

bool
run_file_has_changed(struct run_file *f)
{
    struct stat_mark old = f->mark;

    if (f->is_stdin)
        return false;
    take_mark(f);
    return old.dev != f->mark.dev || old.ino != f->mark.ino || old.size != f->mark.size ||
           old.mtime.tv_sec != f->mark.mtime.tv_sec ||
           old.mtime.tv_nsec != f->mark.mtime.tv_nsec;
}

static void
join_errors(const struct jobsfile *parsed, struct buf *out)
{
    for (size_t i = 0; i < parsed->n_errors; i++)
        buf_addf(out, "%s%s", i ? "\n" : "", parsed->errors[i]);
}

static int
check_screens(const struct run_file *f, const struct jobsfile *parsed, struct err *e)
{
    size_t i = 0;

    while (i < parsed->n_lines && !parsed->lines[i].req.screen)
        i++;
    if (i == parsed->n_lines || screens_need(e) == 0)
        return 0;
    return err_prefix(e, "%s:%d:%d", f->words, parsed->lines[i].line, parsed->lines[i].column);
}

/* Checks the paths that lines name, with the user's rights, once per reading of the file. */
static int
settle_places(const struct run_file *f, struct jobsfile *parsed, struct err *e)
{
    for (size_t i = 0; i < parsed->n_lines; i++) {
        const struct jobsfile_line *line = &parsed->lines[i];
        if (jobplaces_settle(&parsed->lines[i].req, e) < 0)
            return err_prefix(e, "%s:%d:%d", f->words, line->line, line->column);
    }
    return 0;
}

static int
set_engine(const struct run_file *f, struct jobsfile *parsed, struct err *e)
{
    for (size_t i = 0; (f->on || f->pack) && i < parsed->n_lines; i++) {
        const struct jobsfile_line *line = &parsed->lines[i];
        struct request *r = &parsed->lines[i].req;
        if (f->pack)
            r->demand.pack = true;
        if ((f->on && attr_assign(r, "on", f->on, ATTR_JOBS_FILE, e) < 0) ||
            request_validate(r, e) < 0)
            return err_prefix(e, "%s:%d:%d", f->words, line->line, line->column);
    }
    return 0;
}

/* Parses text into *out. -1 with all errors in words, one per line. */
static int
parse(const struct run_file *f, const struct buf *text, struct jobsfile *out, struct buf *words)
{
    struct when_clock clock;
    struct err e = {0};

    submit_read_clock(&clock);
    if (jobsfile_parse(f->words, buf_str(text), text->len, &clock, out, &e) == 0 &&
        set_engine(f, out, &e) == 0 && check_screens(f, out, &e) == 0 &&
        settle_places(f, out, &e) == 0 &&
        (!f->models || jobsfile_apply_models(out, f->words, f->models, &e) == 0))
        return 0;
    join_errors(out, words);
    if (words->len == 0)
        buf_adds(words, e.text);
    jobsfile_free(out);
    return -1;
}

/* Notes that a fraction above one GPU is rounded up to whole GPUs; one message for all
 * lines. */
static void
say_rounded(const struct run_file *f)
{
    const struct jobsfile_line *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < f->parsed.n_lines; i++) {
        const struct jobsfile_line *line = &f->parsed.lines[i];
        if (!line->req.gpus_rounded)
            continue;
        first = first ? first : line;
        n++;
    }
    if (n)
        cli_say("%s:%d:%d: gpus is rounded up to %d whole GPUs%s", f->words, first->line,
                first->column, first->req.demand.gpus, n > 1 ? ", and so in other lines" : "");
}

/* Notes options that have no effect without a time limit; one message for all lines. */
static void
say_idle(const struct run_file *f)
{
    const char *why, *first_why = NULL, *option = NULL;
    const struct jobsfile_line *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < f->parsed.n_lines; i++) {
        const struct jobsfile_line *line = &f->parsed.lines[i];
        const char *idle = request_idle_option(&line->req, &why);
        if (!idle)
            continue;
        if (!first) {
            first = line;
            first_why = why;
            option = idle;
        }
        n++;
    }
    if (first)
        cli_say("%s:%d:%d: %s: %s%s%s", f->words, first->line, first->column, option, first_why,
                first->req.limit_ms ? ""
                                    : "; set one with time=, unless the daemon's settings have "
                                      "a default",
                n > 1 ? " (and so in other lines)" : "");
}

static void
say_notes(const struct run_file *f)
{
    say_rounded(f);
    say_idle(f);
}

int
run_file_load(struct run_file *f, bool say, struct err *e)
{
    auto_buf struct buf words = BUF_INIT;

    take_mark(f);
    if (file_read(f->is_stdin ? "-" : f->shown, FILE_MAX_BYTES, &f->text, e) < 0) {
        if (e->code == ERR_FAILED || e->code == ERR_PERMISSION)
            e->code = ERR_USAGE;
        return -1;
    }
    if (parse(f, &f->text, &f->parsed, &words) == 0) {
        if (say)
            say_notes(f);
        return 0;
    }
    memset(&f->parsed, 0, sizeof f->parsed);
    if (say) {
        buf_addc(&words, '\n');
        (void)file_write_all(STDERR_FILENO, words.data, words.len);
    }
    return err_set(e, ERR_USAGE, "%s: nothing was queued", f->words);
}

static void
warn_once(struct run *run, struct run_file *f, const char *words)
{
    if (strcmp(buf_str(&f->warned), words) == 0)
        return;
    buf_clear(&f->warned);
    buf_adds(&f->warned, words);
    progress_erase(&run->progress, &run->out);
    run_flush(run);
    cli_say("the queue is unchanged: %s", words);
}

int
run_file_reload(struct run *run, struct run_file *f)
{
    auto_buf struct buf text = BUF_INIT;
    auto_buf struct buf words = BUF_INIT;
    struct jobsfile parsed;
    struct err e = {0};

    take_mark(f);
    if (file_read(f->shown, FILE_MAX_BYTES, &text, &e) < 0) {
        warn_once(run, f, e.text);
        return 0;
    }
    /* An empty file may be a save in progress: look again before every pending job is removed
     * from the queue. */
    if (text.len == 0 && !f->read_empty) {
        f->read_empty = true;
        f->due_us = clock_boot_us() + EMPTY_WAIT_US;
        return 0;
    }
    f->read_empty = text.len == 0;
    if (text.len == f->text.len && memcmp(buf_str(&text), buf_str(&f->text), text.len) == 0) {
        buf_clear(&f->warned);
        return 0;
    }
    if (parse(f, &text, &parsed, &words) < 0) {
        warn_once(run, f, buf_str(&words));
        return 0;
    }
    buf_clear(&f->warned);
    f->token[0] = '\0'; /* the next sync is a new request */
    jobsfile_free(&f->parsed);
    f->parsed = parsed;
    buf_free(&f->text);
    f->text = text;
    text = (struct buf)BUF_INIT;
    progress_erase(&run->progress, &run->out);
    run_flush(run);
    say_notes(f);
    return 1;
}

/* Reports the daemon's error about a line ("line 3: ...") in the form of all others:
 * FILE:LINE:COLUMN. Returns -1. */
static int
place_error(const struct run_file *f, struct err *e)
{
    int line = 0, words = 0, column = 1;
    struct err at = {.code = e->code};

    if (sscanf(e->text, "line %d: %n", &line, &words) != 1 || words == 0)
        return -1;
    for (size_t i = 0; i < f->parsed.n_lines; i++)
        if (f->parsed.lines[i].line == line)
            column = f->parsed.lines[i].column;
    err_set(&at, e->code, "%s:%d:%d: %s", f->words, line, column, e->text + words);
    *e = at;
    return -1;
}

int
run_file_call(const struct run *run, const struct run_file *f, const char *method, bool fresh,
              json_t **result, struct err *e)
{
    struct bulk b;
    struct jsonw *w = bulk_begin(&b, run->client, method);
    int rc = 0;

    jsonw_kstr(w, "path", f->path);
    if (run->opt.oom_retries >= 0)
        jsonw_kint(w, "oom_retries", run->opt.oom_retries);
    for (size_t i = 0; i < f->parsed.n_lines && rc == 0; i++) {
        jobreq_add_line(bulk_job(&b), &f->parsed.lines[i]);
        rc = bulk_next(&b, e);
    }
    w = bulk_rest(&b);
    jobreq_add_context(w, run->cwd, NULL);
    jsonw_kbool(w, "fresh", fresh);
    client_name_next(run->client, rc == 0 ? f->token : "");
    if (rc == 0)
        rc = bulk_finish(&b, result, e);
    bulk_free(&b);
    return rc < 0 ? place_error(f, e) : 0;
}

/* --- the daemon's answer --- */

/* Adds or updates the job of one line of the answer. If its end is new to us, the events
 * report it (run_reconcile catches the rest). */
static void
take_line(struct run *run, const struct jobsfile_line *line, const json_t *answer)
{
    int64_t id = answer_int(answer, "id", 0);
    bool known = run_jobs_find(&run->jobs, id) != NULL;
    struct run_job *job = run_jobs_get(&run->jobs, id);
    const char *state = answer_str(answer, "state");

    job->in_file = true;
    job->cancel = line->req.cancel;
    if (!job->command)
        job->command = xstrdup(line->req.command ? line->req.command : "");
    job->synced = render_state_static(state);
    job->synced_status = answer_int(answer, "exit", -1);
    if (!render_state_is_final(state)) {
        if (!render_state_is_final(job->state))
            run_jobs_set_state(job, state);
        job->started |= render_state_is_active(state);
    } else if (!known) {
        /* It ended before this run, unless an event after the sync says otherwise. */
        run_jobs_set_state(job, state);
        job->status = job->synced_status < 0 ? 1 : job->synced_status;
        job->before = true;
    }
}

/* The answer has the lines in the file's order. */
static void
take_lines(struct run *run, const struct run_file *f, const json_t *result)
{
    size_t at = 0;
    size_t i;
    json_t *answer;

    json_array_foreach(json_object_get(result, "lines"), i, answer)
    {
        const char *key = answer_str(answer, "key");

        while (at < f->parsed.n_lines && strcmp(f->parsed.lines[at].key, key) != 0)
            at++;
        if (at == f->parsed.n_lines)
            break;
        take_line(run, &f->parsed.lines[at++], answer);
    }
}

static void
take_removed(struct run *run, const json_t *ids)
{
    size_t i;
    json_t *id;

    json_array_foreach(ids, i, id)
    {
        struct run_job *job = run_jobs_find(&run->jobs, json_integer_value(id));

        if (job)
            job->in_file = false;
    }
}

static void
say_changes(const struct run_file *f, const json_t *result)
{
    static const char *const kinds[] = {"new", "updated", "removed"};
    auto_buf struct buf line = BUF_INIT;

    for (size_t i = 0; i < 3; i++) {
        const json_t *v = json_object_get(result, kinds[i]);
        size_t n = json_is_array(v) ? json_array_size(v) : (size_t)json_integer_value(v);

        if (n)
            buf_addf(&line, "%s%zu %s", line.len ? ", " : "", n, kinds[i]);
    }
    if (line.len)
        cli_say("%s has changed: %s", f->words, buf_str(&line));
}

/* Forgets which jobs lines stand for, as this may change (--fresh, or a line was deleted while
 * its job runs). */
static void
forget_lines(struct run *run)
{
    for (size_t i = 0; run->n_files == 1 && i < run->jobs.n; i++)
        run->jobs.all[i].in_file = false;
}

int
run_file_sync(struct run *run, struct run_file *f, bool fresh, struct err *e)
{
    auto_json json_t *result = NULL;
    int64_t seq;
    int rc;

    if (!f->token[0])
        client_make_token(f->token);
    rc = run_file_call(run, f, "file.sync", fresh, &result, e);
    /* After a lost connection the same token is sent again, so that the sync is idempotent. */
    if (rc == 0 || e->code != ERR_UNREACHABLE)
        f->token[0] = '\0';
    if (rc < 0)
        return -1;
    f->id = answer_int(result, "file", 0);
    seq = answer_int(result, "seq", 0);
    if (run->first_sync && (run->last_seq == 0 || seq < run->last_seq))
        run->last_seq = seq;
    forget_lines(run);
    take_lines(run, f, result);
    take_removed(run, json_object_get(result, "removed"));
    progress_erase(&run->progress, &run->out);
    run_flush(run);
    if (answer_str(result, "note")[0])
        cli_say("%s", answer_str(result, "note"));
    if (!run->first_sync)
        say_changes(f, result);
    return 0;
}

void
run_file_free(struct run_file *f)
{
    jobsfile_free(&f->parsed);
    buf_free(&f->text);
    buf_free(&f->warned);
    free(f->words);
    free(f->path);
}
