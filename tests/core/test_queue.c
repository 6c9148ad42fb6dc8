/* The table of jobs, their lines, and plans over them. */
#include "base/err.h"
#include "machine.h"

#define SECOND_US INT64_C(1000000)

static void
add(struct queue *q, uint32_t id, int priority, struct demand d)
{
    struct job *job = new_job(id, d);
    job->req.priority = priority;
    queue_add(q, job);
}

/* "1@0 2@0,1" for starts, "3!" for infeasible ones. */
static const char *
planned(struct queue *q, struct ledger *l, int64_t now_us)
{
    static char text[512];
    auto_plan struct plan p = PLAN_INIT;
    plan_once(q, l, now_us, &p);
    text[0] = '\0';
    for (size_t i = 0; i < p.n; i++) {
        const struct decision *d = &p.decisions[i];
        size_t at = strlen(text);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%u", i ? " " : "", d->job);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s",
                               d->type == PLAN_START ? "@" : "!");
        for (int g = 0; g < d->where.n; g++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%d", g ? "," : "",
                                   d->where.gpus[g]);
    }
    assert_null(queue_check(q));
    assert_null(ledger_check(l));
    return text;
}

static void
set_state(struct queue *q, uint32_t id, enum job_state s)
{
    struct job *job = queue_get(q, id);
    job->state = s;
    queue_refile(q, job);
}

static void
test_ids_and_counts(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    for (uint32_t id = 1; id <= 1000; id++)
        add(q, id, 0, want(1, 1000));
    assert_int_equal(queue_n(q), 1000);
    assert_int_equal(queue_n_kinds(q), 1);
    assert_int_equal(queue_get(q, 777)->id, 777);
    assert_null(queue_get(q, 1001));
    job_free(queue_remove(q, 777));
    assert_null(queue_get(q, 777));
    assert_null(queue_remove(q, 777));
    set_state(q, 5, JOB_RUNNING);
    set_state(q, 3, JOB_STARTING);
    set_state(q, 9, JOB_HELD);
    assert_int_equal(queue_count(q, JOB_PENDING), 996);
    assert_int_equal(queue_n_active(q), 2);
    assert_int_equal(queue_active(q)->id, 3);
    assert_int_equal(queue_active_next(queue_active(q))->id, 5);
    assert_null(queue_active_next(queue_get(q, 5)));
    assert_null(queue_check(q));
    queue_free(q);
}

static struct job *
add_later(struct queue *q, uint32_t id, const char *singleton, int64_t begin_us)
{
    struct job *job = new_job(id, want(1, 1000));
    job->begin_us = begin_us;
    job->req.singleton = singleton != NULL;
    job->req.name = singleton ? xstrdup(singleton) : NULL;
    queue_add(q, job);
    return job;
}

/* A singleton gets another name and a later begin time at once: the next of its old name joins
 * the jobs that wait for a time. */
static void
test_times_stay_in_order_where_a_singleton_makes_way(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    struct job *first = add_later(q, 1, "one", 100);
    struct job *other = add_later(q, 2, NULL, 200);
    struct job *second = add_later(q, 3, "one", 500);
    assert_true(second->parked & PARK_SINGLETON);
    free(first->req.name);
    first->req.name = xstrdup("two");
    first->begin_us = 900;
    queue_refile(q, first);
    assert_null(queue_check(q));
    assert_ptr_equal(queue_later(q), other);
    assert_ptr_equal(queue_later_next(other), second);
    assert_ptr_equal(queue_later_next(second), first);
    queue_free(q);
}

static void
test_lines_by_kind(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    add(q, 1, 0, want(1, 1000));
    add(q, 2, 0, want(1, 2000));
    add(q, 3, 1, want(1, 1000));
    add(q, 4, 0, want(1, 1000));
    assert_int_equal(queue_n_kinds(q), 3);
    assert_ptr_equal(queue_get(q, 1)->kind, queue_get(q, 4)->kind);
    queue_get(q, 4)->uid = 1000;
    queue_refile(q, queue_get(q, 4));
    assert_int_equal(queue_n_kinds(q), 4);
    queue_get(q, 2)->req.demand.vram_mib = 1000;
    queue_refile(q, queue_get(q, 2));
    assert_int_equal(queue_n_kinds(q), 3);
    assert_ptr_equal(queue_get(q, 1)->kind, queue_get(q, 2)->kind);
    assert_null(queue_check(q));
    queue_free(q);
}

