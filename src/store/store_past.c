/* Ended jobs and attempts, backwards in time and a bounded number per call: the input of
 * reports. Each walk resumes at its place, so the daemon can do other work between calls. Only
 * the daemon's reports call this. */
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "store/store_priv.h"
#include "store/store_row_fields.h"

/* Columns of STMT_ENDED; the attempt's columns start at PAST_NUMBER. */
enum {
    PAST_ID,
    PAST_UID,
    PAST_STATE,
    PAST_SUBMITTED,
    PAST_BEGIN,
    PAST_ENDED,
    PAST_GPUS,
    PAST_DECLARED,
    PAST_FINGERPRINT,
    PAST_NEVER,
    PAST_NUMBER,
    PAST_CARDS,
    PAST_PEAKS,
    PAST_VRAM,
    PAST_STARTED,
    PAST_RUN_MS,
    PAST_UTIL_SUM,
    PAST_UTIL_COUNT,
    PAST_OUTCOME,
    PAST_CODE,
    PAST_SIGNAL,
    PAST_OOM,
    PAST_SLURM,
    PAST_SLURM_PEAK,
    PAST_USER,
};

static void
read_job(sqlite3_stmt *st, struct store_ended *x)
{
    const char *fingerprint = (const char *)sqlite3_column_text(st, PAST_FINGERPRINT);
    const char *user = (const char *)sqlite3_column_text(st, PAST_USER);
    int state = sqlite3_column_int(st, PAST_STATE);

    *x = (struct store_ended){.id = (uint32_t)sqlite3_column_int64(st, PAST_ID),
                              .uid = (uint32_t)sqlite3_column_int64(st, PAST_UID),
                              .state = state < JOB_STATES ? (enum job_state)state : JOB_LOST,
                              .submitted_us = sqlite3_column_int64(st, PAST_SUBMITTED),
                              .begin_us = sqlite3_column_int64(st, PAST_BEGIN),
                              .ended_us = sqlite3_column_int64(st, PAST_ENDED),
                              .gpus = sqlite3_column_int(st, PAST_GPUS),
                              .declared_mib = sqlite3_column_int(st, PAST_DECLARED),
                              .never = sqlite3_column_int(st, PAST_NEVER) != 0,
                              .peak_mib = -1};
    strncpy(x->fingerprint, fingerprint ? fingerprint : "", sizeof x->fingerprint - 1);
    strncpy(x->user, user ? user : "", sizeof x->user - 1);
}

/* Adds this row's attempt to the job's totals. */
static int
read_attempt(sqlite3_stmt *st, struct store_ended *x)
{
    struct store_attempt a;
    int outcome = sqlite3_column_int(st, PAST_OUTCOME), oom = sqlite3_column_int(st, PAST_OOM);
    int64_t started_us = sqlite3_column_int64(st, PAST_STARTED);
    int64_t run_ms = sqlite3_column_int64(st, PAST_RUN_MS);

    memset(&a, 0, sizeof a);
    if (row_read_cards(st, PAST_CARDS, &a) < 0 ||
        row_read_peaks(st, PAST_PEAKS, &a.attempt) < 0 || outcome < 0 || outcome >= OUTCOMES) {
        row_attempt_clear(&a);
        return -1;
    }
    if (x->attempts++ == 0 || !x->started_us)
        x->started_us = started_us;
    /* On a cluster the GPUs are not known, only that the job had as many as it asked for. */
    bool on_slurm = sqlite3_column_int(st, PAST_SLURM) != 0;
    if (started_us && run_ms > 0) {
        x->run_ms += run_ms;
        x->gpu_ms += run_ms * (on_slurm ? x->gpus : a.attempt.n_gpus);
    }
    x->util_sum += sqlite3_column_int64(st, PAST_UTIL_SUM);
    x->util_count += sqlite3_column_int(st, PAST_UTIL_COUNT);
    x->last_run_ms = run_ms;
    x->n_cards = a.attempt.n_gpus;
    x->vram_mib = sqlite3_column_int(st, PAST_VRAM);
    x->peak_mib = on_slurm ? sqlite3_column_int(st, PAST_SLURM_PEAK) : -1;
    for (int i = 0; i < a.attempt.n_gpus; i++)
        if (a.attempt.peak_mib[i] > x->peak_mib)
            x->peak_mib = a.attempt.peak_mib[i];
    x->outcome = (enum outcome)outcome;
    x->code = sqlite3_column_int(st, PAST_CODE);
    x->signal = sqlite3_column_int(st, PAST_SIGNAL);
    x->oom = oom == OOM_CUDA || oom == OOM_HOST ? (enum oom_kind)oom : OOM_NONE;
    row_attempt_clear(&a);
    return 0;
}

