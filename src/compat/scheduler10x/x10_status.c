/* `scheduler_10x status`: as text, detailed, as JSON, or repeatedly. Allocations and pauses
 * come from the state file, which the scheduler maintains; the rest comes from the daemon. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/ask/redraw.h"
#include "cli/common/cli.h"
#include "cli/table/render.h"
#include "compat/py/pytext.h"
#include "compat/scheduler/scheduler.h"
#include "compat/scheduler10x/scheduler10x.h"
#include "wire/client.h"

#define ACTIVE_SHOWN 5
#define WATCH_MS     2000
#define SETTLED_US   60000000 /* upper bound on the delay until an end is reported */
#define LOW_FROM     11       /* priorities of the low band; below 0 is the high band */

/* Ended jobs counted already, which need not be fetched again. */
struct counted {
    int64_t n;
    int64_t until_us; /* end time up to which jobs are counted; 0: none yet */
};

struct picture {
    const struct x10 *x;
    bool detailed, as_json;
    struct counted ended;
};

struct bands {
    int64_t total, high, normal, low, active;
    int64_t oldest_us; /* submission of the oldest pending job; 0: none */
};

static struct bands
count_bands(const json_t *jobs)
{
    struct bands b = {0};
    size_t i;
    json_t *job;

    json_array_foreach(jobs, i, job)
    {
        int64_t p = x10_priority_of(job), at = answer_time_us(job, "submitted");

        if (render_state_is_active(answer_str(job, "state"))) {
            b.active++;
            continue;
        }
        b.total++;
        b.high += p < 0;
        b.normal += p >= 0 && p < LOW_FROM;
        b.low += p >= LOW_FROM;
        if (!b.oldest_us || at < b.oldest_us)
            b.oldest_us = at;
    }
    return b;
}

/* Everything that status shows. */
struct facts {
    json_t *jobs, *health; /* owned */
    struct sched_state state;
    struct bands bands;
    int64_t processed;
    double uptime_s;
    const char *word;
};

static void
facts_free(struct facts *f)
{
    json_decref(f->jobs);
    json_decref(f->health);
}

/* Count jobs ended since the scheduler's start; repeated calls fetch only recent ones. */
static int
count_ended(const struct x10 *x, int64_t started_us, struct counted *c, int64_t *n,
            struct err *e)
{
    int64_t from_us = c->until_us ? c->until_us : started_us;
    int64_t settled_us = clock_wall_us() - SETTLED_US;
    auto_json json_t *ended = x10_ended_jobs(x, from_us, 0, json_pack("[s]", "ended"), e);
    size_t i;
    json_t *job;

    if (!ended)
        return -1;
    *n = c->n + (int64_t)json_array_size(ended);
    if (settled_us <= from_us)
        return 0;
    json_array_foreach(ended, i, job) c->n += answer_time_us(job, "ended") < settled_us;
    c->until_us = settled_us;
    return 0;
}

static int
ask_facts(struct picture *p, struct facts *f, struct err *e)
{
    const struct x10 *x = p->x;
    int64_t started = answer_int(x->about, "started_us", clock_wall_us());

    *f = (struct facts){.word = "UNKNOWN"};
    if (sched_state_read(x->state_file, &f->state, e) < 0)
        return -1;
    if (!x->client)
        return 0;
    f->jobs = x10_live_jobs(x, e);
    if (!f->jobs || count_ended(x, started, &p->ended, &f->processed, e) < 0 ||
        client_call(x->client, "health", NULL, &f->health, e) < 0)
        return -1;
    f->bands = count_bands(f->jobs);
    f->uptime_s = (double)(clock_wall_us() - started) / 1e6;
    f->word = x10_health_word(f->health);
    return 0;
}

