/* Every policy on every workload, compared with an independent simulator's schedules: byte for
 * byte by their SHA-256, and figure by figure. */
#include <sha2.h>

#include "sim/engine.h"
#include "sim/schedule_figures.h"
#include "sim/schedule_output.h"
#include "support.h"

/* The columns of reference.tsv. */
enum {
    COL_WORKLOAD,
    COL_MODE = 3,
    COL_POLICY,
    COL_FIGURES,
    COL_BOUND = 17,
    COL_SHA256,
    COLUMNS,
};

static int
split_line(char *line, char **cells)
{
    int n = 0;
    char *cell;
    for (int i = 0; i < COLUMNS; i++)
        cells[i] = line;
    while ((cell = strsep(&line, "\t")) && n < COLUMNS)
        cells[n++] = cell;
    return n;
}

/* With as many decimals as the reference. */
static void
expect_figure(const char *want, double got, const char *what)
{
    char text[64];
    const char *dot = strchr(want, '.');
    snprintf(text, sizeof text, "%.*f", dot ? (int)strlen(dot + 1) : 0, got);
    if (strcmp(text, want) != 0)
        fail_msg("%s: %s, should be %s", what, text, want);
}

static void
expect_figures(char **cells, const struct workload *w, const struct machine *m,
               const struct schedule *s)
{
    struct metrics x;
    metrics_compute(w, m, s, &x);
    const double got[] = {
        (double)x.makespan, x.wait_mean,  (double)x.wait_p95,  (double)x.wait_p99,
        (double)x.wait_max, x.bsld,       x.jct_mean,          (double)x.jct_p99,
        x.mem_util,         x.multi_mean, (double)x.multi_max, (double)x.all_gpu_max,
    };
    for (int i = 0; i < COL_BOUND - COL_FIGURES; i++)
        expect_figure(cells[COL_FIGURES + i], got[i], cells[COL_POLICY]);
    expect_figure(cells[COL_BOUND], (double)bound_makespan(w, m), "lower bound");
}

static void
expect_row(char **cells)
{
    auto_workload struct workload w = WORKLOAD_INIT;
    auto_schedule struct schedule s = {0};
    auto_buf struct buf dump = BUF_INIT;
    struct machine m = machine_of(8, 24576);
    struct err e;
    char sha[SHA256_DIGEST_STRING_LENGTH];
    auto_free char *file = xasprintf("%s.csv", cells[COL_WORKLOAD]);
    const struct policy *p = policy_find(cells[COL_POLICY]);
    if (!p)
        fail_msg("no policy %s", cells[COL_POLICY]);
    load_csv(file, &w);
    if (strcmp(cells[COL_MODE], "batch") == 0) {
        workload_batch(&w);
        assert_int_equal(workload_sort(&w, file, &e), 0);
    }
    assert_int_equal(workload_check(&w, &m, file, &e), 0);
    sim_schedule(&w, &m, p, &s);
    dump_schedule(&w, &s, &dump);
    SHA256Data((const uint8_t *)dump.data, dump.len, sha);
    if (strcmp(sha, cells[COL_SHA256]) != 0)
        fail_msg("%s %s %s: another schedule", cells[COL_WORKLOAD], cells[COL_MODE],
                 cells[COL_POLICY]);
    expect_figures(cells, &w, &m, &s);
}

static void
test_reference(void **state)
{
    auto_buf struct buf text = BUF_INIT;
    char *cells[COLUMNS], *next, *line;
    int rows = 0;
    (void)state;
    read_data("reference.tsv", &text);
    next = text.data;
    strsep(&next, "\n");
    while ((line = strsep(&next, "\n")) && *line) {
        assert_int_equal(split_line(line, cells), COLUMNS);
        expect_row(cells);
        rows++;
    }
    assert_int_equal(rows, 180);
}

/* The aims of `balanced`: mean waits this many per cent below greedy's, and the longest wait
 * of multi-GPU jobs at most 1.15 times easy-e's; by the daemon's own planner, with one
 * setting, with and without distinct users. The digests are of the schedules without users;
 * docs/scheduling.md has the figures over many such workloads. */
