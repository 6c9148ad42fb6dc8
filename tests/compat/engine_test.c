/* Shared by the drop-in commands: values as Python writes them, command lines as argparse
 * reads them, files of JSON lines. The expectations are what Python 3.11 prints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "compat/engine/compat_paths.h"
#include "compat/engine/line_records.h"
#include "compat/py/pyarg.h"
#include "compat/py/pytext.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void
writes_floats_as_repr_does(void **state)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {
        {5, "5.0"},
        {0.5, "0.5"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1e-5, "1e-05"},
        {0.00012, "0.00012"},
        {1e16, "1e+16"},
        {123456789012345680.0, "1.2345678901234568e+17"},
        {-84.25, "-84.25"},
        {0, "0.0"},
        {1e15, "1000000000000000.0"},
        {100, "100.0"},
        {-0.0, "-0.0"},
        {1e100, "1e+100"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf out = BUF_INIT;

        py_add_float(&out, cases[i].v);
        assert_string_equal(buf_str(&out), cases[i].text);
    }
}

static void
reads_numbers_as_int_and_float_do(void **state)
{
    static const struct {
        const char *text;
        bool is_int, is_float;
        int64_t i;
        double f;
    } cases[] = {
        {"12", true, true, 12, 12},   {" +7 ", true, true, 7, 7},
        {"-3", true, true, -3, -3},   {"1_000", true, true, 1000, 1000},
        {"1__0", false, false, 0, 0}, {"_1", false, false, 0, 0},
        {"1.5", false, true, 0, 1.5}, {"1e3", false, true, 0, 1000},
        {"", false, false, 0, 0},     {"x", false, false, 0, 0},
        {"0x10", false, false, 0, 0}, {"5s", false, false, 0, 0},
        {"007", true, true, 7, 7},    {"+-1", false, false, 0, 0},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(cases); k++) {
        int64_t i = 0;
        double f = 0;

        if (py_int(cases[k].text, &i) != cases[k].is_int ||
            py_float(cases[k].text, &f) != cases[k].is_float)
            fail_msg("'%s' is taken for something else", cases[k].text);
        if (cases[k].is_int)
            assert_int_equal(i, cases[k].i);
        if (cases[k].is_float)
            assert_true(f == cases[k].f);
    }
}

static void
strips_white_space_as_python_does(void **state)
{
    static const char *const cases[][2] = {
        {" \t a b\r\n", "a b"},
        {"\u00a0\u3000a\u00a0b\u2003 \xc2\x85", "a\u00a0b"},
        {"\x1c\u2028x\u205f\x1f", "x"},
        {"\u200bx\u200b", "\u200bx\u200b"}, /* of no width, and none */
        {"\u00e9", "\u00e9"},
        {" \u00a0 ", ""},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *s = cases[i][0];
        size_t n = py_strip(&s, strlen(s));

        assert_int_equal(n, strlen(cases[i][1]));
        assert_memory_equal(s, cases[i][1], n);
    }
}

