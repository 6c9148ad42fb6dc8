/* The socket client, against the other end of a socket pair: every answer is written before it
 * is requested, so nothing blocks and no thread is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "wire/client.h"

struct pair {
    struct client *client;
    int server;
    struct buf seen; /* what the callbacks received */
};

static void
on_notify(void *ctx, const char *method, json_t *params)
{
    struct pair *p = ctx;

    buf_addf(&p->seen, "%s %lld;", method,
             (long long)json_integer_value(json_object_get(params, "seq")));
}

static void
on_answer(void *ctx, int64_t id, json_t *result, const struct err *error)
{
    struct pair *p = ctx;

    buf_addf(&p->seen, "answer %lld %s;", (long long)id, result ? "good" : error->text);
}

static int
set_up(void **state)
{
    struct pair *p = xcalloc(1, sizeof *p);
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        return -1;
    p->client = client_from_fd(ends[0]);
    p->server = ends[1];
    client_listen(p->client, on_notify, on_answer, p);
    *state = p;
    return 0;
}

static int
tear_down(void **state)
{
    struct pair *p = *state;

    client_free(p->client);
    if (p->server >= 0)
        close(p->server);
    buf_free(&p->seen);
    free(p);
    return 0;
}

static void
say(const struct pair *p, const char *text)
{
    assert_int_equal(write(p->server, text, strlen(text)), strlen(text));
}

static void
test_call_sends_one_line_and_takes_the_answer(void **state)
{
    struct pair *p = *state;
    json_t *result = NULL;
    struct err e;
    char line[256] = "";

    say(p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"n\":5}}\n");
    assert_int_equal(client_call(p->client, "m", json_pack("{s:i}", "a", 1), &result, &e), 0);
    assert_int_equal(json_integer_value(json_object_get(result, "n")), 5);
    json_decref(result);
    assert_true(read(p->server, line, sizeof line - 1) > 0);
    assert_string_equal(
        line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":1}}\n");
}

static void
test_what_comes_behind_the_answer_is_delivered_after_it(void **state)
{
    struct pair *p = *state;
    struct err e;

    say(p, "{\"method\":\"event\",\"params\":{\"seq\":1}}\n{\"id\":1,\"result\":{}}\n"
           "{\"method\":\"event\",\"params\":{\"seq\":2}}\n{\"method\":\"ev");
    assert_int_equal(client_call(p->client, "m", NULL, NULL, &e), 0);
    assert_string_equal(buf_str(&p->seen), "event 1;");
    assert_int_equal(client_pump(p->client, &e), 0);
    assert_string_equal(buf_str(&p->seen), "event 1;event 2;");
    say(p, "ent\",\"params\":{\"seq\":3}}\n");
    assert_int_equal(client_pump(p->client, &e), 0);
    assert_string_equal(buf_str(&p->seen), "event 1;event 2;event 3;");
}

static void
on_text(void *ctx, int64_t id, const char *result, size_t n)
{
    struct pair *p = ctx;

    buf_addf(&p->seen, "text %lld %.*s;", (long long)id, (int)n, result);
}

static void
test_results_of_send_come_as_text(void **state)
{
    struct pair *p = *state;
    struct err e;

    client_listen_text(p->client, on_text);
    assert_int_equal(client_send(p->client, "m", NULL, &e), 1);
    assert_int_equal(client_send(p->client, "m", NULL, &e), 2);
    assert_int_equal(client_send(p->client, "m", NULL, &e), 3);
    say(p, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"n\":[5]}}\n"
           "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":2,\"message\":\"no\"}}\n"
           "{\"id\":3,\"jsonrpc\":\"2.0\",\"result\":{}}\n");
    assert_int_equal(client_pump(p->client, &e), 0);
    assert_string_equal(buf_str(&p->seen), "text 2 {\"n\":[5]};answer 1 no;answer 3 good;");
    buf_clear(&p->seen);
    say(p, "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}\n");
    assert_int_equal(client_call(p->client, "m", NULL, NULL, &e), 0);
    assert_string_equal(buf_str(&p->seen), "");
}

static void
test_answers_to_send_go_to_the_callback(void **state)
{
    struct pair *p = *state;
    struct err e;

    assert_int_equal(client_send(p->client, "wait", NULL, &e), 1);
    say(p, "{\"id\":1,\"result\":{}}\n{\"id\":2,\"result\":{}}\n");
    assert_int_equal(client_call(p->client, "m", NULL, NULL, &e), 0);
    assert_string_equal(buf_str(&p->seen), "answer 1 good;");
}

static void
test_errors_keep_their_kind_and_words(void **state)
{
    static const struct {
        const char *error;
        enum err_code code;
        const char *words;
    } cases[] = {
        {"{\"code\":3,\"message\":\"W\",\"data\":{\"kind\":\"no_job\"}}", ERR_NO_JOB, "W"},
        {"{\"code\":6,\"message\":\"W\"}", ERR_REFUSED, "W"},
        {"{\"code\":-32602,\"message\":\"W\"}", ERR_FAILED, "W"},
        {"{\"code\":-32601,\"message\":\"W\"}", ERR_FAILED,
         "W: the daemon has another version than this program; restart it with this version"},
        {"{\"code\":5,\"message\":\"W\",\"data\":{\"kind\":\"permission\"}}", ERR_PERMISSION,
         "W"},
    };
    struct pair *p = *state;

    for (int i = 0; i < 5; i++) {
        auto_buf struct buf line = BUF_INIT;
        struct err e = {0};

        buf_addf(&line, "{\"id\":%d,\"error\":%s}\n", i + 1, cases[i].error);
        say(p, buf_str(&line));
        assert_int_equal(client_call(p->client, "m", NULL, NULL, &e), -1);
        assert_int_equal(e.code, cases[i].code);
        assert_string_equal(e.text, cases[i].words);
    }
}

