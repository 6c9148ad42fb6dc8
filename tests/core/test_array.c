/* Arrays: tasks leave, run and end; the array counts them and ends with the last. */
#include "base/counted_text.h"
#include "base/err.h"
#include "core/queue/array.h"
#include "machine.h"

static struct job *
new_array(uint32_t id, int32_t first, int32_t last, int32_t max)
{
    struct job *a = new_job(id, want(1, 1000));
    a->req.array.ranges = xmalloc(sizeof *a->req.array.ranges);
    a->req.array.ranges[0] = (struct task_range){first, last};
    a->req.array.n = 1;
    a->req.array_max = max;
    array_begin(a);
    return a;
}

static const char *
pending_text(const struct job *a)
{
    static char text[64];
    auto_buf struct buf b = BUF_INIT;
    task_set_text(&a->tasks->pending, &b);
    snprintf(text, sizeof text, "%s", buf_str(&b));
    return text;
}

/* Moves the task to this state and updates its array. */
static void
set(struct job *a, struct job *task, enum job_state to, int exit_status)
{
    enum job_state from = task->state;
    task->state = to;
    array_note(a, task, from, to, exit_status);
}

static void
test_tasks_leave_and_end(void **state)
{
    (void)state;
    enum job_state final;
    struct job *a = new_array(12, 0, 2, 0);
    struct job *t[3];
    a->req.name = xstrdup("sweep");
    a->cwd = shared_new("/tmp");
    a->uid = 1000;
    a->span_ms = 7000;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(array_next(a), i);
        t[i] = array_split(a, i, 100 + (uint32_t)i);
        assert_int_equal(t[i]->id, 100 + i);
        assert_int_equal(t[i]->array, 12);
        assert_int_equal(t[i]->task, i);
        assert_int_equal(t[i]->req.array.n, 0);
        assert_null(t[i]->tasks);
        assert_int_equal(t[i]->uid, 1000);
        assert_int_equal(t[i]->order, 12);
        assert_int_equal(t[i]->span_ms, 7000);
        assert_string_equal(t[i]->req.name, "sweep");
        assert_string_equal(t[i]->cwd, "/tmp");
        set(a, t[i], JOB_STARTING, -1);
    }
    assert_int_equal(array_next(a), -1);
    assert_int_equal(array_n_pending(a), 0);
    assert_int_equal(a->tasks->active, 3);
    set(a, t[1], JOB_FAILED, 7);
    set(a, t[0], JOB_COMPLETED, 0);
    assert_false(array_is_over(a, &final));
    set(a, t[2], JOB_TIMEOUT, 124);
    assert_true(array_is_over(a, &final));
    assert_int_equal(final, JOB_FAILED);
    assert_int_equal(array_exit_status(a->tasks), 124);
    assert_int_equal(a->tasks->live, 0);
    assert_int_equal(a->tasks->active, 0);
    for (int i = 0; i < 3; i++)
        job_free(t[i]);
    job_free(a);
}

