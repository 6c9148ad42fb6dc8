/* The order `balanced`. All arithmetic is on integers, in seconds, and each rounding is part
 * of the rule: the simulator's schedules are compared byte by byte. */
#include "core/plan/balance.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/search.h"
#include "core/ledger/ledger.h"
#include "core/plan/drain.h"
#include "core/plan/expect.h"
#include "core/queue/queue.h"

#define PATIENCE_S       (3 * 3600)  /* wait of a wide job on top of the backlog */
#define PATIENCE_BLIND_S (24 * 3600) /* the same if no run times are known */
#define BLIND_RUNS       128         /* the last runs that tell how many are known */
#define BLIND_ALL        65536
#define IDLE_PART        10 /* a drain for a wide job idles at most 1/10 of the node */
#define NARROW_LIMITS    4  /* a narrow job's maximum wait, as a multiple of a wide one's */
#define CROWD_PCT        3  /* added to a whole-node job's charge per recent narrow job */
#define CROWD_STEP_S     60
#define CROWD_STEPS      180 /* recent: three hours */
#define CHARGE_RUN_MIN_S 60  /* shortest run time charged */
#define UNKNOWN_RUN_S    3600
#define HEIGHTS_MAX      4096
#define SECOND_US        1000000
#define DRAINS           256

/* The highest backlog since a given time: sorted by time, each lower than those before it,
 * because an older, lower one is never the maximum. */
struct height {
    int64_t at, backlog;
};

/* Cancelled work, to be subtracted from the heights from `at` on. */
struct fallen {
    int64_t at, work; /* GPU-seconds */
};

struct drained {
    uint64_t demand_hash;
    uint64_t booked; /* value of balance.booked when computed; 0: empty */
    int64_t seconds;
};

struct balance {
    struct expect expect;
    int64_t unknown_run, n_unknown; /* of runs with an unknown expected run time */
    int64_t blind_part;             /* fraction of those among the last runs, 1 / BLIND_ALL */
    int64_t crowd[CROWD_STEPS];     /* narrow jobs submitted per step */
    int64_t crowd_step;             /* number of the newest step */
    int64_t n_crowd;
    struct height *heights; /* owned */
    size_t n_heights;
    struct height *seen; /* owned; all heights by time; NULL in a copy */
    size_t n_seen;
    struct fallen *fallen; /* owned; applied by the next pass */
    size_t n_fallen, cap_fallen;
    int64_t set_us; /* total adjustment of the clock; times in heights and crowd exclude it */
    struct drain *drain;
    int64_t now_us, now;    /* of this pass; now in seconds */
    int64_t card_mib;       /* most that a job can have of the largest GPU */
    int n_cards;            /* usable GPUs */
    uint64_t blind;         /* GPUs with a job whose end is unknown */
    struct drained *drains; /* owned; cache of DRAINS answers of drain_time, by demand */
    uint64_t booked;        /* changes whenever cached answers may have */
};

struct balance *
balance_new(void)
{
    struct balance *b = xcalloc(1, sizeof *b);
    expect_init(&b->expect);
    b->heights = xmalloc(HEIGHTS_MAX * sizeof *b->heights);
    b->seen = xmalloc(HEIGHTS_MAX * sizeof *b->seen);
    b->drain = drain_new();
    b->drains = xcalloc(DRAINS, sizeof *b->drains);
    return b;
}

void
balance_free(struct balance *b)
{
    if (!b)
        return;
    drain_free(b->drain);
    free(b->drains);
    free(b->heights);
    free(b->seen);
    free(b->fallen);
    free(b);
}

struct balance *
balance_clone(const struct balance *b)
{
    struct balance *to = xmalloc(sizeof *to);
    *to = *b;
    to->seen = NULL;
    to->n_seen = 0;
    to->fallen = NULL;
    to->n_fallen = to->cap_fallen = 0;
    to->heights = xmalloc(HEIGHTS_MAX * sizeof *to->heights);
    memcpy(to->heights, b->heights, b->n_heights * sizeof *to->heights);
    to->drain = drain_new();
    to->drains = xcalloc(DRAINS, sizeof *to->drains);
    return to;
}

struct balance *
balance_clone_for_list(const struct balance *b, const struct queue *q, const struct ledger *l,
                       int64_t now_us)
{
    struct balance *to = balance_clone(b);
    balance_begin(to, q, l, now_us);
    return to;
}

static int64_t
seconds_up(int64_t ms)
{
    return (ms + 999) / 1000;
}

/* Seconds on a clock that is never adjusted. */
static int64_t
own_time(const struct balance *b, int64_t wall_us)
{
    return (wall_us - b->set_us) / SECOND_US;
}

void
balance_clock_set(struct balance *b, int64_t by_us)
{
    b->set_us += by_us;
}

