/* The dump, the picture, and the figures of small schedules that can be verified by hand. */
#include "sim/schedule_figures.h"
#include "sim/schedule_output.h"
#include "support.h"

/* Two GPUs. Job 0 takes both for 10 s; then 1 and 2 share GPU 0 (packed). */
static void
make(struct workload *w, const struct machine *m, struct schedule *s)
{
    struct err e;
    add_job(w, 0, 10, 2, 20000);
    add_job(w, 2, 20, 1, 10000);
    add_job(w, 4, 5, 1, 14000);
    assert_int_equal(workload_sort(w, "f", &e), 0);
    sim_schedule(w, m, policy_find("easy-e"), s);
}

static void
test_dump(void **state)
{
    auto_workload struct workload w = WORKLOAD_INIT;
    auto_schedule struct schedule s = {0};
    auto_buf struct buf out = BUF_INIT;
    struct machine m = machine_of(2, 24576);
    (void)state;
    make(&w, &m, &s);
    dump_schedule(&w, &s, &out);
    assert_string_equal(buf_str(&out), "0,0,10,0;1\n1,10,30,0\n2,10,15,0\n");
    assert_int_equal(s.events, 6);
    assert_int_equal(s.most_waiting, 2);
}

static void
test_figures(void **state)
{
    auto_workload struct workload w = WORKLOAD_INIT;
    auto_schedule struct schedule s = {0};
    struct machine m = machine_of(2, 24576);
    struct metrics x;
    (void)state;
    make(&w, &m, &s);
    metrics_compute(&w, &m, &s, &x);
    assert_int_equal(x.jobs, 3);
    assert_int_equal(x.multi_jobs, 1);
    assert_int_equal(x.never_ran, 0);
    assert_int_equal(x.makespan, 30);
    assert_true(x.wait_mean == 14.0 / 3);
    assert_int_equal(x.wait_p95, 8);
    assert_int_equal(x.wait_max, 8);
    assert_int_equal(x.all_gpu_max, 0);
    assert_int_equal(x.jct_p99, 28);
    /* 1, 28/20, and 11/10 since a run counts 10 s at least */
    assert_true(x.bsld > 3.4999 / 3 && x.bsld < 3.5001 / 3);
    assert_true(x.mem_util == (2 * 200000.0 + 200000 + 70000) / (2.0 * 24576 * 30));
    /* All work fills both cards for (10 + 10 * 10000/24064 ...) s less than job 1's own end. */
    assert_int_equal(bound_makespan(&w, &m), 22);
}

static void
test_jobs_that_never_ran_are_counted(void **state)
{
    auto_workload struct workload w = WORKLOAD_INIT;
    auto_schedule struct schedule s = {0};
    struct machine m = machine_of(2, 24576);
    struct metrics x;
    (void)state;
    make(&w, &m, &s);
    s.runs[0].start = -1;
    metrics_compute(&w, &m, &s, &x);
    assert_int_equal(x.jobs, 2);
    assert_int_equal(x.never_ran, 1);
    s.runs[1].start = s.runs[2].start = -1;
    metrics_compute(&w, &m, &s, &x);
    assert_int_equal(x.jobs, 0);
    assert_int_equal(x.never_ran, 3);
}

static size_t
count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, what)); p++)
        n++;
    return n;
}

static void
test_picture(void **state)
{
    auto_workload struct workload w = WORKLOAD_INIT;
    auto_schedule struct schedule s = {0};
    auto_buf struct buf out = BUF_INIT;
    struct machine m = machine_of(2, 24576);
    struct err e;
    (void)state;
    make(&w, &m, &s);
    assert_int_equal(svg_schedule(&w, &m, &s, "<a> & b", &out, &e), 0);
    const char *svg = buf_str(&out);
    assert_memory_equal(svg, "<svg ", 5);
    assert_string_equal(svg + out.len - 7, "</svg>\n");
    assert_non_null(strstr(svg, "&#60;a&#62; &#38; b"));
    /* One box per job and GPU. */
    assert_int_equal(count(svg, "fill=\"hsl("), 4);
    assert_int_equal(count(svg, "<g class=\"m\">"), 1);
    assert_int_equal(count(svg, "<title>job "), 3);
    assert_non_null(strstr(svg, "job 1: 1 GPU, 9.8 GiB; waited 8.0s, ran 20s"));
    assert_non_null(strstr(svg, ">GPU 1</text>"));
    assert_non_null(strstr(svg, ">2 at most</text>"));
    /* Two jobs on one GPU are stacked: 10000 and 14000 of 24576 MiB in 64 pixels. */
    assert_non_null(strstr(svg, "height=\"26.04\""));
    assert_non_null(strstr(svg, "height=\"36.46\""));
}

static void
test_no_picture_of_a_million(void **state)
{
    auto_workload struct workload w = WORKLOAD_INIT;
    auto_schedule struct schedule s = {0};
    auto_buf struct buf out = BUF_INIT;
    struct machine m = machine_of(2, 24576);
    struct err e;
    (void)state;
    for (int i = 0; i <= SVG_JOBS_MAX; i++)
        add_job(&w, i, 1, 1, 1);
    sim_schedule(&w, &m, policy_find("greedy"), &s);
    assert_int_equal(svg_schedule(&w, &m, &s, "t", &out, &e), -1);
    assert_int_equal(e.code, ERR_REFUSED);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dump),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_jobs_that_never_ran_are_counted),
        cmocka_unit_test(test_picture),
        cmocka_unit_test(test_no_picture_of_a_million),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