/* The current row's job with all its attempts; *rc is the result of the last step. */
static int
read_ended(sqlite3_stmt *st, struct store_ended *x, int *rc, struct err *e)
{
    read_job(st, x);
    do {
        if (sqlite3_column_type(st, PAST_NUMBER) != SQLITE_NULL && read_attempt(st, x) < 0)
            return err_set(e, ERR_FAILED, "the database is damaged: an attempt of job %" PRIu32,
                           x->id);
        *rc = sqlite3_step(st);
    } while (*rc == SQLITE_ROW && sqlite3_column_int64(st, PAST_ID) == x->id);
    return 0;
}

int
store_ended_walk(struct store *s, struct store_place *place, int64_t since_us, int max,
                 store_ended_cb cb, void *arg, struct err *e)
{
    sqlite3_stmt *st = store_bound(s, STMT_ENDED,
                                   BINDS(bind_number(since_us), bind_number(place->at_us),
                                         bind_number(place->job), bind_number(max)),
                                   e);
    struct store_ended x;
    int n = 0, rc;

    if (!st)
        return -1;
    rc = sqlite3_step(st);
    while (rc == SQLITE_ROW) {
        if (read_ended(st, &x, &rc, e) < 0) {
            sqlite3_reset(st);
            return -1;
        }
        *place = (struct store_place){.at_us = x.ended_us, .job = x.id};
        n++;
        cb(&x, arg);
    }
    return store_read_end(s, st, rc, e) < 0 ? -1 : n;
}

static int
read_used(sqlite3_stmt *st, struct store_used *x, struct store_attempt *a)
{
    memset(a, 0, sizeof *a);
    if (row_read_cards(st, 0, a) < 0 || row_read_peaks(st, 1, &a->attempt) < 0)
        return -1;
    a->attempt.vram_mib = sqlite3_column_int(st, 2);
    a->attempt.started_us = sqlite3_column_int64(st, 3);
    a->attempt.ending.ended_us = sqlite3_column_int64(st, 4);
    a->attempt.number = sqlite3_column_int(st, 6);
    x->job = (uint32_t)sqlite3_column_int64(st, 5);
    x->share_permille = sqlite3_column_int(st, 7);
    x->uid = (uint32_t)sqlite3_column_int64(st, 8);
    x->user = (const char *)sqlite3_column_text(st, 9);
    x->attempt = &a->attempt;
    x->uuids = (const char *const *)a->uuids;
    return 0;
}

int
store_used_walk(struct store *s, struct store_place *place, int64_t since_us, int max,
                store_used_cb cb, void *arg, struct err *e)
{
    sqlite3_stmt *st = store_bound(s, STMT_USED,
                                   BINDS(bind_number(since_us), bind_number(place->at_us),
                                         bind_number(place->job), bind_number(place->number),
                                         bind_number(max)),
                                   e);
    struct store_attempt a;
    struct store_used x;
    int n = 0, rc, bad = 0;

    if (!st)
        return -1;
    while (!bad && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        bad = read_used(st, &x, &a);
        if (bad) {
            err_set(e, ERR_FAILED, "the database is damaged: an attempt's cards");
        } else {
            *place = (struct store_place){a.attempt.ending.ended_us, x.job, a.attempt.number};
            cb(&x, arg);
            n++;
        }
        row_attempt_clear(&a);
    }
    if (!bad && rc != SQLITE_DONE)
        bad = store_read_failed(s, e);
    sqlite3_reset(st);
    return bad ? -1 : n;
}

int
store_past_begin(struct store *s, int64_t *at_us, struct err *e)
{
    *at_us = 0;
    return store_get_number(s, STMT_PAST_BEGIN, BINDS_NONE, at_us, e) < 0 ? -1 : 0;
}
