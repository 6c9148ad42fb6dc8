/* Workloads resampled from another: where the blocks begin, drawn as by Python's random, and
 * the resulting times and numbers. */
#include "sim/workload/resample.h"
#include "support.h"

#define JOBS 100

/* Job i runs for i + 1 s and arrives i s after the one before it. */
static void
make_base(struct workload *w)
{
    struct err e;
    int64_t now = 0;
    for (int i = 0; i < JOBS; i++)
        add_job(w, now += i, i + 1, 1 + i % 2, 1000 + i);
    assert_int_equal(workload_sort(w, "base", &e), 0);
}

/* The same as `random.Random(seed).randrange(100)`, called again and again. */
static void
test_blocks(void **state)
{
    static const struct {
        uint32_t seed;
        int starts[4];
    } cases[] = {{1, {17, 72, 97, 8}}, {4000000000, {52, 84, 23, 8}}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        auto_workload struct workload base = WORKLOAD_INIT, drawn = WORKLOAD_INIT;
        size_t at = 0;
        make_base(&base);
        workload_resample(&base, cases[i].seed, &drawn);
        assert_int_equal(drawn.n, JOBS);
        for (int block = 0; block < 4; block++) {
            for (int from = cases[i].starts[block], k = 0;
                 k < RESAMPLE_BLOCK && from + k < JOBS && at < JOBS; k++, at++)
                assert_int_equal(drawn.jobs[at].duration, from + k + 1);
        }
        assert_int_equal(at, JOBS);
    }
}

static void
test_times_and_numbers(void **state)
{
    auto_workload struct workload base = WORKLOAD_INIT, drawn = WORKLOAD_INIT;
    (void)state;
    make_base(&base);
    workload_resample(&base, 1, &drawn);
    assert_int_equal(drawn.jobs[0].arrival, 0);
    for (size_t i = 1; i < drawn.n; i++) {
        const struct sim_job *job = &drawn.jobs[i];
        assert_int_equal(job->id, i);
        assert_int_equal(job->arrival - drawn.jobs[i - 1].arrival, job->duration - 1);
        const struct shape *s = &drawn.shapes[job->shape];
        assert_int_equal(s->vram_mib, 1000 + job->duration - 1);
        assert_int_equal(s->n, 1 + (job->duration - 1) % 2);
    }
}

/* The first job of the base has no predecessor, so it comes after the mean gap, rounded to
 * seconds. A base of one job yields itself. */
static void
test_first(void **state)
{
    auto_workload struct workload base = WORKLOAD_INIT, one = WORKLOAD_INIT;
    auto_workload struct workload drawn = WORKLOAD_INIT, same = WORKLOAD_INIT;
    (void)state;
    add_job(&base, 5, 1, 1, 1);
    add_job(&base, 16, 2, 1, 1);
    uint32_t seed = 1;
    do { /* until the first block is the last job, and the second the first */
        workload_free(&drawn);
        workload_resample(&base, seed, &drawn);
        assert_true(seed++ < 100);
    } while (drawn.jobs[0].duration != 2 || drawn.jobs[1].duration != 1);
    assert_int_equal(drawn.jobs[1].arrival, 11);
    add_job(&one, 7, 3, 1, 1);
    workload_resample(&one, 1, &same);
    assert_int_equal(same.n, 1);
    assert_int_equal(same.jobs[0].arrival, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_times_and_numbers),
        cmocka_unit_test(test_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