/* Expected run time and preemptibility are also part of a kind. */
static void
test_spans_and_preemptible_ones_stand_apart(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    for (uint32_t id = 1; id <= 6; id++) {
        struct job *job = new_job(id, want(1, 1000));
        job->span_ms = id % 2 ? 60000 : 0;
        job->req.preemptible = id > 4;
        queue_add(q, job);
    }
    assert_int_equal(queue_n_kinds(q), 4);
    assert_ptr_equal(queue_get(q, 1)->kind, queue_get(q, 3)->kind);
    assert_int_equal(queue_get(q, 1)->kind->span_ms, 60000);
    assert_true(queue_get(q, 6)->kind->preemptible);
    queue_get(q, 3)->span_ms = 0;
    queue_refile(q, queue_get(q, 3));
    assert_ptr_equal(queue_get(q, 2)->kind, queue_get(q, 3)->kind);
    assert_null(queue_check(q));
    queue_free(q);
}

static void
test_parked_ones_stand_in_no_line(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    struct ledger *l = machine_new(1, CARD_MIB);
    struct job *job = new_job(1, want(1, 1000));
    job->parked = PARK_DEPENDENCY;
    job->begin_us = 50; /* its time may come; it stays parked */
    queue_add(q, job);
    assert_string_equal(planned(q, l, 100), "");
    assert_int_equal(queue_n_kinds(q), 0);
    assert_int_equal(queue_next_begin_us(q), INT64_MAX);
    job->parked = PARK_DEPENDENCY | PARK_ARRAY_LIMIT;
    queue_refile(q, job);
    job->parked = 0;
    queue_refile(q, job);
    assert_string_equal(planned(q, l, 100), "1@0");
    queue_free(q);
    ledger_free(l);
}

static void
test_who_waits_is_counted_by_user(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    for (uint32_t id = 1; id <= 30; id++) {
        struct job *job = new_job(id, want(1, 1000));
        job->uid = 1000 + id % 3 * 7;
        queue_add(q, job);
    }
    assert_int_equal(queue_n_waiting(q), 30);
    assert_int_equal(queue_n_waiting_of(q, 1007), 10);
    assert_int_equal(queue_n_waiting_of(q, 1001), 0);
    assert_int_equal(queue_text_of(q, 1007), 0);
    set_state(q, 1, JOB_HELD);
    assert_int_equal(queue_n_waiting_of(q, 1007), 10);
    set_state(q, 4, JOB_RUNNING);
    set_state(q, 7, JOB_CANCELLED);
    assert_int_equal(queue_n_waiting_of(q, 1007), 8);
    queue_get(q, 4)->req.comment = xstrdup("12345");
    queue_get(q, 10)->req.command = xstrdup("123");
    queue_refile(q, queue_get(q, 4));
    queue_refile(q, queue_get(q, 10));
    assert_int_equal(queue_text_of(q, 1007), 8);
    job_free(queue_remove(q, 10));
    assert_int_equal(queue_n_waiting_of(q, 1007), 7);
    assert_int_equal(queue_text_of(q, 1007), 5); /* of the running one too */
    assert_int_equal(queue_n_waiting(q), 27);
    assert_null(queue_check(q));
    queue_free(q);
}

static void
test_order_can_be_changed(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    for (uint32_t id = 1; id <= 4; id++)
        add(q, id, 0, want(1, 1000));
    queue_reorder(q, queue_get(q, 1), 5);
    struct kind *k = queue_get(q, 1)->kind;
    assert_int_equal(k->head->id, 2);
    queue_reorder(q, queue_get(q, 4), 1);
    assert_int_equal(k->head->id, 4);
    assert_int_equal(kind_next(k->head)->id, 2);
    assert_int_equal(queue_get(q, 1)->order, 5);
    assert_null(queue_check(q));
    queue_free(q);
}

static void
test_begin_times_wake(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    for (uint32_t id = 1; id <= 3; id++) {
        struct job *job = new_job(id, want(1, 1000));
        job->begin_us = 100 * (4 - id);
        queue_add(q, job);
    }
    assert_int_equal(queue_n_kinds(q), 0);
    assert_int_equal(queue_next_begin_us(q), 100);
    queue_wake(q, 200);
    assert_int_equal(queue_next_begin_us(q), 300);
    assert_non_null(queue_get(q, 3)->kind);
    assert_non_null(queue_get(q, 2)->kind);
    assert_null(queue_get(q, 1)->kind);
    queue_wake(q, 300);
    assert_int_equal(queue_next_begin_us(q), INT64_MAX);
    assert_null(queue_check(q));
    queue_free(q);
}

