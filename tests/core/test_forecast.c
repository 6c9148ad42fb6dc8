/* The forecast against what happens when every job runs as long as expected. */
#include "planworld.h"

static const struct plan_rules rules = {.patience_ms = 900 * 1000, .fair_share = true};

static uint32_t
draw(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 8) % n;
}

/* Random queues whose limits are exact: every start happens at the forecast time, and
 * forecasting changes nothing. */
static void
test_forecast_comes_true(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 30; seed++) {
        struct expected_start *list;
        uint32_t s = seed;
        struct world w;
        world_init(&w, 4, &rules);
        for (uint32_t id = 1; id <= 120; id++) {
            uint32_t some = draw(&s, 4), few = some & draw(&s, 4);
            add(&w, (struct spec){.id = id,
                                  .gpus = 1 + (int)few,
                                  .vram = draw(&s, 3) ? 0 : 1000 * (int)draw(&s, 20),
                                  .limit = 60 * (1 + (int)draw(&s, 20)),
                                  .uid = draw(&s, 3),
                                  .priority = draw(&s, 10) == 0});
        }
        plan_now(&w);
        run_to(&w, 500);
        size_t n = plan_forecast(w.planner, w.q, w.l, wall(w.now), 1000, &list);
        assert_int_equal(n, queue_count(w.q, JOB_PENDING));
        assert_null(queue_check(w.q));
        assert_null(ledger_check(w.l));
        run_to(&w, 100000);
        for (size_t i = 0; i < n; i++) {
            assert_true(i == 0 || list[i - 1].at_us <= list[i].at_us);
            if (list[i].at_us != wall(w.started[list[i].job]))
                fail_msg("seed %u: job %u at %lld instead of %lld", seed, list[i].job,
                         (long long)w.started[list[i].job],
                         (long long)(list[i].at_us / SECOND - ZERO_S));
        }
        free(list);
        world_free(&w);
    }
}

static void
test_unknown_ends_are_not_made_up(void **state)
{
    (void)state;
    struct expected_start *list;
    struct world w;
    world_init(&w, 2, &rules);
    add(&w, (struct spec){.id = 1});
    add(&w, (struct spec){.id = 2, .limit = 100});
    plan_now(&w);
    add(&w, (struct spec){.id = 3, .gpus = 2});
    add(&w, (struct spec){.id = 4, .limit = 50});
    add(&w, (struct spec){.id = 5, .guess = 70});
    add(&w, (struct spec){.id = 6});
    size_t n = plan_forecast(w.planner, w.q, w.l, wall(w.now), 100, &list);
    static const struct {
        uint32_t job;
        int64_t at;
    } expected[] = {{4, 100}, {5, 150}, {6, 220}, {3, INT64_MAX}};
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(list[i].job, expected[i].job);
        assert_int_equal(list[i].at_us,
                         expected[i].at == INT64_MAX ? INT64_MAX : wall(expected[i].at));
    }
    free(list);
    n = plan_forecast(w.planner, w.q, w.l, wall(w.now), 2, &list);
    assert_int_equal(n, 2);
    assert_int_equal(list[1].job, 5);
    free(list);
    world_free(&w);
}

/* An array's forecast is its next task's; running tasks count towards its bound. */
static void
test_arrays(void **state)
{
    (void)state;
    struct expected_start *list;
    struct world w;
    world_init(&w, 3, &rules);
    struct job *array = add(&w, (struct spec){.id = 7, .limit = 100});
    array->req.array.ranges = xcalloc(1, sizeof(struct task_range));
    array->req.array.n = 1;
    array->req.array.ranges[0] = (struct task_range){0, 99};
    array_begin(array);
    queue_refile(w.q, array);
    add(&w, (struct spec){.id = 8, .limit = 100});
    assert_string_equal(plan_now(&w), "7_0@0 7_1@1 7_2@2");
    size_t n = plan_forecast(w.planner, w.q, w.l, wall(w.now), 1000, &list);
    assert_int_equal(n, 2);
    assert_int_equal(list[0].job, 7);
    assert_int_equal(list[0].at_us, wall(100));
    assert_int_equal(list[1].job, 8);
    assert_int_equal(list[1].at_us, wall(3300));
    free(list);
    array->req.array_max = 3;
    n = plan_forecast(w.planner, w.q, w.l, wall(w.now), 1000, &list);
    assert_int_equal(n, 2);
    assert_int_equal(list[0].at_us, wall(100));
    free(list);
    run_to(&w, 5000);
    assert_int_equal(w.started[8], 3300);
    world_free(&w);
}