static void
test_the_gravest_counts(void **state)
{
    (void)state;
    static const struct {
        enum job_state one, other, together;
    } cases[] = {
        {JOB_COMPLETED, JOB_COMPLETED, JOB_COMPLETED},
        {JOB_COMPLETED, JOB_CANCELLED, JOB_CANCELLED},
        {JOB_CANCELLED, JOB_FAILED, JOB_FAILED},
        {JOB_TIMEOUT, JOB_CANCELLED, JOB_TIMEOUT},
        {JOB_FAILED, JOB_OUT_OF_MEMORY, JOB_FAILED},
        {JOB_TIMEOUT, JOB_OUT_OF_MEMORY, JOB_OUT_OF_MEMORY},
        {JOB_FAILED, JOB_LOST, JOB_LOST},
        {JOB_INFEASIBLE, JOB_COMPLETED, JOB_INFEASIBLE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        enum job_state final;
        struct job *a = new_array(1, 0, 1, 0);
        struct job *x = array_split(a, 0, 2), *y = array_split(a, 1, 3);
        set(a, x, cases[i].one, 0);
        set(a, y, cases[i].other, 0);
        assert_true(array_is_over(a, &final));
        assert_int_equal(final, cases[i].together);
        job_free(x);
        job_free(y);
        job_free(a);
    }
}

static void
test_so_many_at_once(void **state)
{
    (void)state;
    struct job *a = new_array(1, 0, 9, 2);
    struct job *x = array_split(a, 0, 2), *y = array_split(a, 1, 3), *z = array_split(a, 5, 4);
    assert_string_equal(pending_text(a), "2-4,6-9");
    set(a, x, JOB_STARTING, -1);
    assert_false(array_is_full(a));
    set(a, y, JOB_STARTING, -1);
    assert_true(array_is_full(a));
    assert_int_equal(a->parked, PARK_ARRAY_LIMIT);
    assert_true(array_park_task(a, z));
    assert_false(array_park_task(a, z));
    assert_int_equal(z->parked, PARK_ARRAY_LIMIT);
    set(a, x, JOB_COMPLETING, -1);
    assert_true(array_is_full(a)); /* still holds its GPU */
    set(a, x, JOB_COMPLETED, 0);
    assert_false(array_is_full(a));
    assert_int_equal(a->parked, 0);
    assert_true(array_park_task(a, z));
    assert_int_equal(z->parked, 0);
    job_free(x);
    job_free(y);
    job_free(z);
    job_free(a);
}

static void
test_a_start_is_taken_back(void **state)
{
    (void)state;
    struct job *a = new_array(1, 0, 9, 0);
    struct job *x = array_split(a, 0, 2), *y = array_split(a, 4, 3);
    assert_string_equal(pending_text(a), "1-3,5-9");
    array_unsplit(a, y);
    array_unsplit(a, x);
    assert_string_equal(pending_text(a), "0-9");
    assert_int_equal(array_n_pending(a), 10);
    assert_int_equal(a->tasks->live, 0);
    job_free(x);
    job_free(y);
    job_free(a);
}

static void
test_an_ended_task_is_requeued(void **state)
{
    (void)state;
    enum job_state final;
    struct job *a = new_array(1, 0, 1, 0);
    struct job *x = array_split(a, 0, 2), *y = array_split(a, 1, 3);
    set(a, x, JOB_COMPLETED, 0);
    set(a, y, JOB_FAILED, 9);
    assert_true(array_is_over(a, &final));
    set(a, y, JOB_PENDING, 9);
    assert_false(array_is_over(a, &final));
    assert_int_equal(array_exit_status(a->tasks), 0);
    set(a, y, JOB_COMPLETED, 0);
    assert_true(array_is_over(a, &final));
    assert_int_equal(final, JOB_COMPLETED);
    assert_int_equal(array_exit_status(a->tasks), 0);
    job_free(x);
    job_free(y);
    job_free(a);
}

static void
test_the_highest_status_of_those_that_ended_last(void **state)
{
    (void)state;
    struct job *a = new_array(1, 0, 4, 0), *t[4];
    static const int statuses[] = {5, 1, 5, 3};
    for (int i = 0; i < 4; i++) {
        t[i] = array_split(a, i, 2 + (uint32_t)i);
        set(a, t[i], JOB_FAILED, statuses[i]);
    }
    assert_int_equal(array_exit_status(a->tasks), 5);
    set(a, t[0], JOB_PENDING, 5);
    assert_int_equal(array_exit_status(a->tasks), 5);
    set(a, t[2], JOB_PENDING, 5);
    assert_int_equal(array_exit_status(a->tasks), 3);
    set(a, t[3], JOB_PENDING, 3);
    assert_int_equal(array_exit_status(a->tasks), 1);
    array_drop(a, JOB_CANCELLED);
    assert_int_equal(array_exit_status(a->tasks), 130);
    array_count_status(a->tasks, array_dropped_status(JOB_CANCELLED), -1);
    assert_int_equal(array_exit_status(a->tasks), 1);
    for (int i = 0; i < 4; i++)
        job_free(t[i]);
    job_free(a);
}

static enum job_state
apply(struct job *job, enum job_event_type type)
{
    const struct job_event ev = {.type = type, .wall_us = 77, .by = "alice", .text = "why"};
    assert_int_equal(job_apply(job, &ev, NULL), JOB_NEXT);
    return job->state;
}

static void
test_what_has_not_left_ends_together(void **state)
{
    (void)state;
    static const struct {
        enum job_event_type type;
        enum job_state final;
        int exit_status;
    } cases[] = {
        {JOB_EV_CANCEL, JOB_CANCELLED, 130},
        {JOB_EV_INFEASIBLE, JOB_INFEASIBLE, 1},
        {JOB_EV_DEP_FAILED, JOB_CANCELLED, 130},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job *a = new_array(1, 0, 99, 0);
        assert_int_equal(apply(a, cases[i].type), cases[i].final);
        assert_int_equal(a->tasks->ended[cases[i].final], 100);
        assert_int_equal(a->ended_us, 77);
        job_free(a);

        /* While a task is active, the array waits for it. */
        a = new_array(1, 0, 99, 0);
        struct job *t = array_split(a, 0, 2);
        set(a, t, JOB_STARTING, -1);
        assert_int_equal(apply(a, cases[i].type), JOB_PENDING);
        assert_int_equal(array_n_pending(a), 0);
        set(a, t, JOB_COMPLETED, 0);
        assert_int_equal(apply(a, JOB_EV_OVER), cases[i].final);
        assert_int_equal(a->tasks->ended[JOB_COMPLETED], 1);
        assert_int_equal(array_exit_status(a->tasks), cases[i].exit_status);
        job_free(t);
        job_free(a);
    }
}

static void
test_words_for_an_array(void **state)
{
    (void)state;
    auto_buf struct buf text = BUF_INIT;
    struct job *a = new_array(1, 0, 9, 0);
    struct job *x = array_split(a, 0, 2), *y = array_split(a, 1, 3);
    set(a, x, JOB_COMPLETED, 0);
    set(a, y, JOB_FAILED, 9);
    assert_int_equal(apply(a, JOB_EV_CANCEL), JOB_FAILED);
    assert_int_equal(job_exit_status(a), 130);
    job_end_text(a, &text);
    assert_string_equal(buf_str(&text), "tasks: 1 COMPLETED, 1 FAILED, 8 CANCELLED");
    job_free(x);
    job_free(y);
    job_free(a);
}

static void
test_one_job_in_the_queue(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    struct job *a = new_array(1, 0, 9999, 0);
    queue_add(q, a);
    queue_add(q, new_job(2, want(1, 1000)));
    assert_int_equal(queue_n(q), 2);
    assert_int_equal(queue_n_waiting(q), 10001);
    assert_int_equal(queue_n_kinds(q), 1);
    struct job *t = array_split(a, 0, 3);
    queue_refile(q, a);
    queue_add(q, t);
    assert_int_equal(queue_n_waiting(q), 10001);
    assert_int_equal(queue_n_waiting_of(q, 0), 10001);
    t->state = JOB_RUNNING;
    queue_refile(q, t);
    assert_int_equal(queue_n_waiting(q), 10000);
    assert_int_equal(queue_n_in(q, JOB_PENDING), 10000);
    assert_int_equal(queue_n_in(q, JOB_RUNNING), 1);
    /* All tasks gone: the array is in no line, and stays in the table until the last has
     * ended. */
    array_drop(a, JOB_CANCELLED);
    queue_refile(q, a);
    assert_null(a->kind);
    assert_int_equal(queue_n_waiting(q), 1);
    assert_int_equal(queue_n_in(q, JOB_PENDING), 1);
    assert_int_equal(queue_count(q, JOB_PENDING), 1 + (a->state == JOB_PENDING));
    assert_null(queue_check(q));
    queue_free(q);
}

static void
test_found_again_after_a_restart(void **state)
{
    (void)state;
    struct job *a = new_array(1, 3, 9, 2);
    struct job *x = new_job(5, want(1, 1000)), *y = new_job(6, want(1, 1000));
    x->state = JOB_STARTING;
    array_adopt(a, x);
    assert_int_equal(a->parked, 0);
    y->state = JOB_RUNNING;
    array_adopt(a, y);
    assert_int_equal(a->tasks->live, 2);
    assert_int_equal(a->tasks->active, 2);
    assert_int_equal(a->parked, PARK_ARRAY_LIMIT);
    job_free(x);
    job_free(y);
    job_free(a);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks_leave_and_end),
        cmocka_unit_test(test_the_gravest_counts),
        cmocka_unit_test(test_so_many_at_once),
        cmocka_unit_test(test_a_start_is_taken_back),
        cmocka_unit_test(test_an_ended_task_is_requeued),
        cmocka_unit_test(test_the_highest_status_of_those_that_ended_last),
        cmocka_unit_test(test_what_has_not_left_ends_together),
        cmocka_unit_test(test_words_for_an_array),
        cmocka_unit_test(test_one_job_in_the_queue),
        cmocka_unit_test(test_found_again_after_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
