/* Dependencies: which jobs are released, which can never run, and detection of circles. */
#include "base/buf.h"
#include "base/err.h"
#include "core/queue/deps.h"
#include "core/queue/queue.h"
#include "machine.h"

/* A world of jobs 1..15: how each ended; JOB_PENDING: not ended. */
struct world {
    struct deps *deps;
    struct job *jobs[16];
    enum job_state states[16];
    char log[256]; /* "+3" released, "-4:why" failed, "3" one less to wait for */
};

static bool
has_ended(void *arg, uint32_t job, int32_t task, enum job_state *out)
{
    const struct world *w = arg;
    (void)task;
    *out = w->states[job];
    return job_state_is_final(*out);
}

static void
on_dependent(void *arg, uint32_t dependent, bool met, const char *why)
{
    struct world *w = arg;
    size_t at = strlen(w->log);
    if (met) {
        bool last = deps_met(w->jobs[dependent]);
        snprintf(w->log + at, sizeof w->log - at, "%s%s%u", at ? " " : "", last ? "+" : "",
                 dependent);
        return;
    }
    snprintf(w->log + at, sizeof w->log - at, "%s-%u:%s", at ? " " : "", dependent, why);
    /* As the daemon does: the job ends, and its dependents are notified. */
    deps_leave(w->deps, w->jobs[dependent]);
    w->states[dependent] = JOB_CANCELLED;
    deps_ended(w->deps, dependent, 0, -1, JOB_CANCELLED, on_dependent, w);
}

static struct job *
job_after(struct world *w, uint32_t id, int n, const struct dep *deps)
{
    struct job *job = new_job(id, want(1, 1000));
    job->req.deps = xcalloc((size_t)n, sizeof *deps);
    memcpy(job->req.deps, deps, (size_t)n * sizeof *deps);
    job->req.n_deps = n;
    w->jobs[id] = job;
    return job;
}

static bool
enter(struct world *w, uint32_t id, enum dep_type type, uint32_t on, struct buf *why)
{
    const struct dep dep = {.type = type, .job = on, .task = -1};
    return deps_enter(w->deps, job_after(w, id, 1, &dep), has_ended, w, why);
}

static const char *
end(struct world *w, uint32_t id, enum job_state s)
{
    w->log[0] = '\0';
    w->states[id] = s;
    deps_ended(w->deps, id, 0, -1, s, on_dependent, w);
    return w->log;
}

static int
setup(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    w->deps = deps_new();
    *state = w;
    return 0;
}

static int
teardown(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 16; i++)
        job_free(w->jobs[i]);
    deps_free(w->deps);
    free(w);
    return 0;
}

static void
test_every_type_against_every_end(void **state)
{
    static const struct {
        enum dep_type type;
        enum job_state ended;
        const char *told;
    } cases[] = {
        {DEP_SUCCESS, JOB_COMPLETED, "+2"},
        {DEP_SUCCESS, JOB_FAILED, "-2:dependency: job 1 ended FAILED"},
        {DEP_SUCCESS, JOB_CANCELLED, "-2:dependency: job 1 ended CANCELLED"},
        {DEP_SUCCESS, JOB_INFEASIBLE, "-2:dependency: job 1 ended INFEASIBLE"},
        {DEP_ANY, JOB_COMPLETED, "+2"},
        {DEP_ANY, JOB_LOST, "+2"},
        {DEP_FAILED, JOB_TIMEOUT, "+2"},
        {DEP_FAILED, JOB_CANCELLED, "+2"},
        {DEP_FAILED, JOB_COMPLETED,
         "-2:dependency: job 1 ended COMPLETED, and this job should run only after a failure"},
    };
    struct world *w = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        auto_buf struct buf why = BUF_INIT;
        w->states[1] = JOB_PENDING;
        assert_true(enter(w, 2, cases[i].type, 1, &why));
        assert_int_equal(w->jobs[2]->parked, PARK_DEPENDENCY);
        assert_int_equal(w->jobs[2]->deps_unmet, 1);
        assert_string_equal(end(w, 1, cases[i].ended), cases[i].told);
        assert_int_equal(w->jobs[2]->parked, 0);
        assert_string_equal(end(w, 1, cases[i].ended), "");
        job_free(w->jobs[2]);

        /* The same, if it had ended before. */
        bool can = enter(w, 2, cases[i].type, 1, &why);
        assert_int_equal(can, cases[i].told[0] == '+');
        assert_string_equal(can ? "" : cases[i].told + 3, buf_str(&why));
        assert_int_equal(w->jobs[2]->parked, 0);
        job_free(w->jobs[2]);
        w->jobs[2] = NULL;
    }
}

