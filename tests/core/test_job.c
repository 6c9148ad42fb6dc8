/* The table of state x event, every pair, and the transitions after an ending. */
#include <errno.h>

#include "base/err.h"
#include "machine.h"

/* The result of each event, written a second time and independently of job.c: "!" refused, "="
 * ignored, "+" a new fact in the same state, else the new state. */
static const struct row {
    enum job_state state;
    const char *hold, *release, *cancel, *start, *started, *ended, *back, *infeasible;
    const char *dep_failed, *preempt, *requeue;
} rows[] = {
    {JOB_PENDING, "HELD", "=", "CANCELLED", "STARTING", "!", "!", "=", "INFEASIBLE",
     "CANCELLED", "=", "!"},
    {JOB_HELD, "=", "PENDING", "CANCELLED", "!", "!", "!", "=", "INFEASIBLE", "CANCELLED", "=",
     "!"},
    {JOB_STARTING, "!", "=", "+", "!", "RUNNING", "COMPLETING", "=", "!", "!", "+", "+"},
    {JOB_RUNNING, "!", "=", "+", "!", "=", "COMPLETING", "=", "!", "!", "+", "+"},
    {JOB_SUSPENDED, "!", "=", "+", "!", "=", "COMPLETING", "=", "!", "!", "+", "+"},
    {JOB_COMPLETING, "!", "=", "+", "!", "=", "=", "COMPLETED", "!", "!", "=", "+"},
    {JOB_COMPLETED, "!", "!", "=", "!", "=", "=", "=", "=", "=", "=", "PENDING"},
    {JOB_FAILED, "!", "!", "=", "!", "=", "=", "=", "=", "=", "=", "PENDING"},
    {JOB_CANCELLED, "!", "!", "=", "!", "=", "=", "=", "=", "=", "=", "PENDING"},
    {JOB_TIMEOUT, "!", "!", "=", "!", "=", "=", "=", "=", "=", "=", "PENDING"},
    {JOB_OUT_OF_MEMORY, "!", "!", "=", "!", "=", "=", "=", "=", "=", "=", "PENDING"},
    {JOB_PREEMPTED, "!", "!", "=", "!", "=", "=", "=", "=", "=", "=", "PENDING"},
    {JOB_INFEASIBLE, "!", "!", "=", "!", "=", "=", "=", "=", "=", "=", "PENDING"},
    {JOB_LOST, "!", "!", "=", "!", "=", "=", "=", "=", "=", "=", "PENDING"},
};

static struct attempt *
new_attempt(int32_t vram_mib)
{
    struct attempt *run = xcalloc(1, sizeof *run);
    run->vram_mib = vram_mib;
    run->n_gpus = 1;
    run->peak_mib[0] = -1;
    run->now_mib[0] = -1;
    return run;
}

static struct job *
job_in(enum job_state s)
{
    struct job *job = new_job(7, want(1, 2000));
    job->state = s;
    if (s >= JOB_STARTING) {
        job->run = new_attempt(2000);
        job->run->number = job->attempts = 1;
        job->run->ending = (struct ending){.outcome = OUTCOME_EXITED, .ended_us = 900};
    }
    return job;
}

static enum job_verdict
apply(struct job *job, enum job_event_type type, const char **why)
{
    struct ending ok = {.outcome = OUTCOME_EXITED};
    struct job_event ev = {.type = type, .wall_us = 1000, .by = "alice", .ending = &ok};
    if (type == JOB_EV_START)
        ev.run = new_attempt(2000);
    if (type == JOB_EV_INFEASIBLE || type == JOB_EV_DEP_FAILED)
        ev.text = "too large";
    enum job_verdict v = job_apply(job, &ev, why);
    if (type == JOB_EV_START && v != JOB_NEXT)
        free(ev.run);
    return v;
}

