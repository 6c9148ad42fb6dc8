/* Which command lines are executed without a shell, and with which arguments and PWD. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "shepherd/begin/plain_command.h"

static char *no_env[] = {NULL};

static void
test_a_program_and_its_arguments(void **state)
{
    (void)state;
    static const struct {
        const char *line, *words;
    } rows[] = {
        {"/bin/true", "</bin/true>"},
        {"python3 train.py --lr=0.1 -v", "<python3><train.py><--lr=0.1><-v>"},
        {"  ./a  b   ", "<./a><b>"},
        {"a:b +x @y %z ,w", "<a:b><+x><@y><%z><,w>"},
        {"echo2 x", "<echo2><x>"},
        {"/usr/bin/echo -e", "</usr/bin/echo><-e>"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        auto_free char **words = plain_command_words(rows[i].line, no_env);
        auto_buf struct buf got = BUF_INIT;
        assert_non_null(words);
        for (char **w = words; *w; w++)
            buf_addf(&got, "<%s>", *w);
        assert_string_equal(buf_str(&got), rows[i].words);
    }
}

/* Each character that is special to a shell in some position, and each kind of first word. */
static void
test_what_a_shell_must_read(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",        " ",       "A=b run",    "%1",       "-x",       "+x",
        "echo hi", "cd /tmp", "true",       "wait",     ".",        ". file",
        ":",       "while",   "exit 3",     "exec run", "coproc x", "time run",
        "unset x", "test -e", "readonly x", "a\tb",     "a\nb",     "caf\xc3\xa9",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_null(plain_command_words(lines[i], no_env));
    for (const char *c = "$`\"'\\|&;<>()*?[]~#{}!^"; *c; c++) {
        char line[] = "run a? b";
        line[5] = *c;
        assert_null(plain_command_words(line, no_env));
    }
}

static void
test_a_long_line_is_left_to_the_shell(void **state)
{
    (void)state;
    char line[5000];
    memset(line, 'a', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    assert_null(plain_command_words(line, no_env));
}

static void
test_a_function_that_is_passed_on(void **state)
{
    (void)state;
    char *env[] = {"A=b", "BASH_FUNC_module%%=() { echo; }", NULL};
    auto_free char **other = plain_command_words("modulex load", env);
    assert_null(plain_command_words("module load", env));
    assert_non_null(other);
}

static void
test_the_working_folder(void **state)
{
    (void)state;
    char dir[] = "/tmp/berth-plain.XXXXXX";
    assert_non_null(mkdtemp(dir));
    char said[sizeof "PWD=/link" + sizeof dir];
    const char *link = said + 4;
    snprintf(said, sizeof said, "PWD=%s/link", dir);
    assert_int_equal(symlink(dir, link), 0);
    char *right[] = {"A=b", said, NULL};
    assert_null(plain_command_env(right, dir, true)); /* as the user wrote it */
    auto_free char **unseen = plain_command_env(right, dir, false);
    assert_string_equal(unseen[1] + 4, dir);

    char *wrong[] = {"A=b", "PWD=/nowhere", "C=d", NULL}, *none[] = {"A=b", NULL};
    char *relative[] = {"PWD=.", NULL};
    auto_free char **mended = plain_command_env(wrong, dir, true);
    auto_free char **added = plain_command_env(none, dir, true);
    auto_free char **absolute = plain_command_env(relative, "/", true);
    assert_string_equal(mended[0], "A=b");
    assert_string_equal(mended[1] + 4, dir);
    assert_string_equal(mended[2], "C=d");
    assert_null(mended[3]);
    assert_string_equal(added[0], "A=b");
    assert_string_equal(added[1] + 4, dir);
    assert_null(added[2]);
    assert_string_equal(absolute[0], "PWD=/");
    assert_null(absolute[1]);
    unlink(link);
    rmdir(dir);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_program_and_its_arguments),
        cmocka_unit_test(test_what_a_shell_must_read),
        cmocka_unit_test(test_a_long_line_is_left_to_the_shell),
        cmocka_unit_test(test_a_function_that_is_passed_on),
        cmocka_unit_test(test_the_working_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
