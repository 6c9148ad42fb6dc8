/* Turns the daemon's events into state and lines of text. Notifications are queued and handled
 * between requests, so that an event about a job is never handled before the answer to the
 * sync that created the job. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/ask/many_requests.h"
#include "cli/common/cli.h"
#include "cli/run/run_verb.h"
#include "cli/table/render.h"
#include "wire/client.h"

/* `berth queue` lists more waiting jobs than this. */
#define WAITING_SAID_MAX 5

void
run_on_notify(void *ctx, const char *method, json_t *params)
{
    struct run *run = ctx;

    if (strcmp(method, "event") == 0)
        json_array_append(run->queue, params);
}

/* Erases the bar first, so that no line is appended to it. */
void
run_flush(struct run *run)
{
    auto_buf struct buf whole = BUF_INIT;

    if (run->out.len == 0)
        return;
    progress_erase(&run->progress, &whole);
    buf_add(&whole, run->out.data, run->out.len);
    buf_clear(&run->out);
    (void)cli_put(&whole);
}

/* --- lines --- */

/* "14:02:10  1  started    gpu 0    18.0 GiB of 24.0   python train.py" */
static void
add_line(struct run *run, int64_t at_us, int64_t id, enum style style, const char *word,
         const char *details, bool cut)
{
    auto_buf struct buf padded = BUF_INIT;
    auto_buf struct buf head = BUF_INIT;
    int room;

    render_clock(&head, at_us);
    if (id > 0)
        buf_addf(&head, "  %*lld  ", run->id_width, (long long)id);
    else
        buf_addf(&head, "  %*s  ", run->id_width, "-");
    buf_addf(&padded, "%-9s", word);
    buf_add(&run->out, head.data, head.len);
    term_add(&run->term, &run->out, style, buf_str(&padded));
    buf_adds(&run->out, "  ");
    room = run->term.columns - (int)(head.len + padded.len) - 2;
    text_add_safe(&run->out, details, strlen(details),
                  run->term.columns && cut ? (room > 20 ? room : 20) : 0);
    buf_addc(&run->out, '\n');
}

static bool
is_start(const char *kind)
{
    return strcmp(kind, "started") == 0 || strcmp(kind, "launched") == 0 ||
           strcmp(kind, "running") == 0;
}

static bool
is_wanted(struct run *run, const char *kind)
{
    if (strcmp(kind, "usage") == 0)
        return run->opt.verbose;
    if (strcmp(kind, "waiting") == 0)
        return !run->opt.quiet && run->waiting_said++ < WAITING_SAID_MAX;
    if (is_start(kind))
        return !run->opt.quiet;
    return true;
}

/* A line that ends in a command may be truncated; one that ends in a reason may not. */
static bool
may_be_cut(const json_t *event)
{
    const char *kind = answer_str(event, "kind");
    const char *state = answer_str(event, "state");

    if (strcmp(kind, "ended") == 0)
        return strcmp(state, "FAILED") == 0 || strcmp(state, "TIMEOUT") == 0 ||
               strcmp(state, "CANCELLED") == 0;
    return is_start(kind);
}

static void
show_event(struct run *run, const struct run_job *job, const json_t *event)
{
    const char *kind = answer_str(event, "kind");
    bool ends = strcmp(kind, "ended") == 0;
    auto_buf struct buf word = BUF_INIT;
    auto_buf struct buf details = BUF_INIT;
    const char *command = job && job->command ? job->command : answer_str(event, "command");
    int64_t at_us = answer_int(event, "at_us", 0);
    enum style style;

    if (!is_wanted(run, kind) || !render_event(event, command, &word, &details, &style))
        return;
    if (ends && run->opt.quiet && job && job->status == 0)
        return;
    if (at_us <= 0)
        at_us = clock_wall_us();
    add_line(run, at_us, job ? job->id : 0, style, buf_str(&word), buf_str(&details),
             may_be_cut(event));
    if (strcmp(kind, "waiting") == 0 && run->waiting_said == WAITING_SAID_MAX)
        buf_adds(&run->out, "          other jobs wait too; 'berth queue' lists them\n");
}