static void
add_active(struct buf *out, const struct facts *f)
{
    int64_t shown = 0;
    size_t i;
    json_t *job;

    json_array_foreach(f->jobs, i, job)
    {
        auto_free char *script = NULL;

        if (!render_state_is_active(answer_str(job, "state")) || shown == ACTIVE_SHOWN)
            continue;
        shown++;
        script = x10_script_of(job);
        buf_addf(out, "  %lld: %s (GPUs: ", (long long)answer_int(job, "id", 0), script);
        x10_add_gpus(out, job);
        buf_adds(out, ")\n");
    }
    if (f->bands.active > shown)
        buf_addf(out, "  ... and %lld more\n", (long long)(f->bands.active - shown));
}

static void
add_text(struct buf *out, const struct picture *p, const struct facts *f)
{
    buf_adds(out, "🚀 Ultra GPU Scheduler Status\n"
                  "==================================================\n");
    buf_addf(out,
             "Version: " X10_VERSION
             "\nStatus: %s\nUptime: %.0f seconds\nJobs Processed: %lld\n\n",
             p->x->client ? "running" : "stopped", f->uptime_s, (long long)f->processed);
    buf_addf(out,
             "📋 Queue Status:\n  Total Jobs: %lld\n  High Priority: %lld\n"
             "  Normal Priority: %lld\n  Low Priority: %lld\n\n🎮 GPU Resources:\n",
             (long long)f->bands.total, (long long)f->bands.high, (long long)f->bands.normal,
             (long long)f->bands.low);
    for (int i = 0; i < f->state.n; i++) {
        if (f->state.paused >> i & 1)
            buf_addf(out, "  GPU %d: PAUSED\n", i);
        else
            buf_addf(out, "  GPU %d: %.0f%% allocated\n", i, f->state.alloc[i] * 100);
    }
    buf_addf(out, "\n🏃 Active Jobs: %lld\n", (long long)f->bands.active);
    if (p->detailed)
        add_active(out, f);
    buf_addf(out, "\n%s Health: %s\n", x10_icon_of(f->word), f->word);
}

/* Fraction of GPUs that are only partly allocated: 0 none, 1 all. */
static double
fragmentation_of(const struct sched_state *s)
{
    int parts = 0;

    for (int i = 0; i < s->n; i++)
        parts += s->alloc[i] > 0.001 && s->alloc[i] < 0.999;
    return s->n ? (double)parts / s->n : 0;
}

static json_t *
resources_of(const struct facts *f)
{
    json_t *status = json_array(), *paused = json_array(), *per_gpu = json_object();
    double total = 0;
    size_t k, m;
    json_t *job, *gpu;

    for (int i = 0; i < f->state.n; i++) {
        auto_free char *name = xasprintf("%d", i);
        json_int_t n = 0;

        json_array_foreach(f->jobs, k, job)
        {
            if (!render_state_is_active(answer_str(job, "state")))
                continue;
            json_array_foreach(json_object_get(job, "gpus"), m, gpu) n +=
                answer_int(gpu, "index", -1) == i;
        }
        total += f->state.alloc[i];
        json_array_append_new(status, json_real(f->state.alloc[i]));
        json_object_set_new(per_gpu, name, json_integer(n));
        if (f->state.paused >> i & 1)
            json_array_append_new(paused, json_integer(i));
    }
    return json_pack("{s:o,s:o,s:f,s:f,s:f,s:o}", "gpu_status", status, "paused_gpus", paused,
                     "total_allocation", total, "avg_allocation_per_gpu",
                     f->state.n ? total / f->state.n : 0.0, "fragmentation_score",
                     fragmentation_of(&f->state), "active_jobs_per_gpu", per_gpu);
}

