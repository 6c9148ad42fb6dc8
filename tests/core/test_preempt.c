/* Which jobs are preempted for which: never more than needed, and none if that does not
 * help. */
#include "planworld.h"

static const enum plan_order orders[] = {PLAN_QUEUE, PLAN_SHORT, PLAN_LONGEST, PLAN_BALANCED};
#define N_ORDERS (sizeof orders / sizeof orders[0])

static struct plan_rules
rules_of(size_t i)
{
    return (struct plan_rules){.order = orders[i], .patience_ms = INT64_MAX};
}

static const struct plan_rules rules = {.patience_ms = INT64_MAX};

#define STAYS                                                                                  \
    {                                                                                          \
        .run = FOREVER                                                                         \
    }
#define GIVES .run = FOREVER, .preemptible = true

/* Four GPUs; jobs 1 .. 6 start one second apart, then 10 comes. */
static void
test_who_makes_way(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct spec runs[6];
        struct spec comes;
        const char *plan;
    } cases[] = {
        {"room there is", {{GIVES}, {GIVES}}, {.priority = 1}, "10@2"},
        {"one card: the last to start",
         {{GIVES}, {GIVES}, {GIVES}, STAYS},
         {.priority = 1},
         "3<10"},
        {"the lowest priority before the last to start",
         {{GIVES, .priority = -5}, {GIVES}, STAYS, STAYS},
         {.priority = 1},
         "1<10"},
        {"not for one of the same priority", {{GIVES}, {GIVES}, STAYS, STAYS}, {0}, ""},
        {"not who may not be preempted", {STAYS, STAYS, STAYS, STAYS}, {.priority = 9}, ""},
        {"not when it would not fit even then",
         {{GIVES}, {GIVES}, STAYS, STAYS},
         {.priority = 1, .gpus = 3},
         ""},
        {"as many as it takes",
         {{GIVES}, {GIVES}, STAYS, {GIVES}},
         {.priority = 1, .gpus = 2},
         "4<10 2<10"},
        {"one that holds many cards rather than several",
         {{GIVES, .gpus = 2}, {GIVES}, {GIVES}},
         {.priority = 1, .gpus = 2},
         "1<10"},
        {"one that is large rather than two that are small",
         {{GIVES, .vram = 20000}, STAYS, STAYS, {GIVES, .vram = 10000}, {GIVES, .vram = 10000}},
         {.priority = 1, .vram = 19000},
         "1<10"},
        {"small ones where those of higher priority stay",
         {STAYS, STAYS, STAYS, {GIVES, .vram = 9000}, {.run = FOREVER, .vram = 14000}},
         {.priority = 1, .vram = 9000},
         "4<10"},
        {"only with those who free what is short: cores",
         {{GIVES, .cpus = 1}, {GIVES, .cpus = 12}, {.run = FOREVER, .cpus = 1}},
         {.priority = 1, .cpus = 4},
         "2<10"},
    };
    size_t n_cases = sizeof cases / sizeof cases[0];
    for (size_t i = 0; i < n_cases * N_ORDERS; i++) {
        const size_t at = i % n_cases;
        const struct plan_rules r = rules_of(i / n_cases);
        struct world w;
        world_init(&w, 4, &r);
        ledger_set_host(w.l, 16, 0);
        for (uint32_t n = 0; n < 6; n++) {
            struct spec s = cases[at].runs[n];
            s.id = n + 1;
            w.now++;
            if (s.run)
                add(&w, s);
            plan_now(&w);
            assert_int_equal(queue_count(w.q, JOB_PENDING), 0);
        }
        struct spec comes = cases[at].comes;
        comes.id = 10;
        w.now = 100;
        add(&w, comes);
        if (strcmp(plan_now(&w), cases[at].plan) != 0)
            fail_msg("%s, order %d: %s", cases[at].what, (int)r.order, w.text);
        world_free(&w);
    }
}

/* A victim on a GPU that the job's user may not use would start there again, and be preempted
 * again. */
static void
test_not_on_cards_beyond_a_limit(void **state)
{
    (void)state;
    static const struct limits limits = {.each = {.vram_mib = 30000}};
    const struct plan_rules limited = {.patience_ms = INT64_MAX, .limits = &limits};
    struct world w;
    world_init(&w, 2, &limited);
    struct gpu_info large = ledger_card(w.l, 0)->info;
    large.total_mib = 81920;
    ledger_set_info(w.l, 0, &large);
    add(&w, (struct spec){.id = 1, .vram = 28000, .uid = 3, .preemptible = true});
    add(&w, (struct spec){.id = 2, .uid = 4});
    assert_string_equal(plan_now(&w), "1@0 2@1");
    add(&w, (struct spec){.id = 10, .uid = 1, .priority = 1});
    assert_string_equal(plan_now(&w), "");
    world_free(&w);
}

