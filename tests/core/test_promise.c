/* Promised starts: they outlive the pass that made them, and end when their basis does. */
#include "planworld.h"

/* A promise's allowance after a time limit: the grace period (10 s) and a launch (10 s). */
#define SPARE 20

static struct plan_rules
rules_of(enum plan_order order, int reservations)
{
    return (struct plan_rules){
        .order = order, .patience_ms = INT64_MAX, .reservations = reservations};
}

/* The time at which the job is promised its start; 0: no promise. */
static int64_t
promised(const struct world *w, uint32_t job)
{
    const struct promise *x = planner_promise_of(w->planner, job);
    return x ? x->at_us / SECOND - ZERO_S : 0;
}

/* Two GPUs, taken until 100 and 200 by jobs 1 and 2; 10 wants both. */
static void
begin_two(struct world *w, const struct plan_rules *rules, int run_of_1)
{
    world_init(w, 2, rules);
    add(w, (struct spec){.id = 1, .limit = 100, .run = run_of_1});
    add(w, (struct spec){.id = 2, .limit = 200});
    plan_now(w);
    add(w, (struct spec){.id = 10, .gpus = 2, .limit = 5000});
    plan_now(w);
}

/* Under `short` a short job that comes later is first. Once promised, the wide job is not
 * delayed by it. */
static void
test_a_promise_outlives_the_pass(void **state)
{
    (void)state;
    for (int reservations = 0; reservations <= 1; reservations++) {
        struct plan_rules rules = rules_of(PLAN_SHORT, reservations);
        struct world w;
        begin_two(&w, &rules, 0);
        assert_int_equal(promised(&w, 10), reservations ? 200 + SPARE : 0);
        run_to(&w, 50);
        add(&w, (struct spec){.id = 20, .limit = 1000});
        add(&w, (struct spec){.id = 21, .limit = 80});
        run_to(&w, 100);
        assert_int_equal(w.started[20], -1);
        assert_int_equal(w.started[21], 100);
        run_to(&w, 200);
        assert_int_equal(w.started[10], reservations ? 200 : -1);
        assert_int_equal(w.started[20], reservations ? -1 : 180);
        world_free(&w);
    }
}

/* A job sent to Slurm takes nothing of what is promised here, whatever its priority. */
static void
test_jobs_on_slurm_break_no_promise(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 2);
    struct world w;
    begin_two(&w, &rules, 0);
    ledger_set_slurm_room(w.l, 4);
    for (uint32_t id = 20; id < 24; id++)
        add(&w, (struct spec){.id = id, .limit = 9000, .priority = 1, .on_slurm = true});
    plan_now(&w);
    for (uint32_t id = 20; id < 24; id++) {
        assert_int_equal(w.started[id], 0);
        assert_int_equal(promised(&w, id), 0);
    }
    assert_int_equal(w.broken.job, 0);
    assert_int_equal(promised(&w, 10), 200 + SPARE);
    world_free(&w);
}

/* Early ends move the promise forward; new jobs do not delay it. */
static void
test_a_promise_only_gets_earlier(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
    struct world w;
    world_init(&w, 2, &rules);
    add(&w, (struct spec){.id = 1, .limit = 100});
    add(&w, (struct spec){.id = 2, .limit = 900, .run = 50});
    plan_now(&w);
    add(&w, (struct spec){.id = 10, .gpus = 2, .limit = 60});
    plan_now(&w);
    assert_int_equal(promised(&w, 10), 900 + SPARE);
    run_to(&w, 50);
    assert_int_equal(promised(&w, 10), 100 + SPARE);
    run_to(&w, 100);
    assert_int_equal(w.started[10], 100);
    assert_int_equal(promised(&w, 10), 0);
    world_free(&w);
}

