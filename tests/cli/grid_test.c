/* Cells of characters: wide and combining characters, truncation, positions outside, and text
 * that tries to control the terminal. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "cli/common/grid.h"

static const char *
row_of(const struct grid *g, int row)
{
    static struct buf text;

    buf_clear(&text);
    grid_add_row(g, row, &text);
    return buf_str(&text);
}

static void
test_text_is_put_cut_and_escaped(void **state)
{
    static const struct {
        const char *text, *shown;
        int column, max, used;
        bool ascii;
    } cases[] = {
        {"plain", "plain", 0, 20, 5, false},
        {"plains", "  pl...", 2, 5, 5, false},
        {"plain", "               plain", 15, 20, 5, false},
        {"plain", "                 ...", 17, 20, 3, false},
        {"plain", "", 20, 20, 0, false},
        {"plain", "", 0, 0, 0, false},
        {"a\033[2Jb", "a\\x1B[2Jb", 0, 20, 9, false},
        {"a\nb\tc", "a\\nb\\tc", 0, 20, 7, false},
        {"\xff", "\\xFF", 0, 20, 4, false},
        {"\xe6\x97\xa5\xe6\x9c\xac!", "\xe6\x97\xa5\xe6\x9c\xac!", 0, 20, 5, false},
        {"e\xcc\x81t\xc3\xa9", "e\xcc\x81t\xc3\xa9", 0, 20, 3, false},
        {"t\xc3\xa9", "t?", 0, 20, 2, true},
        {"\xe2\x80\xae"
         "abc",
         "\\xE2\\x80\\xAE"
         "abc",
         0, 20, 15, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct grid *g = grid_new(2, 20, cases[i].ascii);

        assert_int_equal(
            grid_put(g, 1, cases[i].column, cases[i].max, STYLE_BAD, cases[i].text),
            cases[i].used);
        assert_string_equal(row_of(g, 1), cases[i].shown);
        assert_string_equal(row_of(g, 0), "");
        grid_free(g);
    }
}

static void
test_a_wide_character_takes_two_cells(void **state)
{
    struct grid *g = grid_new(1, 4, false);

    (void)state;
    assert_int_equal(grid_put(g, 0, 1, 4, STYLE_GOOD, "\xe6\x97\xa5x"), 3);
    assert_string_equal(grid_at(g, 0, 1)->text, "\xe6\x97\xa5");
    assert_string_equal(grid_at(g, 0, 2)->text, "");
    assert_string_equal(grid_at(g, 0, 3)->text, "x");
    assert_int_equal(grid_at(g, 0, 3)->style, STYLE_GOOD);
    /* Half of a wide character is never shown. */
    grid_clear(g);
    assert_true(grid_put(g, 0, 3, 4, STYLE_GOOD, "\xe6\x97\xa5") <= 1);
    assert_null(strstr(row_of(g, 0), "\xe6"));
    grid_free(g);
}

static void
test_what_is_combined_without_end_does_not_overflow(void **state)
{
    struct grid *g = grid_new(1, 4, false);
    struct buf many = BUF_INIT;

    (void)state;
    buf_addc(&many, 'e');
    for (int i = 0; i < 100; i++)
        buf_adds(&many, "\xcc\x81");
    assert_int_equal(grid_put(g, 0, 0, 4, STYLE_NONE, buf_str(&many)), 1);
    assert_true(strlen(grid_at(g, 0, 0)->text) < GRID_TEXT);
    assert_string_equal(grid_at(g, 0, 1)->text, " ");
    buf_free(&many);
    grid_free(g);
}

static void
test_fills_reverses_and_ends_at_a_column(void **state)
{
    struct grid *g = grid_new(1, 8, true);

    (void)state;
    grid_fill(g, 0, 6, 5, STYLE_WARN, "\xe2\x96\x88", '#');
    grid_put_right(g, 0, 5, 5, STYLE_NONE, "abc");
    grid_reverse(g, 0, 7, 9);
    assert_string_equal(row_of(g, 0), "  abc ##");
    assert_true(grid_at(g, 0, 7)->reverse);
    assert_false(grid_at(g, 0, 6)->reverse);
    assert_null(grid_at(g, 0, 8));
    assert_null(grid_at(g, -1, 0));
    grid_free(g);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_is_put_cut_and_escaped),
        cmocka_unit_test(test_a_wide_character_takes_two_cells),
        cmocka_unit_test(test_what_is_combined_without_end_does_not_overflow),
        cmocka_unit_test(test_fills_reverses_and_ends_at_a_column),
    };

    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
