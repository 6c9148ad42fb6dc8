/* The screen of `berth top`, drawn from answers as the daemon sends them, at every size. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/top/top_filter.h"
#include "cli/top/top_layout.h"
#include "cli/top/top_log.h"
#include "cli/top/top_model.h"

#define NOW_US INT64_C(1700000000000000)

static int
set_up(void **state)
{
    struct top *t = xcalloc(1, sizeof *t);

    top_init(t);
    t->connected = true;
    t->now_us = NOW_US;
    *state = t;
    return 0;
}

static int
tear_down(void **state)
{
    struct top *t = *state;

    top_free(t);
    free(t);
    return 0;
}

/* n GPUs: the first has two jobs and another program, the second is unhealthy. */
static void
take_gpus(struct top *t, int n)
{
    json_t *list = json_array();

    for (int i = 0; i < n; i++) {
        json_t *gpu = json_pack("{s:i s:s s:s s:s s:i s:i s:i s:i s:i s:i s:[] s:[] s:[]}",
                                "index", i, "uuid", "GPU-x", "name", "NVIDIA RTX 4090", "state",
                                i == 1 ? "sick" : "up", "total_mib", 24576, "used_mib", 0,
                                "external_mib", 0, "free_mib", 24576, "util", 10,
                                "temperature_c", 40, "jobs", "holds", "strangers");
        json_object_set_new(gpu, "uuid", json_sprintf("GPU-%d", i));
        if (i == 0) {
            json_object_set_new(gpu, "used_mib", json_integer(16384));
            json_object_set_new(gpu, "external_mib", json_integer(4096));
            json_object_set_new(gpu, "free_mib", json_integer(2048));
            json_object_set_new(
                gpu, "holds",
                json_pack("[{s:i s:s s:i s:i},{s:i s:i s:i s:s s:i s:n}]", "job", 12, "user",
                          "ann", "vram_mib", 14336, "now_mib", 12288, "job", 31, "array_job",
                          13, "array_task", 7, "user", "bob", "vram_mib", 4096, "now_mib"));
            json_object_set_new(
                gpu, "strangers",
                json_pack("[{s:i s:s s:i}]", "pid", 4711, "user", "ev\033[2Jil", "mib", 4096));
        }
        if (i == 1)
            json_object_set_new(gpu, "state_text", json_string("XID 79"));
        json_array_append_new(list, gpu);
    }
    top_take_gpus(t, json_pack("{s:o}", "gpus", list));
}

/* n jobs as an answer to `jobs`: a third run, the rest are pending; ids start at 1. */
static void
take_jobs(struct top *t, int n)
{
    json_t *rows = json_array();

    for (int id = 1; id <= n; id++) {
        json_t *row = json_array();

        for (int f = 0; f < FIELDS; f++) {
            bool runs = id <= n / 3;
            json_t *v = json_null();

            if (t->format.at[f] < 0)
                continue;
            if (f == F_ID)
                v = json_integer(id);
            else if (f == F_USER)
                v = json_string(id % 2 ? "ann" : "bob");
            else if (f == F_STATE)
                v = json_string(runs ? "RUNNING" : "PENDING");
            else if (f == F_REASON && !runs)
                v = json_string("GpuMemory");
            else if (f == F_STARTED && runs)
                v = json_pack("{s:f}", "unix", (double)NOW_US / 1e6 - 90);
            else if (f == F_COMMAND)
                v = json_sprintf("python train.py --seed %d", id);
            else if (f == F_GPUS)
                v = runs ? json_pack("[{s:i}]", "index", 0) : json_array();
            else if (f == F_VRAM)
                v = json_integer(id * 1000);
            else if (f == F_GPUS_WANTED)
                v = json_integer(1);
            json_array_append_new(row, v);
        }
        json_array_append_new(rows, row);
    }
    json_t *answer = json_pack("{s:o}", "rows", rows);
    char *dump = json_dumps(answer, JSON_COMPACT);
    top_take_jobs(t, dump, strlen(dump), 0);
    free(dump);
    json_decref(answer);
}

/* The whole screen as lines. */
static const char *
draw(struct top *t, int rows, int columns)
{
    static struct buf text;
    struct grid *g = grid_new(rows, columns, t->ascii);

    buf_clear(&text);
    top_draw(t, g);
    for (int row = 0; row < rows; row++) {
        grid_add_row(g, row, &text);
        buf_addc(&text, '\n');
    }
    grid_free(g);
    return buf_str(&text);
}

