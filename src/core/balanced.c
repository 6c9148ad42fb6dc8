/* The pass of `balanced`. All arithmetic is on integers, and every rounding is part of the
 * rule: schedules are compared to the byte. A pass looks once at each waiting job, and sorts
 * only those that fit now, since room only shrinks while it lasts; of the others one alone can
 * matter, the first that is to have a reservation. */
#include "core/balanced.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/expect.h"
#include "core/promise.h"

#define PATIENCE_S     (12 * 3600) /* wait that a wide job accepts in any case */
#define BACKLOG_PCT    90          /* how much of the backlog it accepts beside that */
#define NARROW_PCT     200         /* limit of a narrow job, of that of a wide one */
#define CROWD_PCT      3 /* charge of a whole-node job for each narrow job that came lately */
#define LATELY_S       (3 * 3600)
#define CHARGE_RUN_MIN 60 /* shortest run that is charged, seconds */

/* What a waiting job has been through, and what this pass makes of it. */
struct standing {
    int64_t backlog;  /* the longest since it came, seconds of the whole node */
    int64_t charge;   /* what its start costs the others, 1/1024 s */
    int64_t promised; /* one second after the moment of the promise; 0: none */
    bool due;         /* at its limit, or a wide job that a drain brings there */
};

/* What is the same for all jobs of one shape in one pass. */
struct outlook {
    int64_t seen; /* the pass in which it was made */
    bool fits;
    int64_t drain; /* wide: seconds until it is expected to fit */
    int64_t part;  /* narrow: root of its part of a card, 1/1024 */
};

struct balanced {
    struct expect expect;
    struct standing *standings; /* by entry */
    uint32_t *queue;            /* waiting, in order of arrival */
    size_t n_queue;
    uint32_t *chosen; /* of one pass */
    struct outlook *outlooks;
    struct running *runs; /* expected_ends' */
    size_t cap_runs;
    int64_t runs_seen; /* the pass in which they were made */
    int64_t passes;
    int64_t card_mib;       /* what a job can have of the largest card */
    uint32_t lately, until; /* entries from lately to until - 1 came lately, */
    int64_t n_crowd;        /* so many of them narrow */
};

struct balanced *
balanced_new(const struct pass *p)
{
    struct balanced *b = xcalloc(1, sizeof *b);
    b->standings = xcalloc(p->lines.n + 1, sizeof *b->standings);
    b->queue = xmalloc((p->lines.n + 1) * sizeof *b->queue);
    b->chosen = xmalloc((p->lines.n + 1) * sizeof *b->chosen);
    b->outlooks = xcalloc(p->lines.n_shapes + 1, sizeof *b->outlooks);
    b->lately = b->until = 1;
    b->card_mib = 1;
    for (int i = 0; i < p->node->n; i++) {
        int64_t mib = p->node->total_mib[i] - p->node->margin_mib;
        b->card_mib = mib > b->card_mib ? mib : b->card_mib;
    }
    expect_init(&b->expect);
    return b;
}

void
balanced_free(struct balanced *b)
{
    if (!b)
        return;
    free(b->standings);
    free(b->queue);
    free(b->chosen);
    free(b->outlooks);
    free(b->runs);
    free(b);
}

bool
balanced_is_promised(const struct balanced *b, uint32_t who)
{
    return b->standings[who].promised != 0;
}

void
balanced_arrive(struct pass *p, uint32_t who)
{
    struct balanced *b = p->balanced;
    b->queue[b->n_queue++] = who;
    b->until = who + 1;
    b->n_crowd += pass_shape(p, who)->n == 1;
}

void
balanced_end(struct pass *p, uint32_t who, int64_t started, int64_t now)
{
    expect_learn(&p->balanced->expect, p->lines.entries[who].run, now - started);
}

static int64_t
root_of(int64_t x)
{
    int64_t r = 0;
    for (int64_t bit = INT64_C(1) << 30; bit; bit >>= 1) {
        if ((r + bit) * (r + bit) <= x)
            r += bit;
    }
    return r;
}

/* Seconds that the whole node needs for everything queued and running, each job counted with
 * whole cards. */