/* No victim is asked twice, or in place of one that is already leaving; the room is kept,
 * because otherwise the first victim to leave would restart there and be preempted again, for
 * ever. */
static void
test_the_room_is_kept(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_ORDERS; i++) {
        const struct plan_rules r = rules_of(i);
        struct world w;
        world_init(&w, 2, &r);
        add(&w, (struct spec){.id = 1, .preemptible = true});
        add(&w, (struct spec){.id = 2, .preemptible = true});
        plan_now(&w);
        w.now = 10;
        add(&w, (struct spec){.id = 10, .gpus = 2, .priority = 1});
        add(&w, (struct spec){.id = 20});
        assert_string_equal(plan_now(&w), "2<10 1<10");
        assert_int_equal(planner_reservation(w.planner)->job, 10);
        assert_int_equal(planner_reservation(w.planner)->at_us,
                         wall(11) + GRACE_DEFAULT_MS * 1000);
        assert_string_equal(plan_now(&w), "");
        w.now = 12;
        end_job(&w, 2, OUTCOME_PREEMPTED);
        assert_string_equal(plan_now(&w), "");
        w.now = 13;
        end_job(&w, 1, OUTCOME_PREEMPTED);
        assert_string_equal(plan_now(&w), "10@0,1");
        end_job(&w, 10, OUTCOME_EXITED);
        plan_now(&w);
        assert_int_equal(queue_count(w.q, JOB_PENDING), 1);
        world_free(&w);
    }
}

/* Free room beside a victim is part of the reserved room: no later job gets it while the
 * victim leaves, unless it fits beside the job. Even a short job would only have to leave too:
 * it would still run when the victims are gone. */
static void
test_memory_beside_a_victim_is_kept(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_ORDERS; i++) {
        const struct plan_rules r = rules_of(i);
        struct world w;
        world_init(&w, 1, &r);
        add(&w, (struct spec){.id = 1, .vram = 10000, .preemptible = true});
        assert_string_equal(plan_now(&w), "1@0");
        w.now = 10;
        add(&w, (struct spec){.id = 10, .vram = 16000, .priority = 1});
        assert_string_equal(plan_now(&w), "1<10");
        add(&w, (struct spec){.id = 20, .vram = 9000});
        assert_string_equal(plan_now(&w), "");
        add(&w, (struct spec){.id = 21, .vram = 2000});
        assert_string_equal(plan_now(&w), "21@0");
        add(&w, (struct spec){.id = 22, .vram = 9000, .limit = 5, .preemptible = true});
        assert_string_equal(plan_now(&w), "");
        w.now = 15;
        end_job(&w, 1, OUTCOME_PREEMPTED);
        assert_string_equal(plan_now(&w), "10@0");
        world_free(&w);
    }
}

/* Exactly those GPUs are kept, though another might be free earlier: that is only an
 * estimate. */
static void
test_the_cards_of_the_victims_are_kept(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_ORDERS; i++) {
        const struct plan_rules r = rules_of(i);
        struct world w;
        world_init(&w, 4, &r);
        add(&w, (struct spec){.id = 1, .guess = 15, .run = FOREVER});
        assert_string_equal(plan_now(&w), "1@0");
        add(&w, (struct spec){.id = 2, .preemptible = true});
        assert_string_equal(plan_now(&w), "2@1");
        add(&w, (struct spec){.id = 3, .preemptible = true});
        assert_string_equal(plan_now(&w), "3@2");
        add(&w, (struct spec){.id = 4, .preemptible = true});
        assert_string_equal(plan_now(&w), "4@3");
        w.now = 10;
        add(&w, (struct spec){.id = 10, .gpus = 3, .priority = 1});
        assert_string_equal(plan_now(&w), "4<10 3<10 2<10");
        w.now = 12;
        end_job(&w, 4, OUTCOME_PREEMPTED);
        assert_string_equal(plan_now(&w), "");
        w.now = 13;
        end_job(&w, 3, OUTCOME_PREEMPTED);
        end_job(&w, 2, OUTCOME_PREEMPTED);
        assert_string_equal(plan_now(&w), "10@1,2,3");
        world_free(&w);
    }
}

static int
draw(uint32_t *seed, int below)
{
    *seed = *seed * 1103515245U + 12345U;
    return (int)((*seed >> 16) % (uint32_t)below);
}

