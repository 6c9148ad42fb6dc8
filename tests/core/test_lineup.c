/* Lists of jobs made in pieces: equal to a list made at once, and complete for jobs that stay
 * throughout while the queue changes meanwhile. */
#include "base/ids.h"
#include "core/plan/lineup.h"
#include "core/queue/array.h"
#include "planworld.h"

#define JOBS 5000

static uint64_t
draw(uint64_t *seed, uint64_t n)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % n;
}

/* Jobs pending in line or for a begin time, held, running, and ended. */
static void
fill(struct world *w, uint32_t first, uint32_t n, uint64_t seed)
{
    for (uint32_t id = first; id < first + n; id++) {
        struct job *job = new_job(id, want(1, 1000 + (int)draw(&seed, 50)));
        job->uid = (uint32_t)draw(&seed, 5);
        job->order = draw(&seed, 1000);
        job->req.priority = (int32_t)draw(&seed, 3);
        job->span_ms = (int64_t)draw(&seed, 100) * 1000;
        if (draw(&seed, 10) == 0)
            job->state = draw(&seed, 2) ? JOB_HELD : JOB_COMPLETED;
        else if (draw(&seed, 10) == 0)
            job->state = JOB_COMPLETING;
        else if (draw(&seed, 10) == 0)
            job->begin_us = wall(1000000);
        queue_add(w->q, job);
    }
}

static uint32_t *
list(struct world *w, enum lineup_order order, size_t *n)
{
    struct lineup *x = lineup_begin(w->planner, w->q, w->l, wall(0), order);
    while (lineup_step(x))
        ;
    uint32_t *ids = lineup_ids(x, n);
    lineup_free(x);
    return ids;
}

static const struct plan_rules rules = {.fair_share = true};

static void
test_by_id_and_by_priority(void **state)
{
    (void)state;
    struct world w;
    size_t n, m;
    world_init(&w, 1, &rules);
    free(list(&w, LINEUP_BY_ID, &n));
    assert_int_equal(n, 0);
    fill(&w, 1, JOBS, 1);
    uint32_t *ids = list(&w, LINEUP_BY_ID, &n);
    assert_int_equal(n, JOBS);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(ids[i], i + 1);
    free(ids);
    ids = list(&w, LINEUP_BY_PRIORITY, &n);
    struct job **jobs = queue_list_in_order(w.q, QUEUE_ALL, &m);
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(ids[i], jobs[i]->id);
    free(jobs);
    free(ids);
    world_free(&w);
}

/* Positions count along the list. */
static void
test_places(void **state)
{
    (void)state;
    struct world w;
    size_t n;
    int64_t before, waiting = 0;
    world_init(&w, 1, &rules);
    fill(&w, 1, JOBS, 2);
    struct job *array = new_job(JOBS + 1, want(1, 1000));
    for (int32_t task = 0; task < 7; task++)
        task_set_add(&array->req.array, task);
    array_begin(array);
    queue_add(w.q, array);
    uint32_t *ids = list(&w, LINEUP_IN_TURN, &n);
    struct lineup *places = lineup_begin(w.planner, w.q, w.l, wall(0), LINEUP_PLACES);
    while (lineup_step(places))
        ;
    for (size_t i = 0; i < n; i++) {
        const struct job *job = queue_get(w.q, ids[i]);
        bool waits = lineup_place(places, ids[i], &before);
        assert_int_equal(waits, job->state == JOB_PENDING);
        assert_true(!waits || before == waiting);
        waiting += !waits ? 0 : job == array ? 7 : 1;
    }
    assert_int_equal(lineup_waiting(places), waiting);
    assert_false(lineup_place(places, JOBS + 2, &before));
    lineup_free(places);
    free(ids);
    world_free(&w);
}

