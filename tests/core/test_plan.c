/* The pass: the order of turns (priority, fair share, the orders of the settings), arrays,
 * running limits. Reservations for blocked jobs are tested in test_reserve.c. */
#include "core/plan/lineup.h"
#include "planworld.h"

#define HOUR 3600

static const struct plan_rules queue_fair = {.patience_ms = INT64_MAX, .fair_share = true};

static struct plan_rules
ordered(enum plan_order order)
{
    return (struct plan_rules){.order = order, .patience_ms = INT64_MAX};
}

/* Fair share. */

/* One user queued 1,000 jobs first; none has used anything. All users take turns from the
 * first GPU on. That user then has had two GPUs and the others one each, so the next GPUs go
 * to the others. */
static void
test_three_users_take_turns(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 4, &queue_fair);
    for (uint32_t id = 1; id <= 900; id++)
        add(&w, (struct spec){.id = id, .uid = 1, .limit = HOUR});
    for (uint32_t id = 0; id < 5; id++) {
        add(&w, (struct spec){.id = 2001 + id, .uid = 2, .limit = HOUR});
        add(&w, (struct spec){.id = 3001 + id, .uid = 3, .limit = HOUR});
    }
    assert_string_equal(plan_now(&w), "1@0 2001@1 3001@2 2@3");
    run_to(&w, HOUR);
    assert_string_equal(w.text, "2002@0 3002@1 2003@2 3003@3");
    world_free(&w);
}

/* The first user has all GPUs when the others come: the next free GPUs go to the others. */
static void
test_others_first_jobs_start_next(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 4, &queue_fair);
    for (uint32_t id = 1; id <= 900; id++)
        add(&w, (struct spec){.id = id, .uid = 1, .run = 100 + (int)id});
    assert_string_equal(plan_now(&w), "1@0 2@1 3@2 4@3");
    w.now = 50;
    add(&w, (struct spec){.id = 2001, .uid = 2, .limit = HOUR});
    add(&w, (struct spec){.id = 3001, .uid = 3, .limit = HOUR});
    assert_string_equal(plan_now(&w), "");
    run_to(&w, 101);
    assert_string_equal(w.text, "2001@0");
    run_to(&w, 102);
    assert_string_equal(w.text, "3001@1");
    run_to(&w, 103);
    assert_string_equal(w.text, "5@2");
    world_free(&w);
}

static void
test_use_weight_and_priority(void **state)
{
    (void)state;
    static const struct {
        double used1, used2, weight2; /* GPU-seconds of users 1 and 2, weight of 2 */
        int priority1;
        const char *first;
    } cases[] = {
        {0, 0, 1, 0, "1@0"},       {1000, 0, 1, 0, "2@0"},      {1000, 1500, 1, 0, "1@0"},
        {1000, 1500, 2, 0, "2@0"}, {1000, 1500, 0.5, 0, "1@0"}, {9e9, 0, 1, 1, "1@0"},
        {0, 9e9, 1, -1, "2@0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        world_init(&w, 1, &queue_fair);
        fair_restore(w.fair, 1, cases[i].used1, wall(0));
        fair_restore(w.fair, 2, cases[i].used2, wall(0));
        fair_set_weight(w.fair, 2, cases[i].weight2);
        add(&w, (struct spec){.id = 1, .uid = 1, .priority = cases[i].priority1});
        add(&w, (struct spec){.id = 2, .uid = 2});
        assert_string_equal(plan_now(&w), cases[i].first);
        world_free(&w);
    }
}

/* Running use counts as much as past use, and more the longer it runs. */
static void
test_running_jobs_count(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 2, &queue_fair);
    fair_restore(w.fair, 2, 500, wall(0));
    add(&w, (struct spec){.id = 1, .uid = 1});
    assert_string_equal(plan_now(&w), "1@0");
    add(&w, (struct spec){.id = 2, .uid = 3, .run = 100});
    assert_string_equal(plan_now(&w), "2@1");
    add(&w, (struct spec){.id = 3, .uid = 1, .run = 1000});
    add(&w, (struct spec){.id = 4, .uid = 2, .run = 1000});
    run_to(&w, 100);
    assert_string_equal(w.text, "3@1");
    add(&w, (struct spec){.id = 5, .uid = 1});
    run_to(&w, 1100);
    assert_string_equal(w.text, "4@1");
    world_free(&w);
}