static void
test_several_promises_stand_one_behind_the_other(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 3);
    struct world w;
    size_t n;
    begin_two(&w, &rules, 0);
    add(&w, (struct spec){.id = 11, .gpus = 2, .limit = 300});
    add(&w, (struct spec){.id = 12, .limit = 70});
    add(&w, (struct spec){.id = 13, .limit = 400});
    plan_now(&w);
    assert_int_equal(promised(&w, 10), 200 + SPARE);
    assert_int_equal(promised(&w, 11), 200 + SPARE + 5000 + SPARE);
    /* Ahead of 10, on the GPU that is free first. */
    assert_int_equal(promised(&w, 12), 100 + SPARE);
    assert_int_equal(promised(&w, 13), 0);
    const struct promise *list = planner_promises(w.planner, &n);
    assert_int_equal(n, 3);
    for (size_t i = 1; i < n; i++)
        assert_true(list[i - 1].at_us <= list[i].at_us);
    run_to(&w, 6000);
    assert_true(w.started[12] <= 120 && w.started[10] <= 220 && w.started[11] <= 5240);
    world_free(&w);
}

/* Only starts bounded by time limits are firm. */
static void
test_no_promise_rests_on_a_guess(void **state)
{
    (void)state;
    static const struct limits limits = {.each = {.gpus = 2}};
    struct plan_rules rules = rules_of(PLAN_QUEUE, 4);
    struct world w;
    world_init(&w, 2, &rules);
    add(&w, (struct spec){.id = 1, .limit = 100});
    add(&w, (struct spec){.id = 2, .guess = 200});
    plan_now(&w);
    add(&w, (struct spec){.id = 10, .gpus = 2, .limit = 60});
    add(&w, (struct spec){.id = 11, .limit = 60});
    plan_now(&w);
    assert_int_equal(promised(&w, 10), 0);
    assert_int_equal(promised(&w, 11), 0); /* else 10 might be delayed */
    assert_int_equal(planner_reservation(w.planner)->job, 10);
    world_free(&w);

    rules.limits = &limits; /* which may hold it back then */
    begin_two(&w, &rules, 0);
    assert_int_equal(promised(&w, 10), 0);
    world_free(&w);
}

static void
test_a_job_that_overruns_is_named(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
    struct world w;
    begin_two(&w, &rules, 1000);
    run_to(&w, 219);
    assert_int_equal(promised(&w, 10), 200 + SPARE);
    run_to(&w, 220);
    assert_int_equal(w.broken.job, 10);
    assert_int_equal(w.broken.why, BROKEN_OVERRUN);
    assert_int_equal(w.broken.by, 1);
    assert_int_equal(promised(&w, 10), 0);
    run_to(&w, 1000);
    assert_int_equal(w.started[10], 1000);
    world_free(&w);
}

static void
test_a_lost_card_breaks_it_at_once(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
    struct world w;
    begin_two(&w, &rules, 0);
    run_to(&w, 10);
    ledger_set_health(w.l, 1, GPU_LOST, wall(10));
    plan_now(&w);
    assert_int_equal(w.broken.job, 10);
    assert_int_equal(w.broken.why, BROKEN_MACHINE);
    assert_int_equal(promised(&w, 10), 0);
    world_free(&w);
}

/* While a probe is slow, or has not reported yet, the GPUs' state is unknown: they stay
 * promised until it is too late. */
static void
test_a_silent_probe_breaks_it_only_when_it_is_due(void **state)
{
    (void)state;
    static const int back_at_s[] = {3, 190, 2000};
    for (size_t i = 0; i < sizeof back_at_s / sizeof back_at_s[0]; i++) {
        struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
        struct world w;
        begin_two(&w, &rules, 0);
        add(&w, (struct spec){.id = 11, .vram = 4000});
        for (int card = 0; card < 2; card++)
            ledger_set_health(w.l, card, GPU_UNKNOWN, wall(0));
        plan_now(&w);
        assert_int_equal(w.broken.job, 0);
        bool in_time = back_at_s[i] < 200;
        run_to(&w, in_time ? back_at_s[i] : 199);
        assert_int_equal(promised(&w, 10), 200 + SPARE);
        for (int card = 0; in_time && card < 2; card++)
            machine_sample(w.l, card, 0, NULL, 0, wall(back_at_s[i]));
        run_to(&w, 200 + SPARE);
        assert_int_equal(w.started[10], in_time ? 200 : -1);
        assert_int_equal(w.broken.why, in_time ? 0 : BROKEN_MACHINE);
        assert_int_equal(w.started[11], -1);
        world_free(&w);
    }
}

