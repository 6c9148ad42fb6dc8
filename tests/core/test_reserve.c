/* Reservations for blocked jobs: the promise, which jobs may start beside it, patience, and
 * that no stream of other jobs starves a job. */
#include "core/plan/plan_priv.h"
#include "planworld.h"

#define NONE UINT32_MAX

static struct plan_rules
patience_of(int64_t seconds)
{
    return (struct plan_rules){.patience_ms = seconds == INT64_MAX ? seconds : seconds * 1000};
}

/* Four GPUs; jobs 1 .. 4 run on them, 10 wants GPUs, then 20 comes. Which start and which GPUs
 * are promised to 10, and does 20 start at once? */
static void
test_who_may_start_beside_a_promise(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct spec runs[4], blocked, late;
        int64_t at; /* INT64_MAX: unknown; 0: no promise */
        const char *plan;
        enum reason reason; /* of 20 */
    } cases[] = {
        {"over in time",
         {{.limit = 100}, {.limit = 200}, {.limit = 300}},
         {.gpus = 3},
         {.limit = 200},
         200,
         "20@3",
         REASON_NONE},
        {"over a second too late",
         {{.limit = 100}, {.limit = 200}, {.limit = 300}},
         {.gpus = 3},
         {.limit = 201},
         200,
         "",
         REASON_RESERVATION},
        {"a limit that is not known is too late",
         {{.limit = 100}, {.limit = 200}, {.limit = 300}},
         {.gpus = 3},
         {0},
         200,
         "",
         REASON_RESERVATION},
        {"on a card that is not needed",
         {{.limit = 100}, {.limit = 100}, {.limit = 300}},
         {.gpus = 2},
         {0},
         100,
         "20@3",
         REASON_NONE},
        {"beside it, on the same card",
         {{.limit = 100}, {.limit = 100}, {.limit = 100}, {.vram = 4000, .limit = 900}},
         {.gpus = 4, .vram = 12000},
         {.vram = 6000},
         100,
         "20@3",
         REASON_NONE},
        {"too large to be beside it",
         {{.limit = 100}, {.limit = 100}, {.limit = 100}, {.vram = 4000, .limit = 900}},
         {.gpus = 4, .vram = 12000},
         {.vram = 9000},
         100,
         "",
         REASON_RESERVATION},
        {"an estimate is an expected end",
         {{.guess = 100}, {.limit = 50}, {.limit = 300}},
         {.gpus = 3},
         {.guess = 100},
         100,
         "20@3",
         REASON_NONE},
        {"an unknown end is waited for by nobody, as long as patience lasts",
         {{.limit = 100}, {0}, {0}},
         {.gpus = 3},
         {0},
         0,
         "20@3",
         REASON_NONE},
        {"one of several unknown ends does not matter",
         {{.limit = 100}, {.limit = 150}, {0}},
         {.gpus = 3},
         {0},
         150,
         "",
         REASON_RESERVATION},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct plan_rules rules = patience_of(INT64_MAX);
        struct world w;
        struct blocked why;
        world_init(&w, 4, &rules);
        for (uint32_t n = 0; n < 4; n++) {
            struct spec s = cases[i].runs[n];
            s.id = n + 1;
            if (s.limit || s.guess || s.vram || n < 3)
                add(&w, s);
        }
        plan_now(&w);
        struct spec blocked = cases[i].blocked, late = cases[i].late;
        blocked.id = 10;
        late.id = 20;
        add(&w, blocked);
        struct job *job = add(&w, late);
        if (strcmp(plan_now(&w), cases[i].plan) != 0)
            fail_msg("%s: %s", cases[i].what, w.text);
        const struct reservation *r = planner_reservation(w.planner);
        assert_int_equal(r->job, cases[i].at ? 10 : 0);
        if (cases[i].at)
            assert_int_equal(r->at_us, wall(cases[i].at));
        plan_explain(w.q, job, &why);
        assert_int_equal(why.reason, cases[i].reason);
        if (why.reason == REASON_RESERVATION) {
            assert_int_equal(why.waits_for.id, 10);
            assert_int_equal(why.until_us, wall(cases[i].at));
        }
        world_free(&w);
    }
}

