/* Every policy on every workload, against schedules of an independent simulator: to the byte
 * by their SHA-256, and figure by figure. */
#include <sha2.h>

#include "sim/metrics.h"
#include "sim/output.h"
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

/* With as many decimals as the reference gives. */
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

/* What `balanced` is for: mean waits that much below greedy's, in per cent, and the longest
 * wait of jobs with several GPUs at most 1.15 times easy-e's. Nothing is tuned for a file. The
 * digests are of the schedules of its first implementation, which was another program. */
static const struct {
    const char *file;
    double below_pct;
    const char *sha256;
} balanced_rows[] = {
    {"node8.csv", 50, "46b24ab12070fe482d5cd125f40252f0d3132df0964579c13765b31c2b2465f6"},
    {"node8_multi.csv", 20, "7286a94ce389e955193e01f276bda3e704b1e4ade7bb53c5723ad8c1c0f0610c"},
    {"node8_share.csv", 5, "2a997bb127509f76491c995fbb279f2439b3e61b0c9b9dc84ee541a806240adb"},
    {"philly8.csv", 5, "22fb0f10cae9412ab29de12d77a7e9ec360cbd246822c0393fa593a1db3d9a2f"},
    {"helios8.csv", 30, "a3fa59505f4cf23b8c20ceb36c0cd7d61b3e4f96f9a3f058bdad953798178a6a"},
};

static void
measure(const struct workload *w, const char *policy, struct metrics *out, char *sha)
{
    auto_schedule struct schedule s = {0};
    auto_buf struct buf dump = BUF_INIT;
    struct machine m = machine_of(8, 24576);
    sim_schedule(w, &m, policy_find(policy), &s);
    metrics_compute(w, &m, &s, out);
    dump_schedule(w, &s, &dump);
    SHA256Data((const uint8_t *)dump.data, dump.len, sha);
}

static void
test_balanced(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof balanced_rows / sizeof *balanced_rows; i++) {
        auto_workload struct workload w = WORKLOAD_INIT;
        struct metrics greedy, easy, balanced;
        char sha[SHA256_DIGEST_STRING_LENGTH];
        load_csv(balanced_rows[i].file, &w);
        measure(&w, "greedy", &greedy, sha);
        measure(&w, "easy-e", &easy, sha);
        measure(&w, "balanced", &balanced, sha);
        assert_string_equal(sha, balanced_rows[i].sha256);
        assert_true(balanced.wait_mean <=
                    greedy.wait_mean * (100 - balanced_rows[i].below_pct) / 100);
        assert_true((double)balanced.multi_max <= 1.15 * (double)easy.multi_max);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
