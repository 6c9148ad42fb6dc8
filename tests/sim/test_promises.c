/* Random workloads on random machines: a promised start is never delayed, under every order,
 * with one promise or many, with limits far too long and with wrong guesses. A failing seed is
 * printed. */
#include "sim/live_sim_priv.h"
#include "support.h"

#define SEEDS 150
#define JOBS  120

static uint64_t random_state;

static uint32_t
draw(uint32_t n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % n;
}

/* Three in four have a limit, up to ten times their run time; the others a guess, which some
 * exceed. */
static int64_t
draw_estimate(int64_t duration)
{
    if (draw(4))
        return duration * (1 + draw(10)) + draw(60);
    return 1 + duration * (1 + draw(20)) / 10;
}

static void
draw_workload(const struct machine *m, uint32_t users, uint32_t priorities, struct workload *w)
{
    struct err e;
    int64_t now = 0;
    for (int i = 0; i < JOBS; i++) {
        struct shape s = {.allowed = UINT64_MAX,
                          .vram_mib = (int32_t)draw(23000),
                          .n = (uint8_t)(draw(3) ? 1 : 1 + draw((uint32_t)m->n)),
                          .alone = draw(4) == 0};
        struct sim_job job = {.id = i,
                              .arrival = now,
                              .duration = 1 + draw(draw(3) ? 600 : 20000),
                              .user = draw(users),
                              .priority = (int32_t)draw(priorities),
                              .line = 1};
        job.estimate = draw_estimate(job.duration);
        workload_add(w, &job, &s);
        now += draw(3) ? draw(900) : 0;
    }
    assert_int_equal(workload_sort(w, "random", &e), 0);
    assert_int_equal(workload_check(w, m, "random", &e), 0);
}

static struct live_rules
draw_rules(enum plan_order order)
{
    static const int32_t reservations[] = {1, 2, 4, PROMISES_MAX};
    struct live_rules r;
    live_rules_init(&r, order);
    r.plan.reservations = reservations[draw(4)];
    r.plan.settle_ms = draw(2) * 1000;
    r.plan.patience_ms = draw(2) ? r.plan.patience_ms : 0;
    return r;
}

/* Each waiting job still has its promise, for the same time or an earlier one. */
static size_t
check_kept(const struct live *live, size_t n, int64_t *by_us)
{
    size_t n_new = 0;
    for (size_t i = 0; i < n; i++) {
        const struct promise *x = planner_promise_of(live_planner(live), (uint32_t)i + 1);
        const struct sim_run *run = &live_runs(live)[i];
        if (run->start >= 0) {
            assert_null(x);
            assert_true(live_wall(run->start) <= by_us[i]);
            continue;
        }
        if (by_us[i] != INT64_MAX)
            assert_non_null(x);
        n_new += x && by_us[i] == INT64_MAX;
        if (x)
            assert_true(x->at_us <= by_us[i] && x->at_us > live_wall(live_now(live)));
        by_us[i] = x ? x->at_us : by_us[i];
    }
    return n_new;
}

static void
test_a_promised_start_comes_in_time(void **state)
{
    (void)state;
    size_t n_made = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        auto_workload struct workload w = WORKLOAD_INIT;
        int64_t by_us[JOBS];
        random_state = seed;
        print_message("seed %d\n", (int)seed);
        struct machine m = machine_of(1 + (int)draw(8), 24576);
        draw_workload(&m, 1 + draw(3), 1, &w);
        struct live_rules r = draw_rules((enum plan_order)(seed % 4));
        struct live *live = live_new(&w, &m, &r);
        for (size_t i = 0; i < JOBS; i++)
            by_us[i] = INT64_MAX;
        while (live_step(live))
            n_made += check_kept(live, w.n, by_us);
        for (size_t i = 0; i < w.n; i++)
            assert_true(live_runs(live)[i].start >= 0);
        live_free(live);
    }
    assert_true(n_made > SEEDS * 5);
}

/* Only a job of higher priority may break it. */
static void
test_priorities_break_promises_and_say_so(void **state)
{
    (void)state;
    size_t n_made = 0, n_overtaken = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        auto_workload struct workload w = WORKLOAD_INIT;
        auto_schedule struct schedule s = {0};
        random_state = seed;
        struct machine m = machine_of(1 + (int)draw(8), 24576);
        draw_workload(&m, 1 + draw(3), 3, &w);
        struct live_rules r = draw_rules((enum plan_order)(seed % 4));
        live_schedule(&w, &m, &r, &s);
        if (s.broken)
            fail_msg("seed %d: %zu of %zu broken", (int)seed, s.broken, s.promised);
        n_made += s.promised;
        n_overtaken += s.overtaken;
    }
    assert_true(n_made > SEEDS * 5);
    assert_true(n_overtaken > 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_promised_start_comes_in_time),
        cmocka_unit_test(test_priorities_break_promises_and_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