/* On the best-fitting GPU it would delay the promise; on another GPU it does not. */
static void
test_another_card_is_tried(void **state)
{
    (void)state;
    struct plan_rules rules = patience_of(INT64_MAX);
    struct world w;
    world_init(&w, 3, &rules);
    add(&w, (struct spec){.id = 1, .limit = 100});
    add(&w, (struct spec){.id = 2, .vram = 12000, .limit = 900});
    plan_now(&w);
    add(&w, (struct spec){.id = 10, .gpus = 3, .vram = 11000});
    add(&w, (struct spec){.id = 20, .vram = 6000});
    assert_string_equal(plan_now(&w), "20@2");
    assert_int_equal(planner_reservation(w.planner)->at_us, wall(100));
    world_free(&w);
}

/* No promise if our own jobs' ends do not help; the next job in the order gets one. */
static void
test_nothing_is_kept_for_who_cannot_be_helped(void **state)
{
    (void)state;
    struct plan_rules rules = patience_of(0);
    struct world w;
    world_init(&w, 4, &rules);
    machine_stranger(w.l, 3, 99, 20000, wall(0));
    add(&w, (struct spec){.id = 1, .limit = 100});
    add(&w, (struct spec){.id = 2, .limit = 50});
    plan_now(&w);
    add(&w, (struct spec){.id = 10, .gpus = 4});
    add(&w, (struct spec){.id = 11, .gpus = 3});
    add(&w, (struct spec){.id = 20});
    assert_string_equal(plan_now(&w), "");
    assert_int_equal(planner_reservation(w.planner)->job, 11);
    assert_int_equal(planner_reservation(w.planner)->at_us, wall(100));
    ledger_set_admin(w.l, 1, GPU_PAUSED, wall(0));
    assert_string_equal(plan_now(&w), "20@2");
    assert_int_equal(planner_reservation(w.planner)->job, 0);
    world_free(&w);
}

