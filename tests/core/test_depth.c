/* A plan examines a bounded number of lines: the first of each user after every change, the
 * others in turn, so that none is skipped for ever. */
#include "planworld.h"

#define DEPTH 10
#define FIRST 10 /* job id */
#define KINDS 100

static void
begin(struct world *w, int64_t patience_ms)
{
    world_init(w, 1, &(struct plan_rules){.depth = DEPTH, .patience_ms = patience_ms});
}

/* Adds this many lines, each of one job that wants more than half of a GPU. */
static void
add_lines(struct world *w, uint32_t first, int n, uint32_t uid)
{
    for (int i = 0; i < n; i++)
        add(w, (struct spec){.id = first + (uint32_t)i, .uid = uid, .vram = 14000 + i});
}

/* The GPU is taken. */
static void
take_card(struct world *w)
{
    add(w, (struct spec){.id = 1, .uid = 7, .vram = 14000});
    assert_string_equal(plan_now(w), "1@0");
}

static enum reason
reason_of(const struct world *w, uint32_t id)
{
    struct blocked why;
    plan_explain(w->q, queue_get(w->q, id), &why);
    return why.reason;
}

static bool
is_seen(const struct world *w, uint32_t id)
{
    return planner_has_seen(w->planner, queue_get(w->q, id)->kind);
}

static int
n_seen(const struct world *w)
{
    int n = 0;
    for (uint32_t i = 0; i < KINDS; i++)
        n += is_seen(w, FIRST + i);
    return n;
}

static void
test_all_are_looked_at_in_turn(void **state)
{
    (void)state;
    struct world w;
    begin(&w, INT64_MAX);
    take_card(&w);
    add_lines(&w, FIRST, KINDS, 1);
    planner_look_anew(w.planner);
    int plans = 0;
    do {
        plan_now(&w);
        assert_true(w.looked <= DEPTH);
        plans++;
        assert_int_equal(w.more, n_seen(&w) < KINDS);
    } while (w.more);
    assert_int_equal(plans, KINDS / DEPTH); /* none examined twice while nothing changes */
    for (uint32_t i = 0; i < KINDS; i++)
        assert_int_equal(reason_of(&w, FIRST + i), REASON_GPU_MEMORY);
    plan_now(&w);
    assert_false(w.more); /* nothing has changed */
    planner_look_anew(w.planner);
    plan_now(&w);
    assert_true(w.more);
    assert_int_equal(n_seen(&w), DEPTH);
    world_free(&w);
}

/* So a job far behind starts beside a blocked one in front. */
static void
test_who_stands_far_behind_starts_too(void **state)
{
    (void)state;
    struct world w;
    begin(&w, INT64_MAX);
    take_card(&w);
    add_lines(&w, FIRST, KINDS, 1);
    add(&w, (struct spec){.id = FIRST + KINDS, .uid = 1, .vram = 1000});
    planner_look_anew(w.planner);
    do {
        plan_now(&w);
    } while (w.more && w.decided == 0);
    char want[32];
    snprintf(want, sizeof want, "%d@0", FIRST + KINDS);
    assert_string_equal(w.text, want);
    world_free(&w);
}

/* Also when each plan starts from the front again. */
static void
test_nobody_starves_where_something_always_happens(void **state)
{
    (void)state;
    struct world w;
    bool seen[KINDS] = {false};
    int n = 0;
    begin(&w, INT64_MAX);
    take_card(&w);
    add_lines(&w, FIRST, KINDS, 1);
    for (int i = 0; i < 2 * KINDS / DEPTH; i++) {
        planner_look_anew(w.planner);
        plan_now(&w);
        assert_true(w.more);
        for (uint32_t k = 0; k < KINDS; k++)
            seen[k] |= is_seen(&w, FIRST + k);
    }
    for (uint32_t k = 0; k < KINDS; k++)
        n += seen[k];
    assert_int_equal(n, KINDS);
    world_free(&w);
}

static void
test_each_user_has_a_part(void **state)
{
    (void)state;
    struct world w;
    begin(&w, INT64_MAX);
    take_card(&w);
    add_lines(&w, FIRST, KINDS, 1);
    add_lines(&w, FIRST + KINDS, KINDS, 2);
    add_lines(&w, FIRST + 2 * KINDS, 2, 3);
    planner_look_anew(w.planner);
    plan_now(&w);
    /* The others get what the third one leaves unused. */
    assert_int_equal(w.looked, DEPTH);
    int of[4] = {0};
    for (uint32_t id = FIRST; id < FIRST + 2 * KINDS + 2; id++)
        of[queue_get(w.q, id)->uid] += is_seen(&w, id);
    assert_int_equal(of[1], 4);
    assert_int_equal(of[2], 4);
    assert_int_equal(of[3], 2);
    world_free(&w);
}

