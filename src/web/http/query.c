/* Queries: see query.h. docs/web.md defines the shape of the replies. */
#include "web/http/query.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "web/http/reply.h"

#define COMMAND_MAX 300 /* bytes of a command in a list; a job's own page shows all of it */
#define SHOWN       100 /* jobs of the queue on the first page: more than fit on a screen */
#define RECENT      8   /* ended jobs on the first page */
#define FAILED      20  /* failed jobs in the head of that page */
#define FAILED_US   INT64_C(3600000000)
#define PAGE_MAX    1000 /* history rows per request: the daemon's limit */
#define POINTS      120  /* of a curve: as many as the width at which it is drawn */
#define POINTS_MAX  5000
#define MS          INT64_C(1000)

/* Fields of a row in lists of jobs. */
static const char *const fields[] = {
    "id",        "array_job",   "array_task", "array",          "user",     "name",
    "command",   "state",       "reason",     "explain",        "gpus",     "gpus_wanted",
    "vram_mib",  "share",       "exclusive",  "priority",       "limit_ms", "use_mib",
    "submitted", "started",     "ended",      "run_ms",         "now_mib",  "peak_mib",
    "util",      "attempt",     "exit_code",  "signal",         "verdict",  "text",
    "tags",      "exit_status", "cpus",       "expected_start",
};
#define N_FIELDS (sizeof fields / sizeof fields[0])

static const struct {
    const char *name;
    int64_t ttl_ms;
} kinds[QUERY_KINDS] = {
    [QUERY_OVERVIEW] = {"overview", 1000},
    [QUERY_STATUS] = {"status", 1000},
    [QUERY_GPUS] = {"gpus", 1000},
    [QUERY_QUEUE] = {"queue", 1000},
    [QUERY_JOB] = {"job", 700},
    [QUERY_JOB_SERIES] = {"job-series", 2000},
    [QUERY_SERIES] = {"series", 2000},
    [QUERY_HISTORY] = {"history", 1500},
    [QUERY_REPORT] = {"report", 15000},
    [QUERY_HEALTH] = {"health", 2000},
    [QUERY_METRICS] = {"metrics", 1000},
};

/* --- arguments --- */

static int
take_number(const char *name, const char *value, int64_t max, int64_t *out, struct err *e)
{
    return parse_int(value, 0, max, out, e) ? err_prefix(e, "%s", name) : 0;
}

static int
take_text(const char *name, const char *value, char *out, size_t size, struct err *e)
{
    if (strlen(value) >= size)
        return err_set(e, ERR_USAGE, "%s: at most %zu bytes", name, size - 1);
    if (!text_is_utf8(value, strlen(value), NULL))
        return err_set(e, ERR_USAGE, "%s: not UTF-8", name);
    memcpy(out, value, strlen(value) + 1);
    return 0;
}

int
query_set(struct query *q, const char *name, const char *value, struct err *e)
{
    const struct {
        const char *name;
        int64_t max;
        int64_t *to;
    } numbers[] = {
        {"limit", QUERY_LIST_MAX, &q->limit},  {"before_id", UINT32_MAX, &q->before_id},
        {"since_us", INT64_MAX, &q->since_us}, {"until_us", INT64_MAX, &q->until_us},
        {"points", POINTS_MAX, &q->points},    {"attempt", INT32_MAX, &q->attempt},
        {"bytes", QUERY_LOG_MAX, &q->bytes},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(name, numbers[i].name) == 0)
            return value[0] ? take_number(name, value, numbers[i].max, numbers[i].to, e) : 0;
    if (strcmp(name, "user") == 0)
        return take_text(name, value, q->user, sizeof q->user, e);
    if (strcmp(name, "state") == 0)
        return take_text(name, value, q->state, sizeof q->state, e);
    if (strcmp(name, "search") == 0)
        return take_text(name, value, q->search, sizeof q->search, e);
    return 0;
}

void
query_key(const struct query *q, struct buf *out)
{
    /* Text comes last and is preceded by its length, so that no two queries share a key. */
    buf_addf(out, "%s %lld %lld %lld %lld %lld %lld %lld %zu:%s %zu:%s %zu:%s",
             kinds[q->kind].name, (long long)q->job, (long long)q->limit,
             (long long)q->before_id, (long long)q->since_us, (long long)q->until_us,
             (long long)q->points, (long long)q->attempt, strlen(q->user), q->user,
             strlen(q->state), q->state, strlen(q->search), q->search);
}

int64_t
query_ttl_us(const struct query *q)
{
    return kinds[q->kind].ttl_ms * MS;
}

/* --- parts --- */

static void
put_int(json_t *to, const char *key, int64_t v)
{
    if (v > 0)
        json_object_set_new(to, key, json_integer(v));
}

