/* How the readers parse files, and their errors for bad ones. */
#include "support.h"

enum kind { CSV, SWF, JOBS };

static int
read_text(enum kind kind, const char *text, struct workload *w, struct read_notes *notes,
          struct err *e)
{
    auto_buf struct buf b = BUF_INIT;
    struct machine m = machine_of(8, 24576);
    buf_adds(&b, text);
    buf_reserve(&b, 1);
    *notes = (struct read_notes){0};
    if (kind == CSV)
        return read_csv("f", b.data, b.len, w, e);
    if (kind == SWF)
        return read_swf("f", b.data, b.len, &m, w, notes, e);
    return read_jobs("f", b.data, b.len, &m, &(struct run_times){.before = NULL}, w, notes, e);
}

/* "id@arrival+duration~estimate gpusxvram" for each, "!" after a job that shares with no
 * other. */
static void
expect_jobs(enum kind kind, const char *text, const char *want)
{
    auto_workload struct workload w = WORKLOAD_INIT;
    auto_buf struct buf got = BUF_INIT;
    struct read_notes notes;
    struct err e;
    if (read_text(kind, text, &w, &notes, &e) < 0 || workload_sort(&w, "f", &e) < 0)
        fail_msg("%s", e.text);
    for (size_t i = 0; i < w.n; i++) {
        const struct sim_job *j = &w.jobs[i];
        const struct shape *s = &w.shapes[j->shape];
        buf_addf(&got, "%s%lld@%lld+%lld~%lld %dx%d%s", i ? " " : "", (long long)j->id,
                 (long long)j->arrival, (long long)j->duration, (long long)j->estimate, s->n,
                 s->vram_mib, s->alone ? "!" : "");
    }
    if (notes.skipped || notes.capped)
        buf_addf(&got, " (%zu %zu)", notes.skipped, notes.capped);
    assert_string_equal(buf_str(&got), want);
}

static void
expect_error(enum kind kind, const char *text, const char *words)
{
    auto_workload struct workload w = WORKLOAD_INIT;
    struct read_notes notes;
    struct err e;
    assert_true(read_text(kind, text, &w, &notes, &e) < 0 || workload_sort(&w, "f", &e) < 0);
    assert_string_equal(e.text, words);
}

#define HEADER "job_id,arrival_s,duration_s,est_s,gpus,vram_mib\n"

static void
test_csv(void **state)
{
    (void)state;
    expect_jobs(CSV, HEADER "0,5,10,60,2,1000\n1,7,1,1,1,0\n", "0@5+10~60 2x1000 1@7+1~1 1x0");
    /* Columns found by name, unknown ones ignored, no newline at the end, DOS line ends. */
    expect_jobs(CSV, "user,duration_s,arrival_s\r\n\"a,\"\"b\",3,4\r\nc,5,6",
                "0@4+3~3 1x0! 1@6+5~5 1x0!");
    expect_jobs(CSV, "\xef\xbb\xbf" HEADER "0,5,10,60,2,1000\n", "0@5+10~60 2x1000");
    expect_error(CSV, HEADER "5\n", "f:2:1: 1 cell; the header has 6 columns");
    /* Sorted by arrival, then id. */
    expect_jobs(CSV, HEADER "9,5,1,1,1,1\n3,5,1,1,1,1\n7,0,1,1,1,1\n",
                "7@0+1~1 1x1 3@5+1~1 1x1 9@5+1~1 1x1");
    expect_jobs(CSV, HEADER "\n", "");
    expect_error(CSV, "", "f:1:1: the file is empty; it should begin with a header");
    expect_error(CSV, "a,duration_s\n",
                 "f:1:1: the header has no column arrival_s; it should look like "
                 "job_id,arrival_s,duration_s,est_s,gpus,vram_mib");
    expect_error(CSV, "arrival_s,duration_s,arrival_s\n", "f:1:22: this column is given twice");
    expect_error(CSV, HEADER "0,5,x1,60,2,1000\n",
                 "f:2:5: duration_s: 'x1' is not a whole number from 0 to 1099511627776");
    expect_error(CSV, HEADER "0,5,1,60,65,1000\n",
                 "f:2:10: gpus: '65' is not a whole number from 1 to 64");
    expect_error(CSV, HEADER "0,-5,1,60,6,1000\n",
                 "f:2:3: arrival_s: '-5' is not a whole number from 0 to 1099511627776");
    expect_error(CSV, HEADER "0,5,1,60,6\n", "f:2:1: 5 cells; the header has 6 columns");
    expect_error(CSV, HEADER "0,5,1,60,6,1,1\n",
                 "f:2:14: more cells than the header has columns");
    expect_error(CSV, HEADER "4,5,1,60,6,1\n1,5,1,60,6,1\n4,5,1,60,6,1\n",
                 "f:4:1: job 4 is already in line 2");
}