/* Once the probe reports again, an obstacle gets a minute of its own to pass. */
static void
test_a_silent_probe_takes_no_patience(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
    struct world w;
    begin_two(&w, &rules, 0);
    machine_stranger(w.l, 1, 4242, 3000, wall(0));
    plan_now(&w);
    ledger_set_health(w.l, 1, GPU_UNKNOWN, wall(10));
    run_to(&w, 90);
    assert_int_equal(promised(&w, 10), 200 + SPARE);
    machine_stranger(w.l, 1, 4242, 3000, wall(90));
    plan_now(&w);
    run_to(&w, 149);
    assert_int_equal(promised(&w, 10), 200 + SPARE);
    run_to(&w, 150);
    assert_int_equal(promised(&w, 10), 0);
    world_free(&w);
}

/* A daemon that starts without some of the former GPUs. */
static void
test_a_card_that_is_not_there_breaks_it(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
    struct world w;
    world_init(&w, 1, &rules);
    add(&w, (struct spec){.id = 1, .limit = 100});
    plan_now(&w);
    add(&w, (struct spec){.id = 10, .gpus = 1, .limit = 50});
    struct promise kept = {.job = 10, .at_us = wall(100), .cards = 2, .limit_ms = 50000};
    ledger_set_health(w.l, 0, GPU_UNKNOWN, wall(0));
    planner_restore_promise(w.planner, &kept);
    plan_now(&w);
    assert_int_equal(w.broken.why, BROKEN_MACHINE);
    assert_int_equal(promised(&w, 10), 0);
    world_free(&w);
}

static void
test_only_a_higher_priority_breaks_it(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
    struct world w;
    begin_two(&w, &rules, 0);
    add(&w, (struct spec){.id = 20, .limit = 500});
    run_to(&w, 100);
    assert_int_equal(w.started[20], -1);
    assert_int_equal(w.broken.job, 0);
    add(&w, (struct spec){.id = 30, .limit = 500, .priority = 1});
    plan_now(&w);
    assert_int_equal(w.started[30], 100);
    assert_int_equal(w.broken.job, 10);
    assert_int_equal(w.broken.why, BROKEN_PRIORITY);
    assert_int_equal(w.broken.by, 30);
    assert_int_equal(promised(&w, 10), 600 + SPARE);
    world_free(&w);
}

static void
test_another_request_has_another_promise(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
    struct world w;
    begin_two(&w, &rules, 0);
    struct job *job = queue_get(w.q, 10);
    job->req.demand.gpus = 1;
    queue_refile(w.q, job);
    plan_now(&w);
    assert_int_equal(promised(&w, 10), 100 + SPARE);
    assert_int_equal(w.broken.job, 0);
    happens(&w, job, (struct job_event){.type = JOB_EV_HOLD});
    plan_now(&w);
    assert_int_equal(promised(&w, 10), 0);
    assert_int_equal(w.broken.job, 0);
    world_free(&w);
}

/* A similar job placed ahead of it in their line does not take over its turn; nor do GPUs stay
 * idle until the promise is due. */
static void
test_one_that_is_not_first_in_its_line(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
    struct world w;
    struct blocked why;
    world_init(&w, 2, &rules);
    add(&w, (struct spec){.id = 1, .limit = 100, .run = 50});
    add(&w, (struct spec){.id = 2, .limit = 200, .run = 70});
    plan_now(&w);
    add(&w, (struct spec){.id = 10, .gpus = 2, .limit = 5000});
    plan_now(&w);
    queue_reorder(w.q, add(&w, (struct spec){.id = 11, .gpus = 2, .limit = 5000}), 1);
    plan_now(&w);
    assert_ptr_equal(queue_get(w.q, 10)->kind->head, queue_get(w.q, 11));
    plan_explain(w.q, queue_get(w.q, 10), &why);
    assert_int_not_equal(why.waits_for.id, 10);
    run_to(&w, 300);
    assert_int_equal(w.started[10], 70);
    assert_int_equal(w.started[11], -1);
    world_free(&w);
}

