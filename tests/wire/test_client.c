/* A client that outlives its daemon. Daemons are socket pairs made by again(), with their
 * whole conversation written before it returns; the clock is the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "wire/client.h"

int64_t __wrap_clock_boot_us(void);

/* Each reading of the clock is this much later than the one before. */
static int64_t now_us, step_us;

int64_t
__wrap_clock_boot_us(void)
{
    return now_us += step_us;
}

struct world {
    int n;              /* daemons so far */
    int answers_from;   /* the first daemon that answers; earlier ones only close */
    const char *answer; /* a line */
    int peer;           /* the peer's end of the last one */
};

static int
again(void *ctx, struct err *e)
{
    struct world *w = ctx;
    int ends[2];

    (void)e;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    w->n++;
    if (w->n >= w->answers_from)
        assert_int_equal(write(ends[1], w->answer, strlen(w->answer)), strlen(w->answer));
    else
        shutdown(ends[1], SHUT_WR); /* the request is accepted, then the daemon is gone */
    if (w->peer >= 0)
        close(w->peer);
    w->peer = ends[1];
    return ends[0];
}

/* A client whose first daemon sent this before it exited. */
static struct client *
client_of(struct world *w, const char *last_words)
{
    int ends[2];
    struct client *c;

    now_us = step_us = 0;
    w->peer = -1;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(write(ends[1], last_words, strlen(last_words)), strlen(last_words));
    shutdown(ends[1], SHUT_WR);
    w->peer = ends[1];
    c = client_from_fd(ends[0]);
    client_keep(c, again, NULL, w);
    return c;
}

static void
finish(struct world *w, struct client *c)
{
    client_free(c);
    close(w->peer);
}

static void
test_what_was_asked_is_asked_again_with_the_same_token(void **state)
{
    struct world w = {.answers_from = 1, .answer = "{\"id\":1,\"result\":{\"ids\":[7]}}\n"};
    struct client *c = client_of(&w, "{\"id\":1,\"resu");
    char first[256] = "", second[256] = "";
    int first_peer = dup(w.peer);
    auto_json json_t *result = NULL;
    struct err e = {0};

    (void)state;
    assert_int_equal(client_call(c, "submit", json_object(), &result, &e), 0);
    assert_int_equal(w.n, 1);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(result, "ids"), 0)), 7);
    assert_true(read(first_peer, first, sizeof first - 1) > 0);
    assert_true(read(w.peer, second, sizeof second - 1) > 0);
    assert_string_equal(first, second);
    assert_non_null(strstr(first, "\"token\":\""));
    close(first_peer);
    finish(&w, c);
}

static void
test_a_request_that_daemons_die_of_is_given_up(void **state)
{
    struct world w = {.answers_from = 1000};
    struct client *c = client_of(&w, "");
    struct err e = {0};

    (void)state;
    assert_int_equal(client_call(c, "wait", json_object(), NULL, &e), -1);
    assert_int_equal(e.code, ERR_UNREACHABLE);
    assert_non_null(strstr(e.text, "may be the cause"));
    assert_int_equal(w.n, 3);
    assert_int_equal(client_call(c, "status", NULL, NULL, &e), -1); /* permanently */
    finish(&w, c);
}

static void
test_a_long_wait_survives_any_number_of_restarts(void **state)
{
    struct world w = {.answers_from = 12, .answer = "{\"id\":1,\"result\":{}}\n"};
    struct client *c = client_of(&w, "");
    struct err e = {0};

    (void)state;
    step_us = INT64_C(60000000);
    assert_int_equal(client_call(c, "wait", json_object(), NULL, &e), 0);
    assert_int_equal(w.n, 12);
    finish(&w, c);
}

static void
test_a_daemon_that_was_stopped_is_not_looked_for(void **state)
{
    struct world w = {.answers_from = 1};
    struct client *c = client_of(&w, "{\"method\":\"stopped\",\"params\":{}}\n");
    struct err e = {0};

    (void)state;
    assert_int_equal(client_call(c, "wait", json_object(), NULL, &e), -1);
    assert_string_equal(e.text, "the daemon was stopped");
    assert_int_equal(w.n, 0);
    finish(&w, c);
}

static void
never(void *ctx, const char *method, json_t *params)
{
    (void)ctx;
    (void)params;
    fail_msg("the user of the client is told of \"%s\"", method);
}

static void
test_a_client_with_patience_asks_for_signs_and_keeps_them_to_itself(void **state)
{
    static const char sign[] = "{\"method\":\"progress\",\"params\":{\"id\":1}}\n";
    struct world w = {.answers_from = 1, .answer = "{\"id\":1,\"result\":{}}\n"};
    struct client *c = client_of(&w, sign);
    int first_peer = dup(w.peer);
    char asked[256] = "";
    struct err e = {0};

    (void)state;
    client_listen(c, never, NULL, NULL);
    client_set_patience(c, 60000);
    assert_int_equal(client_call(c, "cancel", NULL, NULL, &e), 0);
    assert_true(read(first_peer, asked, sizeof asked - 1) > 0);
    assert_non_null(strstr(asked, "\"progress\":true"));
    close(first_peer);
    finish(&w, c);
}

static void
count(void *ctx, const char *method, json_t *params)
{
    (void)method;
    (void)params;
    ++*(int *)ctx;
}

/* Data that came in one piece with an answer is delivered after it, and nothing else may
 * follow. */
static void
test_what_came_with_an_answer_is_not_waited_for(void **state)
{
    static const char both[] =
        "{\"id\":1,\"result\":{}}\n{\"method\":\"event\",\"params\":{}}\n";
    int ends[2], n = 0;
    struct client *c;
    struct err e = {0};

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(write(ends[1], both, strlen(both)), strlen(both));
    c = client_from_fd(ends[0]);
    client_listen(c, count, NULL, &n);
    assert_int_equal(client_call(c, "gpu.pause", NULL, NULL, &e), 0);
    assert_int_equal(n, 0);
    alarm(30); /* else it would wait for ever */
    assert_int_equal(client_wait(c, -1, &e), 0);
    alarm(0);
    assert_int_equal(n, 1);
    client_free(c);
    close(ends[1]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_asked_is_asked_again_with_the_same_token),
        cmocka_unit_test(test_a_request_that_daemons_die_of_is_given_up),
        cmocka_unit_test(test_a_long_wait_survives_any_number_of_restarts),
        cmocka_unit_test(test_a_daemon_that_was_stopped_is_not_looked_for),
        cmocka_unit_test(test_a_client_with_patience_asks_for_signs_and_keeps_them_to_itself),
        cmocka_unit_test(test_what_came_with_an_answer_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
