/* Jobs files: the meaning of lines, error positions, identity, size, and a property: for any
 * bytes the parser answers and keeps its promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "spec/jobsfile.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define BYTES(s) s, sizeof(s) - 1

/* Commands of the file, each with its line number, "1:true|3:false|". */
static void
parse_to_text(const char *text, size_t len, struct buf *out)
{
    struct jobsfile f;
    struct err e;

    buf_clear(out);
    if (jobsfile_parse("F", text, len, NULL, &f, &e) < 0)
        buf_addf(out, "! %s", e.text);
    for (size_t i = 0; i < f.n_lines; i++)
        buf_addf(out, "%d:%s|", f.lines[i].line, f.lines[i].req.command);
    jobsfile_free(&f);
}

static void
finds_the_commands(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *commands;
    } cases[] = {
        {BYTES(""), ""},
        {BYTES("\n\n"), ""},
        {BYTES("# a\n  # b\n\t#c"), ""},
        {BYTES("true"), "1:true|"},
        {BYTES("true\n"), "1:true|"},
        {BYTES("true\r\nfalse\r\n"), "1:true|2:false|"},
        {BYTES("\xef\xbb\xbftrue\n"), "1:true|"},
        {BYTES("\xef\xbb\xbf"), ""},
        {BYTES("\xef\xbb\xbf[vram=8G] true\n"), "1:true|"},
        {BYTES(" \t true # not a comment \t\n"), "1:true # not a comment|"},
        {BYTES("\ntrue\n\n# x\nfalse"), "2:true|5:false|"},
        {BYTES("[] true"), "1:true|"},
        {BYTES("[vram=8G]true"), "1:true|"},
        {BYTES("  [vram=8G\tgpus=2 ]   true x"), "1:true x|"},
        {BYTES("[VRAM=8g HOLD] true"), "1:true|"},
        {BYTES("[ -f x ] && true"), "1:[ -f x ] && true|"},
        {BYTES("[\t-f x ] && true"), "1:[\t-f x ] && true|"},
        {BYTES("[[ -f x ]] && true"), "1:[[ -f x ]] && true|"},
        {BYTES("[] [ -f x ]"), "1:[ -f x ]|"},
        {BYTES("[name=\"a ] b\" env-setup='x \"y\"']true"), "1:true|"},
        {BYTES("[env-setup=a'b' name=c]d]e]"), "1:d]e]|"},
        {BYTES("[] [vram=8G] true"), "1:[vram=8G] true|"},
        {BYTES("echo [vram=8G"), "1:echo [vram=8G|"},
        {BYTES("a \\\nb \\\n  c\nd"), "1:a b   c|4:d|"},
        {BYTES("a \\\r\nb\r\n"), "1:a b|"},
        {BYTES("a\\\nb"), "1:ab|"},
        {BYTES("[vram=8G \\\n gpus=2] a\nb"), "1:a|3:b|"},
        {BYTES("[vram\\\n=8G] a"), "1:a|"},
        {BYTES("a \\\\\nb"), "1:a \\\\|2:b|"}, /* an escaped backslash */
        {BYTES("a \\\\\\\nb"), "1:a \\\\b|"},
        {BYTES("a \\ \nb"), "1:a \\|2:b|"}, /* followed by a blank */
        {BYTES("# a \\\nb"), "2:b|"},       /* a comment does not continue */
        {BYTES("a \\\n# b"), "1:a # b|"},
        {BYTES("a \\\n\nb"), "1:a|3:b|"},
        {BYTES("\\\ntrue"), "1:true|"},
        {BYTES("echo \xc3\xa9t\xc3\xa9"), "1:echo \xc3\xa9t\xc3\xa9|"},
    };
    auto_buf struct buf got = BUF_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        parse_to_text(cases[i].text, cases[i].len, &got);
        if (strcmp(buf_str(&got), cases[i].commands) != 0)
            fail_msg("case %zu '%s': %s", i, cases[i].text, buf_str(&got));
    }
}