static void
assert_shows(struct top *t, int rows, int columns, const char *const *words)
{
    const char *text = draw(t, rows, columns);

    for (; *words; words++) {
        if (!strstr(text, *words))
            fail_msg("%dx%d has no '%s':\n%s", columns, rows, *words, text);
    }
}

static void
test_says_what_runs_what_waits_and_what_is_wrong(void **state)
{
    static const char *const words[] = {"trouble",
                                        "gpu 1: sick: XID 79",
                                        "12 ann 12.0 of 14.0 GiB",
                                        "13_7 bob n/a of 4.0 GiB",
                                        "not Berth's: pid 4711 (ev\\x1B[2Jil) 4.0 GiB",
                                        "RUNNING",
                                        "1m30s",
                                        "GpuMemory",
                                        "python train.py --seed 1",
                                        "ann",
                                        "q quit",
                                        NULL};
    struct top *t = *state;

    t->ascii = true;
    take_gpus(t, 2);
    take_jobs(t, 9);
    assert_shows(t, 40, 120, words);
}

static void
test_a_bar_has_everybody_in_proportion(void **state)
{
    struct top *t = *state;
    const char *bar;

    t->ascii = true;
    take_gpus(t, 1);
    bar = strchr(draw(t, 24, 80), '[');
    assert_non_null(bar);
    /* 59 columns for 24 GiB: 12 used and 2 held, 4 held, 4 of others, the rest free. */
    assert_memory_equal(bar, "[12############################====13_7======xxxxxxxxxx.....]",
                        61);
}

static void
test_every_size_is_drawn_and_stays_inside(void **state)
{
    static const int cards[] = {0, 1, 2, 3, 8, 16};
    static const int rows[] = {5, 6, 10, 24, 25, 50, 80};
    static const int columns[] = {20, 39, 40, 79, 80, 120, 160, 250};
    struct top *t = *state;

    take_jobs(t, 300);
    for (size_t c = 0; c < sizeof cards / sizeof cards[0]; c++) {
        take_gpus(t, cards[c]);
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
            for (size_t k = 0; k < sizeof columns / sizeof columns[0]; k++) {
                top_move(t, 300 - (long)(r + k) * 40);
                const char *text = draw(t, rows[r], columns[k]);
                if (columns[k] < 39)
                    continue;
                assert_non_null(strstr(text, "berth on"));
                if (rows[r] >= 10)
                    assert_non_null(strstr(text, "STATE"));
            }
        }
    }
}

static void
test_cards_find_room(void **state)
{
    static const struct {
        int n, columns, height_max;
        struct top_cards fit;
    } cases[] = {
        {1, 80, 9, {3, 1, 1, 3}},   {2, 80, 9, {3, 1, 2, 6}},   {4, 80, 9, {2, 1, 4, 8}},
        {8, 80, 9, {1, 1, 8, 8}},   {16, 80, 9, {1, 2, 16, 8}}, {16, 250, 32, {3, 3, 16, 18}},
        {16, 40, 4, {1, 1, 3, 4}},  {2, 200, 20, {3, 2, 2, 3}}, {0, 80, 9, {1, 1, 0, 1}},
        {16, 120, 3, {1, 3, 8, 3}}, {1, 20, 0, {1, 1, 1, 1}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct top_cards fit = top_cards_fit(cases[i].n, cases[i].columns, cases[i].height_max);

        if (fit.rows != cases[i].fit.rows || fit.across != cases[i].fit.across ||
            fit.shown != cases[i].fit.shown || fit.height != cases[i].fit.height)
            fail_msg(
                "%d cards in %d columns, %d rows: %d rows each, %d across, %d shown, %d high",
                cases[i].n, cases[i].columns, cases[i].height_max, fit.rows, fit.across,
                fit.shown, fit.height);
    }
}

static void
test_filters_and_the_selection_that_stays(void **state)
{
    static const struct {
        const char *filter;
        size_t shown;
    } cases[] = {
        {"", 30},       {"user:ann", 15}, {"state:run", 10}, {"user:bob state:pend", 10},
        {"seed 30", 1}, {"GPUMEM", 20},   {"gpu:0", 10},     {"gpu:1", 0},
        {"gpu:x", 0},   {"gpu:", 30},     {"  train  ", 30}, {"nothing like it", 0},
    };
    struct top *t = *state;

    take_jobs(t, 30);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        top_set_filter(t, cases[i].filter);
        if (t->n_shown != cases[i].shown)
            fail_msg("'%s' shows %zu, expected %zu", cases[i].filter, t->n_shown,
                     cases[i].shown);
    }
    top_set_filter(t, "");
    top_move(t, 11);
    assert_int_equal(t->selected, 12);
    top_set_filter(t, "user:bob");
    assert_int_equal(t->selected, 12);
    assert_int_equal(t->at, 5);
    take_jobs(t, 33); /* the list grew: the selected job is still there */
    assert_int_equal(t->selected, 12);
    take_jobs(t, 6); /* the selected job is gone: the last one is selected */
    assert_int_equal(t->selected, 6);
    take_jobs(t, 0);
    assert_int_equal(t->selected, 0);
    top_move(t, 5);
    assert_int_equal(t->selected, 0);
}

