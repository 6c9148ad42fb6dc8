/* What `scheduler_10x` prints of a running scheduler: status, jobs, health, metrics. Everything
 * is asked of the daemon at that moment. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/compat/pytext.h"
#include "cli/compat/scheduler.h"
#include "cli/compat/scheduler10x.h"
#include "cli/render.h"
#include "cli/watch.h"
#include "wire/client.h"

#define ACTIVE_SHOWN 5
#define ID_SHOWN     8
#define MOST_JOBS    10000
#define WATCH_MS     2000
#define LOW_FROM     11 /* priorities of the low band, and of the high one below 0 */

struct picture {
    const struct x10 *x;
    bool detailed, as_json;
};

/* -------------------------------------------------------------------------- jobs */

/* As people give it: lower first. */
static int64_t
priority_of(const json_t *job)
{
    return -answer_int(job, "priority", 0);
}

static const char *
status_of(const json_t *job)
{
    static const char *const words[][2] = {{"COMPLETED", "completed"},
                                           {"FAILED", "failed"},
                                           {"CANCELLED", "cancelled"},
                                           {"TIMEOUT", "timeout"},
                                           {"OUT_OF_MEMORY", "failed"}};
    const char *state = answer_str(job, "state");

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(state, words[i][0]) == 0)
            return words[i][1];
    }
    if (render_state_is_final(state))
        return "failed";
    return render_state_is_active(state) ? "running" : "queued";
}

static void
add_gpus(struct buf *out, const json_t *job)
{
    size_t i;
    json_t *gpu;

    buf_addc(out, '[');
    json_array_foreach(json_object_get(job, "gpus"), i, gpu)
        buf_addf(out, "%s%lld", i ? ", " : "", (long long)answer_int(gpu, "index", 0));
    buf_addc(out, ']');
}

struct bands {
    int64_t total, high, normal, low, active;
    int64_t oldest_us; /* 0: nobody waits */
};

static struct bands
count_bands(const json_t *jobs)
{
    struct bands b = {0};
    size_t i;
    json_t *job;

    json_array_foreach(jobs, i, job)
    {
        int64_t p = priority_of(job), at = answer_time_us(job, "submitted");

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

/* ------------------------------------------------------------------------ status */

/* All that status shows, once asked. */
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

static int
ask_facts(const struct x10 *x, struct facts *f, struct err *e)
{
    int64_t started = answer_int(x->about, "started_us", clock_wall_us());
    auto_json json_t *ended = NULL;

    *f = (struct facts){.word = "UNKNOWN"};
    if (sched_state_read(x->state_file, &f->state, e) < 0)
        return -1;
    if (!x->client)
        return 0;
    f->jobs = x10_live_jobs(x, e);
    if (!f->jobs)
        return -1;
    ended = x10_ended_jobs(x, started, MOST_JOBS, e);
    if (!ended || client_call(x->client, "health", NULL, &f->health, e) < 0)
        return -1;
    f->bands = count_bands(f->jobs);
    f->processed = (int64_t)json_array_size(ended);
    f->uptime_s = (double)(clock_wall_us() - started) / 1e6;
    f->word = x10_health_word(f->health);
    return 0;
}

static const char *
icon_of(const char *word)
{
    if (strcmp(word, "HEALTHY") == 0)
        return "✅";
    return strcmp(word, "DEGRADED") == 0 ? "⚠️ " : strcmp(word, "UNKNOWN") == 0 ? "❔" : "❌";
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
        add_gpus(out, job);
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
    buf_addf(out, "\n%s Health: %s\n", icon_of(f->word), f->word);
}

/* How unevenly what is given away lies: 0 none or all alike, towards 1 many parts free. */
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
                                      gpus, "priority", (json_int_t)priority_of(job),
                                      "runtime_s", (double)answer_int(job, "run_ms", 0) / 1000,
                                      "log_file",
                                      json_string_value(json_object_get(job, "log"))));
    }
    return all;
}