/* Reports. */

static void
crowd_move_to(struct balance *b, int64_t now)
{
    int64_t step = now / CROWD_STEP_S;
    if (step - b->crowd_step >= CROWD_STEPS) {
        memset(b->crowd, 0, sizeof b->crowd);
        b->n_crowd = 0;
        b->crowd_step = step;
    }
    while (b->crowd_step < step) {
        int64_t *oldest = &b->crowd[++b->crowd_step % CROWD_STEPS];
        b->n_crowd -= *oldest;
        *oldest = 0;
    }
}

void
balance_submitted(struct balance *b, const struct demand *d, int64_t n, int64_t now_us)
{
    if (demand_n_gpus_here(d) != 1)
        return;
    crowd_move_to(b, own_time(b, now_us));
    b->crowd[b->crowd_step % CROWD_STEPS] += n;
    b->n_crowd += n;
}

void
balance_ended(struct balance *b, int64_t span_ms, int64_t run_ms)
{
    b->blind_part += ((span_ms > 0 ? 0 : BLIND_ALL) - b->blind_part) / BLIND_RUNS;
    if (span_ms > 0) {
        expect_learn(&b->expect, seconds_up(span_ms), run_ms / 1000);
        return;
    }
    b->unknown_run += run_ms / 1000;
    b->n_unknown++;
}

/* Expected run times. */

/* For a job with unknown run time: the mean of the other such jobs. */
static int64_t
unknown_run(const struct balance *b)
{
    return (b->unknown_run + UNKNOWN_RUN_S) / (b->n_unknown + 1);
}

static int64_t
run_of(struct balance *b, int64_t span_ms)
{
    return span_ms > 0 ? expect_run(&b->expect, seconds_up(span_ms)) : unknown_run(b);
}

static int64_t
length_of(struct balance *b, int64_t span_ms, int64_t elapsed)
{
    if (span_ms > 0)
        return expect_length(&b->expect, seconds_up(span_ms), elapsed);
    int64_t run = unknown_run(b);
    while (run <= elapsed)
        run = run ? run * 2 : 1;
    return run;
}

static int64_t
elapsed_of(const struct balance *b, const struct job *job)
{
    const struct attempt *run = job->run;
    int64_t since =
        run->started_us ? (run->started_us + run->clock_set_us) / SECOND_US : b->now;
    return since < b->now ? b->now - since : 0;
}

/* Remaining GPU-seconds of running jobs; also records their expected ends. */
static int64_t
look_at_running(struct balance *b, const struct queue *q, const struct ledger *l)
{
    int64_t sum = 0;
    b->blind = 0;
    for (struct job *job = queue_active(q); job; job = queue_active_next(job)) {
        int64_t run = run_of(b, job->span_ms), elapsed = elapsed_of(b, job);
        int64_t left = run - elapsed;
        uint8_t gpus[GPU_MAX];
        int held = job->span_ms <= 0 ? ledger_cards_of(l, job->id, gpus) : 0;
        for (int i = 0; i < held; i++)
            b->blind |= UINT64_C(1) << gpus[i];
        sum += (left > run / 4 ? left : run / 4) * demand_n_gpus_here(&job->req.demand);
        drain_expect(b->drain, job->id, length_of(b, job->span_ms, elapsed) - elapsed);
    }
    return sum;
}

void
balance_weigh(struct balance *b, struct queue *q, struct kind *k)
{
    queue_set_work(q, k, run_of(b, k->span_ms) * demand_n_gpus_here(&k->demand) * k->waiting);
}

/* If there are too many heights, drops every other one: a query for a time in between gets the
 * next, lower one. */
static void
push_height(struct balance *b, int64_t at, int64_t backlog)
{
    while (b->n_heights && b->heights[b->n_heights - 1].backlog <= backlog)
        b->n_heights--;
    if (b->n_heights == HEIGHTS_MAX) {
        for (size_t i = 0; i < HEIGHTS_MAX / 2; i++)
            b->heights[i] = b->heights[2 * i + 1];
        b->n_heights = HEIGHTS_MAX / 2;
    }
    b->heights[b->n_heights++] = (struct height){at, backlog};
}

/* If there are too many, merges them in pairs. */
static void
keep_seen(struct balance *b, int64_t at, int64_t backlog)
{
    struct height *last = b->n_seen ? &b->seen[b->n_seen - 1] : NULL;
    if (last && last->at == at) {
        last->backlog = backlog > last->backlog ? backlog : last->backlog;
        return;
    }
    if (b->n_seen == HEIGHTS_MAX) {
        for (size_t i = 0; i < HEIGHTS_MAX / 2; i++) {
            const struct height *x = &b->seen[2 * i], *y = &b->seen[2 * i + 1];
            b->seen[i] =
                (struct height){y->at, x->backlog > y->backlog ? x->backlog : y->backlog};
        }
        b->n_seen = HEIGHTS_MAX / 2;
    }
    b->seen[b->n_seen++] = (struct height){at, backlog};
}