/* The clock is set a day ahead while a job has run for 90 s: only those 90 s count as use. */
static void
test_a_clock_that_is_set_is_no_use(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 2, &queue_fair);
    fair_restore(w.fair, 2, 500, wall(0));
    struct job *job = add(&w, (struct spec){.id = 1, .uid = 1});
    assert_string_equal(plan_now(&w), "1@0");
    job->run->clock_set_us = 86400 * SECOND;
    fair_shift(w.fair, 86400 * SECOND);
    w.now += 86400 + 90;
    add(&w, (struct spec){.id = 2, .uid = 2});
    add(&w, (struct spec){.id = 3, .uid = 1});
    assert_string_equal(plan_now(&w), "3@1");
    world_free(&w);
}

/* The position that `explain` shows: priority, use (a minute for each job that starts before),
 * submission; jobs that cannot start yet come last. */
static void
test_turns_are_told_as_a_pass_takes_them(void **state)
{
    (void)state;
    static const uint32_t expected[] = {7, 3, 1, 4, 2, 5, 6};
    struct world w;
    size_t n;
    world_init(&w, 1, &queue_fair);
    fair_restore(w.fair, 1, 90, wall(0));
    add(&w, (struct spec){.id = 1, .uid = 1});
    add(&w, (struct spec){.id = 2, .uid = 1});
    for (uint32_t id = 3; id <= 5; id++)
        add(&w, (struct spec){.id = id, .uid = 2});
    struct job *later = add(&w, (struct spec){.id = 6, .uid = 3});
    later->begin_us = wall(100);
    queue_refile(w.q, later);
    add(&w, (struct spec){.id = 7, .uid = 2, .priority = 1});
    struct lineup *turns = lineup_begin(w.planner, w.q, w.l, wall(0), LINEUP_IN_TURN);
    while (lineup_step(turns))
        ;
    uint32_t *ids = lineup_ids(turns, &n);
    assert_int_equal(n, 7);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(ids[i], expected[i]);
    free(ids);
    lineup_free(turns);
    world_free(&w);
}

/* With fair share off, or with one user, only the order of submission counts. */
static void
test_without_fair_share_submission_counts(void **state)
{
    (void)state;
    struct world w;
    struct plan_rules rules = queue_fair;
    rules.fair_share = false;
    world_init(&w, 2, &rules);
    fair_restore(w.fair, 1, 1e6, wall(0));
    add(&w, (struct spec){.id = 1, .uid = 1});
    add(&w, (struct spec){.id = 2, .uid = 1, .vram = 1000});
    add(&w, (struct spec){.id = 3, .uid = 2});
    assert_string_equal(plan_now(&w), "1@0 2@1");
    world_free(&w);
}

/* A fraction, or part of the memory, is charged as such: two halves cost one whole. */
static void
test_parts_are_charged_as_parts(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 4, &queue_fair);
    for (uint32_t i = 0; i < 4; i++) {
        add(&w, (struct spec){.id = 1 + i, .uid = 1});
        add(&w, (struct spec){.id = 11 + i, .uid = 2, .share = 500});
    }
    assert_string_equal(plan_now(&w), "1@0 11@1 12@1 2@2 13@3 14@3");
    world_free(&w);
}

/* Passes in between change nothing of the result. */
static void
test_why_a_job_waits_is_found_anew_when_cards_change(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1, &queue_fair);
    add(&w, (struct spec){.id = 1, .limit = HOUR});
    plan_now(&w);
    struct job *job = add(&w, (struct spec){.id = 2, .limit = HOUR});
    for (int i = 0; i < 3; i++) {
        plan_now(&w);
        assert_int_equal(job->kind->blocked.holders[0].id, 1);
    }
    end_job(&w, 1, OUTCOME_EXITED);
    machine_stranger(w.l, 0, 77, 20000, wall(1));
    plan_now(&w);
    assert_int_equal(job->kind->blocked.stranger_pid, 77);
    machine_stranger(w.l, 0, 78, 20000, wall(2));
    plan_now(&w);
    assert_int_equal(job->kind->blocked.stranger_pid, 78);
    world_free(&w);
}

