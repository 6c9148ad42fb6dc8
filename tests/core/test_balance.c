/* The order `balanced`: each factor that ranks a front job, one at a time; and the time until
 * a demand fits. */
#include "base/err.h"
#include "core/plan/balance.h"
#include "core/plan/drain.h"
#include "core/queue/array.h"
#include "machine.h"

#define SECOND_US INT64_C(1000000)
#define HOUR_S    INT64_C(3600)
#define NOW_US    (INT64_C(1000000000) * SECOND_US)

struct rig {
    struct queue *q;
    struct ledger *l;
    struct balance *b;
};

static struct rig
rig_new(int cards)
{
    return (struct rig){queue_new(), machine_new(cards, CARD_MIB), balance_new()};
}

static void
rig_free(struct rig *r)
{
    balance_free(r->b);
    ledger_free(r->l);
    queue_free(r->q);
}

/* A job that has been pending this long. */
static struct job *
waiting(struct rig *r, uint32_t id, struct demand d, int64_t span_s, int64_t waited_s)
{
    struct job *job = new_job(id, d);
    job->span_ms = span_s * 1000;
    job->lined_us = job->joined_us = NOW_US - waited_s * SECOND_US;
    queue_add(r->q, job);
    return job;
}

/* A job that has run on these GPUs this long. */
static void
running(struct rig *r, uint32_t id, struct demand d, const uint8_t *gpus, int64_t span_s,
        int64_t ran_s)
{
    struct job *job = new_job(id, d);
    struct attempt *run = xcalloc(1, sizeof *run);
    job->span_ms = span_s * 1000;
    run->n_gpus = (uint8_t)d.gpus;
    memcpy(run->gpus, gpus, run->n_gpus);
    assert_int_equal(
        job_apply(job, &(struct job_event){.type = JOB_EV_START, .wall_us = NOW_US, .run = run},
                  NULL),
        JOB_NEXT);
    run->started_us = NOW_US - ran_s * SECOND_US;
    queue_add(r->q, job);
    ledger_hold(r->l, id, &d, gpus, d.gpus);
}

/* Runs a pass that examines all lines. */
static void
begin_pass(struct rig *r, int64_t now_us)
{
    for (size_t i = 0; i < queue_n_kinds(r->q); i++)
        balance_weigh(r->b, r->q, queue_kind(r->q, i));
    balance_begin(r->b, r->q, r->l, now_us);
}

static struct balance_key
key_of(struct rig *r, struct job *job)
{
    struct balance_key key;
    balance_key(r->b, job->kind, job, &key);
    return key;
}

/* True if the first is tried before the second. */
static void
expect_before(struct rig *r, struct job *a, struct job *b)
{
    begin_pass(r, NOW_US);
    struct balance_key x = key_of(r, a), y = key_of(r, b);
    assert_true(balance_compare(&x, &y) < 0);
    assert_true(balance_compare(&y, &x) > 0);
}

static void
test_narrow(void **state)
{
    (void)state;
    struct rig r = rig_new(4);
    struct job *job = waiting(&r, 1, want(1, 8000), HOUR_S, 600);
    expect_before(&r, job, waiting(&r, 2, want(1, 8000), 2 * HOUR_S, 600));
    expect_before(&r, job, waiting(&r, 3, want(1, 16000), HOUR_S, 600));
    expect_before(&r, job, waiting(&r, 4, want(1, 0), HOUR_S, 600));
    expect_before(&r, waiting(&r, 5, want(1, 8000), HOUR_S, 700), job);
    struct demand half = want(1, 0);
    half.share_permille = 500;
    expect_before(&r, job, waiting(&r, 6, half, HOUR_S, 600));
    assert_false(key_of(&r, job).reserves);
    rig_free(&r);
}