/* A task that waits as a job of its own, e.g. after a requeue, belongs to its array though
 * both wait: its start and its end count there, whichever of them comes first in line. */
static void
test_tasks_that_wait(void **state)
{
    (void)state;
    for (int before = 0; before < 2; before++) {
        struct expected_start *list;
        struct world w;
        world_init(&w, 3, &rules);
        struct job *array = add(&w, (struct spec){.id = 7, .limit = 100});
        array->req.array.ranges = xcalloc(1, sizeof(struct task_range));
        array->req.array.n = 1;
        array->req.array.ranges[0] = (struct task_range){0, 1};
        array_begin(array);
        queue_refile(w.q, array);
        struct job *task = array_split(array, 0, 20);
        if (before)
            task->req.priority = 5;
        queue_add(w.q, task);
        add(&w, (struct spec){.id = 8, .limit = 100});
        size_t n = plan_forecast(w.planner, w.q, w.l, wall(w.now), 1000, &list);
        assert_int_equal(n, 3);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(list[i].at_us, wall(0));
        free(list);
        world_free(&w);
    }
}

/* Thousands of different demands: only a bounded number of lines is examined, in pieces, and
 * changes of the queue in between do no harm. */
static void
test_many_lines_in_pieces(void **state)
{
    (void)state;
    struct expected_start *list;
    struct world w;
    int steps = 0;
    world_init(&w, 1, &rules);
    for (uint32_t i = 1; i <= 3000; i++)
        add(&w, (struct spec){.id = i, .limit = 10 + i});
    struct forecast_run *run = forecast_run_begin(w.planner, w.q, w.l, wall(w.now), 5000);
    for (uint32_t i = 1; i <= 3000; i += 2)
        job_free(queue_remove(w.q, i));
    while (forecast_run_step(run))
        steps++;
    size_t n = forecast_run_end(run, &list);
    assert_true(steps >= 999);
    assert_int_equal(n, 1000);
    for (size_t i = 0; i < n; i++)
        assert_true(list[i].job >= 1 && list[i].job <= 1000);
    assert_int_equal(list[0].at_us, wall(0));
    free(list);
    world_free(&w);
}

/* A preempted job starts again, which is not reported. */
static void
test_preemption(void **state)
{
    (void)state;
    struct expected_start *list;
    struct world w;
    world_init(&w, 1, &rules);
    add(&w, (struct spec){.id = 1, .preemptible = true, .limit = 100});
    plan_now(&w);
    add(&w, (struct spec){.id = 2, .priority = 1, .limit = 50});
    add(&w, (struct spec){.id = 3, .limit = 10});
    size_t n = plan_forecast(w.planner, w.q, w.l, wall(w.now), 10, &list);
    assert_int_equal(n, 2);
    assert_int_equal(list[0].job, 2);
    assert_int_equal(list[0].at_us, wall(0));
    assert_int_equal(list[1].job, 3);
    assert_int_equal(list[1].at_us, wall(150));
    free(list);
    world_free(&w);
}

/* A job that starts, is preempted and starts again has one forecast: its first start. */
static void
test_preemption_of_what_has_yet_to_start(void **state)
{
    (void)state;
    static const struct limits limits = {.each = {.running = 1}};
    struct plan_rules limited = rules;
    struct expected_start *list;
    struct world w;
    limited.limits = &limits;
    world_init(&w, 2, &limited);
    add(&w, (struct spec){.id = 1, .uid = 1, .limit = 50});
    plan_now(&w);
    add(&w, (struct spec){.id = 2, .uid = 1, .gpus = 2, .priority = 5, .limit = 50});
    for (uint32_t id = 3; id <= 5; id++)
        add(&w, (struct spec){.id = id, .uid = 2, .preemptible = true, .limit = 100});
    size_t n = plan_forecast(w.planner, w.q, w.l, wall(w.now), 100, &list);
    static const struct expected_start expected[] = {{3, 0}, {2, 50}, {4, 200}, {5, 300}};
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(list[i].job, expected[i].job);
        assert_int_equal(list[i].at_us, wall(expected[i].at_us));
    }
    free(list);
    world_free(&w);
}

