/* Hook orders: parsed as the daemon writes them, judged by their result, and mails in which
 * user text never becomes a header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "shepherd/nursery/hook_command.h"
#include "shepherd/nursery/mail.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define HEAD                                                                                   \
    "{\"id\":\"x-1\",\"kind\":\"%s\",\"job\":7,\"target\":\"%s\",\"cwd\":\"/\",\"log\":\"/"    \
    "l\","                                                                                     \
    "\"limit_ms\":1500,\"event\":{\"seq\":3}}\n"

static int
read_order(const char *text, size_t n, struct order *out, struct err *e)
{
    auto_close int fd = memfd_create("order", MFD_CLOEXEC);

    assert_int_equal(write(fd, text, n), n);
    return order_read(fd, out, e);
}

static void
make_order(const char *kind, const char *target, struct order *out)
{
    auto_buf struct buf text = BUF_INIT;
    struct err e;

    buf_addf(&text, HEAD, kind, target);
    buf_add(&text, "A=1\0B=2 3", sizeof "A=1\0B=2 3");
    assert_int_equal(read_order(text.data, text.len, out, &e), 0);
}

static void
reads_an_order(void **state)
{
    static const char *const bad[] = {"",          "{}\n",          "{\"id\":1}\n",
                                      "no JSON\n", "{\"id\":\"x\"", "[]\n"};
    struct order o;
    struct err e;

    (void)state;
    make_order("on_end", "echo", &o);
    assert_int_equal(o.job, 7);
    assert_int_equal(o.uid, -1);
    assert_int_equal(o.limit_ms, 1500);
    assert_string_equal(o.env[0], "A=1");
    assert_string_equal(o.env[1], "B=2 3");
    assert_null(o.env[2]);
    order_free(&o);
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(read_order(bad[i], strlen(bad[i]), &o, &e), -1);
        order_free(&o);
    }
}

static void
judges_what_came_of_it(void **state)
{
    static const struct {
        const char *kind, *output;
        int status;
        const char *verdict, *text;
    } cases[] = {
        {"on_end", "a\nb\n\n", 0, "done", "b"},
        {"on_end", "", 3, "failed", ""},
        {"mail", "queue full\n", 75, "again", "queue full"},
        {"mail", "", 0, "done", ""},
        {"webhook", "\nhttp=204\n", 0, "done", "HTTP status 204"},
        {"webhook", "\nhttp=302\n", 0, "failed", "HTTP status 302"},
        {"webhook", "\nhttp=404\n", 0, "failed", "HTTP status 404"},
        {"webhook", "\nhttp=429\n", 0, "again", "HTTP status 429"},
        {"webhook", "\nhttp=503\n", 0, "again", "HTTP status 503"},
        {"webhook", "curl: (7) no\n\nhttp=000\n", 7, "again", "curl: (7) no"},
        {"webhook", "curl: (28) late\n\nhttp=200\n", 28, "again", "HTTP status 200"},
        {"webhook", "", 124, "again", ""},
        {"webhook", "http=200 is what I say\nhttp=", 0, "again", "http="},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf output = BUF_INIT;
        struct order o;
        char text[64];
        make_order(cases[i].kind, "x", &o);
        buf_adds(&output, cases[i].output);
        order_explain(&o, &output, text, sizeof text);
        assert_string_equal(text, cases[i].text);
        assert_string_equal(order_judge(&o, cases[i].status, text), cases[i].verdict);
        order_free(&o);
    }
}

static void
write_mail(const char *event, struct buf *out)
{
    json_t *e = json_loads(event, 0, NULL);

    assert_non_null(e);
    buf_clear(out);
    mail_write(e, "a@b", "x-1", out);
    json_decref(e);
}

/* Headers end at the first empty line; a header line that begins with a space continues the
 * previous one. */
static int
count_headers(const char *message)
{
    int n = 0;

    for (const char *line = message; *line && *line != '\n'; line = strchr(line, '\n') + 1)
        n += *line != ' ';
    return n;
}

static void
no_word_becomes_a_header(void **state)
{
    static const char *const names[] = {
        "x\\nBcc: you@x", "x\\r\\n\\r\\nbody",   "\\u2028",
        "\\u001b[2J",     "=?UTF-8?Q?=0ABcc:?=", "äöü中文äöü中文中文中文äöü中文äöü中文中文中文",
    };
    auto_buf struct buf out = BUF_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        auto_free char *event = NULL;
        assert_true(
            asprintf(
                &event,
                "{\"kind\":\"ended\",\"job\":3,\"state\":\"OUT_OF_MEMORY\",\"run_ms\":61000,"
                "\"name\":\"%s\",\"command\":\"%s\",\"text\":\"%s\"}",
                names[i], names[i], names[i]) > 0);
        write_mail(event, &out);
        assert_int_equal(count_headers(buf_str(&out)), 7);
        assert_null(strchr(buf_str(&out), '\r'));
        assert_null(strchr(buf_str(&out), '\x1b'));
        for (const char *line = buf_str(&out); *line; line = strchr(line, '\n') + 1)
            assert_true(strcspn(line, "\n") < 998);
    }
}

static void
says_what_happened(void **state)
{
    auto_buf struct buf out = BUF_INIT;

    (void)state;
    write_mail("{\"kind\":\"ended\",\"job\":9,\"array_job\":7,\"array_task\":2,\"state\":\"OUT_"
               "OF_MEMORY\","
               "\"run_ms\":61000,\"exit_status\":1,\"peak_mib\":{\"0\":900,\"1\":null}}",
               &out);
    assert_non_null(strstr(out.data, ": job 7_2 out of memory after 1m01s\n"));
    assert_non_null(strstr(out.data, "\nPeak      900 MiB of GPU 0\n"));
    assert_non_null(strstr(out.data, "\nStatus    1\n"));
    assert_non_null(strstr(out.data, "berth show 7_2\n"));
    write_mail("{\"kind\":\"requeued\",\"job\":9,\"text\":\"exit 1\"}", &out);
    assert_non_null(strstr(out.data, ": job 9 waiting to run again\n"));
    assert_non_null(strstr(out.data, "\nWhy       exit 1\n"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_an_order),
        cmocka_unit_test(judges_what_came_of_it),
        cmocka_unit_test(no_word_becomes_a_header),
        cmocka_unit_test(says_what_happened),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