/* A job that is there from beginning to end is listed exactly once. */
static void
test_the_queue_changes_meanwhile(void **state)
{
    (void)state;
    struct world w;
    size_t n;
    uint32_t next = JOBS + 1, gone = 1;
    world_init(&w, 1, &rules);
    fill(&w, 1, JOBS, 3);
    for (enum lineup_order order = LINEUP_BY_PRIORITY; order <= LINEUP_IN_TURN; order++) {
        struct lineup *x = lineup_begin(w.planner, w.q, w.l, wall(0), order);
        uint32_t first_gone = gone, first_new = next;
        while (lineup_step(x)) {
            job_free(queue_remove(w.q, gone++));
            fill(&w, next, 300, next); /* the table grows once or twice */
            next += 300;
        }
        uint32_t *ids = lineup_ids(x, &n);
        ids_sort(ids, n);
        size_t had = 0;
        for (size_t i = 0; i < n; i++) {
            assert_true(i == 0 || ids[i - 1] < ids[i]);
            had += ids[i] >= gone && ids[i] < first_new;
        }
        assert_int_equal(had, first_new - gone);
        assert_true(n > 0 && ids[0] >= first_gone);
        free(ids);
        lineup_free(x);
    }
    world_free(&w);
}

/* Jobs of several users: some from jobs files, some wide, some pending for days. */
static void
fill_balanced(struct world *w, uint32_t n, uint64_t seed)
{
    for (uint32_t id = 1; id <= n; id++) {
        struct job *job = new_job(id, want(1 + (int)draw(&seed, 3), 20 + (int)draw(&seed, 5)));
        job->uid = (uint32_t)draw(&seed, 3);
        job->file = draw(&seed, 2) ? 0 : 10 * job->uid + 1 + (uint32_t)draw(&seed, 2);
        job->req.priority = draw(&seed, 4) == 0;
        job->span_ms = (int64_t)draw(&seed, 20) * 600000;
        int64_t waited = (int64_t)draw(&seed, draw(&seed, 20) ? 10000 : 900000);
        job->order = waited < 10000 ? 900000 + draw(&seed, 1000) : 900000 - (uint64_t)waited;
        job->submitted_us = job->lined_us = wall(-waited);
        queue_add(w->q, job);
    }
}

/* A line that no pass has examined does not count in the backlog, e.g. one that starts
 * nothing. */
static void
look_at_lines(struct world *w)
{
    struct ledger *full = machine_new(8, CARD_MIB);
    struct demand d = want(8, CARD_MIB);
    uint8_t gpus[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct plan p = PLAN_INIT;
    ledger_hold(full, 1000000, &d, gpus, 8);
    plan_make(w->planner, w->q, full, wall(0), &w->next_id, &p);
    assert_int_equal(p.n, 0);
    plan_free(&p);
    ledger_free(full);
}

/* Under `balanced` the list has the order in which a pass starts jobs when all have room. */
static void
test_balanced_as_they_are_tried(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct world w;
        struct plan p = PLAN_INIT;
        const struct plan_rules balanced = {.order = PLAN_BALANCED, .fair_share = true};
        size_t n;
        world_init(&w, 8, &balanced);
        fill_balanced(&w, 400, seed);
        look_at_lines(&w);
        uint32_t *ids = list(&w, LINEUP_IN_TURN, &n);
        plan_make(w.planner, w.q, w.l, wall(0), &w.next_id, &p);
        assert_int_equal(p.n, 400);
        for (size_t i = 0; i < n; i++) {
            if (ids[i] != p.decisions[i].job)
                fail_msg("seed %u: job %u stands in place %zu, which is job %u's",
                         (unsigned)seed, ids[i], i, p.decisions[i].job);
        }
        plan_free(&p);
        free(ids);
        world_free(&w);
    }
}

static void
test_ids_are_sorted(void **state)
{
    (void)state;
    uint64_t seed = 4;
    uint32_t ids[3000];
    size_t n = sizeof ids / sizeof *ids;
    for (size_t i = 0; i < n; i++)
        ids[i] = (uint32_t)draw(&seed, UINT64_C(1) << (i % 31 + 1));
    uint32_t *sorted = ids_sorted(ids, n);
    qsort(ids, n, sizeof *ids, ids_compare);
    assert_memory_equal(sorted, ids, sizeof ids);
    free(sorted);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_id_and_by_priority),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_the_queue_changes_meanwhile),
        cmocka_unit_test(test_balanced_as_they_are_tried),
        cmocka_unit_test(test_ids_are_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
