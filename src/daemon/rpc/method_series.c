/* `series`: what GPUs, or one attempt of a job, used over time. Points are reduced to the
 * requested number by taking the maximum of each step, so that no peak is lost. */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/learn/series.h"
#include "core/learn/trace.h"
#include "core/ledger/ledger.h"
#include "core/queue/queue.h"
#include "daemon/common/instance.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/prober.h"
#include "daemon/gpu/telemetry.h"
#include "daemon/request/roles.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "store/store.h"
#include "wire/members.h"

#define POINTS_DEFAULT 240
#define POINTS_MAX     4000
#define DAY_US         INT64_C(86400000000)

struct asked {
    int64_t since_us; /* wall clock; 0: from the beginning */
    int64_t points;
    uint32_t job;
    int32_t attempt; /* 0: the last */
};

static const struct member members[] = {
    {MEMBER(NUMBER, asked, since_us), .max = INT64_MAX / 4},
    {MEMBER(NUMBER, asked, points), .min = 2, .max = POINTS_MAX},
    {MEMBER(NUMBER, asked, job), .min = 1, .max = UINT32_MAX},
    {MEMBER(NUMBER, asked, attempt), .min = 1, .max = INT32_MAX},
    {0},
};

static void
put_known(struct jsonw *w, int64_t v)
{
    if (v >= 0)
        jsonw_int(w, v);
    else
        jsonw_null(w);
}

/* --- GPUs --- */

struct listing {
    struct jsonw *out;
    int64_t offset_us; /* wall - boot */
};

static void
on_point(const struct series_point *p, void *arg)
{
    const struct listing *l = arg;
    jsonw_array(l->out);
    jsonw_int(l->out, p->at_us + l->offset_us);
    put_known(l->out, p->used_mib);
    put_known(l->out, p->held_mib);
    put_known(l->out, p->external_mib);
    put_known(l->out, p->util);
    put_known(l->out, p->temperature_c);
    jsonw_end_array(l->out);
}

static void
put_cards(struct rpc *rpc, const struct asked *a, struct jsonw *out)
{
    int64_t now_us = clock_boot_us(), first_us = now_us;
    struct listing l = {.out = out, .offset_us = clock_wall_us() - now_us};
    int64_t since_us = a->since_us ? a->since_us - l.offset_us : now_us - DAY_US;
    int n = ledger_n_cards(rpc->inst->ledger);
    for (int i = 0; i < n; i++) {
        const struct series *s = telemetry_series(rpc->cards, i);
        int64_t oldest_us = s ? series_oldest_us(s) : INT64_MAX;
        first_us = oldest_us < first_us ? oldest_us : first_us;
    }
    since_us = since_us < first_us ? first_us : since_us;
    int64_t step_us = series_step_us(since_us, now_us, a->points);
    jsonw_kint(out, "step_ms", step_us / 1000);
    jsonw_karray(out, "gpus");
    for (int i = 0; i < n; i++) {
        const struct series *s = telemetry_series(rpc->cards, i);
        if (ledger_card(rpc->inst->ledger, i)->gone)
            continue;
        jsonw_object(out);
        jsonw_kint(out, "index", i);
        jsonw_kstr(out, "uuid", ledger_card(rpc->inst->ledger, i)->info.uuid);
        jsonw_karray(out, "points");
        if (s)
            series_walk(s, since_us, step_us, on_point, &l);
        jsonw_end_array(out);
        jsonw_end_object(out);
    }
    jsonw_end_array(out);
}

/* --- an attempt --- */

static void
put_trace(const struct trace *t, const uint8_t *gpus, const struct asked *a, struct jsonw *out)
{
    jsonw_kint(out, "step_ms", trace_step_ms(t));
    jsonw_karray(out, "points");
    for (int i = 0; i < trace_n(t); i++) {
        struct trace_point p = trace_at(t, i);
        if (p.at_us < a->since_us)
            continue;
        jsonw_array(out);
        jsonw_int(out, p.at_us);
        jsonw_object(out);
        for (int k = 0; k < trace_n_gpus(t); k++) {
            char key[12];
            snprintf(key, sizeof key, "%d", gpus[k]);
            jsonw_key(out, key);
            put_known(out, p.mib[k]);
        }
        jsonw_end_object(out);
        put_known(out, p.util);
        jsonw_end_array(out);
    }
    jsonw_end_array(out);
}