/* Three hours plus the backlog; for a narrow job four times as long. */
static void
test_limits(void **state)
{
    static const struct {
        int gpus;
        int64_t waited_s;
        bool is_first;
    } cases[] = {
        {2, 3 * HOUR_S - 1, false}, {2, 4 * HOUR_S, true}, {1, 11 * HOUR_S, false},
        {1, 14 * HOUR_S, true},     {4, 4 * HOUR_S, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig r = rig_new(4);
        struct job *job = waiting(&r, 1, want(cases[i].gpus, 8000), 60, cases[i].waited_s);
        begin_pass(&r, NOW_US);
        struct balance_key key = key_of(&r, job);
        assert_int_equal(key.first_since_us != 0, cases[i].is_first);
        assert_int_equal(job->first_since_us != 0, cases[i].is_first);
        assert_true(!cases[i].is_first || (key.due && key.reserves));
        rig_free(&r);
    }
}

/* The backlog counts at its maximum, even after it has shrunk. */
static void
test_backlog(void **state)
{
    (void)state;
    struct rig r = rig_new(4);
    struct job *wide = waiting(&r, 1, want(4, 8000), 60, 13 * HOUR_S);
    struct job *heap = waiting(&r, 2, want(1, 0), 100 * 24 * HOUR_S, 0);
    struct demand elsewhere = want(4, 0);
    elsewhere.engine = ENGINE_SLURM;
    waiting(&r, 3, elsewhere, 100 * 24 * HOUR_S, 0);
    begin_pass(&r, NOW_US - 12 * HOUR_S * SECOND_US);
    job_free(queue_remove(r.q, heap->id));
    begin_pass(&r, NOW_US);
    assert_true(key_of(&r, wide).first_since_us == 0);
    wide->lined_us = NOW_US;
    begin_pass(&r, NOW_US + 13 * HOUR_S * SECOND_US);
    assert_true(key_of(&r, wide).first_since_us != 0);
    rig_free(&r);
}

/* A wide job has waited for ten hours behind eight hours of work. Jobs that came later and
 * left without starting must not count; the eight hours must. */
enum going { CANCELLED, HELD, AFTER_OTHERS, SHORTER, FEWER_GPUS, CANCELLED_RUN };

static void
goes(struct rig *r, struct job *job, enum going how)
{
    switch (how) {
    case CANCELLED:
        job->cancel_asked = true;
        job->state = JOB_CANCELLED;
        break;
    case HELD:
        job->state = JOB_HELD;
        break;
    case AFTER_OTHERS:
        job->parked = PARK_DEPENDENCY;
        break;
    case SHORTER:
        job->span_ms = 1000;
        break;
    case FEWER_GPUS:
        job->req.demand.gpus = 0;
        break;
    case CANCELLED_RUN:
        job->state = JOB_RUNNING;
        balance_stopped(r->b, job, 1000);
        break;
    }
    queue_refile(r->q, job);
}

static void
test_dropped_work(void **state)
{
    (void)state;
    for (enum going how = CANCELLED; how <= CANCELLED_RUN; how++) {
        struct rig r = rig_new(4);
        struct job *wide = waiting(&r, 1, want(4, 8000), 60, 10 * HOUR_S);
        waiting(&r, 2, want(4, 0), 4 * 8 * HOUR_S, 10 * HOUR_S);
        begin_pass(&r, NOW_US - 10 * HOUR_S * SECOND_US);
        struct job *heap = waiting(&r, 3, want(1, 0), 100 * 24 * HOUR_S, 9 * HOUR_S);
        begin_pass(&r, NOW_US - 9 * HOUR_S * SECOND_US);
        goes(&r, heap, how);
        if (how == CANCELLED_RUN)
            job_free(queue_remove(r.q, heap->id));
        begin_pass(&r, NOW_US);
        queue_forget_dropped(r.q);
        assert_true(key_of(&r, wide).first_since_us == 0);
        begin_pass(&r, NOW_US + 2 * HOUR_S * SECOND_US);
        assert_true(key_of(&r, wide).first_since_us != 0);
        rig_free(&r);
    }
}

/* An array counts as work in its line by its tasks, wherever it stands there. */
static void
test_arrays_are_work(void **state)
{
    (void)state;
    struct rig r = rig_new(4);
    for (uint32_t id = 1; id <= 2; id++) {
        struct job *array = new_job(id, want(1, 0));
        array->span_ms = HOUR_S * 1000;
        for (int32_t task = 0; task < 100; task++)
            task_set_add(&array->req.array, task);
        array_begin(array);
        queue_add(r.q, array);
    }
    begin_pass(&r, NOW_US);
    int64_t both = queue_work(r.q);
    job_free(queue_remove(r.q, 2));
    begin_pass(&r, NOW_US);
    assert_int_equal(both, 2 * queue_work(r.q));
    rig_free(&r);
}

/* The clock is set forward by a year: durations measured before do not change. */
static void
test_clock(void **state)
{
    (void)state;
    struct rig r = rig_new(4);
    int64_t year_us = 365 * 24 * HOUR_S * SECOND_US;
    struct job *wide = waiting(&r, 1, want(4, 8000), 60, HOUR_S);
    struct job *heap = waiting(&r, 2, want(1, 0), 100 * 24 * HOUR_S, 0);
    struct demand narrow = want(1, 8000);
    balance_submitted(r.b, &narrow, 50, NOW_US);
    begin_pass(&r, NOW_US - HOUR_S * SECOND_US);
    job_free(queue_remove(r.q, heap->id));
    begin_pass(&r, NOW_US);
    struct balance_key before = key_of(&r, wide);
    for (int i = 0; i < 2; i++) {
        int64_t by_us = i == 0 ? year_us : -2 * year_us;
        balance_clock_set(r.b, by_us);
        wide->lined_us += by_us;
        begin_pass(&r, NOW_US + (i == 0 ? year_us : -year_us));
        struct balance_key after = key_of(&r, wide);
        assert_memory_equal(&before, &after, sizeof before);
    }
    rig_free(&r);
}

static void
test_crowd(void **state)
{
    (void)state;
    struct rig r = rig_new(4);
    struct demand narrow = want(1, 8000), wide = want(2, 8000);
    struct job *job = waiting(&r, 1, wide, HOUR_S, 600);
    begin_pass(&r, NOW_US);
    int64_t alone = key_of(&r, job).charge;
    balance_submitted(r.b, &wide, 50, NOW_US);
    begin_pass(&r, NOW_US);
    assert_int_equal(key_of(&r, job).charge, alone);
    balance_submitted(r.b, &narrow, 50, NOW_US);
    begin_pass(&r, NOW_US);
    assert_true(key_of(&r, job).charge > alone);
    job->lined_us += 4 * HOUR_S * SECOND_US;
    begin_pass(&r, NOW_US + 4 * HOUR_S * SECOND_US);
    assert_int_equal(key_of(&r, job).charge, alone);
    rig_free(&r);
}

/* If run times of running jobs are unknown, GPUs are drained later, and only for jobs that are
 * due. */
static void
test_blind(void **state)
{
    (void)state;
    for (int blind = 0; blind <= 1; blind++) {
        struct rig r = rig_new(4);
        running(&r, 1, want(1, 0), (uint8_t[]){0}, blind ? 0 : HOUR_S, 0);
        struct job *wide = waiting(&r, 2, want(4, 0), HOUR_S, HOUR_S);
        begin_pass(&r, NOW_US);
        struct balance_key key = key_of(&r, wide);
        assert_false(key.due);
        assert_int_equal(key.reserves, !blind);
        /* Draining four of four GPUs for an hour is worth ten hours' wait. */
        begin_pass(&r, NOW_US + 9 * HOUR_S * SECOND_US);
        assert_int_equal(key_of(&r, wide).due, !blind);
        begin_pass(&r, NOW_US + 1000 * HOUR_S * SECOND_US);
        key = key_of(&r, wide);
        assert_true(key.due && key.reserves);
        rig_free(&r);
    }
}

/* One day while no run time is known, three hours again once one is. */
static void
test_patience_by_what_is_known(void **state)
{
    (void)state;
    struct rig r = rig_new(4);
    struct job *wide = waiting(&r, 1, want(2, 0), HOUR_S, 6 * HOUR_S);
    for (int i = 0; i < 1000; i++)
        balance_ended(r.b, 0, 1000);
    begin_pass(&r, NOW_US);
    assert_false(key_of(&r, wide).due);
    for (int i = 0; i < 1000; i++)
        balance_ended(r.b, 4000, 1000);
    begin_pass(&r, NOW_US);
    assert_true(key_of(&r, wide).due);
    rig_free(&r);
}

/* Jobs that stay far below their limits are expected to end early. */
static void
test_learning(void **state)
{
    (void)state;
    struct rig r = rig_new(4);
    struct job *four = waiting(&r, 1, want(1, 8000), 4 * HOUR_S, 600);
    struct job *one = waiting(&r, 2, want(1, 8000), HOUR_S, 600);
    expect_before(&r, one, four);
    for (int i = 0; i < 200; i++)
        balance_ended(r.b, 4 * HOUR_S * 1000, 60 * 1000);
    for (int i = 0; i < 200; i++)
        balance_ended(r.b, HOUR_S * 1000, HOUR_S * 1000);
    expect_before(&r, four, one);
    struct balance *copy = balance_clone(r.b);
    balance_begin(copy, r.q, r.l, NOW_US);
    struct balance_key a = key_of(&r, four), b;
    balance_key(copy, four->kind, four, &b);
    assert_memory_equal(&a, &b, sizeof a);
    balance_free(copy);
    rig_free(&r);
}

/* Draining. */

static void
expect_drain(const struct rig *r, struct demand d, int64_t want_s)
{
    struct drain *drain = drain_new();
    drain_begin(drain, r->l);
    for (struct job *job = queue_active(r->q); job; job = queue_active_next(job)) {
        int64_t ran_s = (NOW_US - job->run->started_us) / SECOND_US;
        drain_expect(drain, job->id, job->span_ms / 1000 - ran_s);
    }
    drain_sort(drain);
    assert_int_equal(drain_time(drain, &d), want_s);
    drain_free(drain);
}

static void
test_drain(void **state)
{
    (void)state;
    struct rig r = rig_new(4);
    struct demand both = want(2, 20000), small = want(1, 8000);
    running(&r, 1, small, (const uint8_t[]){0}, 100, 0);
    running(&r, 2, small, (const uint8_t[]){0}, 300, 100);
    running(&r, 3, both, (const uint8_t[]){1, 2}, 500, 0);
    expect_drain(&r, want(1, 8000), 0);
    expect_drain(&r, want(2, 8000), 0);
    expect_drain(&r, want(2, 16000), 100);
    expect_drain(&r, want(2, 0), 200);
    expect_drain(&r, want(4, 8000), 500);
    expect_drain(&r, want(0, 0), 0);
    expect_drain(&r, want(5, 8000), DRAIN_NEVER);
    struct demand there = want(1, 20000);
    there.devices = 2;
    expect_drain(&r, there, 500);
    ledger_set_admin(r.l, 3, GPU_PAUSED, 1);
    expect_drain(&r, want(4, 8000), DRAIN_NEVER);
    expect_drain(&r, want(1, 0), 200);
    ledger_set_admin(r.l, 3, GPU_UP, 2);
    struct gpu_info info = ledger_card(r.l, 3)->info;
    info.compute = GPU_COMPUTE_PROHIBITED;
    ledger_set_info(r.l, 3, &info);
    expect_drain(&r, want(4, 8000), DRAIN_NEVER);
    info.compute = GPU_COMPUTE_DEFAULT;
    ledger_set_info(r.l, 3, &info);
    expect_drain(&r, want(4, 8000), 500);
    machine_stranger(r.l, 3, 77, 20000, 2);
    expect_drain(&r, want(4, 8000), DRAIN_NEVER);
    rig_free(&r);
}

static void
test_drain_of_shares(void **state)
{
    (void)state;
    struct rig r = rig_new(1);
    struct demand share = want(1, 4000), more = want(1, 4000);
    share.share_permille = 700;
    more.share_permille = 400;
    running(&r, 1, share, (const uint8_t[]){0}, 60, 0);
    expect_drain(&r, more, 60);
    more.share_permille = 300;
    expect_drain(&r, more, 0);
    more.exclusive = 1;
    expect_drain(&r, more, 60);
    rig_free(&r);
}

/* Draining does not help for GPUs that other programs hold, so no job loses its reservation
 * for that. */
static void
test_no_hope(void **state)
{
    (void)state;
    struct rig r = rig_new(2);
    machine_stranger(r.l, 1, 77, 20000, 2);
    struct job *job = waiting(&r, 1, want(2, 8000), 60, 13 * HOUR_S);
    begin_pass(&r, NOW_US);
    assert_false(key_of(&r, job).reserves);
    rig_free(&r);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_backlog),
        cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_blind),
        cmocka_unit_test(test_patience_by_what_is_known),
        cmocka_unit_test(test_learning),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_no_hope),
        cmocka_unit_test(test_dropped_work),
        cmocka_unit_test(test_arrays_are_work),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_drain_of_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