static void
test_users_are_more_than_the_depth(void **state)
{
    (void)state;
    struct world w;
    begin(&w, INT64_MAX);
    take_card(&w);
    for (uint32_t uid = 0; uid < 2 * DEPTH; uid++)
        add_lines(&w, FIRST + 10 * uid, 3, uid);
    planner_look_anew(w.planner);
    plan_now(&w);
    for (uint32_t uid = 0; uid < 2 * DEPTH; uid++)
        assert_true(is_seen(&w, FIRST + 10 * uid));
    assert_true(w.more);
    plan_now(&w);
    assert_false(w.more);
    world_free(&w);
}

/* A higher priority comes first, whenever it was submitted. */
static void
test_priority_stands_in_front(void **state)
{
    (void)state;
    struct world w;
    begin(&w, INT64_MAX);
    take_card(&w);
    add_lines(&w, FIRST, KINDS, 1);
    plan_now(&w);
    struct job *job = queue_get(w.q, FIRST + KINDS - 1);
    job->req.priority = 5;
    queue_refile(w.q, job);
    planner_look_anew(w.planner);
    plan_now(&w);
    assert_true(is_seen(&w, job->id));
    job = queue_get(w.q, FIRST + KINDS - 2);
    queue_reorder(w.q, job, 0);
    planner_look_anew(w.planner);
    plan_now(&w);
    assert_true(is_seen(&w, job->id));
    world_free(&w);
}

/* The first blocked job gets a reservation and is examined by every plan from then on,
 * wherever it stands. */
static void
test_a_reservation_stays(void **state)
{
    (void)state;
    struct world w;
    begin(&w, INT64_MAX);
    add(&w, (struct spec){.id = 1, .uid = 7, .vram = 14000, .limit = 1000});
    plan_now(&w);
    add_lines(&w, FIRST, KINDS, 1);
    struct job *job = queue_get(w.q, FIRST + KINDS / 2);
    job->req.priority = 1;
    queue_refile(w.q, job);
    planner_look_anew(w.planner);
    plan_now(&w);
    assert_int_equal(planner_reservation(w.planner)->job, job->id);
    for (uint32_t i = 0; i < DEPTH; i++) { /* others precede it now; it was examined */
        struct job *other = queue_get(w.q, FIRST + i);
        other->req.priority = 1;
        queue_refile(w.q, other);
    }
    planner_look_anew(w.planner);
    plan_now(&w);
    assert_true(is_seen(&w, job->id));
    world_free(&w);
}

/* A query is answered from the current state, not from an earlier plan's. */
static void
test_the_reason_of_one_that_is_not_looked_at(void **state)
{
    (void)state;
    struct world w;
    begin(&w, INT64_MAX);
    take_card(&w);
    add_lines(&w, FIRST, KINDS, 1);
    const struct job *last = queue_get(w.q, FIRST + KINDS - 1);
    planner_look_anew(w.planner);
    plan_now(&w);
    assert_int_equal(reason_of(&w, last->id), REASON_PRIORITY);
    plan_tell_unseen(w.planner, w.l, last);
    assert_int_equal(reason_of(&w, last->id), REASON_GPU_MEMORY);
    end_job(&w, 1, OUTCOME_EXITED);
    plan_tell_unseen(w.planner, w.l, last);
    assert_int_equal(reason_of(&w, last->id), REASON_PRIORITY);
    world_free(&w);
}

/* This many at a time, then the others. */
static void
test_who_can_never_start_is_refused_in_parts(void **state)
{
    (void)state;
    struct world w;
    begin(&w, INT64_MAX);
    for (uint32_t i = 0; i < KINDS; i++)
        add(&w, (struct spec){.id = FIRST + i, .gpus = 2});
    int plans = 0, refused = 0;
    do {
        plan_now(&w);
        assert_int_equal(w.decided, DEPTH);
        refused += w.decided;
        plans++;
    } while (w.more);
    assert_int_equal(refused, KINDS);
    assert_int_equal(plans, KINDS / DEPTH);
    world_free(&w);
}