static void
test_listings(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    static const int priority[] = {0, 0, 5, 0, -5, 0};
    for (uint32_t id = 6; id >= 1; id--)
        add(q, id, priority[id - 1], want(1, 1000));
    queue_reorder(q, queue_get(q, 2), 9);
    set_state(q, 6, JOB_RUNNING);
    set_state(q, 1, JOB_COMPLETED);
    static const uint32_t in_order[] = {6, 3, 4, 2, 5, 1};
    size_t n;
    struct job **jobs = queue_list_in_order(q, QUEUE_ALL, &n);
    assert_int_equal(n, 6);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(jobs[i]->id, in_order[i]);
    free(jobs);
    jobs = queue_list_by_id(q, 1U << JOB_PENDING, &n);
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(jobs[i]->id, i + 2);
    free(jobs);
    assert_null(queue_list_by_id(q, 1U << JOB_LOST, &n));
    assert_int_equal(n, 0);
    queue_free(q);
}

static void
test_plan_starts_what_fits(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    struct ledger *l = machine_new(2, CARD_MIB);
    add(q, 1, 0, want(1, 8192));
    add(q, 2, 0, want(1, 8192));
    add(q, 3, 0, want(1, 20480));
    add(q, 4, 0, want(1, 0));
    assert_string_equal(planned(q, l, 1), "1@0 2@0 3@1");
    auto_buf struct buf text = BUF_INIT;
    plan_explain_text(q, queue_get(q, 4), &text);
    assert_string_equal(buf_str(&text), "GpuBusy: wants an idle GPU; gpu 1 is held by job 3");
    ledger_free(l);
    queue_free(q);
}

static void
test_plan_backfills_in_order(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    struct ledger *l = machine_new(1, CARD_MIB);
    add(q, 1, 0, want(1, 10000));
    add(q, 2, 0, want(1, 20000));
    add(q, 3, 0, want(1, 8000));
    add(q, 4, 1, want(1, 5000));
    assert_string_equal(planned(q, l, 1), "4@0 1@0 3@0");
    struct blocked why;
    plan_explain(q, queue_get(q, 2), &why);
    assert_int_equal(why.reason, REASON_GPU_MEMORY);
    assert_int_equal(why.free_mib, CARD_MIB - 23000);
    assert_int_equal(why.short_mib, 20512 - (CARD_MIB - 23000));
    assert_int_equal(why.holders[0].id, 1);
    assert_int_equal(why.ahead.id, 0);
    ledger_free(l);
    queue_free(q);
}

static void
test_plan_marks_the_infeasible(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    struct ledger *l = machine_new(1, 24000);
    add(q, 1, 0, want(1, 30720));
    add(q, 2, 0, want(1, 30720));
    add(q, 3, 0, want(1, 1000));
    assert_string_equal(planned(q, l, 1), "1! 2! 3@0");
    struct gpu_info info = ledger_card(l, 0)->info;
    info.total_mib = 40000;
    ledger_set_info(l, 0, &info);
    assert_null(ledger_check(l));
    ledger_release(l, 3);
    assert_string_equal(planned(q, l, 1), "1@0 3@0");
    ledger_free(l);
    queue_free(q);
}

static void
test_look_ahead_changes_nothing(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    struct ledger *l = machine_new(1, CARD_MIB);
    add(q, 1, 0, want(1, 0));
    struct ledger *ahead = ledger_clone(l);
    assert_string_equal(planned(q, ahead, 1), "1@0");
    ledger_free(ahead);
    assert_false(ledger_holds(l, 1));
    assert_int_equal(queue_get(q, 1)->state, JOB_PENDING);
    assert_string_equal(planned(q, l, 1), "1@0");
    ledger_free(l);
    queue_free(q);
}

static void
test_plan_waits_for_begin_times(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    struct ledger *l = machine_new(1, CARD_MIB);
    auto_plan struct plan p = PLAN_INIT;
    struct job *job = new_job(1, want(1, 0));
    job->begin_us = 500;
    queue_add(q, job);
    plan_once(q, l, 499, &p);
    assert_int_equal(p.n, 0);
    assert_int_equal(p.wake_us, 500);
    auto_buf struct buf text = BUF_INIT;
    plan_explain_text(q, job, &text);
    assert_string_equal(buf_str(&text), "BeginTime: not before 1970-01-01T00:00:00Z");
    buf_clear(&text);
    job->attempts = 1; /* the begin time is that of its retry */
    plan_explain_text(q, job, &text);
    assert_string_equal(buf_str(&text), "BeginTime: pause after attempt 1, which failed; "
                                        "attempt 2 not before 1970-01-01T00:00:00Z");
    buf_clear(&text);
    job->req.begin_us = 500; /* the user asked for it */
    plan_explain_text(q, job, &text);
    assert_string_equal(buf_str(&text), "BeginTime: not before 1970-01-01T00:00:00Z");
    job->attempts = 0;
    plan_once(q, l, 500, &p);
    assert_int_equal(p.n, 1);
    assert_int_equal(p.wake_us, INT64_MAX);
    ledger_free(l);
    queue_free(q);
}