/* Overdue and suspended jobs, and jobs whose memory has not been returned yet. */
static void
test_ends_that_are_expected(void **state)
{
    (void)state;
    static const struct {
        enum job_state state;
        int64_t now, at;
        bool cancelled;
    } cases[] = {
        {JOB_RUNNING, 40, 100, false},         {JOB_RUNNING, 100, 101, false},
        {JOB_RUNNING, 500, 501, false},        {JOB_COMPLETING, 40, 41, false},
        {JOB_SUSPENDED, 40, INT64_MAX, false}, {JOB_RUNNING, 40, 51, true},
        {JOB_RUNNING, 95, 100, true},          {JOB_STARTING, 40, 100, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct plan_rules rules = patience_of(INT64_MAX);
        struct world w;
        world_init(&w, 1, &rules);
        struct job *job = add(&w, (struct spec){.id = 1, .limit = 100});
        plan_now(&w);
        job->state = cases[i].state;
        job->cancel_asked = cases[i].cancelled;
        queue_refile(w.q, job);
        w.now = cases[i].now;
        add(&w, (struct spec){.id = 10});
        plan_now(&w);
        const struct reservation *r = planner_reservation(w.planner);
        assert_int_equal(r->job, cases[i].at == INT64_MAX ? 0 : 10);
        assert_int_equal(r->at_us, cases[i].at == INT64_MAX ? INT64_MAX : wall(cases[i].at));
        world_free(&w);
    }
}

/* Cores and host memory can be the promised resource, too. */
static void
test_cores_are_kept(void **state)
{
    (void)state;
    struct plan_rules rules = patience_of(INT64_MAX);
    struct world w;
    world_init(&w, 4, &rules);
    ledger_set_host(w.l, 16, 0);
    add(&w, (struct spec){.id = 1, .cpus = 10, .limit = 100});
    plan_now(&w);
    add(&w, (struct spec){.id = 10, .cpus = 12});
    add(&w, (struct spec){.id = 20, .cpus = 5});
    add(&w, (struct spec){.id = 21, .cpus = 4});
    assert_string_equal(plan_now(&w), "21@1");
    assert_int_equal(planner_reservation(w.planner)->at_us, wall(100));
    world_free(&w);
}

/* A fraction of a GPU needs no margin, a demand in MiB does: a job that would fit beside the
 * promised one may leave it too little. By time (limit 100), and on pinned GPUs. */
static void
test_each_fits_beside_the_other(void **state)
{
    (void)state;
    for (int limit = 0; limit <= 100; limit += 100) {
        struct plan_rules rules = patience_of(limit ? INT64_MAX : 0);
        struct world w;
        struct blocked why;
        world_init(&w, 1, &rules);
        add(&w, (struct spec){.id = 1, .vram = 12200, .limit = limit});
        plan_now(&w);
        add(&w, (struct spec){.id = 10, .vram = 11900}); /* 36 MiB short, with its margin */
        struct job *half = add(&w, (struct spec){.id = 20, .share = 500});
        add(&w, (struct spec){.id = 21, .share = 300});
        assert_string_equal(plan_now(&w), "21@0");
        assert_int_equal(planner_reservation(w.planner)->job, 10);
        assert_int_equal(planner_reservation(w.planner)->pinned, limit == 0);
        plan_explain(w.q, half, &why);
        assert_int_equal(why.reason, REASON_RESERVATION);
        w.now = 100;
        end_job(&w, 1, OUTCOME_EXITED);
        assert_string_equal(plan_now(&w), "10@0");
        world_free(&w);
    }
}

/* Starvation. An endless stream of jobs for one GPU, and one for all four, on four GPUs. */

struct stream {
    struct spec proto;
    uint32_t next;
    uint32_t seed;
};

/* As many jobs as free GPUs are pending at any time; their lengths differ. */
static void
feed(struct world *w, struct stream *s)
{
    while (queue_count(w->q, JOB_PENDING) < 6) {
        struct spec job = s->proto;
        s->seed = s->seed * 1103515245 + 12345;
        int length = 50 + (int)(s->seed >> 16) % 100;
        job.id = s->next++;
        job.run = length;
        if (job.limit)
            job.limit = length + (int)(s->seed >> 8) % 50;
        if (job.guess)
            job.guess = length / 2 + (int)(s->seed >> 8) % 100; /* often too short */
        add(w, job);
    }
}

/* The second at which job 10, submitted at 500, starts; *first gets the first promise. */
static int64_t
start_beside(struct world *w, struct stream *s, struct spec wide, int64_t *first)
{
    *first = INT64_MAX;
    feed(w, s);
    plan_now(w);
    while (w->now < 500) {
        feed(w, s);
        step_to(w, 500);
    }
    wide.id = 10;
    add(w, wide);
    queue_reorder(w->q, queue_get(w->q, 10), 1);
    plan_now(w);
    while (w->started[10] < 0 && w->now < 20000) {
        const struct reservation *r = planner_reservation(w->planner);
        if (*first == INT64_MAX && r->job == 10 && r->at_us != INT64_MAX)
            *first = r->at_us / SECOND - ZERO_S;
        feed(w, s);
        step_to(w, w->now + 1000);
    }
    return w->started[10];
}

static void
test_with_limits_it_starts_when_promised(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        struct plan_rules rules = patience_of(900);
        struct world w;
        int64_t promised;
        struct stream s = {{.limit = 1}, 100, seed};
        world_init(&w, 4, &rules);
        int64_t at = start_beside(&w, &s, (struct spec){.gpus = 4, .limit = 10}, &promised);
        assert_in_range(at, 500, promised);
        assert_in_range(promised, 500, 500 + 200);
        world_free(&w);
    }
}

/* Exactly at the promised time if limits equal the run times. */
static void
test_with_exact_limits_it_starts_exactly_then(void **state)
{
    (void)state;
    struct plan_rules rules = patience_of(900);
    struct world w;
    world_init(&w, 4, &rules);
    for (uint32_t id = 1; id <= 4; id++)
        add(&w, (struct spec){.id = id, .limit = 100 * (int)id});
    plan_now(&w);
    add(&w, (struct spec){.id = 10, .gpus = 4, .limit = 10});
    for (uint32_t id = 20; id < 400; id++)
        add(&w, (struct spec){.id = id, .limit = 30 + (int)id % 7});
    plan_now(&w);
    assert_int_equal(planner_reservation(w.planner)->at_us, wall(400));
    run_to(&w, 399);
    assert_int_equal(planner_reservation(w.planner)->at_us, wall(400));
    assert_int_equal(queue_n_active(w.q), 1); /* the others would not end in time */
    run_to(&w, 400);
    assert_string_equal(w.text, "10@0,1,2,3");
    world_free(&w);
}