/* Pending work is counted per line, as each is examined. */
static void
test_the_backlog_of_all_lines_is_known_in_the_end(void **state)
{
    (void)state;
    struct world some, all;
    world_init(&some, 1, &(struct plan_rules){.depth = DEPTH, .order = PLAN_BALANCED});
    world_init(&all, 1, &(struct plan_rules){.order = PLAN_BALANCED});
    take_card(&some);
    take_card(&all);
    add_lines(&some, FIRST, KINDS, 1);
    add_lines(&all, FIRST, KINDS, 1);
    planner_look_anew(some.planner);
    plan_now(&all);
    plan_now(&some);
    assert_true(queue_work(some.q) > 0 && queue_work(some.q) < queue_work(all.q));
    while (some.more)
        plan_now(&some);
    assert_int_equal(queue_work(some.q), queue_work(all.q));
    for (uint32_t i = 0; i < KINDS; i++)
        job_free(queue_remove(some.q, FIRST + i));
    assert_int_equal(queue_work(some.q), 0);
    world_free(&some);
    world_free(&all);
}

/* Plans until one reports that nothing is left to do; fails if that never happens. */
static void
plan_all(struct world *w)
{
    int plans = 0;
    do {
        plan_now(w);
        assert_true(++plans < 2 * KINDS);
    } while (w->more);
}

static bool
was_ever_seen(const struct world *w, uint32_t id)
{
    return queue_get(w->q, id)->kind->seen > 0;
}

/* A job that preempts others is examined until it has the room, however far behind others of
 * its priority: otherwise the victim would get the room back. */
static void
test_room_that_a_victim_leaves_is_for_whom_it_left(void **state)
{
    (void)state;
    struct world w;
    const uint32_t last = FIRST + KINDS;
    char want[32];
    world_init(&w, 3, &(struct plan_rules){.depth = DEPTH, .patience_ms = INT64_MAX});
    add(&w, (struct spec){.id = 1, .uid = 7, .gpus = 2, .limit = 1000});
    add(&w, (struct spec){.id = 2, .uid = 7, .preemptible = true});
    assert_string_equal(plan_now(&w), "1@0,1 2@2");
    for (uint32_t id = FIRST; id < last; id++)
        add(&w, (struct spec){
                    .id = id, .uid = 1, .gpus = 2, .vram = 1000 + (int)id, .priority = 1});
    add(&w, (struct spec){.id = last, .uid = 1, .priority = 1});
    planner_look_anew(w.planner);
    do {
        plan_now(&w);
    } while (w.more && w.decided == 0);
    snprintf(want, sizeof want, "2<%u", last);
    assert_string_equal(w.text, want);
    assert_int_equal(planner_reservation(w.planner)->job, FIRST);
    planner_look_anew(w.planner);
    plan_all(&w); /* the victim takes its time to leave */
    assert_int_equal(w.decided, 0);
    end_job(&w, 2, OUTCOME_PREEMPTED);
    planner_look_anew(w.planner);
    snprintf(want, sizeof want, "%u@2", last);
    assert_string_equal(plan_now(&w), want);
    world_free(&w);
}

/* The rest that a limit leaves stays kept across plans that reach other lines, and the time at
 * which keeping begins is remembered. */
static void
test_what_a_limit_leaves_stays_kept(void **state)
{
    (void)state;
    static const struct limits limits = {.each = {.gpus = 2}};
    const uint32_t wide = FIRST + KINDS / 2, narrow = FIRST + KINDS + 1;
    struct world w;
    world_init(&w, 4,
               &(struct plan_rules){.depth = DEPTH, .patience_ms = 900000, .limits = &limits});
    add(&w, (struct spec){.id = 1, .uid = 1});
    plan_now(&w);
    for (uint32_t id = FIRST; id < FIRST + KINDS; id++) /* all but one are over the limit */
        add(&w, (struct spec){
                    .id = id, .uid = 1, .gpus = id == wide ? 2 : 3, .vram = 1000 + (int)id});
    planner_look_anew(w.planner);
    plan_all(&w);
    assert_int_equal(w.wake, 900);
    w.now = 900;
    add(&w, (struct spec){.id = narrow, .uid = 1});
    plan_all(&w);
    assert_int_equal(w.started[narrow], -1);
    assert_int_equal(reason_of(&w, narrow), REASON_USER_LIMIT);
    end_job(&w, 1, OUTCOME_EXITED);
    planner_look_anew(w.planner);
    plan_now(&w);
    assert_int_equal(w.started[wide], 900);
    world_free(&w);
}

/* A line already examined that moves, because its first job left, does not count as
 * another. */
static void
test_a_line_that_moves_counts_once(void **state)
{
    (void)state;
    struct world w;
    begin(&w, INT64_MAX);
    take_card(&w);
    add_lines(&w, FIRST, KINDS / 2, 1);
    add_lines(&w, 200, DEPTH / 2, 1); /* ahead of the first one */
    for (uint32_t i = 0; i < KINDS / 2; i++)
        add(&w, (struct spec){.id = 300 + i, .uid = 1, .vram = 15000 + (int)i});
    planner_look_anew(w.planner);
    plan_now(&w);
    for (uint32_t i = 0; i < DEPTH / 2; i++)
        job_free(queue_remove(w.q, FIRST + i));
    plan_all(&w);
    for (uint32_t i = 0; i < KINDS / 2; i++)
        assert_true(was_ever_seen(&w, 300 + i));
    world_free(&w);
}