static void
says_where_and_what(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *error;
    } cases[] = {
        {BYTES("[vram=8G"), "F:1:1: unterminated [; close the attributes with ]"},
        {BYTES("true\n  ["), "F:2:3: unterminated ["},
        {BYTES("[vram=8G\n] true"), "F:1:1: unterminated ["},
        {BYTES("[name=\"a] b"), "F:1:7: unterminated \"; close it before the ]"},
        {BYTES("[name=\"a] echo \"b\""), "F:1:7: unterminated \""},
        {BYTES("[hold name='a"), "F:1:1: unterminated ["},
        {BYTES("[env=A=\"a\"b] c"),
         "F:1:2: env: expected a blank or ] after the closing quote"},
        {BYTES("[name=\"a\"b] c"),
         "F:1:2: name: expected a blank or ] after the closing quote"},
        {BYTES("[env-setup='a' 'b'] c"), "F:1:16: unknown attribute ''b''"},
        {BYTES("[vram=8X] a"), "F:1:2: vram: '8X' is not a size; write 8G"},
        {BYTES("[gpus=2 vram=8X] a"), "F:1:9: vram: '8X'"},
        {BYTES("\xef\xbb\xbf[vram=8X] a"), "F:1:2: vram: '8X'"},
        {BYTES("[vrma=8G] a"), "F:1:2: unknown attribute 'vrma'; did you mean 'vram'?"},
        {BYTES("[array=0-9] a"), "F:1:2: array: a line is one job"},
        {BYTES("[vram=80 G] a"), "F:1:10: unknown attribute 'G'; "},
        {BYTES("[vram=80 G] a"), "write vram=8G, not vram=8 G"},
        {BYTES("[vram=8] a"), "F:1:2: vram: 8 MiB? write 8G"},
        {BYTES("[vram=8G,gpus=x] a"), "F:1:10: gpus: 'x' is not a number of GPUs"},
        {BYTES("[vram=8G] [gpus=1] a"),
         "F:1:11: a second [ of attributes; put all attributes into"},
        {BYTES("[vram=8G]  [hold] a"), "F:1:12: a second [ of attributes"},
        {BYTES(" vram=8G a b"),
         "F:1:2: vram=... looks like an attribute without brackets; write "
         "[vram=8G] before the command, or env vram=8G"},
        {BYTES("array=0-9 a"), "F:1:1: array=... looks like an attribute"},
        {BYTES("[hold G] a"), "F:1:7: unknown attribute 'G'; "},
        {BYTES("[vram = 8G] a"), "F:1:2: vram needs a value: vram=SIZE"},
        {BYTES("[=8G] a"), "F:1:2: a value without a name"},
        {BYTES("[vram=8G]"), "F:1:10: no command after the attributes"},
        {BYTES("x\n[vram=8G]  \t\n"), "F:2:10: no command after"},
        {BYTES("[]"), "F:1:3: no command after"},
        {BYTES("[gpus=0 vram=8G] a"), "F:1:1: gpus=0 requests no GPU, so vram has no effect"},
        {BYTES("  [gpus=1 gpu-ids=0,1] a"), "F:1:3: gpus=1, but gpu-ids names 2"},
        {BYTES("[name=\xc3\xa9\xc3\xa9 vram=8X] a"), "F:1:10: vram: '8X'"},
        {BYTES("[gpus=2 \\\n  vram=8X] a"), "F:2:3: vram: '8X'"},
        {BYTES("[gpus=2 \\\n vram=\\\n8X] a"), "F:2:2: vram: '8X'"},
        {BYTES("[gpus=2 \\\nhold \\\n]"), "F:3:2: no command after"},
        {BYTES("a\nb \\"), "F:2:3: the backslash continues this line, but the file ends"},
        {BYTES("a\nb \\\n"), "F:2:3: the backslash continues this line, but the file ends"},
        {BYTES("a\\\nb \\"), "F:2:3: the backslash continues this line"},
        {BYTES("a\xff"), "F:1:2: byte 0xff is not UTF-8; save the file as UTF-8"},
        {BYTES("\xc3\xa9\xe2\x82"), "F:1:2: byte 0xe2 is not UTF-8"},
        {BYTES("# latin-1: \xe9t\xe9\n"), "F:1:12: byte 0xe9 is not UTF-8"},
        {BYTES("\xff\xfe"
               "t\0r\0"),
         "F:1:1: this looks like UTF-16"},
        {BYTES("a\nb\0c"), "F:2:2: a NUL byte"},
        {BYTES("a\x1b[m"), "F:1:2: control character 0x1b"},
        {BYTES("a\x7f"), "F:1:2: control character 0x7f"},
        {BYTES("a\rb\n"), "F:1:2: a carriage return inside a line"},
        {BYTES("a\r"), "F:1:2: a carriage return inside a line"},
        {BYTES("a\\\nb\x01"), "F:2:2: control character 0x01"},
    };
    auto_buf struct buf got = BUF_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        parse_to_text(cases[i].text, cases[i].len, &got);
        const char *part = strncmp(cases[i].error, "F:", 2) == 0 ? got.data + 2 : got.data;
        if (got.len < 2 || got.data[0] != '!' || !strstr(part, cases[i].error) ||
            (part != got.data && strncmp(part, cases[i].error, strlen(cases[i].error)) != 0))
            fail_msg("case %zu: wanted '%s', got '%s'", i, cases[i].error, buf_str(&got));
    }
}