static json_t *
active_of(const struct facts *f)
{
    json_t *all = json_object(), *job;
    size_t i, k;

    json_array_foreach(f->jobs, i, job)
    {
        auto_free char *id = xasprintf("%lld", (long long)answer_int(job, "id", 0));
        auto_free char *script = NULL;
        json_t *gpus, *gpu;

        if (!render_state_is_active(answer_str(job, "state")))
            continue;
        script = x10_script_of(job);
        gpus = json_array();
        json_array_foreach(json_object_get(job, "gpus"), k, gpu)
            json_array_append(gpus, json_object_get(gpu, "index"));
        json_object_set_new(all, id,
                            json_pack("{s:s,s:o,s:I,s:f,s:s?}", "script", script, "gpu_ids",
                                      gpus, "priority", (json_int_t)x10_priority_of(job),
                                      "runtime_s", (double)answer_int(job, "run_ms", 0) / 1000,
                                      "log_file",
                                      json_string_value(json_object_get(job, "log"))));
    }
    return all;
}

/* Count checks by name, since GPUs that accept no jobs have one each. */
static json_t *
health_of(const struct facts *f)
{
    auto_json json_t *bad = json_array();
    json_t *names = json_array(), *check;
    size_t i, n;

    json_array_foreach(json_object_get(f->health, "checks"), i, check)
    {
        const char *name = answer_str(check, "name");

        if (!answer_has_word(names, name))
            json_array_append_new(names, json_string(name));
        if (strcmp(answer_str(check, "state"), "bad") == 0 && !answer_has_word(bad, name))
            json_array_append_new(bad, json_string(name));
    }
    n = json_array_size(names);
    return json_pack("{s:s,s:f,s:I,s:o,s:i,s:f}", "current_status", f->word,
                     "health_ratio_recent",
                     n ? 1 - (double)json_array_size(bad) / (double)n : 0.0, "total_checks",
                     (json_int_t)n, "check_names", names, "history_size", 1, "last_check_time",
                     (double)clock_wall_us() / 1e6);
}

static int
add_json(struct buf *out, const struct picture *p, const struct facts *f, struct err *e)
{
    json_t *metrics = x10_metrics_object(p->x, e), *root, *oldest = json_null();

    if (!metrics)
        return -1;
    if (f->bands.oldest_us)
        oldest = json_real((double)f->bands.oldest_us / 1e6);
    root = json_pack(
        "{s:{s:s,s:f,s:I,s:s},s:{s:I,s:I,s:I,s:I,s:o},s:o,s:o,s:o,s:o}", "scheduler", "version",
        X10_VERSION, "uptime_s", f->uptime_s, "jobs_processed", (json_int_t)f->processed,
        "status", p->x->client ? "running" : "stopped", "queue", "total_jobs",
        (json_int_t)f->bands.total, "high_priority_size", (json_int_t)f->bands.high,
        "normal_priority_size", (json_int_t)f->bands.normal, "low_priority_size",
        (json_int_t)f->bands.low, "oldest_queued_job", oldest, "resources", resources_of(f),
        "active_jobs", active_of(f), "health", health_of(f), "metrics", metrics);
    py_add_json(out, root, 2);
    buf_addc(out, '\n');
    json_decref(root);
    return 0;
}

static int
draw(struct picture *p, struct buf *out, struct err *e)
{
    struct facts f;
    int rc = ask_facts(p, &f, e);

    if (rc == 0 && p->as_json)
        rc = add_json(out, p, &f, e);
    else if (rc == 0)
        add_text(out, p, &f);
    facts_free(&f);
    return rc;
}

static int
draw_again(void *ctx, struct client *c, const struct term *term, struct buf *out, struct err *e)
{
    (void)c;
    (void)term;
    return draw(ctx, out, e);
}

int
x10_status(const struct x10 *x, bool detailed, bool as_json, bool watch)
{
    struct picture p = {.x = x, .detailed = detailed, .as_json = as_json};
    auto_buf struct buf out = BUF_INIT;
    struct err e = {0};

    if (watch && x->client) {
        const struct cli cli = {.dir = json_string_value(json_object_get(x->about, "dir")),
                                .socket =
                                    json_string_value(json_object_get(x->about, "socket"))};

        return watch_run(&cli, WATCH_MS, draw_again, &p);
    }
    if (draw(&p, &out, &e) < 0)
        return x10_fail("Error: %s", e.text);
    return cli_put(&out);
}