static void
put_text(json_t *to, const char *key, const char *v)
{
    if (v[0])
        json_object_set_new(to, key, json_string(v));
}

static json_t *
list_params(const struct query *q, int64_t limit)
{
    json_t *params = json_object(), *names = json_array();

    for (size_t i = 0; i < N_FIELDS; i++)
        json_array_append_new(names, json_string(fields[i]));
    json_object_set_new(params, "fields", names);
    put_int(params, "limit", limit);
    put_text(params, "user", q->user);
    return params;
}

static json_t *
queue_params(const struct query *q, int64_t limit)
{
    json_t *params = list_params(q, limit);

    json_object_set_new(params, "order", json_string("turn"));
    return params;
}

static json_t *
ended_params(const struct query *q, int64_t limit)
{
    json_t *params = list_params(q, limit < PAGE_MAX ? limit : PAGE_MAX);

    json_object_set_new(params, "ended", json_true());
    put_int(params, "before_id", q->before_id);
    put_int(params, "since_us", q->since_us);
    put_int(params, "until_us", q->until_us);
    put_text(params, "state", q->state);
    put_text(params, "search", q->search);
    return params;
}

/* Recent failures, for the head of the first page. */
static json_t *
failed_params(const struct query *q)
{
    json_t *params = list_params(q, FAILED);

    json_object_set_new(params, "ended", json_true());
    put_int(params, "since_us", clock_wall_us() - FAILED_US);
    json_object_set_new(
        params, "state",
        json_pack("[s,s,s,s,s]", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "INFEASIBLE", "LOST"));
    return params;
}

static json_t *
one_job(const struct query *q)
{
    char id[24];

    snprintf(id, sizeof id, "%lld", (long long)q->job);
    return json_pack("{s:[s]}", "select", id);
}

static json_t *
series_params(const struct query *q)
{
    json_t *params = json_object();

    if (q->job)
        json_object_set_new(params, "job", json_integer(q->job));
    else
        json_object_set_new(params, "gpus", json_true());
    put_int(params, "attempt", q->attempt);
    put_int(params, "since_us", q->since_us);
    put_int(params, "points", q->points ? q->points : POINTS);
    return params;
}

static json_t *
report_params(const struct query *q)
{
    json_t *params = json_object();

    put_int(params, "since_us", q->since_us);
    put_int(params, "until_us", q->until_us);
    put_text(params, "user", q->user);
    return params;
}

int
query_parts(const struct query *q, struct query_part out[QUERY_PARTS_MAX])
{
    const int64_t limit = q->limit ? q->limit : QUERY_LIST;
    int n = 0;

    switch (q->kind) {
    case QUERY_OVERVIEW:
        out[n++] = (struct query_part){"status", NULL, false};
        out[n++] =
            (struct query_part){"jobs", queue_params(q, q->limit ? limit : SHOWN), false};
        out[n++] = (struct query_part){"jobs", ended_params(q, RECENT), false};
        out[n++] = (struct query_part){"health", NULL, true};
        out[n++] = (struct query_part){"jobs", failed_params(q), true};
        break;
    case QUERY_STATUS:
        out[n++] = (struct query_part){"status", NULL, false};
        break;
    case QUERY_GPUS:
        out[n++] = (struct query_part){"gpus", NULL, false};
        break;
    case QUERY_QUEUE:
        out[n++] = (struct query_part){"status", NULL, false};
        out[n++] = (struct query_part){"jobs", queue_params(q, limit), false};
        break;
    case QUERY_JOB:
        out[n++] = (struct query_part){"jobs", one_job(q), false};
        out[n++] = (struct query_part){"explain", one_job(q), true};
        break;
    case QUERY_JOB_SERIES:
    case QUERY_SERIES:
        out[n++] = (struct query_part){"series", series_params(q), false};
        break;
    case QUERY_HISTORY:
        out[n++] = (struct query_part){"jobs", ended_params(q, limit), false};
        break;
    case QUERY_REPORT:
        out[n++] = (struct query_part){"report", report_params(q), false};
        break;
    case QUERY_HEALTH:
        out[n++] = (struct query_part){"health", NULL, false};
        break;
    case QUERY_METRICS:
        out[n++] = (struct query_part){"metrics", NULL, false};
        break;
    case QUERY_KINDS:
        break;
    }
    return n;
}

/* --- replies --- */