static void
expect_pair(enum job_state s, enum job_event_type type, const char *expected)
{
    struct job *job = job_in(s);
    struct job before = *job;
    const char *why = "unset";
    enum job_verdict v = apply(job, type, &why);
    if (*expected == '!' || *expected == '=') {
        assert_int_equal(v, *expected == '!' ? JOB_REFUSED : JOB_IGNORED);
        assert_memory_equal(job, &before, sizeof before);
        assert_int_equal(why != NULL, *expected == '!');
    } else {
        assert_int_equal(v, JOB_NEXT);
        assert_null(why);
        assert_string_equal(job_state_name(job->state),
                            *expected == '+' ? job_state_name(s) : expected);
    }
    if (*expected == '+')
        assert_true(type == JOB_EV_CANCEL ? job->cancel_asked : job->requeue_asked != 0);
    assert_int_equal(job_state_is_final(job->state),
                     job->ended_us != 0 || (s >= JOB_COMPLETED && type != JOB_EV_REQUEUE));
    job_free(job);
}

static void
test_table_is_total(void **state)
{
    (void)state;
    assert_int_equal(sizeof rows / sizeof rows[0], JOB_STATES);
    for (int i = 0; i < JOB_STATES; i++) {
        const struct row *r = &rows[i];
        assert_int_equal(r->state, i);
        expect_pair(r->state, JOB_EV_HOLD, r->hold);
        expect_pair(r->state, JOB_EV_RELEASE, r->release);
        expect_pair(r->state, JOB_EV_CANCEL, r->cancel);
        expect_pair(r->state, JOB_EV_START, r->start);
        expect_pair(r->state, JOB_EV_STARTED, r->started);
        expect_pair(r->state, JOB_EV_ENDED, r->ended);
        expect_pair(r->state, JOB_EV_VRAM_BACK, r->back);
        expect_pair(r->state, JOB_EV_INFEASIBLE, r->infeasible);
        expect_pair(r->state, JOB_EV_DEP_FAILED, r->dep_failed);
        expect_pair(r->state, JOB_EV_PREEMPT, r->preempt);
        expect_pair(r->state, JOB_EV_REQUEUE, r->requeue);
    }
}

/* Runs the job once to this ending and lets its memory come back, at wall time 1,000,000. */
static void
run_once(struct job *job, struct ending e, int32_t peak_mib)
{
    struct attempt *run = new_attempt(job->req.demand.vram_mib);
    run->peak_mib[0] = peak_mib;
    struct job_event start = {.type = JOB_EV_START, .run = run};
    assert_int_equal(job_apply(job, &start, NULL), JOB_NEXT);
    e.ended_us = 900000;
    struct job_event end = {.type = JOB_EV_ENDED, .ending = &e, .wall_us = 950000};
    assert_int_equal(job_apply(job, &end, NULL), JOB_NEXT);
    assert_int_equal(job->state, JOB_COMPLETING);
    struct job_event back = {.type = JOB_EV_VRAM_BACK, .wall_us = 1000000};
    assert_int_equal(job_apply(job, &back, NULL), JOB_NEXT);
}

