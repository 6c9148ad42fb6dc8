/* Where the reader of a growing file continues when the file's content is no longer what was
 * shown. The supervisor cuts the middle out of a log in two steps, and may be delayed between
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/ask/text_follow.h"
#include "sys/log_cut.h"

#define HEAD "head\n"
#define CUT  LOG_CUT_BEGIN "1" LOG_CUT_WORDS "it has reached its largest size\ntail\n"

#define SECOND_US INT64_C(1000000)

static void
add(const struct textfile *f, const char *text)
{
    assert_int_equal(pwrite(f->fd, text, strlen(text), lseek(f->fd, 0, SEEK_END)),
                     (ssize_t)strlen(text));
}

/* A file shown completely so far; its reader closes it. */
static struct textfile
shown_log(void)
{
    static const char text[] = HEAD "middle\ntail\n";
    char path[] = "/tmp/berth-text-follow-XXXXXX";
    struct textfile f = TEXTFILE_INIT(NULL);

    f.fd = mkstemp(path);
    assert_true(f.fd >= 0);
    assert_int_equal(unlink(path), 0);
    add(&f, text);
    assert_true(textfile_place(&f));
    assert_int_equal(f.at, 0);
    textfile_shown(&f, text, strlen(text));
    assert_true(textfile_place(&f));
    return f;
}

/* Puts the file into the middle of a cut that began this many seconds ago. */
static void
begin_cut(struct textfile *f, int64_t seconds)
{
    assert_int_equal(ftruncate(f->fd, (off_t)strlen(HEAD)), 0);
    assert_false(textfile_place(f));
    assert_true(f->unclear_us > 0);
    f->unclear_us -= seconds * SECOND_US;
}

static void
test_many_looks_while_a_cut_is_made(void **state)
{
    auto_textfile struct textfile f = shown_log();

    (void)state;
    begin_cut(&f, -3600); /* this second does not pass while the test is delayed */
    for (int i = 0; i < 10; i++)
        assert_false(textfile_place(&f));
    add(&f, CUT);
    assert_true(textfile_place(&f));
    assert_int_equal(f.at, strlen(HEAD));
    assert_int_equal(f.unclear_us, 0);
}

static void
test_begun_anew_after_a_second(void **state)
{
    auto_textfile struct textfile f = shown_log();

    (void)state;
    begin_cut(&f, 1);
    assert_true(textfile_place(&f));
    assert_int_equal(f.at, 0);
    textfile_shown(&f, HEAD, strlen(HEAD));
    /* The next time, there is a second to wait again. */
    assert_int_equal(pwrite(f.fd, "anew", 4, 0), 4);
    assert_false(textfile_place(&f));
}

static void
test_begun_anew_where_nothing_more_comes(void **state)
{
    auto_textfile struct textfile f = shown_log();

    (void)state;
    begin_cut(&f, -3600);
    f.is_final = true;
    assert_true(textfile_place(&f));
    assert_int_equal(f.at, 0);
}

static void
test_emptied_is_begun_anew_at_once(void **state)
{
    auto_textfile struct textfile f = shown_log();

    (void)state;
    assert_int_equal(ftruncate(f.fd, 0), 0);
    assert_true(textfile_place(&f));
    assert_int_equal(f.at, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_looks_while_a_cut_is_made),
        cmocka_unit_test(test_begun_anew_after_a_second),
        cmocka_unit_test(test_begun_anew_where_nothing_more_comes),
        cmocka_unit_test(test_emptied_is_begun_anew_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