/* If the job in front may not use a GPU for its sake, the promised job starts there itself as
 * soon as the GPU is free, even if nothing else happens. */
static void
test_a_requeued_job_leaves_the_promised_one_its_turn(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
    struct world w;
    world_init(&w, 1, &rules);
    add(&w, (struct spec){.id = 1, .limit = 3600});
    plan_now(&w);
    add(&w, (struct spec){.id = 2, .limit = 3600});
    plan_now(&w);
    assert_int_equal(promised(&w, 2), 3600 + SPARE);
    run_to(&w, 10);
    end_job(&w, 1, OUTCOME_EXITED);
    add(&w, (struct spec){.id = 3, .limit = 3600});
    queue_reorder(w.q, queue_get(w.q, 3), 1);
    assert_string_equal(plan_now(&w), "2@0");
    world_free(&w);
}

/* An array is promised the start of its next task, which another job may precede. */
static void
test_an_array_that_is_not_first_in_its_line(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
    struct world w;
    world_init(&w, 2, &rules);
    add(&w, (struct spec){.id = 1, .limit = 100, .run = 50});
    add(&w, (struct spec){.id = 2, .limit = 200, .run = 70});
    plan_now(&w);
    struct job *array = new_job(10, want(2, 0));
    array->req.limit_ms = array->span_ms = 5000000;
    for (int32_t i = 0; i < 3; i++)
        task_set_add(&array->req.array, i);
    array_begin(array);
    w.run_s[10] = 30;
    queue_add(w.q, array);
    plan_now(&w);
    assert_int_equal(promised(&w, 10), 200 + SPARE);
    queue_reorder(w.q, add(&w, (struct spec){.id = 11, .gpus = 2, .limit = 5000, .run = 30}),
                  1);
    run_to(&w, 70);
    assert_string_equal(w.text, "10_0@0,1");
    run_to(&w, 100);
    assert_string_equal(w.text, "11@0,1");
    run_to(&w, 160);
    assert_int_equal(w.started[1000], 70);
    assert_int_equal(w.started[1001], 130);
    assert_int_equal(w.started[1002], 160);
    world_free(&w);
}

/* An array of 6 tasks for two GPUs, of which one may run at a time. */
static void
add_bounded_array(struct world *w, uint32_t id, int priority)
{
    struct job *array = new_job(id, want(2, 0));
    array->req.limit_ms = array->span_ms = 60000;
    array->req.array_max = 1;
    array->req.priority = priority;
    for (int32_t i = 0; i < 6; i++)
        task_set_add(&array->req.array, i);
    array_begin(array);
    w->run_s[id] = 60;
    queue_add(w->q, array);
}

/* A job that cannot be promised a start is not passed by later ones that can. */
static void
test_no_promise_passes_one_without(void **state)
{
    (void)state;
    static const struct user_limit own = {.uid = 7, .limit = {.running = 50}};
    static const struct limits limits = {.users = (struct user_limit *)&own, .n_users = 1};
    for (int i = 0; i < 4; i++) {
        struct plan_rules rules = rules_of(PLAN_QUEUE, i < 2 ? 1 : 4);
        struct world w;
        rules.patience_ms = 3600000;
        if (i % 2)
            rules.limits = &limits;
        world_init(&w, 2, &rules);
        add(&w, (struct spec){.id = 1, .limit = 100});
        add(&w, (struct spec){.id = 2, .limit = 150});
        plan_now(&w);
        if (i % 2)
            add(&w, (struct spec){.id = 3, .gpus = 2, .limit = 60, .uid = 7});
        else
            add_bounded_array(&w, 3, 0);
        for (uint32_t k = 10; k < 100; k++)
            add(&w, (struct spec){.id = k, .limit = 100});
        run_to(&w, 150);
        assert_int_equal(w.started[i % 2 ? 3 : 1000], 150);
        assert_int_equal(w.started[10], -1);
        world_free(&w);
    }
}

