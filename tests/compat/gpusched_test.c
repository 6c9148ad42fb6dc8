/* The drop-in gpusched's jobs file: the meaning of a line, and the key that identifies it:
 * hashlib.sha1(command.encode()).hexdigest()[:12] and the line's number among equal ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "compat/gpusched/gpusched.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void
takes_lines_as_the_original_does(void **state)
{
    static const struct {
        const char *line, *command;
        double vram_mib;
        int64_t gpus;
        double timeout_s;
        int64_t retries;
        bool cancel;
    } cases[] = {
        {"echo a", "echo a", 0, 1, 0, 0, false},
        {"\t [vram=18G] \techo  a \r", "echo  a", 18432, 1, 0, 0, false},
        {"[vram=8000]echo a", "echo a", 8000, 1, 0, 0, false},
        {"[]echo a", "echo a", 0, 1, 0, 0, false},
        {"[ ] echo a", "echo a", 0, 1, 0, 0, false},
        {"[VRAM=1.5gIb GPUS=2\tRetries=+3 TimeOut=1.5M Cancel] x", "x", 1536, 2, 90, 3, true},
        {"[vram=1G vram=2G] x", "x", 2048, 1, 0, 0, false},
        {"[vram=5mb] x", "x", 5, 1, 0, 0, false},
        {"[vram=0.5] x", "", 0, 0, 0, 0, false}, /* rounds half to even: 0, which is refused */
        {"[vram=1.5] x", "x", 2, 1, 0, 0, false},
        {"[vram=2.5] x", "x", 2, 1, 0, 0, false},
        {"[timeout=90] x", "x", 0, 1, 90, 0, false},
        {"[timeout=0.4s] x", "x", 0, 1, 0.4, 0, false},
        {"[timeout=2H] x", "x", 0, 1, 7200, 0, false},
        {"[timeout=1d gpus=1_0] x", "x", 0, 10, 86400, 0, false},
        {"[vram=1G] [vram=2G] x", "[vram=2G] x", 1024, 1, 0, 0, false},
        {"echo [vram=2G] # no comment", "echo [vram=2G] # no comment", 0, 1, 0, 0, false},
        {"[vram=1G\u00a0gpus=2\u3000]\u00a0x\u2003", "x", 1024, 2, 0, 0, false},
        {"[vram=1G # x] x", "", 0, 0, 0, 0, false},
        {"[vram=] x", "", 0, 0, 0, 0, false},
        {"[vram=-1] x", "", 0, 0, 0, 0, false},
        {"[vram=1e3] x", "", 0, 0, 0, 0, false},
        {"[vram=.5G] x", "", 0, 0, 0, 0, false},
        {"[vram=1T] x", "", 0, 0, 0, 0, false},
        {"[=3] x", "", 0, 0, 0, 0, false},
        {"[timeout=1m30s] x", "", 0, 0, 0, 0, false},
        {"[retries=1.0] x", "", 0, 0, 0, 0, false},
        {"[cancel=1] x", "", 0, 0, 0, 0, false},
        {"echo \xe4", "", 0, 0, 0, 0, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf why = BUF_INIT;
        struct gs_jobs jobs;
        int rc = gs_jobs_parse(cases[i].line, strlen(cases[i].line), &jobs, &why);

        if ((rc == 0) != (cases[i].command[0] != '\0'))
            fail_msg("'%s': %d (%s)", cases[i].line, rc, buf_str(&why));
        if (rc < 0)
            continue;
        assert_int_equal(jobs.n, 1);
        assert_string_equal(jobs.at[0].command, cases[i].command);
        if (jobs.at[0].vram_mib != cases[i].vram_mib || jobs.at[0].gpus != cases[i].gpus ||
            jobs.at[0].timeout_s != cases[i].timeout_s ||
            jobs.at[0].retries != cases[i].retries || jobs.at[0].cancel != cases[i].cancel)
            fail_msg("'%s' is taken for something else", cases[i].line);
        gs_jobs_free(&jobs);
    }
}

static void
knows_lines_by_their_commands(void **state)
{
    static const char text[] = "\xef\xbb\xbf# a comment\r\n"
                               "\r\n"
                               "echo b\r\n"
                               "[vram=1G] echo b\r"
                               "  # another\n"
                               "[cancel]echo b\n"
                               "echo \xc3\xbc \xf0\x9f\x98\x80";
    static const char *const keys[] = {"395128f94f93#0", "395128f94f93#1", "395128f94f93#2",
                                       "f0f87d15c3da#0"};
    auto_buf struct buf why = BUF_INIT;
    struct gs_jobs jobs;

    (void)state;
    assert_int_equal(gs_jobs_parse(text, sizeof text - 1, &jobs, &why), 0);
    assert_int_equal(jobs.n, COUNT(keys));
    for (size_t i = 0; i < COUNT(keys); i++)
        assert_string_equal(jobs.at[i].key, keys[i]);
    gs_jobs_free(&jobs);
}

static void
refuses_the_whole_file(void **state)
{
    static const char text[] = "echo a\r\n\n[vram=8G\necho b\n[vram=x] c\n";
    auto_buf struct buf why = BUF_INIT;
    struct gs_jobs jobs;

    (void)state;
    assert_int_equal(gs_jobs_parse(text, sizeof text - 1, &jobs, &why), -1);
    assert_string_equal(buf_str(&why),
                        "jobs file line 3: unterminated '[...]' attribute block");
    assert_int_equal(jobs.n, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_lines_as_the_original_does),
        cmocka_unit_test(knows_lines_by_their_commands),
        cmocka_unit_test(refuses_the_whole_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