static int64_t
backlog_now(const struct pass *p, int64_t now)
{
    struct balanced *b = p->balanced;
    int64_t sum = 0;
    for (size_t i = 0; i < b->n_queue; i++)
        sum += expect_run(&b->expect, p->lines.entries[b->queue[i]].run) *
               pass_shape(p, b->queue[i])->n;
    for (size_t i = 0; i < p->n_running; i++) {
        const struct running *run = &p->running[i];
        int64_t declared = p->lines.entries[run->who].run;
        int64_t x = expect_run(&b->expect, declared);
        int64_t left = x - (now - (run->expected_end - declared));
        sum += (left > x / 4 ? left : x / 4) * pass_shape(p, run->who)->n;
    }
    return sum / p->node->n;
}

static void
forget_crowd(struct pass *p, int64_t now)
{
    struct balanced *b = p->balanced;
    for (; b->lately < b->until; b->lately++) {
        if (p->lines.entries[b->lately].arrival > now - LATELY_S)
            return;
        b->n_crowd -= pass_shape(p, b->lately)->n == 1;
    }
}

static int
compare_ends(const void *a, const void *b)
{
    const struct running *x = a, *y = b;
    if (x->expected_end != y->expected_end)
        return x->expected_end < y->expected_end ? -1 : 1;
    return x->who < y->who ? -1 : x->who > y->who;
}

/* The running jobs by the ends that are expected, not declared; made once in a pass. */
static const struct running *
expected_ends(struct pass *p, int64_t now)
{
    struct balanced *b = p->balanced;
    if (b->runs_seen == b->passes)
        return b->runs;
    b->runs_seen = b->passes;
    if (b->cap_runs < p->n_running) {
        b->cap_runs = p->cap_running;
        b->runs = xrealloc(b->runs, b->cap_runs * sizeof *b->runs);
    }
    for (size_t i = 0; i < p->n_running; i++) {
        int64_t declared = p->lines.entries[p->running[i].who].run;
        int64_t started = p->running[i].expected_end - declared;
        b->runs[i] = p->running[i];
        b->runs[i].expected_end = started + expect_length(&b->expect, declared, now - started);
    }
    if (p->n_running)
        qsort(b->runs, p->n_running, sizeof *b->runs, compare_ends);
    return b->runs;
}

/* Seconds until this one is expected to fit. */
static int64_t
drain_of(struct pass *p, uint32_t who, int64_t now)
{
    struct reservation unused = {.who = who};
    promise_find(p, expected_ends(p, now), p->n_running, now, &unused);
    return unused.at - now;
}

static const struct outlook *
outlook_of(struct pass *p, uint32_t who, int64_t now)
{
    struct balanced *b = p->balanced;
    const struct shape *s = pass_shape(p, who);
    struct outlook *o = &b->outlooks[p->lines.entries[who].shape];
    if (o->seen == b->passes)
        return o;
    o->seen = b->passes;
    o->fits = node_fits(p->node, s);
    if (s->n == 1) {
        bool takes_all = s->alone || s->vram_mib > b->card_mib;
        int64_t mib = takes_all ? b->card_mib : s->vram_mib;
        o->part = root_of((mib << 20) / b->card_mib);
    } else {
        o->drain = o->fits ? 0 : drain_of(p, who, now);
    }
    return o;
}

static int64_t
charged_run(const struct pass *p, uint32_t who)
{
    int64_t run = expect_run(&p->balanced->expect, p->lines.entries[who].run);
    return run > CHARGE_RUN_MIN ? run : CHARGE_RUN_MIN;
}

static void
charge_narrow(const struct pass *p, uint32_t who, const struct outlook *o, int64_t limit,
              int64_t waited, int64_t now)
{
    struct standing *st = &p->balanced->standings[who];
    if (!st->promised && waited >= limit * NARROW_PCT / 100)
        st->promised = now + 1;
    st->due = st->promised != 0;
    st->charge = charged_run(p, who) * o->part;
    if (st->charge < 1)
        st->charge = 1;
}