/* Nor is a job promised room that tasks of higher priority take as soon as their array's bound
 * allows. */
static void
test_no_promise_below_what_a_limit_holds_back(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 2);
    struct world w;
    world_init(&w, 2, &rules);
    add(&w, (struct spec){.id = 1, .limit = 100});
    add(&w, (struct spec){.id = 2, .limit = 150});
    plan_now(&w);
    add_bounded_array(&w, 3, 5);
    add(&w, (struct spec){.id = 10, .limit = 100});
    while (w.now < 450) {
        step_to(&w, 450);
        assert_int_equal(w.broken.job, 0);
        assert_int_equal(promised(&w, 10), w.now < 450 ? 0 : 510 + SPARE);
    }
    run_to(&w, 510);
    assert_int_equal(w.started[10], 510);
    world_free(&w);
}

/* A job of higher priority that waits for the same room takes over the promise at once, not
 * when it starts; it does not wait for what is promised below it. */
static void
test_one_of_higher_priority_is_reckoned_with(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
    struct world w;
    struct blocked why = {.gpu = 0};
    begin_two(&w, &rules, 0);
    struct job *high = add(&w, (struct spec){.id = 30, .limit = 500, .priority = 1});
    plan_explain_reserved(w.q, w.planner, high, &why);
    assert_int_equal(why.waits_for.id, 0);
    plan_now(&w);
    assert_int_equal(w.broken.job, 10);
    assert_int_equal(w.broken.by, 30);
    assert_int_equal(promised(&w, 10), 0);
    assert_int_equal(promised(&w, 30), 100 + SPARE);
    world_free(&w);
}

/* A job that ends before then does not affect it. */
static void
test_a_brief_one_of_higher_priority_breaks_nothing(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
    struct world w;
    begin_two(&w, &rules, 0);
    add(&w, (struct spec){.id = 30, .limit = 50, .priority = 1});
    plan_now(&w);
    assert_int_equal(w.broken.job, 0);
    assert_int_equal(promised(&w, 10), 200 + SPARE);
    run_to(&w, 200);
    assert_int_equal(w.started[30], 100);
    assert_int_equal(w.started[10], 200);
    world_free(&w);
}

/* Temporary use by other processes breaks no promise, and no other job gets the room. */
static void
test_a_stranger_for_a_moment_breaks_nothing(void **state)
{
    (void)state;
    for (int stays = 0; stays <= 1; stays++) {
        struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
        struct world w;
        world_init(&w, 3, &rules);
        add(&w, (struct spec){.id = 1, .limit = 1000});
        add(&w, (struct spec){.id = 2, .limit = 2000});
        plan_now(&w);
        add(&w, (struct spec){.id = 10, .gpus = 3, .limit = 500});
        plan_now(&w);
        add(&w, (struct spec){.id = 11, .vram = 4000});
        run_to(&w, 10);
        machine_stranger(w.l, 2, 4242, 3000, wall(10));
        plan_now(&w);
        assert_int_equal(w.broken.job, 0);
        assert_int_equal(promised(&w, 10), 2000 + SPARE);
        assert_int_equal(w.started[11], -1);
        assert_true(w.wake <= 70);
        if (!stays)
            machine_sample(w.l, 2, 0, NULL, 0, wall(15));
        run_to(&w, 70);
        assert_int_equal(w.broken.why, stays ? BROKEN_MACHINE : 0);
        assert_int_equal(promised(&w, 10), stays ? 0 : 2000 + SPARE);
        run_to(&w, 2000);
        assert_int_equal(w.started[10], stays ? -1 : 2000);
        world_free(&w);
    }
}