/* Copies what is known of the attempt: from memory while it runs, then from the store. Empty
 * if nothing was sampled. The caller frees it. */
static struct trace *
copy_trace(struct rpc *rpc, uint32_t job, const struct attempt *run, struct err *e)
{
    auto_buf struct buf bytes = BUF_INIT;
    const struct trace *live = telemetry_trace(rpc->cards, job, run->number);
    if (live)
        trace_encode(live, &bytes);
    else if (store_trace_get(rpc->inst->store, job, run->number, &bytes, e) < 0)
        return NULL;
    struct trace *t = bytes.len ? trace_decode(bytes.data, bytes.len) : NULL;
    /* The attempt's list of GPUs lacks a GPU that has vanished since. */
    if (t && trace_n_gpus(t) == run->n_gpus)
        return t;
    trace_free(t);
    return trace_new(run->n_gpus ? run->n_gpus : 1, run->started_us);
}

static int
put_attempt(struct rpc *rpc, uint32_t job, const struct attempt *run, const struct asked *a,
            struct jsonw *out, struct err *e)
{
    struct trace *t = copy_trace(rpc, job, run, e);
    if (!t)
        return -1;
    trace_thin(t, (int)a->points);
    jsonw_kint(out, "job", job);
    jsonw_kint(out, "attempt", run->number);
    put_trace(t, run->gpus, a, out);
    trace_free(t);
    return 0;
}

static int
put_earlier(struct rpc *rpc, const struct job *job, const struct asked *a, struct jsonw *out,
            struct err *e)
{
    struct store_attempt *list;
    int rc = -1, n = store_attempts_load(rpc->inst->store, job->id, &list, e), i = 0;
    if (n < 0)
        return -1;
    while (i < n && list[i].attempt.number != a->attempt)
        i++;
    if (i < n)
        rc = put_attempt(rpc, job->id, &list[i].attempt, a, out, e);
    else
        err_set(e, ERR_NO_JOB, "job %s has no attempt %d: it was started %d time%s",
                job_words(job).text, a->attempt, job->attempts, job->attempts == 1 ? "" : "s");
    store_attempts_free(list, n);
    return rc;
}

static int
put_job_of(struct rpc *rpc, const struct job *job, const struct asked *a, struct jsonw *out,
           struct err *e)
{
    static const struct attempt none = {0};
    if (roles_is_hidden(rpc->roles, job->uid))
        return err_set(e, ERR_PERMISSION,
                       "job %s belongs to another user: its use is not shown",
                       job_words(job).text);
    if (a->attempt == 0 || (job->run && a->attempt == job->run->number))
        return put_attempt(rpc, job->id, job->run ? job->run : &none, a, out, e);
    return put_earlier(rpc, job, a, out, e);
}

static int
put_job(struct rpc *rpc, const struct asked *a, struct jsonw *out, struct err *e)
{
    struct job *live = queue_get(rpc->inst->queue, a->job), *old = NULL;
    if (!live && !(old = store_job_load(rpc->inst->store, a->job, e)))
        return -1;
    int rc = put_job_of(rpc, live ? live : old, a, out, e);
    job_free(old);
    return rc;
}

int
method_series(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
              struct err *e)
{
    struct asked a = {.points = POINTS_DEFAULT};
    bool of_job = json_object_get(params, "job"), of_gpus;
    int rc = 0;
    (void)c;
    of_gpus = json_is_true(json_object_get(params, "gpus"));
    if (of_job == of_gpus)
        return err_set(e, ERR_USAGE, "a series needs \"gpus\": true or \"job\": NUMBER");
    if (members_read(params, members, &a, e) < 0)
        return -1;
    /* The next sample updates it. */
    if (clock_boot_us() - prober_sampled_us(rpc->cards->prober) >
        rpc->inst->config.sample_ms * 1000)
        prober_request(rpc->cards->prober);
    jsonw_object(out);
    jsonw_kint(out, "version", 1);
    if (of_job)
        rc = put_job(rpc, &a, out, e);
    else
        put_cards(rpc, &a, out);
    jsonw_end_object(out);
    return rc;
}
