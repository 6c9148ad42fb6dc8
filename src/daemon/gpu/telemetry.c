/* See telemetry.h. Memory: at most 80 KiB per GPU, and 3 KiB per running attempt with one GPU;
 * attempts without GPUs have no telemetry. */
#include "daemon/gpu/telemetry.h"

#include <stdlib.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/learn/series.h"
#include "core/learn/trace.h"
#include "core/ledger/ledger.h"
#include "daemon/common/instance.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/state/state.h"
#include "store/store.h"

struct running {
    uint32_t job; /* the key */
    int32_t attempt;
    struct trace *trace;
    int64_t start_boot_us; /* steps count from here */
    bool unsaved;          /* to be written with the attempt's next commit */
    UT_hash_handle hh;
};

struct telemetry {
    struct series *cards[GPU_MAX];
    struct running *running;
};

struct telemetry *
telemetry_new(void)
{
    return xcalloc(1, sizeof(struct telemetry));
}

static void
drop(struct telemetry *t, struct running *r)
{
    HASH_DEL(t->running, r);
    trace_free(r->trace);
    free(r);
}

void
telemetry_free(struct telemetry *t)
{
    struct running *r, *next;
    HASH_ITER(hh, t->running, r, next) drop(t, r);
    for (int i = 0; i < GPU_MAX; i++)
        series_free(t->cards[i]);
    free(t);
}

static int64_t
wall_offset_us(void)
{
    return clock_wall_us() - clock_boot_us();
}

/* --- GPUs --- */

static struct series *
card_begin(struct instance *inst, const struct card *c)
{
    auto_buf struct buf bytes = BUF_INIT;
    struct series *s = series_new();
    struct err e = {0};
    int rc = store_series_get(inst->store, c->info.uuid, &bytes, &e);
    if (rc == 0)
        return s;
    if (rc > 0 &&
        series_decode(s, wall_offset_us(), clock_boot_us(), bytes.data, bytes.len) == 0)
        return s;
    log_warn("event=series-lost gpu=%d %s", c->info.index,
             rc < 0 ? e.text : "its saved record is invalid");
    series_free(s);
    return series_new();
}

static int32_t
mib32(int64_t mib)
{
    return mib < 0 ? -1 : mib > INT32_MAX - 2 ? INT32_MAX - 2 : (int32_t)mib;
}

static int16_t
small(int32_t v)
{
    return (int16_t)(v < 0 ? -1 : v > INT16_MAX - 2 ? INT16_MAX - 2 : v);
}

void
telemetry_card(struct cards *cards, int card)
{
    struct telemetry *t = cards->telemetry;
    const struct card *c = ledger_card(cards->inst->ledger, card);
    const struct series_point p = {.at_us = clock_boot_us(),
                                   .used_mib = mib32(c->used_mib),
                                   .held_mib = mib32(c->held_mib),
                                   .external_mib = mib32(c->external_mib),
                                   .util = small(c->util),
                                   .temperature_c = small(c->temperature_c)};
    if (!t->cards[card])
        t->cards[card] = card_begin(cards->inst, c);
    series_add(t->cards[card], &p);
}

static void
put_series(struct cards *cards, int card)
{
    auto_buf struct buf bytes = BUF_INIT;
    struct err ignored; /* kept in the store; its commit reports them */
    if (!cards->telemetry->cards[card])
        return;
    series_encode(cards->telemetry->cards[card], wall_offset_us(), &bytes);
    store_series_put(cards->inst->store, ledger_card(cards->inst->ledger, card)->info.uuid,
                     bytes.data, bytes.len, &ignored);
}

void
telemetry_forget_card(struct cards *cards, int card)
{
    put_series(cards, card);
    series_free(cards->telemetry->cards[card]);
    cards->telemetry->cards[card] = NULL;
}

const struct series *
telemetry_series(const struct cards *cards, int card)
{
    return cards->telemetry->cards[card];
}

/* --- attempts --- */

/* Loads what an earlier daemon stored of this attempt. */
static struct trace *
recall(const struct instance *inst, uint32_t job, const struct attempt *run)
{
    auto_buf struct buf bytes = BUF_INIT;
    if (run->started_us >= inst->started_us ||
        store_trace_get(inst->store, job, run->number, &bytes, NULL) <= 0)
        return NULL;
    struct trace *t = trace_decode(bytes.data, bytes.len);
    if (!t || trace_n_gpus(t) == run->n_gpus)
        return t;
    trace_free(t);
    return NULL;
}

static struct running *
job_begin(struct cards *cards, uint32_t job, const struct attempt *run)
{
    struct running *r = xcalloc(1, sizeof *r);
    r->job = job;
    r->attempt = run->number;
    r->trace = recall(cards->inst, job, run);
    if (!r->trace)
        r->trace = trace_new(run->n_gpus, run->started_us ? run->started_us : clock_wall_us());
    r->start_boot_us = trace_start_us(r->trace) - wall_offset_us();
    HASH_ADD_INT(cards->telemetry->running, job, r);
    return r;
}

static struct running *
find(const struct cards *cards, uint32_t job)
{
    struct running *r;
    HASH_FIND_INT(cards->telemetry->running, &job, r);
    return r;
}

static int
mean_load(const struct instance *inst, const struct attempt *run)
{
    int sum = 0, n = 0;
    for (int i = 0; i < run->n_gpus; i++) {
        int util = ledger_card(inst->ledger, run->gpus[i])->util;
        sum += util >= 0 ? util : 0;
        n += util >= 0;
    }
    return n ? (sum + n / 2) / n : -1;
}

void
telemetry_job(struct cards *cards, struct job *job)
{
    const struct attempt *run = job->run;
    struct running *r = find(cards, job->id);
    if (job->state != JOB_RUNNING || run->n_gpus == 0)
        return;
    if (r && r->attempt != run->number) {
        drop(cards->telemetry, r);
        r = NULL;
    }
    if (!r)
        r = job_begin(cards, job->id, run);
    if (!trace_add(r->trace, (clock_boot_us() - r->start_boot_us) / 1000, run->now_mib,
                   mean_load(cards->inst, run)))
        return;
    r->unsaved = true;
    state_save(cards->inst->state, job, SAVE_ATTEMPT);
}

const struct trace *
telemetry_trace(const struct cards *cards, uint32_t job, int32_t attempt)
{
    const struct running *r = find(cards, job);
    return r && r->attempt == attempt ? r->trace : NULL;
}

/* --- stored --- */

static void
put_trace(struct instance *inst, const struct running *r)
{
    auto_buf struct buf bytes = BUF_INIT;
    struct err ignored; /* kept in the store; its commit reports them */
    trace_encode(r->trace, &bytes);
    store_trace_put(inst->store, r->job, r->attempt, bytes.data, bytes.len, &ignored);
}

void
telemetry_write(struct cards *cards, const struct job *job, bool settled)
{
    const struct running *r = find(cards, job->id);
    if (r && r->attempt == job->run->number && (settled || r->unsaved))
        put_trace(cards->inst, r);
}

void
telemetry_written(struct cards *cards, uint32_t job, bool settled)
{
    struct running *r = find(cards, job);
    if (!r)
        return;
    r->unsaved = false;
    if (settled)
        drop(cards->telemetry, r);
}

int
telemetry_save(struct cards *cards, struct err *e)
{
    struct running *r, *next;
    for (int i = 0; i < ledger_n_cards(cards->inst->ledger); i++)
        put_series(cards, i);
    HASH_ITER(hh, cards->telemetry->running, r, next) put_trace(cards->inst, r);
    return store_commit(cards->inst->store, e);
}