static void
test_final_states(void **state)
{
    (void)state;
    static const struct {
        struct ending e;
        enum job_state final;
        int status;
        const char *text;
    } cases[] = {
        {{.outcome = OUTCOME_EXITED}, JOB_COMPLETED, 0, "exit 0"},
        {{.outcome = OUTCOME_EXITED, .code = 7}, JOB_FAILED, 7, "exit 7"},
        {{.outcome = OUTCOME_SIGNALED, .signal = 9},
         JOB_FAILED,
         137,
         "killed by signal 9 (KILL)"},
        {{.outcome = OUTCOME_TIMEOUT, .signal = 15}, JOB_TIMEOUT, 124, "time limit reached"},
        {{.outcome = OUTCOME_TIMEOUT, .signal = 9},
         JOB_TIMEOUT,
         124,
         "time limit reached, killed after the grace period"},
        {{.outcome = OUTCOME_CANCELLED, .signal = 15}, JOB_CANCELLED, 130, "cancelled"},
        {{.outcome = OUTCOME_NOT_STARTED, .errno_value = 2},
         JOB_FAILED,
         127,
         "could not start: No such file or directory"},
        {{.outcome = OUTCOME_NOT_STARTED, .errno_value = 13, .text = "no way"},
         JOB_FAILED,
         126,
         "could not start: no way"},
        {{.outcome = OUTCOME_NOT_STARTED, .errno_value = 12},
         JOB_FAILED,
         1,
         "could not start: Cannot allocate memory"},
        {{.outcome = OUTCOME_SETUP_FAILED, .code = 3, .text = "source x"},
         JOB_FAILED,
         3,
         "set-up failed: exit 3: source x"},
        {{.outcome = OUTCOME_SETUP_FAILED, .text = "exit 0"},
         JOB_FAILED,
         1,
         "set-up failed: the shell exited before the command (exit 0): exit 0"},
        {{.outcome = OUTCOME_SETUP_FAILED, .code = -1, .signal = 9, .text = "x"},
         JOB_FAILED,
         137,
         "set-up failed: killed by signal 9 (KILL): x"},
        {{.outcome = OUTCOME_LOST, .text = "rebooted"}, JOB_LOST, 1, "lost: rebooted"},
        {{.outcome = OUTCOME_EXITED, .code = 1, .oom = OOM_CUDA, .text = "CUDA oom"},
         JOB_OUT_OF_MEMORY,
         1,
         "CUDA out of memory (exit 1): CUDA oom"},
        {{.outcome = OUTCOME_SIGNALED, .signal = 9, .oom = OOM_HOST},
         JOB_OUT_OF_MEMORY,
         137,
         "host out of memory (killed by signal 9 (KILL))"},
        {{.outcome = OUTCOME_EXITED, .oom = OOM_CUDA}, JOB_COMPLETED, 0, "exit 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        auto_buf struct buf text = BUF_INIT;
        struct job *job = new_job(1, want(1, 2000));
        run_once(job, cases[i].e, 1000);
        assert_int_equal(job->state, cases[i].final);
        assert_int_equal(job->ended_us, 900000);
        assert_int_equal(job_exit_status(job), cases[i].status);
        job_end_text(job, &text);
        assert_string_equal(buf_str(&text), cases[i].text);
        job_free(job);
    }
}

static void
test_cuda_oom_raises_the_demand(void **state)
{
    (void)state;
    struct ending oom = {.outcome = OUTCOME_EXITED, .code = 1, .oom = OOM_CUDA};
    struct job *job = new_job(1, want(1, 2000));
    job->req.oom_retries = 2;
    run_once(job, oom, 1500);
    assert_int_equal(job->state, JOB_PENDING);
    assert_int_equal(job->begin_us, 0);
    assert_int_equal(job->req.demand.vram_mib, 2500);
    run_once(job, oom, 4001);
    assert_int_equal(job->state, JOB_PENDING);
    assert_int_equal(job->req.demand.vram_mib, 5002);
    run_once(job, oom, 4001);
    assert_int_equal(job->state, JOB_OUT_OF_MEMORY);
    assert_int_equal(job->oom_used, 2);
    assert_int_equal(job->attempts, 3);
    assert_int_equal(job->run->number, 3);
    job_free(job);
}

static void
test_whole_card_stays_whole_after_oom(void **state)
{
    (void)state;
    struct ending oom = {.outcome = OUTCOME_EXITED, .code = 1, .oom = OOM_CUDA};
    struct job *job = new_job(1, want(1, 0));
    job->req.oom_retries = 1;
    run_once(job, oom, 1500);
    assert_int_equal(job->state, JOB_PENDING);
    assert_int_equal(job->req.demand.vram_mib, 0);
    job_free(job);
}

static void
test_oom_retries_are_for_oom_only(void **state)
{
    (void)state;
    struct ending fail = {.outcome = OUTCOME_EXITED, .code = 7};
    struct job *job = new_job(1, want(1, 2000));
    job->req.oom_retries = 3;
    run_once(job, fail, 100);
    assert_int_equal(job->state, JOB_FAILED);
    assert_int_equal(job->attempts, 1);
    job_free(job);
}

static void
test_retries_wait_longer_each_time(void **state)
{
    (void)state;
    static const int wait_s[] = {5, 10, 20, 40, 80, 160, 300, 300};
    struct ending fail = {.outcome = OUTCOME_SIGNALED, .signal = 11};
    struct job *job = new_job(1, want(1, 2000));
    job->req.retries = 8;
    for (size_t i = 0; i < 8; i++) {
        run_once(job, fail, 100);
        assert_int_equal(job->state, JOB_PENDING);
        assert_int_equal(job->begin_us, 1000000 + wait_s[i] * INT64_C(1000000));
    }
    run_once(job, fail, 100);
    assert_int_equal(job->state, JOB_FAILED);
    job_free(job);
}

static void
test_time_limit_is_not_retried(void **state)
{
    (void)state;
    auto_buf struct buf text = BUF_INIT;
    struct ending late = {.outcome = OUTCOME_TIMEOUT, .signal = 15};
    struct job *job = new_job(1, want(1, 2000));
    job->req.retries = 3;
    job->req.limit_ms = 2 * 3600 * 1000;
    run_once(job, late, 100);
    assert_int_equal(job->state, JOB_TIMEOUT);
    job_end_text(job, &text);
    assert_string_equal(buf_str(&text), "time limit of 2h00m reached");
    job_free(job);
}

static void
test_lost_is_requeued_where_asked(void **state)
{
    (void)state;
    struct ending lost = {.outcome = OUTCOME_LOST};
    struct job *job = new_job(1, want(1, 2000));
    job->req.requeue = true;
    run_once(job, lost, 100);
    assert_int_equal(job->state, JOB_PENDING);
    job->req.requeue = false;
    run_once(job, lost, 100);
    assert_int_equal(job->state, JOB_LOST);
    job_free(job);
}

static void
test_never_ran_starts_again_with_longer_and_longer_pauses(void **state)
{
    (void)state;
    struct ending never = {.outcome = OUTCOME_NEVER_RAN};
    struct job *job = new_job(1, want(1, 2000));
    run_once(job, never, -1);
    assert_int_equal(job->state, JOB_PENDING);
    assert_int_equal(job->begin_us, 0);
    int64_t last_us = 0;
    for (int tries = 0; tries < 50; tries++) {
        int64_t begun_us = job->begin_us;
        run_once(job, never, -1);
        assert_int_equal(job->state, JOB_PENDING);
        assert_true(job->begin_us >= begun_us);
        last_us = job->begin_us;
    }
    assert_true(last_us > 0);
    job_free(job);
}

/* The fault is the machine's, so the job's retry count and backoff stay unchanged. */
static void
test_trouble_of_the_machine_is_not_charged(void **state)
{
    (void)state;
    struct ending trouble = {.outcome = OUTCOME_NEVER_RAN, .errno_value = EAGAIN};
    struct job *job = new_job(1, want(1, 2000));
    for (int tries = 0; tries < 50; tries++) {
        run_once(job, trouble, -1);
        assert_int_equal(job->state, JOB_PENDING);
        assert_int_equal(job->begin_us, 0);
        assert_int_equal(job->misfires, 0);
    }
    job_free(job);
}

static void
test_nothing_cancelled_is_retried(void **state)
{
    (void)state;
    static const struct ending endings[] = {
        {.outcome = OUTCOME_NEVER_RAN},
        {.outcome = OUTCOME_LOST},
        {.outcome = OUTCOME_EXITED, .code = 3},
        {.outcome = OUTCOME_EXITED, .code = 1, .oom = OOM_CUDA},
        {.outcome = OUTCOME_EXITED},
    };
    static const enum job_state finals[] = {JOB_CANCELLED, JOB_LOST, JOB_FAILED,
                                            JOB_OUT_OF_MEMORY, JOB_COMPLETED};
    for (int i = 0; i < 5; i++) {
        struct job *job = new_job(1, want(1, 2000));
        job->req.requeue = true;
        job->req.retries = job->req.oom_retries = 3;
        struct job_event start = {.type = JOB_EV_START, .run = new_attempt(2000)};
        assert_int_equal(job_apply(job, &start, NULL), JOB_NEXT);
        assert_int_equal(apply(job, JOB_EV_CANCEL, NULL), JOB_NEXT);
        assert_int_equal(apply(job, JOB_EV_CANCEL, NULL), JOB_IGNORED);
        assert_string_equal(job->cancelled_by, "alice");
        struct job_event end = {.type = JOB_EV_ENDED, .ending = &endings[i], .wall_us = 5};
        assert_int_equal(job_apply(job, &end, NULL), JOB_NEXT);
        assert_int_equal(apply(job, JOB_EV_VRAM_BACK, NULL), JOB_NEXT);
        assert_int_equal(job->state, finals[i]);
        assert_int_equal(job->ended_us, 5);
        job_free(job);
    }
}

/* The requests made of a running job, how its attempt then ended, and the resulting state. */
static void
test_asked_to_run_again(void **state)
{
    (void)state;
    static const struct {
        int cancel, preempt, requeue; /* order of the requests; 0: not made */
        enum outcome outcome;
        int code;
        enum job_state then;
    } cases[] = {
        {0, 1, 0, OUTCOME_PREEMPTED, 0, JOB_PENDING},
        {0, 1, 0, OUTCOME_CANCELLED, 0, JOB_PENDING},
        {0, 1, 0, OUTCOME_EXITED, 3, JOB_PENDING},
        {0, 1, 0, OUTCOME_EXITED, 0, JOB_COMPLETED}, /* ended by itself before the request */
        {0, 1, 0, OUTCOME_LOST, 0, JOB_PENDING},
        {0, 0, 1, OUTCOME_CANCELLED, 0, JOB_PENDING},
        {0, 0, 1, OUTCOME_REQUEUED, 0, JOB_PENDING},
        {0, 0, 0, OUTCOME_REQUEUED, 0, JOB_PENDING},
        {2, 0, 1, OUTCOME_REQUEUED, 0, JOB_CANCELLED},
        {0, 0, 1, OUTCOME_EXITED, 0, JOB_PENDING}, /* whatever its exit code */
        {0, 1, 2, OUTCOME_EXITED, 0, JOB_PENDING},
        {0, 2, 1, OUTCOME_EXITED, 0, JOB_PENDING},
        {0, 0, 0, OUTCOME_PREEMPTED, 0, JOB_PENDING}, /* only the exit record has it */
        {2, 1, 0, OUTCOME_PREEMPTED, 0, JOB_CANCELLED},
        {1, 2, 0, OUTCOME_CANCELLED, 0, JOB_CANCELLED},
        {2, 0, 1, OUTCOME_CANCELLED, 0, JOB_CANCELLED},
        {2, 0, 1, OUTCOME_EXITED, 4, JOB_FAILED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job *job = new_job(1, want(1, 2000));
        struct job_event start = {.type = JOB_EV_START, .run = new_attempt(2000)};
        assert_int_equal(job_apply(job, &start, NULL), JOB_NEXT);
        for (int at = 1; at <= 2; at++) {
            if (cases[i].cancel == at)
                apply(job, JOB_EV_CANCEL, NULL);
            if (cases[i].preempt == at)
                apply(job, JOB_EV_PREEMPT, NULL);
            if (cases[i].requeue == at)
                apply(job, JOB_EV_REQUEUE, NULL);
        }
        const struct ending e = {.outcome = cases[i].outcome, .code = cases[i].code};
        struct job_event end = {.type = JOB_EV_ENDED, .ending = &e, .wall_us = 5};
        assert_int_equal(job_apply(job, &end, NULL), JOB_NEXT);
        assert_int_equal(apply(job, JOB_EV_VRAM_BACK, NULL), JOB_NEXT);
        assert_string_equal(job_state_name(job->state), job_state_name(cases[i].then));
        assert_int_equal(job->order, 1);
        assert_int_equal(job->begin_us, 0);
        assert_false(job_goes_last(job));
        if (job->state == JOB_PENDING) {
            /* Requests about that run do not apply to the next. */
            const struct ending fine = {.outcome = OUTCOME_EXITED};
            run_once(job, fine, 100);
            assert_int_equal(job->state, JOB_COMPLETED);
        }
        job_free(job);
    }
}

static void
test_requeue_of_a_cancelled_one_is_refused(void **state)
{
    (void)state;
    const char *why;
    struct job *job = job_in(JOB_RUNNING);
    assert_int_equal(apply(job, JOB_EV_CANCEL, NULL), JOB_NEXT);
    assert_int_equal(apply(job, JOB_EV_PREEMPT, NULL), JOB_IGNORED);
    assert_int_equal(apply(job, JOB_EV_REQUEUE, &why), JOB_REFUSED);
    assert_string_equal(why, "it is being cancelled");
    job_free(job);
    job = job_in(JOB_RUNNING);
    assert_int_equal(apply(job, JOB_EV_REQUEUE, NULL), JOB_NEXT);
    assert_int_equal(apply(job, JOB_EV_REQUEUE, NULL), JOB_IGNORED);
    assert_int_equal(apply(job, JOB_EV_PREEMPT, NULL), JOB_IGNORED);
    job_free(job);
}

static void
test_time_limit_runs_again_so_often(void **state)
{
    (void)state;
    struct ending late = {.outcome = OUTCOME_TIMEOUT, .signal = 15};
    struct job *job = new_job(1, want(1, 2000));
    job->req.on_timeout = ON_TIMEOUT_REQUEUE;
    job->req.max_requeues = 2;
    for (int i = 1; i <= 2; i++) {
        run_once(job, late, 100);
        assert_int_equal(job->state, JOB_PENDING);
        assert_int_equal(job->requeues_used, i);
        assert_true(job_goes_last(job));
    }
    run_once(job, late, 100);
    assert_int_equal(job->state, JOB_TIMEOUT);
    assert_int_equal(job->attempts, 3);
    assert_false(job_goes_last(job));
    job_free(job);
}

static void
test_an_ended_job_starts_over(void **state)
{
    (void)state;
    struct ending fail = {.outcome = OUTCOME_EXITED, .code = 7};
    struct job *job = new_job(1, want(1, 2000));
    job->req.retries = 1;
    run_once(job, fail, 100);
    job->begin_us = 0;
    run_once(job, fail, 100);
    assert_int_equal(job->state, JOB_FAILED);
    assert_int_equal(apply(job, JOB_EV_REQUEUE, NULL), JOB_NEXT);
    assert_int_equal(job->state, JOB_PENDING);
    assert_int_equal(job->retries_used, 0);
    assert_int_equal(job->ended_us, 0);
    run_once(job, fail, 100);
    assert_int_equal(job->state, JOB_PENDING);
    assert_int_equal(job->attempts, 3);
    assert_int_equal(apply(job, JOB_EV_CANCEL, NULL), JOB_NEXT);
    assert_int_equal(job->state, JOB_CANCELLED);
    assert_int_equal(apply(job, JOB_EV_REQUEUE, NULL), JOB_NEXT);
    assert_false(job->cancel_asked);
    assert_null(job->cancelled_by);
    job_free(job);
}

/* However it ends, unless it ended by itself before the request. */
static void
test_one_that_is_stopped_may_wait_on_hold(void **state)
{
    static const struct {
        struct ending ending;
        enum job_state state;
    } cases[] = {
        {{.outcome = OUTCOME_REQUEUED, .signal = 15}, JOB_HELD},
        {{.outcome = OUTCOME_REQUEUED, .code = 0}, JOB_HELD},
        {{.outcome = OUTCOME_EXITED, .code = 7}, JOB_HELD},
        {{.outcome = OUTCOME_LOST}, JOB_HELD},
        {{.outcome = OUTCOME_NEVER_RAN}, JOB_HELD},
        {{.outcome = OUTCOME_EXITED, .code = 0}, JOB_COMPLETED},
    };
    const struct job_event hold = {
        .type = JOB_EV_REQUEUE, .wall_us = 1000, .by = "alice", .hold = true};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job *job = job_in(JOB_RUNNING);
        const struct job_event end = {
            .type = JOB_EV_ENDED, .wall_us = 1000, .ending = &cases[i].ending};
        assert_int_equal(apply(job, JOB_EV_PREEMPT, NULL), JOB_NEXT);
        assert_int_equal(job_apply(job, &hold, NULL), JOB_NEXT);
        assert_int_equal(apply(job, JOB_EV_REQUEUE, NULL), JOB_IGNORED);
        assert_int_equal(job_apply(job, &end, NULL), JOB_NEXT);
        assert_int_equal(apply(job, JOB_EV_VRAM_BACK, NULL), JOB_NEXT);
        assert_int_equal(job->state, cases[i].state);
        assert_int_equal(job->requeue_asked, REQUEUE_NO);
        job_free(job);
    }
}

static void
test_words_for_jobs_that_never_started(void **state)
{
    (void)state;
    auto_buf struct buf text = BUF_INIT;
    struct job *job = new_job(1, want(1, 2000));
    apply(job, JOB_EV_CANCEL, NULL);
    job_end_text(job, &text);
    assert_string_equal(buf_str(&text), "cancelled by alice before it started");
    assert_int_equal(job_exit_status(job), 130);
    job_free(job);
    job = new_job(1, want(1, 2000));
    apply(job, JOB_EV_INFEASIBLE, NULL);
    buf_clear(&text);
    job_end_text(job, &text);
    assert_string_equal(buf_str(&text), "too large");
    assert_int_equal(job_exit_status(job), 1);
    job_free(job);
    job = new_job(1, want(1, 2000));
    const struct job_event failed = {.type = JOB_EV_DEP_FAILED,
                                     .text = "dependency: job 12 ended FAILED"};
    assert_int_equal(job_apply(job, &failed, NULL), JOB_NEXT);
    buf_clear(&text);
    job_end_text(job, &text);
    assert_string_equal(buf_str(&text), "dependency: job 12 ended FAILED");
    assert_int_equal(job_exit_status(job), 130);
    job_free(job);
}

static void
test_names_both_ways(void **state)
{
    (void)state;
    for (int i = 0; i < JOB_STATES; i++) {
        enum job_state s;
        assert_int_equal(job_state_from_name(job_state_name((enum job_state)i), &s), 0);
        assert_int_equal(s, i);
    }
    for (int i = 0; i < GPU_STATES; i++) {
        enum gpu_state g;
        assert_int_equal(gpu_state_from_name(gpu_state_name((enum gpu_state)i), &g), 0);
        assert_int_equal(g, i);
    }
    enum job_state s;
    assert_int_equal(job_state_from_name("out_of_memory", &s), 0);
    assert_int_equal(s, JOB_OUT_OF_MEMORY);
    assert_int_equal(job_state_from_name("RUN", &s), -1);
    assert_string_equal(reason_name(REASON_GPU_MEMORY), "GpuMemory");
    assert_string_equal(reason_name(REASON_PROBE), "Probe");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_is_total),
        cmocka_unit_test(test_final_states),
        cmocka_unit_test(test_cuda_oom_raises_the_demand),
        cmocka_unit_test(test_whole_card_stays_whole_after_oom),
        cmocka_unit_test(test_oom_retries_are_for_oom_only),
        cmocka_unit_test(test_retries_wait_longer_each_time),
        cmocka_unit_test(test_time_limit_is_not_retried),
        cmocka_unit_test(test_lost_is_requeued_where_asked),
        cmocka_unit_test(test_trouble_of_the_machine_is_not_charged),
        cmocka_unit_test(test_never_ran_starts_again_with_longer_and_longer_pauses),
        cmocka_unit_test(test_nothing_cancelled_is_retried),
        cmocka_unit_test(test_asked_to_run_again),
        cmocka_unit_test(test_requeue_of_a_cancelled_one_is_refused),
        cmocka_unit_test(test_time_limit_runs_again_so_often),
        cmocka_unit_test(test_an_ended_job_starts_over),
        cmocka_unit_test(test_one_that_is_stopped_may_wait_on_hold),
        cmocka_unit_test(test_words_for_jobs_that_never_started),
        cmocka_unit_test(test_names_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