/* A job whose begin time comes while others run takes its turn then, not earlier. */
static void
test_begin_times(void **state)
{
    (void)state;
    struct expected_start *list;
    struct world w;
    world_init(&w, 1, &rules);
    add(&w, (struct spec){.id = 1, .limit = 100});
    plan_now(&w);
    for (uint32_t id = 2; id <= 5; id++) {
        static const int64_t begins[] = {[2] = 50, [3] = 500, [4] = 0, [5] = 550};
        struct job *job = add(&w, (struct spec){.id = id, .limit = 100});
        job->begin_us = begins[id] ? wall(begins[id]) : 0;
        queue_refile(w.q, job);
    }
    size_t n = plan_forecast(w.planner, w.q, w.l, wall(w.now), 100, &list);
    static const struct expected_start expected[] = {{2, 100}, {4, 200}, {3, 500}, {5, 600}};
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(list[i].job, expected[i].job);
        assert_int_equal(list[i].at_us, wall(expected[i].at_us));
    }
    free(list);
    world_free(&w);
}

/* Hypothetical jobs: what the first plan would say, when they would start, and that real jobs
 * get the same forecast as before. */
static void
test_asked_jobs_stand_behind_those_that_wait(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1, &rules);
    add(&w, (struct spec){.id = 1, .limit = 100});
    plan_now(&w);
    add(&w, (struct spec){.id = 2, .limit = 50});
    struct forecast_run *run = forecast_run_begin(w.planner, w.q, w.l, wall(w.now), 10);
    struct job *cases[] = {new_job(900, want(1, 0)), new_job(901, want(1, 0)),
                           new_job(902, want(0, 0))};
    cases[1]->req.priority = 1;
    for (int i = 0; i < 3; i++) {
        cases[i]->order = UINT64_MAX / 2 + (uint64_t)i;
        cases[i]->req.limit_ms = cases[i]->span_ms = i == 0 ? 50000 : 20000;
        forecast_run_add(run, cases[i]);
        job_free(cases[i]);
    }
    while (forecast_run_step(run))
        ;
    const struct asked_start *last = forecast_run_asked(run, 900),
                             *first = forecast_run_asked(run, 901),
                             *now = forecast_run_asked(run, 902);
    assert_false(last->at_once);
    assert_int_equal(last->at_us, wall(170));
    assert_int_equal(last->why.ahead.id, 2);
    assert_int_equal(first->at_us, wall(100));
    assert_int_equal(first->why.holders[0].id, 1);
    assert_true(now->at_once);
    assert_int_equal(now->at_us, wall(0));
    assert_null(forecast_run_asked(run, 2));
    struct expected_start *list;
    assert_int_equal(forecast_run_end(run, &list), 1);
    assert_int_equal(list[0].job, 2);
    assert_int_equal(list[0].at_us, wall(120));
    free(list);
    world_free(&w);
}

/* More lines than one plan examines: a step never examines more, each is explained, and a job
 * far behind that fits starts at once. */
static void
test_many_asked_jobs_in_pieces(void **state)
{
    (void)state;
    const uint32_t first = 10000, n = 3 * PLAN_DEPTH;
    struct world w;
    int steps = 0, shrunk = 1;
    world_init(&w, 1, &rules);
    add(&w, (struct spec){.id = 1});
    plan_now(&w);
    struct forecast_run *run = forecast_run_begin(w.planner, w.q, w.l, wall(w.now), 10);
    for (uint32_t i = 0; i < n; i++) {
        struct job *job = new_job(first + i, want(i == n - 1 ? 0 : 1, 1000 + (int)i));
        job->order = UINT64_MAX / 2 + i;
        forecast_run_add(run, job);
        job_free(job);
    }
    for (; forecast_run_step(run); steps++)
        ;
    assert_true(steps > 3);
    for (uint32_t i = 0; i < n - 1; i++) {
        const struct asked_start *x = forecast_run_asked(run, first + i);
        assert_int_equal(x->why.reason, REASON_GPU_BUSY);
        assert_int_equal(x->at_us, INT64_MAX);
    }
    assert_true(forecast_run_asked(run, first + n - 1)->at_once);
    while (forecast_run_shrink(run))
        shrunk++;
    assert_int_equal(shrunk, 3);
    struct expected_start *list;
    assert_int_equal(forecast_run_end(run, &list), 0);
    free(list);
    world_free(&w);
}