static void
test_explanations(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    struct ledger *l = machine_new(1, CARD_MIB);
    struct blocked why;
    add(q, 1, 0, want(1, 0));
    add(q, 2, 0, want(1, 0));
    add(q, 3, 0, want(1, 0));
    plan_explain(q, queue_get(q, 1), &why);
    assert_int_equal(why.reason, REASON_PRIORITY);
    assert_string_equal(planned(q, l, 1), "1@0");
    set_state(q, 1, JOB_RUNNING);
    plan_explain(q, queue_get(q, 1), &why);
    assert_int_equal(why.reason, REASON_NONE);
    auto_buf struct buf text = BUF_INIT;
    plan_explain_text(q, queue_get(q, 3), &text);
    assert_string_equal(buf_str(&text), "GpuBusy: wants an idle GPU; gpu 0 is held by job 1; "
                                        "job 2, with the same request, is first");
    set_state(q, 3, JOB_HELD);
    plan_explain(q, queue_get(q, 3), &why);
    assert_int_equal(why.reason, REASON_HELD);
    ledger_free(l);
    queue_free(q);
}

/* What the plan recorded about a line persists, even if its only job steps out and in
 * again. */
static void
test_a_line_keeps_its_reason(void **state)
{
    struct queue *q = queue_new();
    struct job *job = new_job(1, want(1, 8000));
    (void)state;
    queue_add(q, job);
    job->kind->blocked.reason = REASON_GPU_BUSY;
    queue_reorder(q, job, 7);
    assert_int_equal(job->kind->blocked.reason, REASON_GPU_BUSY);
    assert_int_equal(queue_n_kinds(q), 1);
    job->req.priority = 1;
    queue_refile(q, job);
    assert_int_equal(job->kind->blocked.reason, REASON_NONE);
    assert_int_equal(queue_n_kinds(q), 1);
    assert_null(queue_check(q));
    queue_free(q);
}

static struct job *
add_with_env(struct queue *q, uint32_t id, uint32_t uid, int64_t env, int64_t bytes)
{
    struct job *job = job_new();
    job->id = id;
    job->order = id;
    job->uid = uid;
    job->env = env;
    job->env_bytes = (int32_t)bytes;
    queue_add(q, job);
    return job;
}

/* Each environment is counted once per user, as long as one of the user's jobs has it. */
static void
test_environments_count_once_for_each_user(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    add_with_env(q, 1, 7, 11, 10000);
    struct job *second = add_with_env(q, 2, 7, 11, 10000);
    add_with_env(q, 3, 7, 12, 5000);
    add_with_env(q, 4, 7, 13, 100); /* like most jobs */
    add_with_env(q, 5, 8, 11, 10000);
    assert_int_equal(queue_envs_of(q, 7), 15000);
    assert_int_equal(queue_envs_of(q, 8), 10000);
    assert_int_equal(queue_envs_of(q, 9), 0);
    second->state = JOB_RUNNING;
    queue_refile(q, second);
    assert_int_equal(queue_envs_of(q, 7), 15000);
    job_free(queue_remove(q, 1));
    assert_int_equal(queue_envs_of(q, 7), 15000);
    job_free(queue_remove(q, 2));
    assert_int_equal(queue_envs_of(q, 7), 5000);
    assert_int_equal(queue_envs_of(q, 8), 10000);
    queue_free(q);
}

static struct job *
add_named(struct queue *q, uint32_t id, const char *name, bool singleton)
{
    struct job *job = new_job(id, want(0, 0));
    job->req.name = xstrdup(name);
    job->req.singleton = singleton;
    queue_add(q, job);
    return job;
}

static bool
is_parked(const struct queue *q, uint32_t id)
{
    assert_null(queue_check(q));
    return queue_get(q, id)->parked & PARK_SINGLETON;
}

static void
count_marked(struct job *job, void *arg)
{
    (void)job;
    ++*(int *)arg;
}