/* Nor does a single sample in which a GPU could not be read. */
static void
test_an_unreadable_card_for_a_moment_breaks_nothing(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
    struct world w;
    begin_two(&w, &rules, 0);
    run_to(&w, 10);
    int64_t at = promised(&w, 10);
    assert_true(at > 0);
    ledger_set_health(w.l, 1, GPU_UNKNOWN, wall(10));
    plan_now(&w);
    assert_int_equal(w.broken.job, 0);
    assert_int_equal(promised(&w, 10), at);
    ledger_set_health(w.l, 1, GPU_UP, wall(11));
    run_to(&w, 80);
    assert_int_equal(w.broken.job, 0);
    assert_int_equal(promised(&w, 10), at);
    world_free(&w);
}

/* Limits and reservations are settings, read again while jobs wait. */
static void
test_settings_take_promises_back_and_say_so(void **state)
{
    (void)state;
    static const struct limits limits = {.each = {.running = 1}};
    for (int limited = 0; limited <= 1; limited++) {
        struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
        struct world w;
        begin_two(&w, &rules, 0);
        assert_int_equal(promised(&w, 10), 200 + SPARE);
        if (limited)
            rules.limits = &limits;
        else
            rules.reservations = 0;
        planner_set_rules(w.planner, &rules);
        plan_now(&w);
        assert_int_equal(w.broken.job, 10);
        assert_int_equal(w.broken.why, limited ? BROKEN_LIMIT : BROKEN_SETTINGS);
        assert_int_equal(promised(&w, 10), 0);
        world_free(&w);
    }
}

/* Until its time is near, other jobs start beside it by their estimates. */
static void
test_a_promise_is_made_when_its_time_is_near(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
    struct world w;
    rules.horizon_ms = 100000;
    world_init(&w, 2, &rules);
    add(&w, (struct spec){.id = 1, .limit = 1000});
    plan_now(&w);
    add(&w, (struct spec){.id = 10, .gpus = 2, .limit = 500});
    add(&w, (struct spec){.id = 20, .guess = 600, .run = 600});
    add(&w, (struct spec){.id = 21, .guess = 300, .run = 300});
    plan_now(&w);
    assert_int_equal(w.started[20], 0);
    assert_int_equal(promised(&w, 10), 0);
    assert_int_equal(planner_reservation(w.planner)->job, 10);
    run_to(&w, 600);
    assert_int_equal(w.started[21], 600);
    run_to(&w, 900);
    add(&w, (struct spec){.id = 22, .guess = 60, .run = 200});
    run_to(&w, 1000 + SPARE - 100);
    assert_int_equal(promised(&w, 10), 1000 + SPARE);
    assert_int_equal(w.started[22], -1);
    run_to(&w, 1000 + SPARE);
    assert_int_not_equal(w.started[10], -1);
    world_free(&w);
}

/* Under `balanced` a due job is promised its start in two days, unless there are jobs without
 * a limit: those would have to leave a GPU idle for that long. */
static void
test_balanced_promises_far_ahead_among_limits_only(void **state)
{
    (void)state;
    for (int guess = 0; guess <= 60; guess += 60) {
        struct plan_rules rules = rules_of(PLAN_BALANCED, 1);
        struct world w;
        rules.horizon_ms = plan_horizon_ms(PLAN_BALANCED);
        world_init(&w, 2, &rules);
        add(&w, (struct spec){.id = 1, .limit = 172800});
        add(&w, (struct spec){.id = 2, .limit = guess ? 0 : 60, .guess = guess, .run = 60});
        plan_now(&w);
        run_to(&w, 60);
        assert_int_equal(w.ended[2], 60);
        add(&w, (struct spec){.id = 10, .gpus = 2, .limit = 500});
        plan_now(&w);
        assert_int_equal(promised(&w, 10), guess ? 0 : 172800 + SPARE);
        add(&w, (struct spec){.id = 20, .guess = 60, .run = 60});
        plan_now(&w);
        assert_int_equal(w.started[20], guess ? 60 : -1);
        world_free(&w);
    }
}