/* Every hypothetical job is answered, even after all real jobs have been forecast. */
static void
test_asked_jobs_are_told_behind_enough_starts(void **state)
{
    (void)state;
    const uint32_t first = 10000, n = 2 * PLAN_DEPTH;
    struct world w;
    world_init(&w, 1, &rules);
    add(&w, (struct spec){.id = 1, .vram = 1000});
    struct forecast_run *run = forecast_run_begin(w.planner, w.q, w.l, wall(w.now), 1);
    for (uint32_t i = 0; i < n; i++) {
        struct job *job = new_job(first + i, want(1, CARD_MIB - 1000 - (int)i));
        job->order = UINT64_MAX / 2 + i;
        forecast_run_add(run, job);
        job_free(job);
    }
    while (forecast_run_step(run))
        ;
    for (uint32_t i = 0; i < n; i++) {
        const struct asked_start *x = forecast_run_asked(run, first + i);
        assert_true(x->at_once || x->why.reason != REASON_NONE);
    }
    struct expected_start *list;
    assert_int_equal(forecast_run_end(run, &list), 1);
    free(list);
    world_free(&w);
}

/* A job that preempts, behind more lines than a plan examines, gets the victims' room, and the
 * forecast ends. */
static void
test_an_asked_job_far_behind_has_others_make_way(void **state)
{
    (void)state;
    const uint32_t first = 10000, n = 2 * PLAN_DEPTH;
    struct world w;
    int steps = 0;
    world_init(&w, 3, &rules);
    add(&w, (struct spec){.id = 1, .gpus = 2, .limit = 1000});
    add(&w, (struct spec){.id = 2, .uid = 7, .preemptible = true});
    plan_now(&w);
    struct forecast_run *run = forecast_run_begin(w.planner, w.q, w.l, wall(w.now), 10);
    for (uint32_t i = 0; i < n; i++) {
        struct job *job = new_job(first + i, i == n - 1 ? want(1, 0) : want(2, 1000 + (int)i));
        job->order = UINT64_MAX / 2 + i;
        job->req.priority = 1;
        forecast_run_add(run, job);
        job_free(job);
    }
    while (forecast_run_step(run))
        assert_true(++steps < 50);
    assert_true(forecast_run_asked(run, first + n - 1)->at_once);
    struct expected_start *list;
    forecast_run_end(run, &list);
    free(list);
    world_free(&w);
}

/* The line of the job with the reservation is among the copies, wherever it stands. */
static void
test_the_reservation_is_copied(void **state)
{
    (void)state;
    struct expected_start *list;
    struct world w;
    bool found = false;
    world_init(&w, 1, &rules);
    add(&w, (struct spec){.id = 1, .vram = 14000, .limit = 1000});
    plan_now(&w);
    for (uint32_t i = 0; i < 1200; i++)
        add(&w, (struct spec){.id = 10 + i, .vram = 14000 + (int)i});
    struct job *job = queue_get(w.q, 10 + 1100);
    job->req.priority = 1;
    queue_refile(w.q, job);
    plan_now(&w);
    assert_int_equal(planner_reservation(w.planner)->job, job->id);
    job->req.priority = 0;
    queue_refile(w.q, job);
    size_t n = plan_forecast(w.planner, w.q, w.l, wall(w.now), 2000, &list);
    for (size_t i = 0; i < n; i++)
        found |= list[i].job == job->id;
    assert_true(found);
    free(list);
    world_free(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asked_jobs_stand_behind_those_that_wait),
        cmocka_unit_test(test_many_asked_jobs_in_pieces),
        cmocka_unit_test(test_asked_jobs_are_told_behind_enough_starts),
        cmocka_unit_test(test_an_asked_job_far_behind_has_others_make_way),
        cmocka_unit_test(test_the_reservation_is_copied),
        cmocka_unit_test(test_forecast_comes_true),
        cmocka_unit_test(test_unknown_ends_are_not_made_up),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_tasks_that_wait),
        cmocka_unit_test(test_many_lines_in_pieces),
        cmocka_unit_test(test_begin_times),
        cmocka_unit_test(test_preemption),
        cmocka_unit_test(test_preemption_of_what_has_yet_to_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