/* --- state --- */

static uint64_t
gpu_bits(const json_t *gpus)
{
    uint64_t bits = 0;
    size_t i;
    json_t *g;

    json_array_foreach(gpus, i, g)
    {
        json_int_t n = json_integer_value(json_is_object(g) ? json_object_get(g, "index") : g);

        if (n >= 0 && n < 64)
            bits |= UINT64_C(1) << n;
    }
    return bits;
}

static void
note_end(struct run *run, struct run_job *job, const json_t *event)
{
    const char *verdict = answer_str(event, "verdict");

    run_jobs_set_state(job, answer_str(event, "state"));
    job->status = answer_int(event, "exit_status", 1);
    job->signal = answer_int(event, "signal", 0);
    job->run_ms = answer_int(event, "run_ms", 0);
    job->util = answer_int(event, "util", -1);
    job->before = false;
    run->under += strcmp(verdict, "under") == 0;
    run->over += strcmp(verdict, "over") == 0 && !render_was_raised(event);
}

/* Updates the job. False: the event is not new. */
static bool
note_event(struct run *run, struct run_job *job, const json_t *event)
{
    const char *kind = answer_str(event, "kind");
    bool final = render_state_is_final(job->state) && !job->before;

    if (strcmp(kind, "ended") == 0) {
        if (final)
            return false;
        note_end(run, job, event);
    } else if (final) {
        return false;
    } else if (strcmp(kind, "started") == 0) {
        run_jobs_set_state(job, answer_str(event, "on")[0] ? "STARTING" : "RUNNING");
        job->started = true;
        job->gpus = gpu_bits(json_object_get(event, "gpus"));
    } else if (strcmp(kind, "launched") == 0) {
        run_jobs_set_state(job, "RUNNING");
    } else if (strcmp(kind, "requeued") == 0 || strcmp(kind, "released") == 0) {
        run_jobs_set_state(job, "PENDING");
    } else if (strcmp(kind, "held") == 0) {
        run_jobs_set_state(job, "HELD");
    } else if (strcmp(kind, "waiting") == 0) {
        return !render_state_is_active(job->state);
    }
    return true;
}

static bool
is_ours(const struct run *run, int64_t file)
{
    for (int i = 0; i < run->n_files; i++) {
        if (run->files[i].id == file)
            return true;
    }
    return false;
}

/* True for a job whose line was deleted before it ran: it has no result. */
static bool
was_taken_out(const struct run_job *job, const json_t *event)
{
    return !job->in_file && !job->started && strcmp(answer_str(event, "kind"), "ended") == 0;
}

static void
take_event(struct run *run, const json_t *event)
{
    int64_t seq = answer_int(event, "seq", 0);
    int64_t id = answer_int(event, "job", 0);
    struct run_job *job = id ? run_jobs_find(&run->jobs, id) : NULL;

    if (seq > 0 && seq <= run->last_seq)
        return;
    if (seq > 0)
        run->last_seq = seq;
    if (!job) {
        if (id == 0 && strcmp(answer_str(event, "kind"), "gpu") == 0)
            cli_say("GPUs: %s", answer_str(event, "text"));
        if (id == 0 && strcmp(answer_str(event, "kind"), "daemon") == 0 &&
            strcmp(answer_str(event, "state"), "stopping") == 0)
            snprintf(run->stopped_by, sizeof run->stopped_by, "%s", answer_str(event, "by"));
        return;
    }
    if (!is_ours(run, answer_int(event, "file", 0)))
        return;
    if (was_taken_out(job, event))
        run_jobs_set_state(job, "CANCELLED");
    else if (note_event(run, job, event))
        show_event(run, job, event);
}

void
run_drain_events(struct run *run)
{
    size_t i;
    json_t *event;

    json_array_foreach(run->queue, i, event) take_event(run, event);
    json_array_clear(run->queue);
    run_flush(run);
}

/* --- requests --- */

/* The kinds that take_event handles: with a thousand short jobs, each other kind would cause a
 * thousand wake-ups. */
