/* The text that Prometheus reads, and how counters are stored. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/jsonw.h"
#include "core/learn/histogram.h"
#include "daemon/common/counters.h"
#include "daemon/common/counters_note.h"
#include "daemon/view/exposition.h"

struct page {
    struct buf text, json;
    struct jsonw numbers;
    struct exposition x;
};

static struct page *
page_new(void)
{
    struct page *p = calloc(1, sizeof *p);
    assert_non_null(p);
    jsonw_init(&p->numbers, &p->json);
    jsonw_object(&p->numbers);
    p->x = (struct exposition){.text = &p->text, .numbers = &p->numbers};
    return p;
}

/* Returns its JSON; the caller frees it. */
static json_t *
page_end(struct page *p, const char *text)
{
    jsonw_end_object(&p->numbers);
    assert_string_equal(buf_str(&p->text), text);
    json_t *numbers = json_loads(buf_str(&p->json), 0, NULL);
    assert_non_null(numbers);
    buf_free(&p->text);
    buf_free(&p->json);
    free(p);
    return numbers;
}

static void
test_label_values_are_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *value, *written;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"a\"b", "a\\\"b"},
        {"a\\b", "a\\\\b"},
        {"two\nlines", "two\\nlines"},
        {"\\\n\"", "\\\\\\n\\\""},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"\xff\xc3", "??"},
        {"a{b}=,c", "a{b}=,c"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        auto_buf struct buf want = BUF_INIT;
        auto_buf struct buf name = BUF_INIT;
        struct page *p = page_new();
        exposition_family(&p->x, "n", "gauge", "What.");
        exposition_value(&p->x, 1, "l", cases[i].value, NULL);
        buf_addf(&name, "n{l=\"%s\"}", cases[i].written);
        buf_addf(&want, "# HELP n What.\n# TYPE n gauge\n%s 1\n", buf_str(&name));
        json_t *numbers = page_end(p, buf_str(&want));
        assert_int_equal(json_integer_value(json_object_get(numbers, buf_str(&name))), 1);
        json_decref(numbers);
    }
}

static void
test_numbers(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *written;
    } cases[] = {
        {0, "0"},
        {-3, "-3"},
        {25769803776, "25769803776"},
        {0.5, "0.5"},
        {0.000164, "0.000164"},
        {1795248581.75, "1795248581.75"},
        {1234567.123456, "1234567.12346"},
        {1e15, "1e+15"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        auto_buf struct buf want = BUF_INIT;
        struct page *p = page_new();
        exposition_one(&p->x, "n", "gauge", "What.", cases[i].value);
        buf_addf(&want, "# HELP n What.\n# TYPE n gauge\nn %s\n", cases[i].written);
        json_decref(page_end(p, buf_str(&want)));
    }
}

static void
test_several_labels_and_a_histogram(void **state)
{
    (void)state;
    static const int64_t bounds[] = {10, 1000000};
    struct histogram h;
    struct page *p = page_new();
    histogram_init(&h, bounds, 2);
    histogram_add(&h, 7);
    histogram_add(&h, 500000);
    histogram_add(&h, 3000000);
    exposition_family(&p->x, "g", "gauge", "What.");
    exposition_value(&p->x, 2, "a", "1", "b", "2", NULL);
    exposition_histogram(&p->x, "t_seconds", "How long.", &h);
    json_t *numbers = page_end(p, "# HELP g What.\n# TYPE g gauge\ng{a=\"1\",b=\"2\"} 2\n"
                                  "# HELP t_seconds How long.\n# TYPE t_seconds histogram\n"
                                  "t_seconds_bucket{le=\"1e-05\"} 1\n"
                                  "t_seconds_bucket{le=\"1\"} 2\n"
                                  "t_seconds_bucket{le=\"+Inf\"} 3\n"
                                  "t_seconds_sum 3.500007\nt_seconds_count 3\n");
    assert_int_equal(json_object_size(numbers), 6);
    json_decref(numbers);
}

/* --- what is stored --- */

static const int64_t wait_bounds[] = {1, 2, 3};

static void
fill(struct tally_jobs *j)
{
    *j = (struct tally_jobs){.submitted = 9, .started = 8};
    histogram_init(&j->waits, wait_bounds, 3);
    histogram_init(&j->runs, wait_bounds, 2);
    for (int i = JOB_COMPLETED; i < JOB_STATES; i++)
        j->ended[i] = (uint64_t)i * 100;
    for (int i = 1; i < OUTCOMES; i++)
        j->outcomes[i] = (uint64_t)i * 7;
    for (int i = 0; i < AGAINS; i++)
        j->again[i] = (uint64_t)i;
    for (int i = 0; i < 5; i++) {
        histogram_add(&j->waits, i);
        histogram_add(&j->runs, i * 1000);
    }
}

static void
test_counts_are_kept(void **state)
{
    (void)state;
    auto_buf struct buf note = BUF_INIT;
    struct tally_jobs have, back = {0};
    fill(&have);
    histogram_init(&back.waits, wait_bounds, 3);
    histogram_init(&back.runs, wait_bounds, 2);
    tally_note_write(&have, &note);
    assert_int_equal(tally_note_read(buf_str(&note), &back), 0);
    assert_int_equal(back.submitted, 9);
    assert_int_equal(back.started, 8);
    assert_memory_equal(back.ended, have.ended, sizeof have.ended);
    assert_memory_equal(back.outcomes, have.outcomes, sizeof have.outcomes);
    assert_memory_equal(back.again, have.again, sizeof have.again);
    assert_memory_equal(back.waits.counts, have.waits.counts, sizeof have.waits.counts);
    assert_int_equal(back.waits.sum_us, 10);
    assert_int_equal(back.runs.sum_us, 10000);
}

/* Counters stored by another version: known ones are kept; buckets with other bounds start
 * anew. */
static void
test_counts_of_another_berth(void **state)
{
    (void)state;
    struct tally_jobs j = {0};
    histogram_init(&j.waits, wait_bounds, 3);
    histogram_init(&j.runs, wait_bounds, 2);
    assert_int_equal(tally_note_read("{\"submitted\":5,\"ended\":{\"COMPLETED\":4,\"MELTED\":1,"
                                     "\"FAILED\":-2,\"LOST\":\"x\"},\"waits\":{\"sum_us\":9,"
                                     "\"counts\":[1,2]},\"runs\":{\"sum_us\":6,\"counts\":"
                                     "[1,2,3]},\"new\":[]}",
                                     &j),
                     0);
    assert_int_equal(j.submitted, 5);
    assert_int_equal(j.ended[JOB_COMPLETED], 4);
    assert_int_equal(j.ended[JOB_FAILED], 0);
    assert_int_equal(j.ended[JOB_LOST], 0);
    assert_int_equal(histogram_count(&j.waits), 0);
    assert_int_equal(j.waits.sum_us, 0);
    assert_int_equal(histogram_count(&j.runs), 6);
    assert_int_equal(tally_note_read("[]", &j), -1);
    assert_int_equal(tally_note_read("nonsense", &j), -1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_label_values_are_escaped),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_several_labels_and_a_histogram),
        cmocka_unit_test(test_counts_are_kept),
        cmocka_unit_test(test_counts_of_another_berth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