/* Orders. */

static void
test_short_is_by_response_ratio(void **state)
{
    (void)state;
    struct world w;
    struct plan_rules rules = ordered(PLAN_SHORT);
    world_init(&w, 1, &rules);
    add(&w, (struct spec){.id = 1, .limit = 1000});
    add(&w, (struct spec){.id = 2, .limit = 20 * HOUR});
    add(&w, (struct spec){.id = 3}); /* unknown: an hour is assumed */
    plan_now(&w);
    assert_int_equal(w.started[1], 0);
    w.now = 900;
    add(&w, (struct spec){.id = 4, .limit = 2 * HOUR});
    add(&w, (struct spec){.id = 5, .limit = 1, .run = 60}); /* counts as one minute */
    run_to(&w, 1000);
    assert_string_equal(w.text, "5@0");
    run_to(&w, 1060);
    assert_string_equal(w.text, "3@0");
    end_job(&w, 3, OUTCOME_EXITED);
    assert_string_equal(plan_now(&w), "4@0");
    world_free(&w);
}

/* A long job ahead of a short one waits for its turn, and the short one waits for the long
 * one. */
static void
test_balanced_keeps_the_order_of_a_file(void **state)
{
    (void)state;
    for (uint32_t file = 0; file < 2; file++) {
        struct world w;
        struct plan_rules rules = ordered(PLAN_BALANCED);
        world_init(&w, 1, &rules);
        add(&w, (struct spec){.id = 1, .limit = 1000});
        plan_now(&w);
        add(&w, (struct spec){.id = 2, .limit = 20 * HOUR, .file = file});
        add(&w, (struct spec){.id = 3, .limit = 2 * HOUR, .file = file});
        add(&w, (struct spec){.id = 4, .limit = HOUR});
        run_to(&w, 1000 + 24 * HOUR);
        assert_int_equal(w.started[4], 1000);
        assert_int_equal(w.started[2], 1000 + HOUR + (file ? 0 : 2 * HOUR));
        assert_int_equal(w.started[3], 1000 + HOUR + (file ? 20 * HOUR : 0));
        world_free(&w);
    }
}

/* Within a file priority comes first, and a job that is due precedes those in front of it. */
static void
test_balanced_passes_lines_of_a_file(void **state)
{
    (void)state;
    struct world w;
    struct plan_rules rules = ordered(PLAN_BALANCED);
    world_init(&w, 2, &rules);
    add(&w, (struct spec){.id = 1, .limit = 1000, .gpus = 2});
    plan_now(&w);
    add(&w, (struct spec){.id = 2, .limit = HOUR, .gpus = 2, .file = 5});
    add(&w, (struct spec){.id = 3, .limit = HOUR, .gpus = 2, .file = 5, .priority = 1});
    add(&w, (struct spec){.id = 4, .limit = 2 * HOUR, .gpus = 2, .file = 5});
    queue_get(w.q, 4)->first_since_us = wall(0);
    run_to(&w, 1000 + 4 * HOUR);
    assert_int_equal(w.started[3], 1000);
    assert_int_equal(w.started[4], 1000 + HOUR);
    assert_int_equal(w.started[2], 1000 + 3 * HOUR);
    world_free(&w);
}

static void
test_equal_jobs_start_as_they_were_submitted(void **state)
{
    (void)state;
    struct world w;
    struct plan_rules rules = ordered(PLAN_BALANCED);
    world_init(&w, 1, &rules);
    for (uint32_t id = 1; id <= 10; id++)
        add(&w, (struct spec){.id = id, .guess = 100, .run = 10 + (int)(id * 7 % 10) * 20});
    plan_now(&w);
    run_to(&w, 10 * HOUR);
    for (uint32_t id = 2; id <= 10; id++)
        assert_true(w.started[id] >= w.started[id - 1] && w.started[id - 1] >= 0);
    world_free(&w);
}