static const struct {
    const char *file;
    double below_pct;
    const char *sha256;
} balanced_rows[] = {
    {"node8.csv", 50, "d60c33a90fea01edcdeab3e486340efbfdbe26de1b65f602a439b914c9f062a4"},
    {"node8_multi.csv", 20, "f1e418c15518dd947eef63c4cc76af2bc77865431b71407a8c06f0d5a1cd0790"},
    {"node8_share.csv", 5, "474ab84ec705a30ea8f01781ee545740015aa59d36cfc01bd120fbdef7b1072c"},
    {"philly8.csv", 5, "a2ad0f173314e69f7cade4e06961fa77ce3020dd261a83f4b4c7783a86f93463"},
    {"helios8.csv", 30, "3893c868891e9b9256691c95b5ca6ce666912699e9bbef13cd890cf075131f83"},
};

static void
measure(const struct workload *w, const char *policy, struct metrics *out, char *sha)
{
    auto_schedule struct schedule s = {0};
    auto_buf struct buf dump = BUF_INIT;
    struct machine m = machine_of(8, 24576);
    struct engine engine;
    assert_true(engine_find(policy, &engine));
    if (engine.order == PLAN_QUEUE)
        engine.reservations = 0;
    engine_run(&engine, w, &m, &s);
    metrics_compute(w, &m, &s, out);
    dump_schedule(w, &s, &dump);
    SHA256Data((const uint8_t *)dump.data, dump.len, sha);
}

static void
expect_good(const struct workload *w, double below_pct, char *sha)
{
    struct metrics greedy, easy, balanced;
    measure(w, "greedy", &greedy, sha);
    measure(w, "easy-e", &easy, sha);
    measure(w, "balanced", &balanced, sha);
    assert_true(balanced.wait_mean <= greedy.wait_mean * (100 - below_pct) / 100);
    assert_true((double)balanced.multi_max <= 1.15 * (double)easy.multi_max);
}

static void
test_balanced(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof balanced_rows / sizeof *balanced_rows; i++) {
        auto_workload struct workload w = WORKLOAD_INIT;
        char sha[SHA256_DIGEST_STRING_LENGTH];
        load_csv(balanced_rows[i].file, &w);
        expect_good(&w, balanced_rows[i].below_pct, sha);
        workload_forget_users(&w);
        expect_good(&w, balanced_rows[i].below_pct, sha);
        assert_string_equal(sha, balanced_rows[i].sha256);
    }
}

/* With one user, time limits and no promises the daemon's queue is EASY at GPU level, with one
 * difference: if a job's best GPUs would delay the job with the reservation, the daemon tries
 * other GPUs that do not, while the reference's EASY lets the job wait. That happens in one of
 * the ten workloads; with it disabled all ten were equal. */
static const char other_cards[] =
    "c3d1ab9f6e7e3baa36b648dfe6205914f99cea7a3f122a55c9fa9a45e8b2a286";

static void
test_queue_is_easy(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof balanced_rows / sizeof *balanced_rows; i++) {
        auto_workload struct workload w = WORKLOAD_INIT;
        struct metrics easy, queue;
        struct err e;
        char want[SHA256_DIGEST_STRING_LENGTH], sha[SHA256_DIGEST_STRING_LENGTH];
        bool is_other = strcmp(balanced_rows[i].file, "node8_share.csv") == 0;
        load_csv(balanced_rows[i].file, &w);
        workload_forget_users(&w);
        measure(&w, "easy-e", &easy, want);
        measure(&w, "queue", &queue, sha);
        assert_string_equal(sha, is_other ? other_cards : want);
        workload_batch(&w);
        assert_int_equal(workload_sort(&w, "batch", &e), 0);
        measure(&w, "easy-e", &easy, want);
        measure(&w, "queue", &queue, sha);
        assert_string_equal(sha, want);
    }
}

static void
test_names(void **state)
{
    (void)state;
    for (const struct policy *p = policies; p->name; p++) {
        assert_ptr_equal(policy_find(p->name), p);
        assert_true(p->help && *p->help);
    }
    assert_null(policy_find("easy"));
    assert_null(policy_find(""));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_balanced),
        cmocka_unit_test(test_queue_is_easy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