/* The text about the view may replace the last title, but never part of another. */
static void
test_no_title_is_written_over(void **state)
{
    struct top *t = *state;

    take_jobs(t, 30);
    for (int columns = 60; columns <= 120; columns++) {
        const char *line = NULL;

        top_set_filter(t, columns % 2 ? "user:ann state:pend" : "");
        line = strstr(draw(t, 24, columns), "STATE");
        assert_non_null(line);
        auto_free char *titles = xstrndup(line, strcspn(line, "\n"));
        if (!strstr(titles, "TIME / WHY "))
            fail_msg("%d columns: %s", columns, titles);
        if (strstr(titles, "COM") && !strstr(titles, "COMMAND"))
            fail_msg("%d columns: %s", columns, titles);
    }
}

static void
test_sorts(void **state)
{
    struct top *t = *state;
    int n = 0;

    take_jobs(t, 9);
    while (top_sort_name(n))
        n++;
    for (int sort = 0; sort <= n; sort++) {
        top_set_sort(t, sort);
        top_move(t, -100);
        if (strcmp(top_sort_name(t->sort), "vram") == 0)
            assert_int_equal(t->selected, 9);
        if (strcmp(top_sort_name(t->sort), "id") == 0)
            assert_int_equal(t->selected, 1);
    }
    assert_int_equal(t->sort, 0); /* back at the first */
}

static void
test_the_past_joins_without_gap(void **state)
{
    struct top *t = *state;
    json_t *series;

    take_gpus(t, 1);
    t->now_us += 1000000;
    take_gpus(t, 1);
    series = json_pack("{s:[{s:s s:[[I,i,i,i,i,n],[I,i,n,n,n,n],[I,i,i,i,i,i]]}]}", "gpus",
                       "uuid", "GPU-0", "points", (json_int_t)(NOW_US - 60000000), 12288, 0, 0,
                       90, (json_int_t)(NOW_US - 50000000), 6144, (json_int_t)(NOW_US + 500000),
                       0, 0, 0, 99, 40);
    top_take_series(t, series);
    json_decref(series);
    assert_int_equal(t->n_past, 1);
    assert_int_equal(t->past[0].n, 4); /* the third sample was our own */
    assert_int_equal(t->past[0].points[0].util, 90);
    assert_int_equal(t->past[0].points[0].used_permille, 500);
    assert_int_equal(t->past[0].points[1].util, -1);
    assert_int_equal(t->past[0].points[3].at_us, NOW_US + 1000000);
    for (int i = 0; i < 3 * TOP_POINTS; i++) {
        t->now_us += 1000000;
        take_gpus(t, 1);
    }
    assert_int_equal(t->past[0].n, TOP_POINTS);
    draw(t, 24, 80);
}