static void
test_longest_is_by_length_then_size(void **state)
{
    (void)state;
    struct world w;
    struct plan_rules rules = ordered(PLAN_LONGEST);
    world_init(&w, 4, &rules);
    add(&w, (struct spec){.id = 1, .limit = 100});
    add(&w, (struct spec){.id = 2, .vram = 9000, .limit = 100});
    add(&w, (struct spec){.id = 3, .vram = 10000, .limit = 100});
    add(&w, (struct spec){.id = 4, .gpus = 2, .vram = 100, .limit = 100});
    add(&w, (struct spec){.id = 5, .limit = 200});
    add(&w, (struct spec){.id = 6});
    assert_string_equal(plan_now(&w), "6@0 5@1 4@2,3 3@2 2@2");
    world_free(&w);
}

/* Arrays. */

static struct job *
add_array(struct world *w, uint32_t id, int32_t first, int32_t last, int32_t most, int run)
{
    struct job *job = add(w, (struct spec){.id = id, .run = run});
    job->req.array.ranges = xcalloc(2, sizeof(struct task_range));
    job->req.array.n = 2;
    job->req.array.ranges[0] = (struct task_range){first, first + 1};
    job->req.array.ranges[1] = (struct task_range){first + 3, last};
    job->req.array_max = most;
    array_begin(job);
    queue_refile(w->q, job);
    return job;
}

static void
test_tasks_start_in_ascending_order(void **state)
{
    (void)state;
    struct world w;
    struct plan_rules rules = ordered(PLAN_QUEUE);
    world_init(&w, 4, &rules);
    add_array(&w, 7, 0, 4, 0, 10);
    add(&w, (struct spec){.id = 8, .run = 10});
    assert_string_equal(plan_now(&w), "7_0@0 7_1@1 7_3@2 7_4@3");
    assert_int_equal(w.next_id, 1004);
    run_to(&w, 10);
    assert_string_equal(w.text, "8@0");
    world_free(&w);
}

static void
test_an_array_runs_no_more_than_it_may(void **state)
{
    (void)state;
    struct world w;
    struct plan_rules rules = ordered(PLAN_QUEUE);
    world_init(&w, 4, &rules);
    add_array(&w, 7, 0, 9, 2, 10);
    add(&w, (struct spec){.id = 8, .run = 15});
    assert_string_equal(plan_now(&w), "7_0@0 7_1@1 8@2");
    run_to(&w, 10);
    assert_string_equal(w.text, "7_3@0 7_4@1");
    end_job(&w, 1002, OUTCOME_EXITED);
    assert_string_equal(plan_now(&w), "7_5@0");
    run_to(&w, 60);
    assert_string_equal(w.text, "");
    assert_int_equal(w.next_id, 1009);
    world_free(&w);
}

/* A task that left the array and is pending again counts, though it is a job of its own. */
static void
test_tasks_outside_count_too(void **state)
{
    (void)state;
    struct world w;
    struct plan_rules rules = ordered(PLAN_QUEUE);
    world_init(&w, 4, &rules);
    struct job *array = add_array(&w, 7, 0, 9, 2, 10);
    struct job *task = array_split(array, 4, 50);
    queue_add(w.q, task);
    queue_refile(w.q, array);
    assert_string_equal(plan_now(&w), "7_0@0 7_1@1");
    assert_int_equal(task->state, JOB_PENDING);
    world_free(&w);
}

/* Limits. */