static json_t *
wanted_kinds(const struct run *run)
{
    static const char *const kinds[] = {"started", "ended", "waiting",  "requeued", "exceeds",
                                        "warning", "held",  "released", "gpu",      "daemon"};
    json_t *list = json_array();

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        json_array_append_new(list, json_string(kinds[i]));
    if (run->hears_launches)
        json_array_append_new(list, json_string("launched"));
    if (run->opt.verbose)
        json_array_append_new(list, json_string("usage"));
    return list;
}

int
run_subscribe(struct run *run, struct err *e)
{
    auto_json json_t *result = NULL;
    size_t i;
    json_t *event;

    run->hears_launches = run_count_lines(run, run_line_is_on_slurm) > 0;
    json_t *params = json_pack("{s:b,s:o}", "follow", 1, "kinds", wanted_kinds(run));

    /* 0 would mean from now on, and miss events since the sync; a database without events is
     * followed from its first. */
    if (run->last_seq > 0)
        json_object_set_new(params, "since", json_integer(run->last_seq));
    if (run->n_files == 1)
        json_object_set_new(params, "file", json_integer(run->files[0].id));
    if (client_call(run->client, "events", params, &result, e) < 0)
        return -1;
    json_array_foreach(json_object_get(result, "events"), i, event) take_event(run, event);
    run_drain_events(run);
    return 0;
}

int
run_subscribe_more(struct run *run, struct err *e)
{
    bool wants = !run->hears_launches && run_count_lines(run, run_line_is_on_slurm) > 0;

    return wants ? run_subscribe(run, e) : 0;
}

/* Fetches the jobs with these ids (stolen), in parts. */
static int
fetch_jobs(struct run *run, json_t *ids, json_t **jobs, struct err *e)
{
    auto_json json_t *result = NULL;

    *jobs = NULL;
    if (json_array_size(ids) == 0) {
        json_decref(ids);
        return 0;
    }
    if (many_call(run->client, "jobs", json_pack("{s:o,s:b}", "select", ids, "all", 1), &result,
                  e) < 0)
        return -1;
    *jobs = json_incref(json_object_get(result, "jobs"));
    return 0;
}

static json_t *
id_word(const struct run_job *job)
{
    return json_sprintf("%lld", (long long)job->id);
}

int
run_reconcile(struct run *run, struct err *e)
{
    json_t *ids = json_array();
    auto_json json_t *jobs = NULL;
    json_t *row;
    size_t i;

    for (i = 0; i < run->jobs.n; i++) {
        const struct run_job *job = &run->jobs.all[i];

        if (render_state_is_final(job->synced) && !render_state_is_final(job->state))
            json_array_append_new(ids, id_word(job));
    }
    if (fetch_jobs(run, ids, &jobs, e) < 0)
        return -1;
    json_array_foreach(jobs, i, row)
    {
        struct run_job *job = run_jobs_find(&run->jobs, answer_int(row, "id", 0));

        if (!job || !render_state_is_final(answer_str(row, "state")))
            continue;
        json_object_set_new(row, "kind", json_string("ended"));
        note_end(run, job, row);
        show_event(run, job, row);
    }
    run_flush(run);
    return 0;
}

int
run_show_running(struct run *run, struct err *e)
{
    json_t *ids = json_array();
    auto_json json_t *jobs = NULL;
    json_t *row;
    size_t i;

    for (i = 0; i < run->jobs.n; i++) {
        if (render_state_is_active(run->jobs.all[i].synced))
            json_array_append_new(ids, id_word(&run->jobs.all[i]));
    }
    if (fetch_jobs(run, ids, &jobs, e) < 0)
        return -1;
    json_array_foreach(jobs, i, row)
    {
        struct run_job *job = run_jobs_find(&run->jobs, answer_int(row, "id", 0));

        if (!job || render_state_is_final(job->state))
            continue;
        job->gpus = gpu_bits(json_object_get(row, "gpus"));
        json_object_set_new(row, "kind", json_string("running"));
        show_event(run, job, row);
    }
    run_flush(run);
    return 0;
}