static void
note_backlog(struct balance *b, int64_t backlog)
{
    int64_t at = own_time(b, b->now_us);
    push_height(b, at, backlog);
    if (b->seen)
        keep_seen(b, at, backlog);
}

/* Cancelled work. */

static void
note_fallen(struct balance *b, int64_t since_us, int64_t work)
{
    if (work <= 0)
        return;
    b->fallen = xgrow(b->fallen, b->n_fallen, &b->cap_fallen, sizeof *b->fallen);
    b->fallen[b->n_fallen++] = (struct fallen){own_time(b, since_us), work};
}

void
balance_stopped(struct balance *b, const struct job *job, int64_t run_ms)
{
    int64_t left = run_of(b, job->span_ms) - run_ms / 1000;
    note_fallen(b, job->joined_us, left * demand_n_gpus_here(&job->req.demand));
}

static void
note_dropped(struct balance *b, const struct queue *q)
{
    size_t n;
    const struct dropped *list = queue_dropped(q, &n);
    for (size_t i = 0; i < n; i++) {
        const struct dropped *x = &list[i];
        int64_t stays =
            x->stays_n ? run_of(b, x->stays_span_ms) * x->stays_gpus * x->stays_n : 0;
        note_fallen(b, x->joined_us, run_of(b, x->span_ms) * x->gpus * x->n - stays);
    }
}