/* The job's state during each step of 10 s, and its total time in line after it. */
static void
test_time_in_line(void **state)
{
    static const struct {
        enum job_state state;
        uint8_t parked;
        int64_t begin_us;
        int64_t stood_s;
    } steps[] = {
        {JOB_PENDING, PARK_DEPENDENCY, 0, 0},
        {JOB_PENDING, 0, 0, 10},
        {JOB_PENDING, PARK_ARRAY_LIMIT, 0, 10},
        {JOB_PENDING, 0, 0, 20},
        {JOB_HELD, 0, 0, 20},
        {JOB_PENDING, 0, 0, 30},
        {JOB_RUNNING, 0, 0, 30},
        {JOB_PENDING, 0, 1, 30},
        {JOB_PENDING, 0, 0, 40},
    };
    (void)state;
    struct queue *q = queue_new();
    struct job *job = new_job(1, want(1, 0));
    int64_t now_us = 1000 * SECOND_US;
    int marked = 0;
    job->parked = PARK_DEPENDENCY;
    queue_add(q, job);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        job->state = steps[i].state;
        job->parked = steps[i].parked;
        job->begin_us = steps[i].begin_us ? now_us + 10 * SECOND_US : 0;
        queue_refile(q, job);
        queue_mark_lines(q, now_us, count_marked, &marked);
        now_us += 10 * SECOND_US;
        assert_int_equal(job_lined_us(job, now_us), steps[i].stood_s * SECOND_US);
    }
    assert_int_equal(marked, 7);
    /* A job whose begin time comes is pending since that time, whenever it is noticed. */
    job->begin_us = now_us + SECOND_US;
    queue_refile(q, job);
    queue_mark_lines(q, now_us, NULL, NULL);
    queue_wake(q, now_us + 5 * SECOND_US);
    assert_int_equal(job_lined_us(job, now_us + 5 * SECOND_US), 44 * SECOND_US);
    assert_null(queue_check(q));
    queue_free(q);
}

static void
test_singletons(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    add_named(q, 1, "a", true);
    add_named(q, 2, "a", true);
    add_named(q, 3, "a", false);
    add_named(q, 4, "b", true);
    add_named(q, 5, "a", true)->uid = 77; /* another user's: not refiled yet */
    queue_refile(q, queue_get(q, 5));
    assert_false(is_parked(q, 1));
    assert_true(is_parked(q, 2));
    assert_false(is_parked(q, 3) || is_parked(q, 4) || is_parked(q, 5));
    set_state(q, 1, JOB_RUNNING);
    assert_true(is_parked(q, 2));
    set_state(q, 1, JOB_COMPLETED);
    assert_false(is_parked(q, 2));
    /* A job that is not a singleton may start at any time, and keeps the singletons
     * waiting. */
    set_state(q, 3, JOB_RUNNING);
    assert_true(is_parked(q, 2));
    job_free(queue_remove(q, 3));
    assert_false(is_parked(q, 2));
    /* It runs again, and was first. */
    set_state(q, 1, JOB_PENDING);
    assert_true(is_parked(q, 2));
    set_state(q, 1, JOB_HELD);
    assert_true(is_parked(q, 2));
    /* With another name it holds back no other job. */
    struct job *job = queue_get(q, 1);
    free(job->req.name);
    job->req.name = xstrdup("c");
    queue_refile(q, job);
    assert_false(is_parked(q, 2));
    set_state(q, 2, JOB_RUNNING);
    set_state(q, 4, JOB_CANCELLED);
    assert_null(queue_check(q));
    queue_free(q);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environments_count_once_for_each_user),
        cmocka_unit_test(test_ids_and_counts),
        cmocka_unit_test(test_singletons),
        cmocka_unit_test(test_time_in_line),
        cmocka_unit_test(test_times_stay_in_order_where_a_singleton_makes_way),
        cmocka_unit_test(test_lines_by_kind),
        cmocka_unit_test(test_spans_and_preemptible_ones_stand_apart),
        cmocka_unit_test(test_parked_ones_stand_in_no_line),
        cmocka_unit_test(test_who_waits_is_counted_by_user),
        cmocka_unit_test(test_order_can_be_changed),
        cmocka_unit_test(test_a_line_keeps_its_reason),
        cmocka_unit_test(test_begin_times_wake),
        cmocka_unit_test(test_listings),
        cmocka_unit_test(test_plan_starts_what_fits),
        cmocka_unit_test(test_plan_backfills_in_order),
        cmocka_unit_test(test_plan_marks_the_infeasible),
        cmocka_unit_test(test_look_ahead_changes_nothing),
        cmocka_unit_test(test_plan_waits_for_begin_times),
        cmocka_unit_test(test_explanations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