static json_t *
health_of(const struct facts *f)
{
    json_t *names = json_array(), *check;
    size_t i, n = 0, good = 0;

    json_array_foreach(json_object_get(f->health, "checks"), i, check)
    {
        json_array_append(names, json_object_get(check, "name"));
        good += strcmp(answer_str(check, "state"), "bad") != 0;
        n++;
    }
    return json_pack("{s:s,s:f,s:I,s:o,s:i,s:f}", "current_status", f->word,
                     "health_ratio_recent", n ? (double)good / (double)n : 0.0, "total_checks",
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
draw(const struct picture *p, struct buf *out, struct err *e)
{
    struct facts f;
    int rc = ask_facts(p->x, &f, e);

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
    struct picture p = {x, detailed, as_json};
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

/* --------------------------------------------------------------------- list-jobs */

static void
add_rows(struct buf *out, const json_t *jobs, const char *wanted)
{
    size_t i;
    json_t *job;

    json_array_foreach(jobs, i, job)
    {
        const char *status = status_of(job);
        auto_buf struct buf gpus = BUF_INIT;
        auto_free char *script = NULL;

        if (strcmp(wanted, "all") != 0 && strcmp(wanted, status) != 0)
            continue;
        script = x10_script_of(job);
        add_gpus(&gpus, job);
        buf_addf(out, "%-8lld  %-10s  %8lld  %-10s  %s\n", (long long)answer_int(job, "id", 0),
                 status, (long long)priority_of(job), buf_str(&gpus), script);
    }
}

int
x10_list(const struct x10 *x, const char *status)
{
    auto_buf struct buf out = BUF_INIT;
    auto_json json_t *ended = NULL, *live = NULL;
    struct err e = {0};
    bool past = strcmp(status, "running") != 0 && strcmp(status, "queued") != 0;

    if (!x->client)
        return x10_fail("Error: no scheduler runs here; 'scheduler_10x start' starts one");
    if ((past && !(ended = x10_ended_jobs(x, 0, MOST_JOBS, &e))) ||
        !(live = x10_live_jobs(x, &e)))
        return x10_fail("Error: %s", e.text);
    buf_addf(&out, "%-8s  %-10s  %8s  %-10s  %s\n", "ID", "STATUS", "PRIORITY", "GPUS",
             "SCRIPT");
    add_rows(&out, ended, status);
    add_rows(&out, live, status);
    return cli_put(&out);
}

/* ------------------------------------------------------------------------ health */

const char *
x10_health_word(const json_t *health)
{
    int bad = 0, disk = 0;
    size_t i;
    json_t *check;

    if (!health)
        return "UNKNOWN";
    json_array_foreach(json_object_get(health, "checks"), i, check)
    {
        if (strcmp(answer_str(check, "state"), "bad") != 0)
            continue;
        bad++;
        disk += strcmp(answer_str(check, "name"), "disk") == 0;
    }
    if (bad == 0)
        return "HEALTHY";
    if (bad == disk)
        return "DEGRADED";
    return bad < 3 ? "UNHEALTHY" : "CRITICAL";
}

int
x10_health(const struct x10 *x)
{
    auto_json json_t *health = NULL;
    auto_buf struct buf out = BUF_INIT, rows = BUF_INIT;
    struct err e = {0};
    int n = 0, good = 0;
    const char *word;
    size_t i;
    json_t *check;

    if (!x->client)
        return x10_fail("Error: no scheduler runs here; 'scheduler_10x start' starts one");
    if (client_call(x->client, "health", NULL, &health, &e) < 0)
        return x10_fail("Error: %s", e.text);
    word = x10_health_word(health);
    json_array_foreach(json_object_get(health, "checks"), i, check)
    {
        const char *state = answer_str(check, "state");
        bool bad = strcmp(state, "bad") == 0;

        n++;
        good += !bad;
        buf_addf(&rows, "  %s %s: %s\n",
                 bad                          ? "❌"
                 : strcmp(state, "warn") == 0 ? "⚠️ "
                                              : "✅",
                 answer_str(check, "name"), answer_str(check, "text"));
    }
    buf_addf(&out, "🏥 System Health\n==============================\nStatus: %s %s\n",
             icon_of(word), word);
    buf_addf(&out, "Checks Passed: %d of %d\n\n%s", good, n, buf_str(&rows));
    if (cli_put(&out))
        return 1;
    return strcmp(word, "HEALTHY") == 0 || strcmp(word, "DEGRADED") == 0 ? 0 : 1;
}

/* ----------------------------------------------------------------------- metrics */

static int
by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static double
median_s(int64_t *ms, size_t n)
{
    if (n == 0)
        return 0;
    qsort(ms, n, sizeof *ms, by_size);
    return (double)(ms[(n - 1) / 2] + ms[n / 2]) / 2000;
}

static json_t *
job_metrics(const json_t *ended)
{
    size_t n = json_array_size(ended), ran = 0, i;
    auto_free int64_t *ms = xcalloc(n + 1, sizeof *ms);
    json_t *counts = json_object(), *job;
    double sum = 0;

    json_array_foreach(ended, i, job)
    {
        const char *status = status_of(job);

        json_object_set_new(counts, status, json_integer(answer_int(counts, status, 0) + 1));
        if (answer_time_us(job, "started") == 0)
            continue;
        ms[ran] = answer_int(job, "run_ms", 0);
        sum += (double)ms[ran++] / 1000;
    }
    return json_pack("{s:I,s:f,s:f,s:o}", "total_jobs", (json_int_t)n, "avg_execution_time_s",
                     ran ? sum / (double)ran : 0.0, "median_execution_time_s",
                     median_s(ms, ran), "event_counts", counts);
}

#define UTIL_FIELD 4 /* of a point of a card's series */

static json_t *
gpu_metrics(const json_t *series)
{
    json_t *all = json_object(), *gpu, *point;
    size_t i, k;

    json_array_foreach(json_object_get(series, "gpus"), i, gpu)
    {
        auto_free char *name = xasprintf("%lld", (long long)answer_int(gpu, "index", 0));
        double sum = 0, peak = 0;
        json_int_t n = 0;

        json_array_foreach(json_object_get(gpu, "points"), k, point)
        {
            const json_t *util = json_array_get(point, UTIL_FIELD);
            double v = json_number_value(util);

            if (!json_is_number(util))
                continue;
            sum += v;
            peak = v > peak ? v : peak;
            n++;
        }
        json_object_set_new(all, name,
                            json_pack("{s:f,s:f,s:I}", "avg_utilization",
                                      n ? sum / (double)n : 0.0, "peak_utilization", peak,
                                      "samples", n));
    }
    return all;
}

json_t *
x10_metrics_object(const struct x10 *x, struct err *e)
{
    auto_json json_t *ended = NULL, *series = NULL, *numbers = NULL;
    json_t *system = NULL;

    if (x->client) {
        ended = x10_ended_jobs(x, 0, MOST_JOBS, e);
        if (!ended ||
            client_call(x->client, "series", json_pack("{s:b,s:i}", "gpus", 1, "points", 4000),
                        &series, e) < 0 ||
            client_call(x->client, "metrics", NULL, &numbers, e) < 0)
            return NULL;
        system = json_incref(json_object_get(numbers, "metrics"));
    }
    return json_pack("{s:f,s:o,s:o,s:o}", "timestamp", (double)clock_wall_us() / 1e6,
                     "job_metrics", job_metrics(ended), "gpu_metrics", gpu_metrics(series),
                     "system_metrics", system ? system : json_object());
}

int
x10_metrics(const struct x10 *x)
{
    auto_json json_t *m = NULL;
    auto_buf struct buf out = BUF_INIT;
    struct sched_state state;
    struct err e = {0};
    const json_t *jobs, *gpu;
    const char *name;

    if (!x->client)
        return x10_fail("Error: no scheduler runs here; 'scheduler_10x start' starts one");
    m = x10_metrics_object(x, &e);
    if (!m || sched_state_read(x->state_file, &state, &e) < 0)
        return x10_fail("Error: %s", e.text);
    jobs = json_object_get(m, "job_metrics");
    buf_addf(&out,
             "📊 Performance Metrics\n==============================\nTotal Jobs: %lld\n"
             "Avg Execution Time: %.1fs\nMedian Execution Time: %.1fs\n\nGPU Utilization:\n",
             (long long)answer_int(jobs, "total_jobs", 0),
             json_number_value(json_object_get(jobs, "avg_execution_time_s")),
             json_number_value(json_object_get(jobs, "median_execution_time_s")));
    json_object_foreach(json_object_get(m, "gpu_metrics"), name, gpu)
    {
        long index = strtol(name, NULL, 10);

        buf_addf(&out, "  GPU %s: %.1f%% avg, %.1f%% peak%s\n", name,
                 json_number_value(json_object_get(gpu, "avg_utilization")),
                 json_number_value(json_object_get(gpu, "peak_utilization")),
                 index < GPU_MAX && state.paused >> index & 1 ? " (PAUSED)" : "");
    }
    return cli_put(&out);
}
