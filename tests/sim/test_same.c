/* The daemon's own scheduler, configured like the textbook policies, against another program's
 * schedules: EASY and EASY by response ratio, with users' estimates as time limits, on every
 * workload, byte for byte. That covers whole jobs and fractions of GPUs, promises, backfill,
 * placement and the queue's order. */
#include <sha2.h>

#include "sim/live_sim.h"
#include "sim/schedule_output.h"
#include "support.h"

/* Columns of reference.tsv. */
enum { COL_WORKLOAD = 0, COL_MODE = 3, COL_POLICY = 4, COL_SHA256 = 18, COLUMNS = 19 };

static void
expect_row(char **cells, enum plan_order order)
{
    auto_workload struct workload w = WORKLOAD_INIT;
    auto_schedule struct schedule s = {0};
    auto_buf struct buf dump = BUF_INIT;
    struct machine m = machine_of(8, 24576);
    struct live_rules rules;
    struct err e;
    char sha[SHA256_DIGEST_STRING_LENGTH];
    auto_free char *file = xasprintf("%s.csv", cells[COL_WORKLOAD]);
    load_csv(file, &w);
    if (strcmp(cells[COL_MODE], "batch") == 0) {
        workload_batch(&w);
        assert_int_equal(workload_sort(&w, file, &e), 0);
    }
    assert_int_equal(workload_check(&w, &m, file, &e), 0);
    live_rules_init(&rules, order);
    rules.plan.fair_share = false;
    rules.plan.textbook = true;
    live_schedule(&w, &m, &rules, &s);
    dump_schedule(&w, &s, &dump);
    SHA256Data((const uint8_t *)dump.data, dump.len, sha);
    if (strcmp(sha, cells[COL_SHA256]) != 0)
        fail_msg("%s %s: not the schedule of %s", cells[COL_WORKLOAD], cells[COL_MODE],
                 cells[COL_POLICY]);
}

static void
test_the_daemon_can_follow_the_textbook(void **state)
{
    auto_buf struct buf text = BUF_INIT;
    char *cells[COLUMNS], *next, *line;
    int rows = 0;
    (void)state;
    read_data("reference.tsv", &text);
    next = text.data;
    strsep(&next, "\n");
    while ((line = strsep(&next, "\n")) && *line) {
        for (int i = 0; i < COLUMNS; i++) {
            cells[i] = strsep(&line, "\t");
            assert_non_null(cells[i]);
        }
        bool easy = strcmp(cells[COL_POLICY], "easy-e") == 0;
        if (!easy && strcmp(cells[COL_POLICY], "hrrn-e") != 0)
            continue;
        expect_row(cells, easy ? PLAN_QUEUE : PLAN_SHORT);
        rows++;
    }
    assert_int_equal(rows, 20);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_daemon_can_follow_the_textbook),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