/* Estimates that are often too short delay the promise, but only until patience ends; from
 * then on no other job starts on its GPUs. No job runs longer than 150 s. */
static void
test_with_estimates_patience_bounds_the_wait(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        struct plan_rules rules = patience_of(600);
        struct world w;
        int64_t promised;
        struct stream s = {{.guess = 1}, 100, seed};
        world_init(&w, 4, &rules);
        int64_t at = start_beside(&w, &s, (struct spec){.gpus = 4}, &promised);
        assert_in_range(at, 500, 500 + 600 + 150);
        world_free(&w);
    }
}

static void
test_without_any_patience_bounds_the_wait(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        struct plan_rules rules = patience_of(600);
        struct world w;
        int64_t promised;
        struct stream s = {{0}, 100, seed};
        world_init(&w, 4, &rules);
        int64_t at = start_beside(&w, &s, (struct spec){.gpus = 4}, &promised);
        assert_in_range(at, 500 + 600, 500 + 600 + 150);
        world_free(&w);
    }
    struct plan_rules rules = patience_of(INT64_MAX);
    struct world w;
    int64_t promised;
    struct stream s = {{0}, 100, 1};
    world_init(&w, 4, &rules);
    assert_int_equal(start_beside(&w, &s, (struct spec){.gpus = 4}, &promised), -1);
    world_free(&w);
}

/* An endless stream of jobs with limits beside two without: the bound given in reserve.c,
 * max(longest limit, remaining run time of those without + patience) after pinning. */
static void
test_a_stream_with_limits_does_not_starve_the_pinned(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        struct plan_rules rules = patience_of(120);
        struct world w;
        int64_t promised;
        struct stream s = {{.limit = 1}, 100, seed};
        world_init(&w, 4, &rules);
        add(&w, (struct spec){.id = 1, .run = 900});
        add(&w, (struct spec){.id = 2, .run = 1000});
        int64_t at = start_beside(&w, &s, (struct spec){.gpus = 4}, &promised);
        assert_in_range(at, 1000, 1000 + 120);
        world_free(&w);
    }
}

/* Pins persist, and a GPU that becomes free is pinned before another job gets it. */
static void
test_pins_stay_and_gather(void **state)
{
    (void)state;
    struct plan_rules rules = patience_of(100);
    struct world w;
    const struct reservation *r;
    world_init(&w, 4, &rules);
    add(&w, (struct spec){.id = 1, .run = 400});
    add(&w, (struct spec){.id = 2, .run = 300});
    add(&w, (struct spec){.id = 3, .run = 500});
    add(&w, (struct spec){.id = 4, .run = 600});
    plan_now(&w);
    r = planner_reservation(w.planner);
    add(&w, (struct spec){.id = 10, .gpus = 2});
    for (uint32_t id = 20; id < 30; id++)
        add(&w, (struct spec){.id = id});
    plan_now(&w);
    assert_int_equal(r->job, 0);
    assert_int_equal(w.wake, 100);
    run_to(&w, 100);
    assert_true(r->job == 10 && r->pinned && r->at_us == INT64_MAX);
    uint64_t pinned = r->cards;
    assert_int_equal(__builtin_popcountll(pinned), 2);
    run_to(&w, 299);
    assert_int_equal(r->cards, pinned);
    run_to(&w, 300); /* 2 leaves card 1 */
    assert_string_equal(w.text, "");
    assert_true(r->cards & 2);
    run_to(&w, 400); /* 1 leaves card 0 */
    assert_string_equal(w.text, "10@0,1");
    assert_int_equal(w.started[20], -1);
    run_to(&w, 500);
    assert_string_equal(w.text, "20@2");
    world_free(&w);
}

/* A pinned GPU accepts a job that fits beside the one it is pinned for, however long. */
static void
test_a_pinned_card_is_shared(void **state)
{
    (void)state;
    struct plan_rules rules = patience_of(0);
    struct world w;
    world_init(&w, 2, &rules);
    add(&w, (struct spec){.id = 1});
    plan_now(&w);
    add(&w, (struct spec){.id = 10, .gpus = 2, .vram = 16000});
    add(&w, (struct spec){.id = 20, .vram = 9000});
    add(&w, (struct spec){.id = 21, .vram = 7000});
    assert_string_equal(plan_now(&w), "21@1");
    assert_true(planner_reservation(w.planner)->pinned);
    world_free(&w);
}