/* The wall clock is set: running jobs' limits and the promises are unaffected. */
static void
test_a_clock_that_is_set_breaks_nothing(void **state)
{
    (void)state;
    for (int by = -3600; by <= 3600; by += 7200) {
        struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
        struct world w;
        begin_two(&w, &rules, 0);
        run_to(&w, 50);
        planner_clock_set(w.planner, by * SECOND);
        for (uint32_t id = 1; id <= 2; id++) {
            queue_get(w.q, id)->run->clock_set_us = by * SECOND;
            w.started[id] += by;
        }
        w.now += by;
        planner_look_anew(w.planner);
        plan_now(&w);
        assert_int_equal(w.broken.job, 0);
        assert_int_equal(promised(&w, 10), by + 200 + SPARE);
        run_to(&w, by + 200);
        assert_int_equal(w.started[10], by + 200);
        world_free(&w);
    }
}

/* A start that fails leaves the promise where it was. */
static void
test_a_start_that_fails_can_give_it_back(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 1);
    struct world w;
    auto_plan struct plan p = PLAN_INIT;
    begin_two(&w, &rules, 0);
    add(&w, (struct spec){.id = 11, .limit = 500});
    plan_now(&w);
    struct promise was = *planner_promise_of(w.planner, 10);
    end_job(&w, 1, OUTCOME_EXITED);
    end_job(&w, 2, OUTCOME_EXITED);
    plan_make(w.planner, w.q, w.l, wall(0), &w.next_id, &p);
    assert_int_equal(p.n_kept, 1);
    assert_int_equal(p.kept[0].as, 10);
    assert_int_equal(promised(&w, 10), 0);
    assert_int_not_equal(promised(&w, 11), 0);
    ledger_release(w.l, 10);
    planner_restore_promise(w.planner, &p.kept[0].promise);
    assert_int_equal(planner_promise_of(w.planner, 10)->at_us, was.at_us);
    assert_string_equal(plan_now(&w), "10@0,1");
    assert_int_equal(w.broken.job, 0);
    world_free(&w);
}

/* A GPU that comes back, or a promised job that is held, moves the others up. */
static void
test_others_move_up(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_QUEUE, 2);
    struct world w;
    begin_two(&w, &rules, 0);
    add(&w, (struct spec){.id = 11, .gpus = 2, .limit = 300});
    plan_now(&w);
    assert_int_equal(promised(&w, 11), 200 + SPARE + 5000 + SPARE);
    happens(&w, queue_get(w.q, 10), (struct job_event){.type = JOB_EV_HOLD});
    plan_now(&w);
    assert_int_equal(promised(&w, 11), 200 + SPARE);
    world_free(&w);

    world_init(&w, 3, &rules);
    ledger_set_health(w.l, 2, GPU_LOST, wall(0));
    add(&w, (struct spec){.id = 1, .limit = 100});
    add(&w, (struct spec){.id = 2, .limit = 200});
    plan_now(&w);
    add(&w, (struct spec){.id = 10, .gpus = 2, .limit = 500});
    plan_now(&w);
    assert_int_equal(promised(&w, 10), 200 + SPARE);
    ledger_set_health(w.l, 2, GPU_UP, wall(1));
    plan_now(&w);
    assert_int_equal(promised(&w, 10), 100 + SPARE);
    world_free(&w);
}

/* The first job may not start for the promised one's sake: so the promised one starts at once,
 * instead of both waiting for each other. */
static void
test_the_two_do_not_wait_for_each_other(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_SHORT, 1);
    struct world w;
    world_init(&w, 1, &rules);
    add(&w, (struct spec){.id = 1, .vram = 20000, .limit = 100, .run = 50});
    add(&w, (struct spec){.id = 3, .vram = 1000, .limit = 500});
    plan_now(&w);
    add(&w, (struct spec){.id = 10, .vram = 14000, .limit = 5000});
    plan_now(&w);
    assert_int_equal(promised(&w, 10), 100 + SPARE);
    add(&w, (struct spec){.id = 20, .vram = 14000, .limit = 1000});
    run_to(&w, 50);
    assert_int_equal(w.started[20], -1);
    assert_int_equal(w.started[10], 50);
    world_free(&w);
}

