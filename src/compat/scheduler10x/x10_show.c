/* Other output of `scheduler_10x` on a running scheduler: jobs, health, metrics, all asked
 * from the daemon. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/common/cli.h"
#include "cli/table/render.h"
#include "compat/scheduler/scheduler.h"
#include "compat/scheduler10x/scheduler10x.h"
#include "wire/client.h"

#define LISTED_MAX 10000 /* newest ended jobs */

/* --- jobs --- */

/* Users' scale: lower runs first. */
int64_t
x10_priority_of(const json_t *job)
{
    return -answer_int(job, "priority", 0);
}

/* True if the scheduler cancelled the job to prevent a retry. */
static bool
was_given_up(const json_t *job)
{
    int64_t code = answer_int(job, "exit_code", 0);

    return code == SCHED_OVER_MEMORY || code == SCHED_NOT_ALLOWED;
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

    if (strcmp(state, "CANCELLED") == 0 && was_given_up(job))
        return "failed";
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(state, words[i][0]) == 0)
            return words[i][1];
    }
    if (render_state_is_final(state))
        return "failed";
    return render_state_is_active(state) ? "running" : "queued";
}

void
x10_add_gpus(struct buf *out, const json_t *job)
{
    size_t i;
    json_t *gpu;

    buf_addc(out, '[');
    json_array_foreach(json_object_get(job, "gpus"), i, gpu)
        buf_addf(out, "%s%lld", i ? ", " : "", (long long)answer_int(gpu, "index", 0));
    buf_addc(out, ']');
}

/* --- list-jobs --- */

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
        x10_add_gpus(&gpus, job);
        buf_addf(out, "%-8lld  %-10s  %8lld  %-10s  %s\n", (long long)answer_int(job, "id", 0),
                 status, (long long)x10_priority_of(job), buf_str(&gpus), script);
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
        return x10_nobody(x, "Error");
    if ((past && !(ended = x10_ended_jobs(x, 0, LISTED_MAX,
                                          json_pack("[s,s,s,s,s,s,s]", "id", "state", "command",
                                                    "name", "priority", "gpus", "exit_code"),
                                          &e))) ||
        !(live = x10_live_jobs(x, &e)))
        return x10_fail("Error: %s", e.text);
    buf_addf(&out, "%-8s  %-10s  %8s  %-10s  %s\n", "ID", "STATUS", "PRIORITY", "GPUS",
             "SCRIPT");
    add_rows(&out, ended, status);
    add_rows(&out, live, status);
    return cli_put(&out);
}

/* --- health --- */

const char *
x10_icon_of(const char *word)
{
    if (strcmp(word, "HEALTHY") == 0)
        return "✅";
    return strcmp(word, "DEGRADED") == 0 ? "⚠️ " : strcmp(word, "UNKNOWN") == 0 ? "❔" : "❌";
}

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
        return x10_nobody(x, "Error");
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
             x10_icon_of(word), word);
    buf_addf(&out, "Checks Passed: %d of %d\n\n%s", good, n, buf_str(&rows));
    if (cli_put(&out))
        return 1;
    return strcmp(word, "HEALTHY") == 0 || strcmp(word, "DEGRADED") == 0 ? 0 : 1;
}

/* --- metrics --- */

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
    size_t low = (n - 1) / 2, high = n / 2;
    qsort(ms, n, sizeof *ms, by_size);
    return (double)(ms[low] + ms[high]) / 2000;
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

#define UTIL_FIELD 4 /* index within a point of a GPU's series */

/* Only GPUs that the scheduler manages; the daemon may have more. */
static json_t *
gpu_metrics(const json_t *series, int64_t n_gpus)
{
    json_t *all = json_object(), *gpu, *point;
    size_t i, k;

    json_array_foreach(json_object_get(series, "gpus"), i, gpu)
    {
        auto_free char *name = xasprintf("%lld", (long long)answer_int(gpu, "index", 0));
        double sum = 0, peak = 0;
        json_int_t n = 0;

        if (answer_int(gpu, "index", 0) >= n_gpus)
            continue;
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
        ended = x10_ended_jobs(
            x, 0, 0, json_pack("[s,s,s,s]", "state", "started", "run_ms", "exit_code"), e);
        if (!ended ||
            client_call(x->client, "series", json_pack("{s:b,s:i}", "gpus", 1, "points", 4000),
                        &series, e) < 0 ||
            client_call(x->client, "metrics", NULL, &numbers, e) < 0)
            return NULL;
        system = json_incref(json_object_get(numbers, "metrics"));
    }
    return json_pack("{s:f,s:o,s:o,s:o}", "timestamp", (double)clock_wall_us() / 1e6,
                     "job_metrics", job_metrics(ended), "gpu_metrics",
                     gpu_metrics(series, answer_int(x->about, "n_gpus", GPU_MAX)),
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
        return x10_nobody(x, "Error");
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