static void
one_error_empties_the_file(void **state)
{
    const char *text = "true\n[vram=x] a\nfalse\n[gpus=x hold=y] b\n[vram=1\x02] c\n";
    struct jobsfile f;
    struct err e;

    (void)state;
    assert_int_equal(jobsfile_parse("F", text, strlen(text), NULL, &f, &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    assert_int_equal(f.n_lines, 0);
    assert_null(f.lines);
    assert_int_equal(f.n_errors, 4); /* the fifth line's bytes, but not its attributes too */
    assert_string_equal(f.errors[0], e.text);
    assert_memory_equal(f.errors[1], "F:4:2: gpus", 11);
    assert_memory_equal(f.errors[2], "F:4:9: hold", 11);
    assert_memory_equal(f.errors[3], "F:5:8: control", 14);
    jobsfile_free(&f);
}

static void
errors_have_a_bound(void **state)
{
    auto_buf struct buf text = BUF_INIT;
    struct jobsfile f;
    struct err e;

    (void)state;
    for (int i = 0; i < 1000; i++)
        buf_adds(&text, "[vram=x] a\n\xff\n");
    assert_int_equal(jobsfile_parse("F", text.data, text.len, NULL, &f, &e), -1);
    assert_int_equal(f.n_errors, JOBSFILE_ERRORS_MAX);
    assert_memory_equal(f.errors[20], "F:21:", 5);
    jobsfile_free(&f);
}

static void
a_long_name_leaves_room_for_the_words(void **state)
{
    char name[5000];
    struct jobsfile f;
    struct err e;

    (void)state;
    memset(name, 'd', sizeof name);
    memcpy(name + sizeof name - 10, "/jobs.txt", 10);
    assert_int_equal(jobsfile_parse(name, "[vram", 5, NULL, &f, &e), -1);
    assert_non_null(strstr(e.text, "/jobs.txt:1:1: unterminated"));
    assert_non_null(strstr(e.text, "] command"));
    jobsfile_free(&f);
}

static void
takes_attributes(void **state)
{
    const char *text = "[vram=18G gpus=2 timeout=2h retries=1 name=n vram=2G] a\nb\n";
    struct jobsfile f;
    struct err e;

    (void)state;
    assert_int_equal(jobsfile_parse("F", text, strlen(text), NULL, &f, &e), 0);
    assert_int_equal(f.n_lines, 2);
    assert_int_equal(f.lines[0].req.demand.vram_mib, 2048);
    assert_int_equal(f.lines[0].req.demand.gpus, 2);
    assert_int_equal(f.lines[0].req.limit_ms, 7200000);
    assert_int_equal(f.lines[0].req.retries, 1);
    assert_string_equal(f.lines[0].req.name, "n");
    assert_int_equal(f.lines[1].req.demand.vram_mib, 0);
    assert_int_equal(f.lines[1].req.demand.gpus, 1);
    assert_int_equal(f.lines[1].req.oom_retries, -1);
    jobsfile_free(&f);
}

/* Commas and blanks both separate attributes; within a value commas belong to the value. */
static void
commas_separate_attributes(void **state)
{
    static const char *const texts[] = {"[vram=8G, gpus=2, hold] a", "[vram=8G,gpus=2 hold] a",
                                        "[hold,vram=8G,gpus=2] a",
                                        "[vram=8G , gpus=2 ,hold,] a"};
    const char *lists = "[gpu-ids=3,1, tag=a,b,name=x after=p,q] true";
    struct jobsfile f;
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        assert_int_equal(jobsfile_parse("F", texts[i], strlen(texts[i]), NULL, &f, &e), 0);
        assert_int_equal(f.lines[0].req.demand.vram_mib, 8192);
        assert_int_equal(f.lines[0].req.demand.gpus, 2);
        assert_true(f.lines[0].req.hold);
        jobsfile_free(&f);
    }
    assert_int_equal(jobsfile_parse("F", lists, strlen(lists), NULL, &f, &e), 0);
    assert_int_equal(f.lines[0].req.demand.n_ids, 2);
    assert_string_equal(f.lines[0].req.tags[1], "b");
    assert_string_equal(f.lines[0].req.name, "x");
    assert_int_equal(f.lines[0].req.n_deps, 2);
    jobsfile_free(&f);
}

/* Shell syntax that must not be taken for a mistake. */
static void
shell_stays_shell(void **state)
{
    static const char *const texts[] = {"name=x prog",
                                        "log=a/b prog",
                                        "seed=1 prog",
                                        "vram=x prog",
                                        "[[ -f a ]] && prog",
                                        "VRAM=8G prog",
                                        "[vram=8G] [[ -f a ]] && prog",
                                        "[vram=8G] [ -f a ]",
                                        "[vram=8G] [a-z]*/prog",
                                        "[] [vram=8G] prog",
                                        "[] vram=8G prog",
                                        "env vram=8G prog"};
    struct jobsfile f;
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        if (jobsfile_parse("F", texts[i], strlen(texts[i]), NULL, &f, &e) < 0)
            fail_msg("%s: %s", texts[i], e.text);
        jobsfile_free(&f);
    }
}