static void
test_all_of_several(void **state)
{
    struct world *w = *state;
    auto_buf struct buf why = BUF_INIT;
    const struct dep deps[] = {{.type = DEP_SUCCESS, .job = 1, .task = -1},
                               {.type = DEP_ANY, .job = 2, .task = -1},
                               {.type = DEP_FAILED, .job = 3, .task = -1}};
    w->states[1] = JOB_COMPLETED;
    struct job *job = job_after(w, 9, 3, deps);
    assert_true(deps_enter(w->deps, job, has_ended, w, &why));
    assert_int_equal(job->deps_unmet, 2);
    assert_string_equal(end(w, 3, JOB_FAILED), "9");
    assert_int_equal(job->parked, PARK_DEPENDENCY);
    assert_string_equal(end(w, 2, JOB_COMPLETED), "+9");
    assert_int_equal(job->parked, 0);
}

static void
test_a_chain_falls_at_once(void **state)
{
    struct world *w = *state;
    auto_buf struct buf why = BUF_INIT;
    for (uint32_t id = 2; id <= 5; id++)
        assert_true(enter(w, id, id == 5 ? DEP_ANY : DEP_SUCCESS, id - 1, &why));
    assert_string_equal(end(w, 1, JOB_FAILED), "-2:dependency: job 1 ended FAILED "
                                               "-3:dependency: job 2 ended CANCELLED "
                                               "-4:dependency: job 3 ended CANCELLED +5");
}

static void
test_one_that_left_hears_nothing(void **state)
{
    struct world *w = *state;
    auto_buf struct buf why = BUF_INIT;
    for (uint32_t id = 2; id <= 4; id++)
        assert_true(enter(w, id, DEP_SUCCESS, 1, &why));
    deps_leave(w->deps, w->jobs[3]);
    assert_int_equal(w->jobs[3]->parked, 0);
    assert_string_equal(end(w, 1, JOB_COMPLETED), "+2 +4");
}

static void
test_tasks_of_an_array(void **state)
{
    struct world *w = *state;
    auto_buf struct buf why = BUF_INIT;
    const struct dep whole = {.type = DEP_SUCCESS, .job = 1, .task = -1},
                     third = {.type = DEP_SUCCESS, .job = 1, .task = 3},
                     by_id = {.type = DEP_ANY, .job = 8, .task = -1};
    assert_true(deps_enter(w->deps, job_after(w, 4, 1, &whole), has_ended, w, &why));
    assert_true(deps_enter(w->deps, job_after(w, 5, 1, &third), has_ended, w, &why));
    assert_true(deps_enter(w->deps, job_after(w, 6, 1, &by_id), has_ended, w, &why));
    deps_ended(w->deps, 7, 1, 2, JOB_FAILED, on_dependent, w);
    assert_string_equal(w->log, "");
    deps_ended(w->deps, 8, 1, 3, JOB_FAILED, on_dependent, w);
    assert_string_equal(w->log, "+6 -5:dependency: job 1_3 ended FAILED");
    const struct dep never_left = {.type = DEP_ANY, .job = 1, .task = 9};
    assert_true(deps_enter(w->deps, job_after(w, 9, 1, &never_left), has_ended, w, &why));
    assert_string_equal(end(w, 1, JOB_COMPLETED), "+4 +9");
}