/* For a job without GPUs the kept resource is cores, of those that came first. */
static void
test_a_stream_of_small_jobs_does_not_starve_one_of_many_cores(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 10; seed++) {
        struct plan_rules rules = patience_of(300);
        struct world w;
        int64_t promised;
        struct stream s = {{.cpus = 4, .vram = 100}, 100, seed};
        world_init(&w, 4, &rules);
        ledger_set_host(w.l, 16, 0);
        int64_t at = start_beside(&w, &s, (struct spec){.vram = 100, .cpus = 14}, &promised);
        assert_in_range(at, 800, 800 + 150);
        world_free(&w);
    }
}

/* A job skipped because of its own limit loses no patience by that. */
static void
test_patience_begins_when_it_is_blocked(void **state)
{
    (void)state;
    struct plan_rules rules = patience_of(100);
    struct world w;
    world_init(&w, 1, &rules);
    add(&w, (struct spec){.id = 1});
    add(&w, (struct spec){.id = 2});
    w.now = 30;
    plan_now(&w);
    assert_int_equal(queue_get(w.q, 1)->blocked_since_us, 0);
    assert_int_equal(queue_get(w.q, 2)->blocked_since_us, wall(30));
    assert_int_equal(w.wake, 130);
    w.now = 50;
    plan_now(&w);
    assert_int_equal(queue_get(w.q, 2)->blocked_since_us, wall(30));
    end_job(&w, 1, OUTCOME_EXITED);
    plan_now(&w);
    assert_int_equal(queue_get(w.q, 2)->blocked_since_us, 0);
    assert_int_equal(w.wake, INT64_MAX);
    world_free(&w);
}

/* Should never happen: a reservation whose own forecast has no room for its job. Planning
 * continues, and jobs that fit are not held back. */
static void
test_an_inconsistent_reservation_keeps_nobody_back(void **state)
{
    (void)state;
    struct plan_rules rules = patience_of(100);
    struct world w;
    struct placement where = {.n = 0};
    struct blocked why = {.reason = REASON_NONE};
    const uint8_t both[] = {0, 1};
    world_init(&w, 2, &rules);
    struct job *kept = add(&w, (struct spec){.id = 10, .vram = 20000});
    struct job *late = add(&w, (struct spec){.id = 20, .vram = 4000});
    struct planning pl = {
        .planner = w.planner,
        .q = w.q,
        .l = w.l,
        .now_us = wall(0),
        .keep = {.job = kept, .at_us = wall(50), .in_time_us = wall(50), .cards = 1},
    };
    pl.keep.ahead = ledger_clone(w.l);
    struct demand all = want(2, 0);
    ledger_hold(pl.keep.ahead, 30, &all, both, 2);
    assert_true(reserve_place(&pl, late, late->id, w.l, 3, &where, &why));
    assert_int_equal(where.n, 1);
    reserve_free(&pl);
    world_free(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_may_start_beside_a_promise),
        cmocka_unit_test(test_another_card_is_tried),
        cmocka_unit_test(test_nothing_is_kept_for_who_cannot_be_helped),
        cmocka_unit_test(test_ends_that_are_expected),
        cmocka_unit_test(test_cores_are_kept),
        cmocka_unit_test(test_each_fits_beside_the_other),
        cmocka_unit_test(test_with_limits_it_starts_when_promised),
        cmocka_unit_test(test_with_exact_limits_it_starts_exactly_then),
        cmocka_unit_test(test_with_estimates_patience_bounds_the_wait),
        cmocka_unit_test(test_without_any_patience_bounds_the_wait),
        cmocka_unit_test(test_a_stream_with_limits_does_not_starve_the_pinned),
        cmocka_unit_test(test_pins_stay_and_gather),
        cmocka_unit_test(test_a_pinned_card_is_shared),
        cmocka_unit_test(test_a_stream_of_small_jobs_does_not_starve_one_of_many_cores),
        cmocka_unit_test(test_patience_begins_when_it_is_blocked),
        cmocka_unit_test(test_an_inconsistent_reservation_keeps_nobody_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