static int
compare_fallen(const void *va, const void *vb)
{
    const struct fallen *a = va, *b = vb;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* Removes from the heights work that was dropped before it was done: a cancelled job must not
 * lengthen other jobs' bounds. */
static void
lower_heights(struct balance *b, const struct queue *q)
{
    int64_t sum = 0;
    size_t next = 0;
    if (!b->seen) /* a copy sees only one moment */
        return;
    note_dropped(b, q);
    if (b->n_fallen == 0)
        return;
    qsort(b->fallen, b->n_fallen, sizeof *b->fallen, compare_fallen);
    b->n_heights = 0;
    for (size_t i = 0; i < b->n_seen; i++) {
        struct height *x = &b->seen[i];
        while (next < b->n_fallen && b->fallen[next].at <= x->at)
            sum += b->fallen[next++].work;
        x->backlog -= sum / b->n_cards;
        x->backlog = x->backlog > 0 ? x->backlog : 0;
        push_height(b, x->at, x->backlog);
    }
    b->n_fallen = 0;
}

static int64_t
backlog_since(const struct balance *b, int64_t since)
{
    return b->heights[search_first(at, b->n_heights - 1, b->heights[at].at < since)].backlog;
}

void
balance_begin(struct balance *b, const struct queue *q, const struct ledger *l, int64_t now_us)
{
    b->booked++;
    b->now_us = now_us;
    b->now = now_us / SECOND_US;
    b->n_cards = 0;
    b->card_mib = 1;
    for (int i = 0; i < ledger_n_cards(l); i++) {
        const struct card *c = ledger_card(l, i);
        int64_t mib = c->info.total_mib - ledger_policy(l)->margin_mib;
        b->n_cards += card_state(c) == GPU_UP;
        b->card_mib = mib > b->card_mib ? mib : b->card_mib;
    }
    b->n_cards += b->n_cards == 0;
    crowd_move_to(b, own_time(b, now_us));
    drain_begin(b->drain, l);
    int64_t running = look_at_running(b, q, l);
    lower_heights(b, q);
    note_backlog(b, (queue_work(q) + running) / b->n_cards);
    drain_sort(b->drain);
}

void
balance_booked(struct balance *b)
{
    b->booked++;
}

/* Keys. */

static int64_t
root_of(int64_t x)
{
    int64_t r = 0;
    int top = x > 0 ? (63 - __builtin_clzll((uint64_t)x)) / 2 : 0;
    for (int64_t bit = INT64_C(1) << (top < 30 ? top : 30); bit; bit >>= 1) {
        if ((r + bit) * (r + bit) <= x)
            r += bit;
    }
    return r;
}

static int64_t
charged_run(struct balance *b, const struct kind *k)
{
    int64_t run = run_of(b, k->span_ms);
    return run > CHARGE_RUN_MIN_S ? run : CHARGE_RUN_MIN_S;
}

/* The root of the job's part of a GPU, in 1/1024: its VRAM or its compute, whichever is
 * more. */
static int64_t
part_of(const struct balance *b, const struct demand *d)
{
    int64_t mib = d->vram_mib;
    if (demand_is_whole(d) || d->exclusive || mib > b->card_mib)
        mib = b->card_mib;
    if (d->share_permille * b->card_mib / 1000 > mib)
        mib = d->share_permille * b->card_mib / 1000;
    return demand_n_gpus_here(d) == 0 ? 1 : root_of((mib << 20) / b->card_mib);
}

static void
key_of_narrow(struct balance *b, const struct kind *k, int64_t limit, struct balance_key *key)
{
    int64_t waited = key->waited_ms / 1000;
    if (!key->first_since_us && waited / NARROW_LIMITS >= limit)
        key->first_since_us = b->now * SECOND_US + 1;
    key->due = key->reserves = key->first_since_us != 0;
    key->charge = charged_run(b, k) * part_of(b, &k->demand);
    if (key->charge < 1)
        key->charge = 1;
}

/* Whether n GPUs must include one with a job whose end is unknown. */
static bool
is_blind(const struct balance *b, int64_t n)
{
    return b->blind && n > b->n_cards - __builtin_popcountll(b->blind);
}

/* Extra wait of a wide job if its GPUs must be drained without known ends. No job can be shown
 * to end in time, so GPUs idle until the last one is free: at most all n for the whole drain.
 * Its wait must be worth IDLE_PART times that on the whole node. */
static int64_t
wait_for_idling(const struct balance *b, int64_t n, int64_t drain)
{
    return is_blind(b, n) ? IDLE_PART * n * drain / b->n_cards : 0;
}

static int64_t
drain_of(struct balance *b, const struct kind *k)
{
    struct drained *d = &b->drains[k->demand_hash % DRAINS];
    if (d->demand_hash != k->demand_hash || d->booked != b->booked)
        *d = (struct drained){k->demand_hash, b->booked, drain_time(b->drain, &k->demand)};
    return d->seconds;
}

/* (run + drain) x (1 + crowd) x root(remaining part of the limit). GPUs that our own jobs'
 * ends will not free are not drained; GPUs with unknown ends, only once the job is due. */
static void
key_of_wide(struct balance *b, const struct kind *k, int64_t limit, struct balance_key *key)
{
    int64_t waited = key->waited_ms / 1000;
    int64_t n = demand_n_gpus_here(&k->demand), all = INT64_C(100) * b->n_cards;
    int64_t drain = drain_of(b, k);
    bool can = drain != DRAIN_NEVER;
    limit += can ? wait_for_idling(b, n, drain) : 0;
    int64_t left = limit - waited - (can ? drain : 0);
    if (!key->first_since_us && waited >= limit)
        key->first_since_us = b->now * SECOND_US + 1;
    key->due = key->first_since_us || left <= 0;
    key->reserves = can && (key->due || !is_blind(b, n));
    key->charge = 1;
    if (key->due)
        return;
    __int128 r = charged_run(b, k) + (can ? drain : limit);
    r = r * (all + CROWD_PCT * b->n_crowd * n) / all;
    r *= root_of((int64_t)(((__int128)left << 20) / limit));
    if (r > 1)
        key->charge = r > INT64_MAX ? INT64_MAX : (int64_t)r;
}

/* Seconds that a wide job waits on top of the backlog until it is first. */
static int64_t
patience_of(const struct balance *b)
{
    return PATIENCE_S + (PATIENCE_BLIND_S - PATIENCE_S) * b->blind_part / BLIND_ALL;
}

void
balance_listed(struct balance *b, const struct kind *k, const struct job *job,
               struct balance_key *out)
{
    int64_t waited_us = job_lined_us(job, b->now_us);
    int64_t limit = patience_of(b) + backlog_since(b, own_time(b, b->now_us - waited_us));
    *out = (struct balance_key){.waited_ms = waited_us / 1000,
                                .first_since_us = job->first_since_us};
    if (demand_n_gpus_here(&k->demand) <= 1)
        key_of_narrow(b, k, limit, out);
    else
        key_of_wide(b, k, limit, out);
}

void
balance_key(struct balance *b, const struct kind *k, struct job *job, struct balance_key *out)
{
    balance_listed(b, k, job, out);
    job->first_since_us = out->first_since_us;
}

/* Jobs that are first for good, by the time they became so; then due jobs by submission; then
 * the others by waited / charge, largest first. */
int
balance_compare(const struct balance_key *a, const struct balance_key *b)
{
    if (a->due != b->due)
        return a->due ? -1 : 1;
    if (a->first_since_us != b->first_since_us)
        return !b->first_since_us ||
                       (a->first_since_us && a->first_since_us < b->first_since_us)
                   ? -1
                   : 1;
    if (a->due)
        return 0;
    __int128 l = (__int128)a->waited_ms * b->charge, r = (__int128)b->waited_ms * a->charge;
    return l == r ? 0 : l > r ? -1 : 1;
}