/* (run + drain) x cards^(1/4) x (1 + crowd) x root(part of the limit that is left). */
static void
charge_wide(const struct pass *p, uint32_t who, const struct outlook *o, int64_t limit,
            int64_t waited, int64_t now)
{
    struct standing *st = &p->balanced->standings[who];
    int64_t n = pass_shape(p, who)->n, all = 100 * p->node->n;
    int64_t left = limit - waited - o->drain;
    if (!st->promised && waited >= limit)
        st->promised = now + 1;
    st->due = st->promised || left <= 0;
    st->charge = 1;
    if (st->due)
        return;
    __int128 r = charged_run(p, who) + o->drain;
    r = r * root_of(root_of(n << 40));
    r = r * (all + CROWD_PCT * p->balanced->n_crowd * n) / all;
    r = r / 1024 * root_of((int64_t)(((__int128)left << 20) / limit));
    if (r > 1)
        st->charge = r > INT64_MAX ? INT64_MAX : (int64_t)r;
}

static void
charge(struct pass *p, uint32_t who, int64_t backlog, int64_t now)
{
    struct standing *st = &p->balanced->standings[who];
    const struct outlook *o = outlook_of(p, who, now);
    if (backlog > st->backlog)
        st->backlog = backlog;
    int64_t limit = PATIENCE_S + st->backlog * BACKLOG_PCT / 100;
    int64_t waited = now - p->lines.entries[who].arrival;
    if (pass_shape(p, who)->n == 1)
        charge_narrow(p, who, o, limit, waited, now);
    else
        charge_wide(p, who, o, limit, waited, now);
}

/* Promised ones in the order of the promises, then those that are due in order of arrival,
 * then the others by waited / charge, the largest first. */
static int
compare_turns(const void *a, const void *b, void *arg)
{
    const struct pass *p = arg;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct standing *x = &p->balanced->standings[i], *y = &p->balanced->standings[j];
    if (x->due != y->due)
        return x->due ? -1 : 1;
    if (x->promised != y->promised)
        return !y->promised || (x->promised && x->promised < y->promised) ? -1 : 1;
    if (!x->due) {
        int64_t waited_i = p->lines.now - p->lines.entries[i].arrival;
        int64_t waited_j = p->lines.now - p->lines.entries[j].arrival;
        __int128 l = (__int128)waited_i * y->charge, r = (__int128)waited_j * x->charge;
        if (l != r)
            return l > r ? -1 : 1;
    }
    return i < j ? -1 : i > j;
}

/* Those that fit, and the first of those that do not and are to have a reservation; in order.
 * Their number. */
static size_t
choose_turns(struct pass *p, int64_t now)
{
    struct balanced *b = p->balanced;
    int64_t backlog = backlog_now(p, now);
    uint32_t blocked = 0;
    size_t n = 0;
    for (size_t i = 0; i < b->n_queue; i++) {
        uint32_t who = b->queue[i];
        charge(p, who, backlog, now);
        if (outlook_of(p, who, now)->fits)
            b->chosen[n++] = who;
        else if ((pass_shape(p, who)->n > 1 || b->standings[who].due) &&
                 (!blocked || compare_turns(&who, &blocked, p) < 0))
            blocked = who;
    }
    if (blocked)
        b->chosen[n++] = blocked;
    qsort_r(b->chosen, n, sizeof *b->chosen, compare_turns, p);
    return n;
}

/* Starts it, or gives it the reservation, or passes it over. */
static void
take_turn(struct pass *p, uint32_t who, int64_t now)
{
    const struct shape *s = pass_shape(p, who);
    uint64_t cards = node_place(p->node, s);
    if (!cards) {
        if (!p->promise.who && (s->n > 1 || p->balanced->standings[who].due))
            promise_make(p, who, now);
        return;
    }
    if (p->promise.who && p->lines.entries[who].run > p->promise.at - now) {
        if (!promise_allows(p, s, cards))
            return;
        promise_add_beside(p, s, cards);
    }
    pass_start(p, who, cards, now);
}

void
balanced_run(struct pass *p, int64_t now)
{
    struct balanced *b = p->balanced;
    size_t kept = 0;
    b->passes++;
    forget_crowd(p, now);
    size_t n = choose_turns(p, now);
    for (size_t i = 0; i < n; i++)
        take_turn(p, b->chosen[i], now);
    for (size_t i = 0; i < b->n_queue; i++) {
        if (p->lines.entries[b->queue[i]].waits)
            b->queue[kept++] = b->queue[i];
    }
    b->n_queue = kept;
}