static void
identity_is_the_command_and_its_count(void **state)
{
    const char *text = "abc\n[vram=8G]  abc \n\nx\nab\\\nc\n";
    struct jobsfile f;
    struct err e;

    (void)state;
    assert_int_equal(jobsfile_parse("F", text, strlen(text), NULL, &f, &e), 0);
    assert_int_equal(f.n_lines, 4);
    assert_string_equal(f.lines[0].key, "a9993e364706#0"); /* FIPS 180's own example */
    assert_string_equal(f.lines[1].key, "a9993e364706#1");
    assert_string_equal(f.lines[2].key, "11f6ad8ec52a#0");
    assert_string_equal(f.lines[3].key, "a9993e364706#2"); /* joined: the same command */
    jobsfile_free(&f);
}

static double
cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Limits ten times what is measured, so that only a quadratic parser exceeds them, even with
 * sanitizers on a busy machine. */
static void
hundred_thousand_lines(void **state)
{
    auto_buf struct buf text = BUF_INIT;
    struct jobsfile f;
    struct err e;
    double before;

    (void)state;
    for (int i = 0; i < 100000; i++)
        buf_addf(&text, "[vram=8G timeout=2h] python train.py --config c%d.yaml\n", i % 50000);
    before = cpu_seconds();
    assert_int_equal(jobsfile_parse("F", text.data, text.len, NULL, &f, &e), 0);
    print_message("100,000 lines: %.1f ms\n", (cpu_seconds() - before) * 1e3);
    assert_true(cpu_seconds() - before < 3);
    assert_int_equal(f.n_lines, 100000);
    assert_string_equal(f.lines[99999].key + 12, "#1");
    assert_string_equal(f.lines[49999].key + 12, "#0");
    assert_memory_equal(f.lines[99999].key, f.lines[49999].key, 12);
    jobsfile_free(&f);
}

static void
all_lines_alike(void **state)
{
    auto_buf struct buf text = BUF_INIT;
    struct jobsfile f;
    struct err e;

    (void)state;
    for (int i = 0; i < 100000; i++)
        buf_adds(&text, "true\n");
    assert_int_equal(jobsfile_parse("F", text.data, text.len, NULL, &f, &e), 0);
    assert_string_equal(f.lines[99999].key + 12, "#99999");
    jobsfile_free(&f);
}

static void
long_commands_up_to_the_bound(void **state)
{
    static const struct {
        size_t len;
        int rc;
    } cases[] = {{1024 * 1024, 0}, {JOBSFILE_COMMAND_MAX, 0}, {JOBSFILE_COMMAND_MAX + 1, -1}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf text = BUF_INIT;
        struct jobsfile f;
        struct err e;
        double before = cpu_seconds();
        buf_adds(&text, "  ");
        buf_reserve(&text, cases[i].len);
        memset(text.data + 2, 'x', cases[i].len);
        text.len += cases[i].len;
        assert_int_equal(jobsfile_parse("F", text.data, text.len, NULL, &f, &e), cases[i].rc);
        assert_true(cpu_seconds() - before < 2);
        if (cases[i].rc == 0)
            assert_int_equal(strlen(f.lines[0].req.command), cases[i].len);
        else
            assert_string_equal(e.text,
                                "F:1:3: the command has 4194305 bytes; the maximum is 4194304");
        jobsfile_free(&f);
    }
}