static void
test_circles(void **state)
{
    struct world *w = *state;
    auto_buf struct buf why = BUF_INIT;
    struct queue *q = queue_new();
    /* 4 -> 3 -> 2 -> 1 */
    for (uint32_t id = 2; id <= 4; id++)
        assert_true(enter(w, id, DEP_ANY, id - 1, &why));
    const struct {
        uint32_t job, on;
        bool circle;
    } cases[] = {
        {1, 4, true}, {1, 2, true}, {2, 4, true}, {7, 4, false}, {7, 7, true}, {4, 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct dep dep = {.type = DEP_ANY, .job = cases[i].on, .task = -1};
        struct job *job = new_job(cases[i].job, want(1, 1000));
        job->req.deps = xmalloc(sizeof dep);
        job->req.deps[0] = dep;
        job->req.n_deps = 1;
        struct circle circle;
        assert_int_equal(deps_is_circular(w->deps, q, job, &circle), cases[i].circle);
        assert_true(!cases[i].circle || (circle.over == cases[i].on && !circle.single));
        job_free(job);
    }
    queue_free(q);
}

/* Jobs 1, 3, 5 and 7 have one name, and 3 and 7 are singletons; 6 depends on 7, and 8 on 1.
 * Which job would wait for which, and is there a circle? */
static void
test_circles_of_singletons(void **state)
{
    static const struct {
        uint32_t job, on;
        bool circle;
    } cases[] = {
        {1, 3, true},  {1, 7, true},  {1, 6, true},  {5, 7, true},  {5, 6, true},
        {5, 3, false}, {3, 7, true},  {7, 1, false}, {7, 8, false}, {3, 8, false},
        {7, 6, true},  {4, 7, false}, {1, 4, false}, {3, 6, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct queue *q = queue_new();
        struct world w = {.deps = deps_new()};
        auto_buf struct buf why = BUF_INIT;
        for (uint32_t id = 1; id <= 8; id++) {
            const struct dep dep = {.type = DEP_ANY,
                                    .job = id == cases[i].job ? cases[i].on
                                           : id == 6          ? 7
                                                              : 1,
                                    .task = -1};
            bool waits = id == cases[i].job || id == 6 || id == 8;
            struct job *job = job_after(&w, id, waits, &dep);
            job->req.name = xstrdup(id % 2 ? "one" : "two");
            job->req.singleton = id == 3 || id == 7;
            queue_add(q, job);
            if (waits && id != cases[i].job)
                assert_true(deps_enter(w.deps, job, has_ended, &w, &why));
        }
        struct circle circle;
        bool is_circle = deps_is_circular(w.deps, q, w.jobs[cases[i].job], &circle);
        if (is_circle != cases[i].circle)
            fail_msg("%u after %u", cases[i].job, cases[i].on);
        assert_true(!is_circle || circle.single || cases[i].on == 6);
        deps_free(w.deps);
        queue_free(q);
    }
}

/* A thousand jobs wait for one; each leaves or is notified, and none twice. */
static void
test_many_wait_for_one(void **state)
{
    struct world *w = *state;
    struct deps *d = deps_new();
    struct job *jobs[1000];
    auto_buf struct buf why = BUF_INIT;
    for (uint32_t i = 0; i < 1000; i++) {
        jobs[i] = new_job(i + 10, want(1, 1000));
        jobs[i]->req.deps = xcalloc(1, sizeof(struct dep));
        jobs[i]->req.deps[0] = (struct dep){.type = DEP_SUCCESS, .job = 1, .task = -1};
        jobs[i]->req.n_deps = 1;
        assert_true(deps_enter(d, jobs[i], has_ended, w, &why));
    }
    for (uint32_t i = 0; i < 1000; i += 2)
        deps_leave(d, jobs[i]);
    const struct job *any = jobs[1];
    struct queue *q = queue_new();
    struct circle unused;
    assert_true(deps_is_circular(
        d, q,
        &(struct job){
            .id = 1,
            .req = {.deps = (struct dep[]){{.type = DEP_ANY, .job = any->id, .task = -1}},
                    .n_deps = 1}},
        &unused));
    for (uint32_t i = 1; i < 1000; i += 2)
        deps_leave(d, jobs[i]);
    queue_free(q);
    for (int i = 0; i < 1000; i++)
        job_free(jobs[i]);
    deps_free(d);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_type_against_every_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_of_several, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_chain_falls_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_left_hears_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tasks_of_an_array, setup, teardown),
        cmocka_unit_test_setup_teardown(test_circles, setup, teardown),
        cmocka_unit_test(test_circles_of_singletons),
        cmocka_unit_test_setup_teardown(test_many_wait_for_one, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