/* Truncates a command for a list, where a script of 60 KiB is of no use. */
static json_t *
cut_command(json_t *command)
{
    const char *text = json_string_value(command);
    size_t n = text ? strlen(text) : 0, keep = 0, len;

    if (n <= COMMAND_MAX)
        return json_incref(command);
    while (keep < COMMAND_MAX && (len = text_utf8_len(text + keep, n - keep)) > 0)
        keep += len;
    char cut[COMMAND_MAX + 16];
    snprintf(cut, sizeof cut, "%.*s\xe2\x80\xa6", (int)keep, text);
    return json_string(cut);
}

/* Converts rows of fields to the objects that docs/web.md defines. */
static json_t *
objects_of(const json_t *result)
{
    const json_t *rows = json_object_get(result, "rows"), *row;
    json_t *out = json_array();
    size_t i;

    json_array_foreach(rows, i, row)
    {
        json_t *job = json_object();
        for (size_t k = 0; k < N_FIELDS; k++) {
            json_t *v = json_array_get(row, k);
            if (strcmp(fields[k], "command") == 0)
                json_object_set_new(job, fields[k], cut_command(v));
            else
                json_object_set(job, fields[k], v);
        }
        json_array_append_new(out, job);
    }
    return out;
}

/* Reverses the daemon's order, which is oldest first. */
static json_t *
newest_first(json_t *jobs)
{
    json_t *out = json_array();

    for (size_t i = json_array_size(jobs); i > 0; i--)
        json_array_append(out, json_array_get(jobs, i - 1));
    json_decref(jobs);
    return out;
}

/* Drops checks that are fine, as their texts contain numbers that change all the time. */
static json_t *
what_is_wrong(const json_t *health)
{
    json_t *checks = json_array();
    json_t *check;
    size_t i;

    if (!health) {
        json_decref(checks);
        return json_null();
    }
    json_array_foreach(json_object_get(health, "checks"), i, check)
    {
        const char *state = json_string_value(json_object_get(check, "state"));
        if (state && strcmp(state, "ok") != 0)
            json_array_append(checks, check);
    }
    return json_pack("{s:O?,s:o}", "state", json_object_get(health, "state"), "checks", checks);
}

static json_t *
overview(json_t *const *results)
{
    json_t *out = json_copy(results[0]); /* version, daemon, counts, gpus, ... */
    json_t *queue = objects_of(results[1]), *job;
    size_t i;

    /* Drops elapsed times, which would make every answer differ from the last. */
    json_object_del(json_object_get(out, "daemon"), "uptime_s");
    json_array_foreach(queue, i, job) json_object_del(job, "run_ms");
    json_object_set_new(out, "queue", queue);
    json_object_set_new(out, "recent", newest_first(objects_of(results[2])));
    json_object_set_new(out, "health", what_is_wrong(results[3]));
    json_object_set_new(out, "failed", newest_first(objects_of(results[4])));
    return out;
}

static json_t *
history(json_t *result)
{
    return json_pack("{s:i,s:o,s:O?}", "version", 1, "jobs", newest_first(objects_of(result)),
                     "before_id", json_object_get(result, "before_id"));
}

static json_t *
job_page(json_t *const *results)
{
    json_t *job = json_array_get(json_object_get(results[0], "jobs"), 0);
    json_t *why = json_array_get(json_object_get(results[1], "jobs"), 0);

    return json_pack("{s:i,s:O?,s:O?}", "version", 1, "job", job, "explanation", why);
}

static struct reply *
metrics(json_t *result)
{
    const char *text = json_string_value(json_object_get(result, "text"));
    struct buf body = BUF_INIT;

    buf_adds(&body, text ? text : "");
    return reply_new(200, "text/plain; version=0.0.4; charset=utf-8", &body);
}

struct reply *
query_reply(const struct query *q, json_t *const *results)
{
    switch (q->kind) {
    case QUERY_OVERVIEW:
        return reply_json(200, overview(results));
    case QUERY_QUEUE:
        return reply_json(200, json_pack("{s:i,s:O,s:o}", "version", 1, "counts",
                                         json_object_get(results[0], "counts"), "jobs",
                                         objects_of(results[1])));
    case QUERY_JOB:
        return reply_json(200, job_page(results));
    case QUERY_HISTORY:
        return reply_json(200, history(results[0]));
    case QUERY_METRICS:
        return metrics(results[0]);
    case QUERY_HEALTH:
        /* Sets the HTTP status too, for monitors that check nothing else. */
        if (strcmp(json_string_value(json_object_get(results[0], "state")) ?: "", "bad") == 0)
            return reply_json(503, json_incref(results[0]));
        return reply_json(200, json_incref(results[0]));
    case QUERY_STATUS:
    case QUERY_GPUS:
    case QUERY_JOB_SERIES:
    case QUERY_SERIES:
    case QUERY_REPORT:
    case QUERY_KINDS:
        break;
    }
    return reply_json(200, json_incref(results[0]));
}
