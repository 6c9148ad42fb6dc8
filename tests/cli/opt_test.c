/* The reader of command lines: every way to write an option, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "cli/common/opt.h"

enum { OPT_FOLLOW, OPT_TAIL, OPT_VERBOSE, OPT_WATCH };

static const struct opt options[] = {
    {"follow", 'f', NULL, "go on"},
    {"tail", 'n', "N", "lines"},
    {"verbose", 'v', NULL, "more"},
    {"watch", 'w', "[=SECONDS]", "again"},
    {0},
};
static const struct page page = {.usage = "u", .about = "a", .options = options};

#define WORDS_MAX 16

/* Splits line at blanks, parses it, and formats the result: "f n=5 v | word word", or "exit
 * STATUS". */
static const char *
read_line(const char *line, bool stop_at_word, struct cli *cli)
{
    static char out[512];
    static char copy[512];
    char *argv[WORDS_MAX];
    char *rest = copy;
    struct opt_reader r;
    int argc = 0;
    int opt;
    size_t n = 0;

    snprintf(copy, sizeof copy, "%s", line);
    while (rest)
        argv[argc++] = strsep(&rest, " ");
    opt_begin(&r, cli, &page, argc, argv);
    r.stop_at_word = stop_at_word;
    out[0] = '\0';
    while ((opt = opt_next(&r)) >= 0)
        n += (size_t)snprintf(out + n, sizeof out - n, "%c%s%s ", options[opt].letter,
                              r.value ? "=" : "", r.value ? r.value : "");
    if (opt == OPT_EXIT) {
        snprintf(out, sizeof out, "exit %d", r.status);
        return out;
    }
    n += (size_t)snprintf(out + n, sizeof out - n, "|");
    for (int i = 0; i < r.n_words; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, " %s", r.words[i]);
    return out;
}

static void
test_forms(void **state)
{
    static const struct {
        const char *line;
        const char *expect;
    } cases[] = {
        {"logs 12 -f", "f | 12"},
        {"logs -f 12", "f | 12"},
        {"logs --follow --tail 5 12", "f n=5 | 12"},
        {"logs --tail=5", "n=5 |"},
        {"logs --tail=", "n= |"},
        {"logs -n5 -n 6 -n=7", "n=5 n=6 n=7 |"},
        {"logs -fv 1", "f v | 1"},
        {"logs -fn 5 1", "f n=5 | 1"},
        {"logs -fn5", "f n=5 |"},
        {"logs -- -f --tail", "| -f --tail"},
        {"logs - 1", "| - 1"},
        {"logs 1 2 -v 3", "v | 1 2 3"},
        {"logs", "|"},
        {"logs --watch 2", "w | 2"},
        {"logs --watch=2 3", "w=2 | 3"},
        {"logs -w 2", "w | 2"},
        {"logs -w2", "w=2 |"},
        {"logs -w=2", "w=2 |"},
        {"logs -wfv", "w f v |"},
        {"logs -fw", "f w |"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli cli = {0};

        assert_string_equal(read_line(cases[i].line, false, &cli), cases[i].expect);
    }
}

static void
test_mistakes(void **state)
{
    static const char *const lines[] = {
        "logs --folow", "logs -x",         "logs --tail", "logs -n",
        "logs -fx",     "logs --follow=1", "logs --fo",   "logs --",
    };
    struct cli cli = {0};

    (void)state;
    for (size_t i = 0; i + 1 < sizeof lines / sizeof lines[0]; i++)
        assert_string_equal(read_line(lines[i], false, &cli), "exit 2");
    assert_string_equal(read_line("logs --", false, &cli), "|");
}

static void
test_first_word_ends_options(void **state)
{
    struct cli cli = {0};

    (void)state;
    assert_string_equal(read_line("submit -v python -f x --tail", true, &cli),
                        "v | python -f x --tail");
    assert_string_equal(read_line("submit -v -- -f x", true, &cli), "v | -f x");
}

static void
test_global_options_are_known_everywhere(void **state)
{
    struct cli cli = {0};

    (void)state;
    assert_string_equal(read_line("logs --dir /d 12 --json -f --socket=/s", false, &cli),
                        "f | 12");
    assert_string_equal(cli.dir, "/d");
    assert_string_equal(cli.socket, "/s");
    assert_true(cli.json);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_first_word_ends_options),
        cmocka_unit_test(test_global_options_are_known_everywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