static struct spec
draw_job(uint32_t *seed, uint32_t id, int cards)
{
    struct spec s = {.id = id, .cpus = draw(seed, 5), .run = FOREVER};
    s.gpus = draw(seed, 4) ? 1 : 1 + draw(seed, cards);
    s.vram = draw(seed, 2) ? 0 : 1000 + draw(seed, 12000);
    s.preemptible = draw(seed, 4) > 0;
    if (draw(seed, 3) == 0)
        s.limit = s.run = 1 + draw(seed, 60);
    else if (draw(seed, 3) == 0)
        s.guess = 1 + draw(seed, 60);
    return s;
}

static void
end_some(struct world *w, uint32_t *seed)
{
    for (struct job *job = queue_active(w->q), *next; job; job = next) {
        next = queue_active_next(job);
        bool is_over = w->started[job->id] + w->run_s[job->id] <= w->now;
        if (job->requeue_asked && draw(seed, 5) == 0)
            end_job(w, job->id, OUTCOME_PREEMPTED);
        else if (w->run_s[job->id] != FOREVER && is_over)
            end_job(w, job->id, OUTCOME_EXITED);
    }
}

/* However other jobs come and leave, the job preempts once, and the victims it chose
 * suffice. */
static void
test_a_job_asks_in_one_plan(void **state)
{
    (void)state;
    for (uint32_t run = 1; run <= 400; run++) {
        const struct plan_rules r = rules_of(run % N_ORDERS);
        int cards = 1 + (int)(run / N_ORDERS) % 5, asked = 0;
        uint32_t seed = run, id = 1;
        struct world w;
        world_init(&w, cards, &r);
        ledger_set_host(w.l, 16, 0);
        for (w.now = 1; w.now < 120; w.now++) {
            if (w.now == 20)
                add(&w, (struct spec){.id = 100,
                                      .priority = 1,
                                      .gpus = 1 + draw(&seed, cards),
                                      .vram = draw(&seed, 2) ? 0 : 3000 + draw(&seed, 18000),
                                      .cpus = draw(&seed, 12)});
            else if (draw(&seed, 2) && id < 100)
                add(&w, draw_job(&seed, id++, cards));
            asked += strstr(plan_now(&w), "<100") != NULL;
            end_some(&w, &seed);
        }
        if (asked > 1)
            fail_msg("run %u, order %d: asked in %d plans", run, (int)r.order, asked);
        world_free(&w);
    }
}

/* The second job in the order also preempts, and only for itself, although another job has the
 * reservation. */
static void
test_behind_one_who_waits(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 3, &rules);
    add(&w, (struct spec){.id = 1, .limit = 1000});
    add(&w, (struct spec){.id = 2, .preemptible = true, .limit = 2000});
    add(&w, (struct spec){.id = 3, .limit = 3000});
    plan_now(&w);
    add(&w, (struct spec){.id = 10, .gpus = 3, .priority = 5});
    add(&w, (struct spec){.id = 11, .priority = 4, .limit = 100});
    add(&w, (struct spec){.id = 12, .limit = 100});
    assert_string_equal(plan_now(&w), "2<11");
    assert_int_equal(planner_reservation(w.planner)->job, 10);
    end_job(&w, 2, OUTCOME_PREEMPTED);
    assert_string_equal(plan_now(&w), "11@1");
    world_free(&w);
}

/* A cancelled job leaves in any case. */
static void
test_who_is_leaving_will_do(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 2, &rules);
    add(&w, (struct spec){.id = 1, .preemptible = true});
    struct job *job = add(&w, (struct spec){.id = 2});
    plan_now(&w);
    job->cancel_asked = true;
    add(&w, (struct spec){.id = 10, .priority = 1});
    assert_string_equal(plan_now(&w), "");
    assert_int_equal(planner_reservation(w.planner)->job, 10);
    add(&w, (struct spec){.id = 11, .priority = 1});
    assert_string_equal(plan_now(&w), "");
    world_free(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_makes_way),
        cmocka_unit_test(test_not_on_cards_beyond_a_limit),
        cmocka_unit_test(test_the_room_is_kept),
        cmocka_unit_test(test_memory_beside_a_victim_is_kept),
        cmocka_unit_test(test_the_cards_of_the_victims_are_kept),
        cmocka_unit_test(test_a_job_asks_in_one_plan),
        cmocka_unit_test(test_behind_one_who_waits),
        cmocka_unit_test(test_who_is_leaving_will_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