static void
test_raw_results_come_as_text(void **state)
{
    struct pair *p = *state;
    struct err e;
    const char *text;
    size_t n;

    say(p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"rows\":[[1,2]]}}\n"
           "{\"id\":2,\"jsonrpc\":\"2.0\",\"result\":{\"rows\":[]}}\n"
           "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":3,\"message\":\"none\"}}\n");
    assert_int_equal(client_call_raw(p->client, "m", NULL, &text, &n, &e), 0);
    assert_int_equal(n, strlen("{\"rows\":[[1,2]]}"));
    assert_memory_equal(text, "{\"rows\":[[1,2]]}", n);
    assert_int_equal(client_call_raw(p->client, "m", NULL, &text, &n, &e), 0);
    assert_memory_equal(text, "{\"rows\":[]}", n);
    assert_int_equal(client_call_raw(p->client, "m", NULL, &text, &n, &e), -1);
    assert_int_equal(e.code, ERR_NO_JOB);
}

static void
test_a_long_answer_arrives_whole(void **state)
{
    struct pair *p = *state;
    struct err e;
    json_t *result = NULL;
    auto_buf struct buf line = BUF_INIT;
    pid_t pid;

    buf_adds(&line, "{\"id\":1,\"result\":\"");
    for (int i = 0; i < 300000; i++)
        buf_adds(&line, "0123456789");
    buf_adds(&line, "\"}\n");
    pid = fork();
    if (pid == 0) {
        for (size_t at = 0; at < line.len;) {
            ssize_t n = write(p->server, line.data + at, line.len - at);

            if (n <= 0)
                _exit(1);
            at += (size_t)n;
        }
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(client_call(p->client, "m", NULL, &result, &e), 0);
    assert_int_equal(json_string_length(result), 3000000);
    json_decref(result);
}

static void
test_a_lost_daemon_is_unreachable(void **state)
{
    struct pair *p = *state;
    struct err e;

    say(p, "{\"method\":\"event\",\"params\":{\"seq\":1}}\n");
    close(p->server);
    p->server = -1;
    assert_int_equal(client_pump(p->client, &e), -1);
    assert_string_equal(buf_str(&p->seen), "event 1;");
    assert_int_equal(e.code, ERR_UNREACHABLE);
    assert_int_equal(client_call(p->client, "m", NULL, NULL, &e), -1);
    assert_int_equal(e.code, ERR_UNREACHABLE);
}

static void
test_nonsense_is_an_error(void **state)
{
    struct pair *p = *state;
    struct err e;

    say(p, "hello\n");
    assert_int_equal(client_pump(p->client, &e), -1);
    assert_int_equal(e.code, ERR_FAILED);
}

static void
test_nobody_there(void **state)
{
    struct err e;
    char path[200];

    (void)state;
    assert_null(client_connect("/nonexistent/berth.sock", &e));
    assert_int_equal(e.code, ERR_UNREACHABLE);
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_null(client_connect(path, &e));
    assert_int_equal(e.code, ERR_UNREACHABLE);
}

static void
test_silence_ends_a_call_that_has_patience(void **state)
{
    struct pair *p = *state;
    struct err e = {0};

    client_set_patience(p->client, 20);
    assert_int_equal(client_call(p->client, "status", NULL, NULL, &e), -1);
    assert_int_equal(e.code, ERR_UNREACHABLE);
    assert_non_null(strstr(e.text, "has not answered for 0.02 s"));
}

/* On a busy machine 100,000 jobs took the daemon longer than a client's timeout for a short
 * request, so the timeout grows with the request's length. */
static void
test_a_large_request_is_given_longer(void **state)
{
    struct pair *p = *state;
    struct err e = {0};
    auto_buf struct buf name = BUF_INIT;

    for (size_t i = 0; i < 64UL * 1024; i++)
        buf_addc(&name, 'x');
    client_set_patience(p->client, 20);
    assert_int_equal(
        client_call(p->client, "submit", json_pack("{s:s}", "name", buf_str(&name)), NULL, &e),
        -1);
    assert_int_equal(e.code, ERR_UNREACHABLE);
    assert_non_null(strstr(e.text, "has not answered for 1.02 s"));
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_call_sends_one_line_and_takes_the_answer),
        TEST(test_what_comes_behind_the_answer_is_delivered_after_it),
        TEST(test_answers_to_send_go_to_the_callback),
        TEST(test_errors_keep_their_kind_and_words),
        TEST(test_raw_results_come_as_text),
        TEST(test_results_of_send_come_as_text),
        TEST(test_a_long_answer_arrives_whole),
        TEST(test_a_lost_daemon_is_unreachable),
        TEST(test_nonsense_is_an_error),
        TEST(test_silence_ends_a_call_that_has_patience),
        TEST(test_a_large_request_is_given_longer),
        cmocka_unit_test(test_nobody_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