static void
a_hundred_thousand_continuations(void **state)
{
    auto_buf struct buf text = BUF_INIT;
    struct jobsfile f;
    struct err e;
    double before;

    (void)state;
    for (int i = 0; i < 100000; i++)
        buf_adds(&text, "arg \\\n");
    buf_adds(&text, "end\nnext\n");
    before = cpu_seconds();
    assert_int_equal(jobsfile_parse("F", text.data, text.len, NULL, &f, &e), 0);
    assert_true(cpu_seconds() - before < 2);
    assert_int_equal(f.n_lines, 2);
    assert_int_equal(strlen(f.lines[0].req.command), 4 * 100000 + 3);
    assert_int_equal(f.lines[1].line, 100002);
    jobsfile_free(&f);
}

/* Must hold for every text: lines or errors, never both; unique keys; commands stripped and
 * plain; a text that parses does so again when written line by line. */
static void
check_promises(const char *text, size_t len)
{
    struct jobsfile f, again;
    struct err e;
    int rc = jobsfile_parse("F", text, len, NULL, &f, &e);

    assert_int_equal(rc == 0, f.n_errors == 0);
    if (rc != 0)
        assert_true(f.n_lines == 0 && strncmp(e.text, "F:", 2) == 0);
    auto_buf struct buf rewritten = BUF_INIT;
    for (size_t i = 0; i < f.n_lines; i++) {
        const char *c = f.lines[i].req.command;
        assert_true(*c && !strchr(" \t", *c) && !strchr(" \t", c[strlen(c) - 1]));
        assert_true(text_is_utf8(c, strlen(c), NULL));
        assert_true(i == 0 || f.lines[i].line > f.lines[i - 1].line);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(f.lines[i].key, f.lines[j].key);
        if (c[strlen(c) - 1] != '\\')
            buf_addf(&rewritten, "[] %s\n", c);
    }
    assert_int_equal(jobsfile_parse("F", rewritten.data, rewritten.len, NULL, &again, &e), 0);
    for (size_t i = 0, j = 0; i < again.n_lines; i++, j++) {
        while (f.lines[j].req.command[strlen(f.lines[j].req.command) - 1] == '\\')
            j++;
        assert_string_equal(again.lines[i].req.command, f.lines[j].req.command);
    }
    jobsfile_free(&again);
    jobsfile_free(&f);
}

static void
keeps_its_promises_for_any_text(void **state)
{
    static const char *const parts[] = {
        "[",      "]",    "[]",         "[[",         " ",        "\t",      "\n",
        "\r\n",   "\\",   "\\\n",       "#",          "=",        "vram=8G", "vram=x",
        "gpus=2", "hold", "true",       "echo hi",    "\xc3\xa9", "\xff",    "gpu-ids=0,1",
        "\r",     "\x01", "[vram=8G] ", "[hold] a\n", "b\n",      "b\n",     "c \\\nd\n",
    };
    uint32_t seed = 12345;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        auto_buf struct buf text = BUF_INIT;
        /* Half of the rounds leave out what no file may contain, so that many files are
         * valid. */
        size_t pool = COUNT(parts), n = (seed >> 16) % 24;
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1664525 + 1013904223;
            const char *part = parts[(seed >> 10) % pool];
            bool bad = strchr("\xff\x01\r", part[0]) && part[1] != '\n';
            if (!bad || round % 2)
                buf_adds(&text, part);
        }
        seed = seed * 1664525 + 1013904223;
        check_promises(text.data, text.len);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_commands),
        cmocka_unit_test(says_where_and_what),
        cmocka_unit_test(one_error_empties_the_file),
        cmocka_unit_test(errors_have_a_bound),
        cmocka_unit_test(a_long_name_leaves_room_for_the_words),
        cmocka_unit_test(takes_attributes),
        cmocka_unit_test(commas_separate_attributes),
        cmocka_unit_test(shell_stays_shell),
        cmocka_unit_test(identity_is_the_command_and_its_count),
        cmocka_unit_test(hundred_thousand_lines),
        cmocka_unit_test(all_lines_alike),
        cmocka_unit_test(long_commands_up_to_the_bound),
        cmocka_unit_test(a_hundred_thousand_continuations),
        cmocka_unit_test(keeps_its_promises_for_any_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