/* The daemon stores promises; a new planner restores them. */
static void
test_a_restored_promise_holds(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_SHORT, 1);
    struct world w;
    begin_two(&w, &rules, 0);
    struct promise stored = *planner_promise_of(w.planner, 10);
    stored.demand_hash = 0;
    planner_free(w.planner);
    w.planner = planner_new(&rules, w.fair);
    planner_restore_promise(w.planner, &stored);
    add(&w, (struct spec){.id = 20, .limit = 1000});
    run_to(&w, 100);
    assert_int_equal(promised(&w, 10), 200 + SPARE);
    assert_int_equal(w.started[20], -1);
    planner_clock_set(w.planner, 5 * SECOND);
    assert_int_equal(promised(&w, 10), 205 + SPARE);
    world_free(&w);
}

/* A forecast honours them. */
static void
test_a_forecast_knows_of_them(void **state)
{
    (void)state;
    struct plan_rules rules = rules_of(PLAN_SHORT, 1);
    struct expected_start *list;
    struct world w;
    begin_two(&w, &rules, 0);
    run_to(&w, 50);
    add(&w, (struct spec){.id = 20, .limit = 1000});
    plan_now(&w);
    size_t n = plan_forecast(w.planner, w.q, w.l, wall(50), 10, &list);
    assert_int_equal(n, 2);
    assert_int_equal(list[0].job, 10);
    assert_int_equal(list[0].at_us, wall(200));
    free(list);
    world_free(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_promise_outlives_the_pass),
        cmocka_unit_test(test_jobs_on_slurm_break_no_promise),
        cmocka_unit_test(test_a_promise_only_gets_earlier),
        cmocka_unit_test(test_several_promises_stand_one_behind_the_other),
        cmocka_unit_test(test_no_promise_rests_on_a_guess),
        cmocka_unit_test(test_a_job_that_overruns_is_named),
        cmocka_unit_test(test_a_lost_card_breaks_it_at_once),
        cmocka_unit_test(test_a_silent_probe_breaks_it_only_when_it_is_due),
        cmocka_unit_test(test_a_silent_probe_takes_no_patience),
        cmocka_unit_test(test_a_card_that_is_not_there_breaks_it),
        cmocka_unit_test(test_only_a_higher_priority_breaks_it),
        cmocka_unit_test(test_another_request_has_another_promise),
        cmocka_unit_test(test_one_that_is_not_first_in_its_line),
        cmocka_unit_test(test_a_requeued_job_leaves_the_promised_one_its_turn),
        cmocka_unit_test(test_an_array_that_is_not_first_in_its_line),
        cmocka_unit_test(test_no_promise_passes_one_without),
        cmocka_unit_test(test_no_promise_below_what_a_limit_holds_back),
        cmocka_unit_test(test_one_of_higher_priority_is_reckoned_with),
        cmocka_unit_test(test_a_brief_one_of_higher_priority_breaks_nothing),
        cmocka_unit_test(test_a_stranger_for_a_moment_breaks_nothing),
        cmocka_unit_test(test_an_unreadable_card_for_a_moment_breaks_nothing),
        cmocka_unit_test(test_settings_take_promises_back_and_say_so),
        cmocka_unit_test(test_a_promise_is_made_when_its_time_is_near),
        cmocka_unit_test(test_balanced_promises_far_ahead_among_limits_only),
        cmocka_unit_test(test_a_clock_that_is_set_breaks_nothing),
        cmocka_unit_test(test_a_start_that_fails_can_give_it_back),
        cmocka_unit_test(test_others_move_up),
        cmocka_unit_test(test_the_two_do_not_wait_for_each_other),
        cmocka_unit_test(test_a_restored_promise_holds),
        cmocka_unit_test(test_a_forecast_knows_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
