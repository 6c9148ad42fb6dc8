/* Tables and the progress bar: alignment, truncation, omitted columns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/common/progress.h"
#include "cli/table/table.h"

static const struct column columns[] = {{"ID", true, false},
                                        {"WHY", false, true},
                                        {"USER", false, false},
                                        {"COMMAND", false, false}};

static struct table *
make_table(const char *why)
{
    struct table *t = table_new(columns, 4);

    table_cell_int(t, 7);
    table_cell(t, STYLE_NONE, "");
    table_cell(t, STYLE_NONE, "al");
    table_cell(t, STYLE_GOOD, "echo one two three four");
    table_cell_int(t, 1234);
    table_cell(t, STYLE_NONE, why);
    table_cell(t, STYLE_NONE, "");
    table_cell(t, STYLE_NONE, "x\033[31m\n\xc3\xa4");
    return t;
}

static void
assert_table(const struct table *t, const struct term *term, const char *expect)
{
    auto_buf struct buf out = BUF_INIT;

    table_print(t, term, &out);
    assert_string_equal(buf_str(&out), expect);
}

static void
test_columns_line_up_and_controls_are_shown(void **state)
{
    auto_table struct table *t = make_table("GpuBusy");
    struct term pipe = {0};

    (void)state;
    assert_int_equal(table_rows(t), 2);
    assert_table(t, &pipe,
                 "  ID  WHY      USER  COMMAND\n"
                 "   7  -        al    echo one two three four\n"
                 "1234  GpuBusy  -     x\\x1B[31m\\n\xc3\xa4\n");
}

static void
test_empty_and_hidden_columns_are_left_out(void **state)
{
    auto_table struct table *t = make_table("");
    struct term pipe = {0};

    (void)state;
    table_hide(t, 2);
    assert_table(t, &pipe,
                 "  ID  COMMAND\n"
                 "   7  echo one two three four\n"
                 "1234  x\\x1B[31m\\n\xc3\xa4\n");
}

static void
test_columns_that_were_named_are_shown_when_empty(void **state)
{
    auto_table struct table *t = make_table("");
    struct term pipe = {0};

    (void)state;
    table_show_all(t);
    assert_table(t, &pipe,
                 "  ID  WHY  USER  COMMAND\n"
                 "   7  -    al    echo one two three four\n"
                 "1234  -    -     x\\x1B[31m\\n\xc3\xa4\n");
}

static void
test_last_column_is_cut_to_the_terminal(void **state)
{
    auto_table struct table *t = make_table("");
    struct term tty = {.tty = true, .columns = 26};
    auto_buf struct buf out = BUF_INIT;
    const char *line;

    (void)state;
    table_print(t, &tty, &out);
    line = strchr(buf_str(&out), '\n') + 1;
    assert_int_equal(strchr(line, '\n') - line, 26);
    assert_true(strncmp(line, "   7  al    echo one t...", 12) == 0);
}

static void
test_colour_is_around_the_cell_only(void **state)
{
    auto_table struct table *t = make_table("");
    struct term tty = {.tty = true, .color = true, .columns = 80};
    auto_buf struct buf out = BUF_INIT;

    (void)state;
    table_print(t, &tty, &out);
    assert_non_null(strstr(buf_str(&out), "al    \033[32mecho one two three four\033[0m\n"));
}

static void
test_bar_fits_every_width(void **state)
{
    const struct progress_counts c = {
        .total = 4000, .done = 1234, .running = 16, .waiting = 2750, .failed = 3};

    (void)state;
    for (int columns_wide = 20; columns_wide < 200; columns_wide++) {
        auto_buf struct buf out = BUF_INIT;

        progress_format(&c, 5000000, columns_wide, &out);
        assert_true(text_columns(buf_str(&out)) < columns_wide);
        assert_true(strncmp(buf_str(&out), "1234/4000 ", 10) == 0);
    }
    for (int columns_wide = 0; columns_wide < 20; columns_wide++) {
        auto_buf struct buf out = BUF_INIT;

        progress_format(&c, 5000000, columns_wide, &out);
        assert_true(out.len == 0 || text_columns(buf_str(&out)) < columns_wide);
    }
}

static void
test_bar_shows_the_parts(void **state)
{
    const struct progress_counts c = {.total = 4, .done = 2, .running = 1, .waiting = 1};
    const struct progress_counts none = {0};
    auto_buf struct buf out = BUF_INIT;

    (void)state;
    progress_format(&c, 61000, 80, &out);
    assert_non_null(strstr(buf_str(&out), "[###############-------        ]"));
    assert_non_null(strstr(buf_str(&out), "1 running, 1 pending  1m01s"));
    assert_null(strstr(buf_str(&out), "left"));
    buf_clear(&out);
    progress_format(&none, 0, 80, &out);
    assert_non_null(strstr(buf_str(&out), "0/0"));
}

static void
test_bar_erases_only_what_it_drew(void **state)
{
    struct progress p = {.on = true, .columns = 60};
    const struct progress_counts c = {.total = 1};
    auto_buf struct buf out = BUF_INIT;

    (void)state;
    progress_erase(&p, &out);
    assert_int_equal(out.len, 0);
    progress_draw(&p, &c, 0, &out);
    buf_clear(&out);
    progress_erase(&p, &out);
    assert_string_equal(buf_str(&out), "\r\033[K");
    p.on = false;
    buf_clear(&out);
    progress_draw(&p, &c, 0, &out);
    assert_int_equal(out.len, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_line_up_and_controls_are_shown),
        cmocka_unit_test(test_empty_and_hidden_columns_are_left_out),
        cmocka_unit_test(test_columns_that_were_named_are_shown_when_empty),
        cmocka_unit_test(test_last_column_is_cut_to_the_terminal),
        cmocka_unit_test(test_colour_is_around_the_cell_only),
        cmocka_unit_test(test_bar_fits_every_width),
        cmocka_unit_test(test_bar_shows_the_parts),
        cmocka_unit_test(test_bar_erases_only_what_it_drew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