static void
writes_texts_as_repr_does(void **state)
{
    static const char *const cases[][2] = {
        {"x", "'x'"},
        {"it's", "\"it's\""},
        {"a'b\"c", "'a\\'b\"c'"},
        {"tab\there\n", "'tab\\there\\n'"},
        {"\001\\", "'\\x01\\\\'"},
        {"für", "'für'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf out = BUF_INIT;

        py_add_repr(&out, cases[i][0]);
        assert_string_equal(buf_str(&out), cases[i][1]);
    }
}

static void
writes_json_as_dumps_does(void **state)
{
    static const struct {
        const char *in;
        int indent;
        const char *out;
    } cases[] = {
        {"{\"a\":1,\"b\":[1.5,null,true]}", 0, "{\"a\": 1, \"b\": [1.5, null, true]}"},
        {"{\"u\":84.0,\"e\":{}}", 0, "{\"u\": 84.0, \"e\": {}}"},
        {"[\"\\u00fc \\ud83d\\ude00 \\u0001 \\\" / \\t\"]", 0,
         "[\"\\u00fc \\ud83d\\ude00 \\u0001 \\\" / \\t\"]"},
        {"[\"\\u007f~\"]", 0, "[\"\\u007f~\"]"},
        {"{\"g\":[0.5,1.0],\"p\":[]}", 4,
         "{\n    \"g\": [\n        0.5,\n        1.0\n    ],\n    \"p\": []\n}"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf out = BUF_INIT;
        json_t *value = json_loads(cases[i].in, 0, NULL);

        py_add_json(&out, value, cases[i].indent);
        json_decref(value);
        assert_string_equal(buf_str(&out), cases[i].out);
    }
}

static void
joins_paths_as_pathlib_does(void **state)
{
    static const char *const cases[][3] = {
        {"logs", "s.txt", "logs/s.txt"},    {"./logs/", "s.txt", "logs/s.txt"},
        {"/a//b/.", "s.txt", "/a/b/s.txt"}, {"", "s.txt", "s.txt"},
        {"..", "s.txt", "../s.txt"},        {".", "s.txt", "s.txt"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_free char *path = py_path(cases[i][0], cases[i][1]);

        assert_string_equal(path, cases[i][2]);
    }
}

/* --- argparse --- */

enum { HELP, GPUS, MARGIN, MAX_JOBS, VERBOSE, FILE_NAME, ARGS };

struct said {
    struct pyarg_value of[ARGS];
};

static const struct pyarg args[] = {
    [HELP] = PYARG_HELP_ROW,
    [GPUS] = {"--gpus", PYARG_STR, PYARG_INTO(struct said, of[GPUS]), .metavar = "0,1,3"},
    [MARGIN] = {"--margin", PYARG_INT, PYARG_INTO(struct said, of[MARGIN]), .metavar = "MIB"},
    [MAX_JOBS] = {"--max-jobs", PYARG_FLOAT, PYARG_INTO(struct said, of[MAX_JOBS]),
                  .help = NULL},
    [VERBOSE] = {"--verbose", PYARG_FLAG, PYARG_INTO(struct said, of[VERBOSE]), .letter = "-v"},
    [FILE_NAME] = {"jobs_file", PYARG_STR, PYARG_INTO(struct said, of[FILE_NAME]),
                   .help = NULL},
    [ARGS] = {0},
};

static const struct pyarg mode[] = {
    {"--mode", PYARG_STR, .choices = "fast,slow"},
    {0},
};
static const struct pyarg_command commands[] = {
    {"run", "run it", mode}, {"status", "", mode}, {0}};

/* The standard error for a refused line. */
static void
expect_refusal(const struct pyarg_parser *p, const char *line, const char *words)
{
    auto_free char *copy = xstrdup(line);
    char *argv[16] = {NULL}, *rest = copy, *word, text[2048];
    struct said said = {0};
    int argc = 0, status = -1, ends[2], old = dup(STDERR_FILENO);
    ssize_t n;

    while ((word = strsep(&rest, " ")))
        argv[argc++] = word;
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    int at = pyarg_read(p, argc, argv, &said, &status);
    dup2(old, STDERR_FILENO);
    close(old);
    n = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    text[n > 0 ? n : 0] = '\0';
    assert_int_equal(at, PYARG_EXIT);
    assert_int_equal(status, 2);
    if (!strstr(text, words))
        fail_msg("'%s' said: %s", line, text);
}

static void
refuses_in_argparses_words(void **state)
{
    static const struct pyarg_parser p = {.prog = "tool", .args = args};
    static const struct pyarg_parser sub = {
        .prog = "tool", .args = args + ARGS, .commands = commands, .dest = "command"};
    static const struct {
        const struct pyarg_parser *p;
        const char *line, *words;
    } cases[] = {
        {&p, "tool", "tool: error: the following arguments are required: jobs_file\n"},
        {&p, "tool --margin x f", "tool: error: argument --margin: invalid int value: 'x'\n"},
        {&p, "tool --max-jobs x f", "argument --max-jobs: invalid float value: 'x'\n"},
        {&p, "tool f --gpus", "argument --gpus: expected one argument\n"},
        {&p, "tool f --gpus -v", "argument --gpus: expected one argument\n"},
        {&p, "tool f g --nix", "unrecognized arguments: g --nix\n"},
        {&p, "tool f --ma 1", "ambiguous option: --ma could match --margin, --max-jobs\n"},
        {&p, "tool f --verbose=1", "argument -v/--verbose: ignored explicit argument '1'\n"},
        {&p, "tool",
         "usage: tool [-h] [--gpus 0,1,3] [--margin MIB] [--max-jobs MAX_JOBS] [-v]\n"
         "            jobs_file\n"},
        {&sub, "tool", "tool: error: the following arguments are required: command\n"},
        {&sub, "tool fly",
         "argument command: invalid choice: 'fly' (choose from 'run', 'status')\n"},
        {&sub, "tool run --mode x",
         "tool run: error: argument --mode: invalid choice: 'x' (choose from 'fast', "
         "'slow')\n"},
        {&sub, "tool run x", "tool: error: unrecognized arguments: x\n"},
    };

    (void)state;
    setenv("COLUMNS", "80", 1);
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_refusal(cases[i].p, cases[i].line, cases[i].words);
}

static void
reads_options_anywhere(void **state)
{
    static const struct pyarg_parser p = {.prog = "tool", .args = args};
    static char *lines[][7] = {
        {"tool", "f", "--gpus", "0,1", "--margin", "-5", "-v"},
        {"tool", "-v", "--gpus=0,1", "--marg", "-5", "f", NULL},
        {"tool", "--margin=-5", "--gpu", "0,1", "--verb", "--", "f"},
    };
    int status;

    (void)state;
    for (size_t i = 0; i < COUNT(lines); i++) {
        struct said said = {0};
        const struct pyarg_value *v = said.of;
        int argc = 0;

        while (argc < 7 && lines[i][argc])
            argc++;
        assert_int_equal(pyarg_read(&p, argc, lines[i], &said, &status), PYARG_NONE);
        assert_string_equal(v[FILE_NAME].text, "f");
        assert_string_equal(v[GPUS].text, "0,1");
        assert_int_equal(v[MARGIN].i, -5);
        assert_non_null(v[VERBOSE].text);
        assert_null(v[MAX_JOBS].text);
    }
}

/* --- records --- */

static void
keeps_what_is_no_json(void **state)
{
    char dir[] = "/tmp/berth-records-XXXXXX";
    struct records r;
    struct err e = {0};
    auto_buf struct buf text = BUF_INIT, line = BUF_INIT;

    (void)state;
    assert_non_null(mkdtemp(dir));
    auto_free char *path = xasprintf("%s/jobs.jsonl", dir);
    assert_int_equal(records_load(path, &r, &e), 0);
    assert_int_equal(r.n, 0);
    records_free(&r);
    buf_adds(&line, "{\"c\": 3}\n");
    assert_int_equal(records_append(path, &line, false, &e), 0);
    assert_int_equal(
        file_write_atomic_at(-100, path, "{\"a\":1}\n\nno json\n{\"b\":", 22, 0640, false, &e),
        0);
    assert_int_equal(records_append(path, &line, true, &e), 0);
    assert_int_equal(records_load(path, &r, &e), 0);
    assert_int_equal(r.n, 4);
    assert_string_equal(r.at[1].text, "no json");
    records_free(&r);
    assert_int_equal(file_read(path, 1000, &text, &e), 0);
    assert_string_equal(buf_str(&text), "{\"a\":1}\n\nno json\n{\"b\":\n{\"c\": 3}\n");
    unlink(path);
    rmdir(dir);
}

static void
names_files_for_the_daemon(void **state)
{
    static const char *const there[] = {"/", "/usr/../usr", "."};

    (void)state;
    for (size_t i = 0; i < COUNT(there); i++) {
        auto_free char *name = compat_absolute(there[i]), *real = realpath(there[i], NULL);

        assert_string_equal(name, real);
    }
    auto_free char *new = compat_absolute("/usr/../usr/none"), *far = compat_absolute("/no/ne"),
                   *near = compat_absolute("no/ne"), *here = getcwd(NULL, 0);
    auto_free char *want = xasprintf("%s/no/ne", here),
                   *log = compat_log_pattern("/100%", "%g");

    assert_string_equal(new, "/usr/none");
    assert_string_equal(far, "/no/ne");
    assert_string_equal(near, want);
    assert_string_equal(log, "/100%%/%g");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_floats_as_repr_does),
        cmocka_unit_test(reads_numbers_as_int_and_float_do),
        cmocka_unit_test(strips_white_space_as_python_does),
        cmocka_unit_test(writes_texts_as_repr_does),
        cmocka_unit_test(writes_json_as_dumps_does),
        cmocka_unit_test(joins_paths_as_pathlib_does),
        cmocka_unit_test(refuses_in_argparses_words),
        cmocka_unit_test(reads_options_anywhere),
        cmocka_unit_test(keeps_what_is_no_json),
        cmocka_unit_test(names_files_for_the_daemon),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