static void
test_limits_on_what_runs(void **state)
{
    (void)state;
    static const struct {
        struct limit each, all;
        struct spec more; /* beside jobs 1 (whole card) and 2 (6000 MiB) of user 1 */
        const char *plan;
        enum reason reason;
        char of;
        int64_t limit;
    } cases[] = {
        {{0}, {0}, {.uid = 1}, "3@2", REASON_NONE, 0, 0},
        {{.running = 2}, {0}, {.uid = 1}, "", REASON_USER_LIMIT, 'r', 2},
        {{.running = 2}, {0}, {.uid = 2}, "3@2", REASON_NONE, 0, 0},
        {{.running = 3}, {0}, {.uid = 1}, "3@2", REASON_NONE, 0, 0},
        {{0}, {.running = 2}, {.uid = 2}, "", REASON_QUEUE_LIMIT, 'r', 2},
        {{.gpus = 3}, {0}, {.uid = 1, .gpus = 2}, "", REASON_USER_LIMIT, 'g', 3},
        {{.gpus = 4}, {0}, {.uid = 1, .gpus = 2}, "3@2,3", REASON_NONE, 0, 0},
        {{0}, {.gpus = 3}, {.uid = 2, .gpus = 2}, "", REASON_QUEUE_LIMIT, 'g', 3},
        {{.vram_mib = 31000}, {0}, {.uid = 1, .vram = 425}, "", REASON_USER_LIMIT, 'v', 31000},
        {{.vram_mib = 31000}, {0}, {.uid = 1, .vram = 424}, "3@1", REASON_NONE, 0, 0},
        {{.vram_mib = 31000}, {0}, {.uid = 1}, "", REASON_USER_LIMIT, 'v', 31000},
        {{.vram_mib = 55152}, {0}, {.uid = 1}, "3@2", REASON_NONE, 0, 0},
        {{.vram_mib = 40000}, {0}, {.uid = 1, .share = 500}, "", REASON_USER_LIMIT, 'v', 40000},
        {{0}, {.vram_mib = 31000}, {.uid = 2, .vram = 425}, "", REASON_QUEUE_LIMIT, 'v', 31000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct limits limits = {.each = cases[i].each, .all = cases[i].all};
        struct plan_rules rules = ordered(PLAN_QUEUE);
        struct blocked why;
        struct world w;
        world_init(&w, 4, &rules);
        add(&w, (struct spec){.id = 1, .uid = 1});
        add(&w, (struct spec){.id = 2, .uid = 1, .vram = 6000});
        assert_string_equal(plan_now(&w), "1@0 2@1");
        rules.limits = &limits;
        planner_set_rules(w.planner, &rules);
        struct spec more = cases[i].more;
        more.id = 3;
        struct job *job = add(&w, more);
        assert_string_equal(plan_now(&w), cases[i].plan);
        plan_explain(w.q, job, &why);
        assert_int_equal(why.reason, cases[i].reason);
        assert_int_equal(why.limit_of, cases[i].of);
        assert_int_equal(why.limit, cases[i].limit);
        world_free(&w);
    }
}

/* Starts of the same pass count, and a job over a limit does not hold back other jobs. */
static void
test_limits_bind_within_a_pass(void **state)
{
    (void)state;
    static struct user_limit rows[] = {{2, {.running = 1}}};
    static const struct limits limits = {.each = {.gpus = 2}, .users = rows, .n_users = 1};
    struct plan_rules rules = ordered(PLAN_QUEUE);
    struct world w;
    rules.limits = &limits;
    world_init(&w, 4, &rules);
    add(&w, (struct spec){.id = 1, .uid = 2, .limit = 100});
    add(&w, (struct spec){.id = 2, .uid = 2, .limit = 50});
    for (uint32_t id = 3; id <= 6; id++)
        add(&w, (struct spec){.id = id, .uid = 1, .limit = 10});
    add(&w, (struct spec){.id = 7, .uid = 3});
    assert_string_equal(plan_now(&w), "1@0 3@1 4@2 7@3");
    assert_int_equal(planner_reservation(w.planner)->job, 0);
    assert_int_equal(queue_get(w.q, 2)->blocked_since_us, 0);
    run_to(&w, 10);
    assert_string_equal(w.text, "5@1 6@2");
    run_to(&w, 100);
    assert_string_equal(w.text, "2@0");
    world_free(&w);
}

/* A limit holds back a wide job while an endless stream of narrow ones fits under it: after
 * `patience` the limit's rest is kept for the wide job. */
static void
test_nobody_starves_under_a_limit(void **state)
{
    (void)state;
    static const struct limits limits[] = {
        {.each = {.gpus = 2}},
        {.each = {.vram_mib = 2 * CARD_MIB}},
        {.all = {.gpus = 2}},
        {.all = {.vram_mib = 2 * CARD_MIB}},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct plan_rules rules = ordered(PLAN_QUEUE);
        struct world w;
        uint32_t narrow = 100;
        rules.limits = &limits[i];
        rules.patience_ms = 900 * 1000;
        world_init(&w, 4, &rules);
        add(&w, (struct spec){.id = narrow++, .uid = 1, .limit = 100});
        plan_now(&w);
        run_to(&w, 50);
        add(&w, (struct spec){.id = 1, .uid = 1, .gpus = 2, .limit = 60});
        /* A demand above the limit itself: nothing is kept for it. */
        add(&w, (struct spec){.id = 2, .uid = 1, .gpus = 3, .limit = 60});
        while (w.now < 2000) {
            add(&w, (struct spec){.id = narrow++, .uid = 1, .limit = 100});
            plan_now(&w);
            run_to(&w, w.now + 50);
        }
        assert_in_range(w.started[1], 50 + 900, 50 + 900 + 100);
        assert_int_equal(w.started[2], -1);
        assert_true(w.started[narrow - 10] > w.ended[1]);
        world_free(&w);
    }
}

#define LARGE_MIB 81920

/* Sets the first n of its GPUs. */
static void
make_large(struct world *w, int n)
{
    for (int card = 0; card < n; card++) {
        struct gpu_info large = ledger_card(w->l, card)->info;
        large.total_mib = LARGE_MIB;
        ledger_set_info(w->l, card, &large);
    }
}

/* On GPUs of several sizes a limit on VRAM leaves the small ones usable. */
static void
test_a_vram_limit_leaves_small_cards(void **state)
{
    (void)state;
    static const struct limits limits = {.each = {.vram_mib = 30000}};
    struct plan_rules rules = ordered(PLAN_QUEUE);
    struct blocked why;
    struct world w;
    rules.limits = &limits;
    world_init(&w, 2, &rules);
    make_large(&w, 1);
    add(&w, (struct spec){.id = 1, .uid = 1});
    add(&w, (struct spec){.id = 2, .uid = 2});
    assert_string_equal(plan_now(&w), "1@1");
    plan_explain(w.q, queue_get(w.q, 2), &why);
    assert_int_equal(why.reason, REASON_USER_LIMIT);
    assert_int_equal(why.limit, 30000);
    world_free(&w);
}

/* The sum over a job's GPUs counts, not the largest times their number. */
static void
test_a_vram_limit_allows_cards_of_unlike_size(void **state)
{
    (void)state;
    static const struct limits limits = {.each = {.vram_mib = LARGE_MIB + CARD_MIB}};
    struct plan_rules rules = ordered(PLAN_QUEUE);
    struct world w;
    rules.limits = &limits;
    world_init(&w, 3, &rules);
    make_large(&w, 2);
    add(&w, (struct spec){.id = 1, .uid = 1, .gpus = 2, .limit = 10});
    assert_string_equal(plan_now(&w), "1@0,2");
    run_to(&w, 10);
    add(&w, (struct spec){.id = 2, .uid = 1, .gpus = 3});
    assert_string_equal(plan_now(&w), "");
    world_free(&w);
}

static void
nobody_starves_between(const struct limits *limits)
{
    struct plan_rules rules = ordered(PLAN_QUEUE);
    struct world w;
    uint32_t next = 100;
    rules.limits = limits;
    rules.patience_ms = 900 * 1000;
    world_init(&w, 2, &rules);
    add(&w, (struct spec){.id = next++, .uid = 2, .run = 79, .limit = 36000});
    add(&w, (struct spec){.id = next++, .uid = 1, .run = 53, .limit = 60});
    plan_now(&w);
    add(&w, (struct spec){.id = 1, .uid = 1, .gpus = 2, .limit = 60});
    while (w.now < 4000) {
        add(&w, (struct spec){.id = next++, .uid = 1, .run = 53, .limit = 60});
        add(&w, (struct spec){.id = next++, .uid = 2, .run = 79, .limit = 36000});
        plan_now(&w);
        run_to(&w, w.now + 50);
    }
    assert_in_range(w.started[1], 1, 2 * 900 + 400);
    world_free(&w);
}

/* A user at the GPU limit has a wide job that waits for room while the user's narrow jobs
 * start: so the wide job is over the limit whenever another user's job ends, and that user's
 * next job takes the room. */
static void
test_nobody_starves_between_a_limit_and_the_others(void **state)
{
    (void)state;
    static const struct limits of_gpus = {.each = {.gpus = 2}};
    static const struct limits of_jobs = {.each = {.running = 1}};
    nobody_starves_between(&of_gpus);
    nobody_starves_between(&of_jobs);
}

/* GPUs of unlike size: the wide job's actual sum counts, not twice the smallest. */
static void
test_a_vram_limit_is_kept_for_unlike_cards(void **state)
{
    (void)state;
    static const struct limits limits = {.each = {.vram_mib = LARGE_MIB + CARD_MIB}};
    struct plan_rules rules = ordered(PLAN_QUEUE);
    struct world w;
    rules.limits = &limits;
    rules.patience_ms = 900 * 1000;
    world_init(&w, 3, &rules);
    make_large(&w, 2);
    for (uint32_t id = 1; id <= 2; id++)
        add(&w,
            (struct spec){.id = id, .uid = 1 + id, .vram = 60000, .run = 5000, .limit = 36000});
    add(&w, (struct spec){.id = 3, .uid = 1, .vram = 22000, .run = 60, .limit = 60});
    assert_string_equal(plan_now(&w), "1@0 2@1 3@2");
    add(&w, (struct spec){.id = 4, .uid = 1, .gpus = 2, .limit = 60});
    plan_now(&w);
    run_to(&w, 2000);
    add(&w, (struct spec){.id = 5, .uid = 1, .vram = 16000, .run = 60, .limit = 60});
    assert_string_equal(plan_now(&w), "");
    world_free(&w);
}

/* Nothing of the limit is kept for a job that waits for anything but GPUs. */
static void
test_a_limit_is_not_kept_in_vain(void **state)
{
    (void)state;
    static const struct limits limits = {.each = {.running = 1, .vram_mib = 30000}};
    struct plan_rules rules = ordered(PLAN_QUEUE);
    struct world w;
    rules.limits = &limits;
    rules.patience_ms = 900 * 1000;
    world_init(&w, 2, &rules);
    ledger_set_host(w.l, 4, 0);
    add(&w, (struct spec){.id = 1, .uid = 1, .run = 60, .limit = 60});
    add(&w, (struct spec){.id = 9, .uid = 2, .cpus = 3, .run = 5000, .limit = 5000});
    assert_string_equal(plan_now(&w), "1@0 9@1");
    add(&w, (struct spec){.id = 2, .uid = 1, .cpus = 2, .limit = 60});
    plan_now(&w);
    run_to(&w, 2000);
    assert_int_equal(w.started[2], -1);
    add(&w, (struct spec){.id = 3, .uid = 1, .run = 60, .limit = 60});
    assert_string_equal(plan_now(&w), "3@0");
    world_free(&w);
}

/* For a job that waits for room only its own demand is kept: a later job of the same user
 * starts as long as both stay within the limit. */
static void
test_a_limit_is_kept_no_further_than_needed(void **state)
{
    (void)state;
    static const struct limits limits = {.each = {.gpus = 2}};
    struct plan_rules rules = ordered(PLAN_QUEUE);
    struct world w;
    rules.limits = &limits;
    rules.patience_ms = 900 * 1000;
    world_init(&w, 3, &rules);
    make_large(&w, 1);
    add(&w, (struct spec){.id = 1, .uid = 2, .vram = 60000, .run = 36000, .limit = 36000});
    add(&w, (struct spec){.id = 2, .uid = 1, .run = 60, .limit = 60});
    add(&w, (struct spec){.id = 3, .uid = 1, .run = 60, .limit = 60});
    assert_string_equal(plan_now(&w), "1@0 2@1 3@2");
    add(&w, (struct spec){.id = 4, .uid = 1, .vram = 60000, .limit = 60});
    plan_now(&w);
    run_to(&w, 2000);
    assert_int_equal(w.started[4], -1);
    add(&w, (struct spec){.id = 5, .uid = 1, .run = 60, .limit = 60});
    add(&w, (struct spec){.id = 6, .uid = 1, .run = 60, .limit = 60});
    plan_now(&w);
    assert_int_equal(w.started[5], 2000);
    assert_int_equal(w.started[6], -1);
    run_to(&w, 2070);
    assert_int_equal(w.started[6], 2060);
    world_free(&w);
}

/* Two of one priority: the user with less use comes first, however long the other's job has
 * waited. */
static void
test_waiting_does_not_raise_above_the_others(void **state)
{
    (void)state;
    const struct plan_rules aged = {
        .patience_ms = 900 * 1000, .aging_ms = 1000, .fair_share = true};
    struct world w;
    world_init(&w, 1, &aged);
    add(&w, (struct spec){.id = 1, .uid = 1, .run = 300, .limit = 300});
    plan_now(&w);
    add(&w, (struct spec){.id = 2, .uid = 1, .limit = 30});
    plan_now(&w);
    run_to(&w, 290);
    add(&w, (struct spec){.id = 3, .uid = 2, .run = 30, .limit = 30});
    run_to(&w, 310);
    assert_int_equal(w.started[3], 300);
    assert_int_equal(w.started[2], -1);
    world_free(&w);
}

/* A stream of jobs of a higher priority passes a job from t = 30 on: its priority grows by one
 * every 100 s, so it starts after the jobs that came before its priority had caught up. */
static void
test_waiting_adds_to_the_priority(void **state)
{
    (void)state;
    for (int aging_s = 0; aging_s <= 100; aging_s += 100) {
        const struct plan_rules aged = {.patience_ms = 900 * 1000, .aging_ms = aging_s * 1000};
        struct world w;
        world_init(&w, 1, &aged);
        add(&w, (struct spec){.id = 1, .run = 30, .limit = 30});
        plan_now(&w);
        add(&w, (struct spec){.id = 2, .limit = 30});
        for (uint32_t id = 3; id < 20; id++) {
            add(&w, (struct spec){.id = id, .limit = 30, .priority = 1});
            run_to(&w, w.now + 30);
        }
        if (aging_s == 0)
            assert_int_equal(w.started[2], -1);
        else
            assert_int_equal(w.started[2], 150);
        size_t n;
        add(&w, (struct spec){.id = 20, .priority = 1});
        struct lineup *turns = lineup_begin(w.planner, w.q, w.l, wall(w.now), LINEUP_IN_TURN);
        while (lineup_step(turns))
            ;
        uint32_t *ids = lineup_ids(turns, &n);
        assert_true(n > 0);
        free(ids);
        lineup_free(turns);
        world_free(&w);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waiting_adds_to_the_priority),
        cmocka_unit_test(test_waiting_does_not_raise_above_the_others),
        cmocka_unit_test(test_three_users_take_turns),
        cmocka_unit_test(test_others_first_jobs_start_next),
        cmocka_unit_test(test_use_weight_and_priority),
        cmocka_unit_test(test_running_jobs_count),
        cmocka_unit_test(test_turns_are_told_as_a_pass_takes_them),
        cmocka_unit_test(test_a_clock_that_is_set_is_no_use),
        cmocka_unit_test(test_without_fair_share_submission_counts),
        cmocka_unit_test(test_parts_are_charged_as_parts),
        cmocka_unit_test(test_short_is_by_response_ratio),
        cmocka_unit_test(test_why_a_job_waits_is_found_anew_when_cards_change),
        cmocka_unit_test(test_balanced_keeps_the_order_of_a_file),
        cmocka_unit_test(test_balanced_passes_lines_of_a_file),
        cmocka_unit_test(test_equal_jobs_start_as_they_were_submitted),
        cmocka_unit_test(test_longest_is_by_length_then_size),
        cmocka_unit_test(test_tasks_start_in_ascending_order),
        cmocka_unit_test(test_an_array_runs_no_more_than_it_may),
        cmocka_unit_test(test_tasks_outside_count_too),
        cmocka_unit_test(test_limits_on_what_runs),
        cmocka_unit_test(test_limits_bind_within_a_pass),
        cmocka_unit_test(test_a_vram_limit_allows_cards_of_unlike_size),
        cmocka_unit_test(test_nobody_starves_between_a_limit_and_the_others),
        cmocka_unit_test(test_a_limit_is_kept_no_further_than_needed),
        cmocka_unit_test(test_a_limit_is_not_kept_in_vain),
        cmocka_unit_test(test_a_vram_limit_is_kept_for_unlike_cards),
        cmocka_unit_test(test_nobody_starves_under_a_limit),
        cmocka_unit_test(test_a_vram_limit_leaves_small_cards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