static void
test_says_that_the_daemon_is_gone_or_silent(void **state)
{
    static const char *const gone[] = {"no daemon",
                                       "trying again: the daemon closed the connection", NULL};
    static const char *const silent[] = {"trouble", "has not answered for 7.0s", NULL};
    static const char *const sick[] = {"trouble", "disk: the folder /x is full", "clock: it",
                                       NULL};
    static const char *const unknown[] = {"the GPUs have not answered since", "driver hangs",
                                          NULL};
    struct top *t = *state;
    json_t *gpus;

    t->silent_ms = 7000;
    assert_shows(t, 24, 100, silent);
    top_lose(t, "the daemon closed the connection");
    assert_shows(t, 24, 80, gone);
    t->connected = true;
    gpus = json_pack("{s:[] s:{s:s} s:s}", "gpus", "unknown_since", "rfc3339",
                     "2026-01-01T00:00:00Z", "probe_error", "driver hangs");
    top_take_gpus(t, gpus);
    assert_shows(t, 24, 120, unknown);
    top_take_gpus(t, json_pack("{s:[]}", "gpus"));
    top_take_health(t, json_pack("{s:[{s:s s:s s:s},{s:s s:s s:s},{s:s s:s s:s}]}", "checks",
                                 "name", "database", "state", "ok", "text", "fine", "name",
                                 "disk", "state", "bad", "text", "the folder /x is full",
                                 "name", "clock", "state", "warn", "text", "it jumps"));
    assert_shows(t, 24, 120, sick);
    if (strstr(draw(t, 24, 120), "fine"))
        fail_msg("says what is fine");
}

/* The most severe first, and none omitted silently. */
static void
test_says_how_much_more_is_wrong(void **state)
{
    static const char *const few[] = {
        "see below", "2 jobs failed in the last hour: 7 TIMEOUT, 3_2 FAILED; press", NULL};
    static const char *const many[] = {"trouble", "check 11: bad", "and 9 more: berth health",
                                       NULL};
    struct top *t = *state;
    json_t *checks = json_array();

    t->connected = true;
    take_gpus(t, 1);
    top_take_failed(t, json_pack("{s:[[i,n,n,s,{}],[i,i,i,s,n],[i,n,n,s,n]],s:n}", "rows", 3,
                                 "FAILED", 5, 3, 2, "FAILED", 7, "TIMEOUT", "before_id"));
    assert_shows(t, 24, 120, few);
    for (int i = 0; i < 12; i++)
        json_array_append_new(
            checks, json_pack("{s:o,s:s,s:s}", "name", json_sprintf("check %d", i), "state",
                              i == 11 ? "bad" : "warn", "text", i == 11 ? "bad" : "so so"));
    top_take_health(t, json_pack("{s:o}", "checks", checks));
    assert_shows(t, 24, 120, many);
}

static void
test_a_filter_that_can_match_nothing_is_said(void **state)
{
    static const struct {
        const char *filter, *words;
    } cases[] = {
        {"", ""},
        {"train gpu:3 state:pend user:ann x:y", ""},
        {"gpu: state:", ""},
        {"a gpu:x", "'x' is not a GPU's number: gpu:0"},
        {"gpu:-1", "'-1' is not a GPU's number: gpu:0"},
        {"state:asleep", "'asleep' is not a state: state:run, state:pend, state:held"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        auto_buf struct buf why = BUF_INIT;

        assert_int_equal(top_filter_check(cases[i].filter, &why), !cases[i].words[0]);
        assert_string_equal(buf_str(&why), cases[i].words);
    }
}

static void
test_lines_of_a_log_are_cleaned(void **state)
{
    static const struct {
        const char *line, *shown;
    } cases[] = {
        {"plain", "plain"},
        {"", ""},
        {"\033[1;31mred\033[0m end", "red end"},
        {"10%\r20%\r30%", "30%"},
        {"windows\r", "windows"},
        {"\033]0;title\atext", "text"},
        {"a\tb", "a b"},
        {"cut \033[3", "cut "},
        {"cut \033", "cut "},
        {"\033]never ends", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[64];

        memcpy(line, cases[i].line, strlen(cases[i].line) + 1);
        top_log_clean(line);
        assert_string_equal(line, cases[i].shown);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_says_what_runs_what_waits_and_what_is_wrong),
        TEST(test_a_bar_has_everybody_in_proportion),
        TEST(test_every_size_is_drawn_and_stays_inside),
        TEST(test_cards_find_room),
        TEST(test_filters_and_the_selection_that_stays),
        TEST(test_no_title_is_written_over),
        TEST(test_sorts),
        TEST(test_the_past_joins_without_gap),
        TEST(test_says_that_the_daemon_is_gone_or_silent),
        TEST(test_says_how_much_more_is_wrong),
        TEST(test_a_filter_that_can_match_nothing_is_said),
        TEST(test_lines_of_a_log_are_cleaned),
    };

    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
