/* The summary at the end of `berth run`: results and the paths of logs. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/common/cli.h"
#include "cli/run/run_verb.h"
#include "cli/table/render.h"
#include "wire/client.h"

#define LISTED_MAX 20

struct part {
    size_t n;
    const char *word;
};

static void
add_parts(const struct part *parts, size_t n, struct buf *out)
{
    bool any = false;

    for (size_t i = 0; i < n; i++) {
        if (parts[i].n == 0)
            continue;
        buf_addf(out, "%s%zu %s", any ? ", " : "", parts[i].n, parts[i].word);
        any = true;
    }
}

static void
add_ended(const struct run_counts *c, struct buf *out)
{
    const struct part parts[] = {
        {c->completed, "completed"}, {c->failed, "failed"},       {c->timeout, "timed out"},
        {c->oom, "out of memory"},   {c->cancelled, "cancelled"}, {c->infeasible, "infeasible"},
        {c->lost, "lost"},
    };

    add_parts(parts, sizeof parts / sizeof parts[0], out);
}

void
run_say_before(const struct run *run)
{
    struct run_counts all;
    struct run_counts ended = {0};
    auto_buf struct buf line = BUF_INIT;
    struct run_jobs before = {0};

    run_jobs_count(&run->jobs, &all);
    if (all.before == 0)
        return;
    for (size_t i = 0; i < run->jobs.n; i++) {
        if (run->jobs.all[i].before) {
            struct run_job *copy = run_jobs_get(&before, run->jobs.all[i].id);

            *copy = run->jobs.all[i];
            copy->command = NULL;
        }
    }
    run_jobs_count(&before, &ended);
    run_jobs_free(&before);
    add_ended(&ended, &line);
    cli_say("%zu of %zu jobs had already run: %s; --fresh runs them again", ended.total,
            all.total, buf_str(&line));
}

/* Adds GPU time and mean utilisation of the jobs that ended in this run. */
static void
add_use(const struct run *run, struct buf *out)
{
    int64_t gpu_ms = 0;
    int64_t known_ms = 0;
    int64_t busy = 0;
    uint64_t gpus = 0;
    char span[24];
    int n_gpus;

    for (size_t i = 0; i < run->jobs.n; i++) {
        const struct run_job *job = &run->jobs.all[i];
        int64_t ms = job->run_ms * __builtin_popcountll(job->gpus);

        if (job->before || ms <= 0)
            continue;
        gpus |= job->gpus;
        gpu_ms += ms;
        known_ms += job->util >= 0 ? ms : 0;
        busy += job->util >= 0 ? ms * job->util : 0;
    }
    if (gpu_ms <= 0)
        return;
    n_gpus = __builtin_popcountll(gpus);
    buf_addf(out, " GPU time %s", format_duration(gpu_ms, span));
    if (known_ms > 0)
        buf_addf(out, ", %d GPU%s busy %lld %% of it", n_gpus, n_gpus == 1 ? "" : "s",
                 (long long)(busy / known_ms));
    buf_addc(out, '.');
}

static void
add_verdicts(const struct run *run, struct buf *out)
{
    const struct part parts[] = {
        {(size_t)run->under, "too low"},
        {(size_t)run->over, "too high"},
    };

    if (run->under + run->over == 0)
        return;
    buf_adds(out, " Declared VRAM: ");
    add_parts(parts, 2, out);
    buf_addc(out, '.');
}

static bool
went_wrong(const struct run_job *job)
{
    return (job->in_file || job->started) && render_state_is_final(job->state) &&
           strcmp(job->state, "COMPLETED") != 0 &&
           !(job->cancel && strcmp(job->state, "CANCELLED") == 0);
}

static void
add_wrong_line(struct run *run, const json_t *job, struct buf *out)
{
    auto_buf struct buf word = BUF_INIT;
    auto_buf struct buf id = BUF_INIT;
    auto_buf struct buf padded = BUF_INIT;
    const char *command = answer_str(job, "command");
    bool ran = json_array_size(json_object_get(job, "attempts")) > 0;
    const char *log = ran ? answer_str(job, "log") : "-";
    enum style style;

    render_ending(&word, job, &style);
    buf_addf(&id, "  %*lld  ", run->id_width, (long long)answer_int(job, "id", 0));
    buf_add(out, id.data, id.len);
    buf_addf(&padded, "%-15s", buf_str(&word));
    term_add(&run->term, out, style, buf_str(&padded));
    buf_adds(out, "  ");
    text_add_safe(out, log, strlen(log), 0);
    buf_adds(out, "  ");
    text_add_safe(out, command, strlen(command), 80);
    buf_addc(out, '\n');
}

/* Lists failed jobs with the paths of their logs. Only the daemon knows these; without it,
 * prints only counts. */
static void
list_wrong(struct run *run, struct buf *out)
{
    auto_json json_t *result = NULL;
    json_t *select = json_array();
    struct err e = {0};
    size_t n = 0;
    size_t i;
    json_t *job;

    for (i = 0; i < run->jobs.n; i++) {
        if (went_wrong(&run->jobs.all[i]) && n++ < LISTED_MAX)
            json_array_append_new(select, json_sprintf("%lld", (long long)run->jobs.all[i].id));
    }
    if (n == 0) {
        json_decref(select);
        return;
    }
    if (client_call(run->client, "jobs", json_pack("{s:o,s:b}", "select", select, "all", 1),
                    &result, &e) < 0)
        return;
    json_array_foreach(json_object_get(result, "jobs"), i, job) add_wrong_line(run, job, out);
    if (n > LISTED_MAX)
        buf_addf(out, "  and %zu more: berth queue --all state:failed\n", n - LISTED_MAX);
}

int
run_summary(struct run *run)
{
    auto_buf struct buf out = BUF_INIT;
    struct run_counts c;

    run_jobs_count(&run->jobs, &c);
    buf_addf(&out, "%zu job%s: ", c.total, c.total == 1 ? "" : "s");
    if (c.total == 0)
        buf_adds(&out, "none");
    add_ended(&c, &out);
    buf_addc(&out, '.');
    add_use(run, &out);
    add_verdicts(run, &out);
    buf_addc(&out, '\n');
    list_wrong(run, &out);
    cli_put(&out);
    if (c.highest == 0)
        return cli_output_status();
    return c.highest > 255 ? 255 : (int)c.highest;
}