static void
test_swf(void **state)
{
    (void)state;
    /* id submit wait run procs cpu mem | asked: procs time mem | status user ... */
    expect_jobs(SWF,
                "; Version: 2.2\n"
                "1 0 5 100 2 -1 -1 2 3600 4194304 1 1 1 1 1 1 -1 -1\n"
                "  2 10 5 50.6 4 -1 2048 -1 -1 -1 1 1 1 1 1 1 -1 -1 ; why not\n"
                "3 20 5 60 64 -1 -1 -1 90 -1 1 1 1 1 1 1 -1 -1\n"
                "4 30 5 -1 1 -1 -1 1 90 -1 0 1 1 1 1 1 -1 -1\n"
                "5 40 5 70 1 -1 -1 1 90 99999999 1 1 1 1 1 1 -1 -1\n",
                "1@0+100~3600 2x4096 2@10+51~51 4x2 3@20+60~90 8x0! 5@40+70~90 1x24064 (1 2)");
    expect_error(SWF, "1 0 5\n", "f:1:1: 3 fields; the Standard Workload Format has 18");
    expect_error(SWF, ";\n1 0 5 1h 2 -1 -1 2 3600 0 1 1 1 1 1 1 -1 -1\n",
                 "f:2:7: '1h' is not a number from -1.09951e+12 to 1.09951e+12");
}

static void
test_jobs(void **state)
{
    (void)state;
    expect_jobs(JOBS,
                "[vram=8G time=1h] a\n[gpus=2 time=90s] b\n[vram=1G time=1s priority=5] c\n"
                "[gpus=0 time=1s] d\n[hold time=1s] e\n[devices=1,2 vram=2G time=5] f\n",
                "3@0+1~1 1x1024 1@0+3600~3600 1x8192 2@0+90~90 2x0! 6@0+5~5 1x2048 (2 0)");
    expect_error(JOBS, "[vram=8G] a\n",
                 "f:1:1: the run time is unknown; add [time=1h], or use --duration 1h for all "
                 "such lines");
}

static void
test_scale_and_batch(void **state)
{
    auto_workload struct workload w = WORKLOAD_INIT;
    (void)state;
    add_job(&w, 1, 1, 1, 1);
    add_job(&w, 3, 1, 1, 1);
    add_job(&w, 4, 1, 1, 1);
    workload_scale(&w, 0.5);
    /* Halves round to the even second. */
    assert_int_equal(w.jobs[0].arrival, 0);
    assert_int_equal(w.jobs[1].arrival, 2);
    assert_int_equal(w.jobs[2].arrival, 2);
    workload_batch(&w);
    assert_int_equal(w.jobs[2].arrival, 0);
}

static void
test_what_never_fits(void **state)
{
    auto_workload struct workload w = WORKLOAD_INIT;
    struct machine m = machine_of(2, 24576);
    struct err e;
    (void)state;
    m.total_mib[1] = 11264;
    add_job(&w, 0, 1, 2, 10752);
    assert_int_equal(workload_check(&w, &m, "f", &e), 0);
    add_job(&w, 0, 1, 1, 24064);
    assert_int_equal(workload_check(&w, &m, "f", &e), 0);
    add_job(&w, 0, 1, 1, 24065);
    assert_int_equal(workload_check(&w, &m, "f", &e), -1);
    assert_int_equal(e.code, ERR_REFUSED);
    assert_string_equal(e.text, "f:3: job 2 needs 23.5 GiB and a margin of 512 MiB on 1 of the "
                                "GPUs it may have; the largest has 24576 MiB");
    m.total_mib[0] = 81920;
    add_job(&w, 0, 1, 3, 10);
    assert_int_equal(workload_check(&w, &m, "f", &e), -1);
    assert_string_equal(e.text, "f:4: job 3 needs 3 GPUs; there are 2");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_swf),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_scale_and_batch),
        cmocka_unit_test(test_what_never_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