/* Lines that vanish before they are examined do not keep the round open. */
static void
test_lines_that_are_gone_are_not_waited_for(void **state)
{
    (void)state;
    struct world w;
    begin(&w, INT64_MAX);
    take_card(&w);
    add_lines(&w, FIRST, KINDS, 1);
    planner_look_anew(w.planner);
    plan_now(&w);
    for (uint32_t i = KINDS / 2; i < KINDS; i++)
        job_free(queue_remove(w.q, FIRST + i));
    plan_all(&w);
    for (uint32_t i = 0; i < KINDS / 2; i++)
        assert_true(was_ever_seen(&w, FIRST + i));
    world_free(&w);
}

/* A job whose begin time comes between two plans of one round, ahead of the round's
 * position. */
static void
test_whose_time_comes_is_looked_at(void **state)
{
    (void)state;
    struct world w;
    const uint32_t later = FIRST + DEPTH;
    begin(&w, INT64_MAX);
    take_card(&w);
    add_lines(&w, FIRST, DEPTH, 1);
    struct job *job = add(&w, (struct spec){.id = later, .uid = 1, .vram = 16000});
    job->begin_us = wall(10);
    queue_refile(w.q, job);
    for (uint32_t i = 0; i < KINDS; i++)
        add(&w, (struct spec){.id = later + 1 + i, .uid = 1, .vram = 15000 + (int)i});
    planner_look_anew(w.planner);
    plan_now(&w);
    plan_now(&w);
    plan_now(&w);
    w.now = 10;
    plan_all(&w);
    assert_true(was_ever_seen(&w, later));
    world_free(&w);
}

/* The ledger has no limits in it. */
static void
test_the_limit_that_an_earlier_plan_found_is_told(void **state)
{
    (void)state;
    static const struct limits limits = {.each = {.gpus = 1}};
    struct world w;
    world_init(
        &w, 2,
        &(struct plan_rules){.depth = DEPTH, .patience_ms = INT64_MAX, .limits = &limits});
    add(&w, (struct spec){.id = 1, .uid = 1});
    plan_now(&w);
    add_lines(&w, FIRST, KINDS, 1);
    const struct job *last = queue_get(w.q, FIRST + KINDS - 1);
    planner_look_anew(w.planner);
    plan_all(&w);
    planner_look_anew(w.planner);
    plan_now(&w);
    assert_false(is_seen(&w, last->id));
    plan_tell_unseen(w.planner, w.l, last);
    assert_int_equal(reason_of(&w, last->id), REASON_USER_LIMIT);
    world_free(&w);
}

/* Few lines: one plan examines all, and nothing is left for another. */
static void
test_below_the_depth_all_are_looked_at(void **state)
{
    (void)state;
    struct world w;
    begin(&w, INT64_MAX);
    take_card(&w);
    add_lines(&w, FIRST, DEPTH, 1);
    plan_now(&w);
    assert_int_equal(w.looked, DEPTH);
    assert_false(w.more);
    world_free(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_looked_at_in_turn),
        cmocka_unit_test(test_who_stands_far_behind_starts_too),
        cmocka_unit_test(test_nobody_starves_where_something_always_happens),
        cmocka_unit_test(test_each_user_has_a_part),
        cmocka_unit_test(test_users_are_more_than_the_depth),
        cmocka_unit_test(test_priority_stands_in_front),
        cmocka_unit_test(test_a_reservation_stays),
        cmocka_unit_test(test_the_reason_of_one_that_is_not_looked_at),
        cmocka_unit_test(test_who_can_never_start_is_refused_in_parts),
        cmocka_unit_test(test_the_backlog_of_all_lines_is_known_in_the_end),
        cmocka_unit_test(test_room_that_a_victim_leaves_is_for_whom_it_left),
        cmocka_unit_test(test_what_a_limit_leaves_stays_kept),
        cmocka_unit_test(test_a_line_that_moves_counts_once),
        cmocka_unit_test(test_lines_that_are_gone_are_not_waited_for),
        cmocka_unit_test(test_whose_time_comes_is_looked_at),
        cmocka_unit_test(test_the_limit_that_an_earlier_plan_found_is_told),
        cmocka_unit_test(test_below_the_depth_all_are_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
