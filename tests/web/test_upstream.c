/* The page server's connection to a slow daemon. The daemon is a socket of the test; the clock
 * is the test's too, and a tick comes as soon as the loop is idle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include <cmocka.h>

#include "base/err.h"
#include "web/pages/upstream.h"

int64_t __wrap_clock_boot_us(void);
int __real_uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t in_ms, uint64_t each_ms);
int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t in_ms, uint64_t each_ms);

static int64_t now_us;

int64_t
__wrap_clock_boot_us(void)
{
    return now_us;
}

int
__wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t in_ms, uint64_t each_ms)
{
    return __real_uv_timer_start(timer, cb, in_ms, each_ms ? 1 : 0);
}

struct world {
    char path[64];
    int listener, peer;
    uv_loop_t loop;
    struct upstream *upstream;
    char asked[1024]; /* the request lines */
    int n_answers, n_errors;
    struct err error; /* the last */
};

static void
on_event(void *ctx, const json_t *event)
{
    (void)ctx;
    (void)event;
}

static void
on_state(void *ctx, bool connected, const char *why)
{
    (void)ctx;
    (void)connected;
    (void)why;
}

static void
on_answer(void *ctx, json_t *result, const struct err *error)
{
    struct world *w = ctx;

    w->n_answers += result != NULL;
    if (error) {
        w->n_errors++;
        w->error = *error;
    }
}

static void
begin(struct world *w)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct upstream_calls calls = {.on_event = on_event, .on_state = on_state, .ctx = w};

    *w = (struct world){.path = "/tmp/berth-upstream.XXXXXX"};
    now_us = 1000000;
    assert_non_null(mkdtemp(w->path));
    snprintf(at.sun_path, sizeof at.sun_path, "%s/s", w->path);
    w->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(w->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(w->listener, 4), 0);
    strncat(w->path, "/s", sizeof w->path - strlen(w->path) - 1);
    uv_loop_init(&w->loop);
    w->upstream = upstream_new(&w->loop, w->path, NULL, &calls);
    upstream_ask(w->upstream, "report", NULL, on_answer, w);
    uv_run(&w->loop, UV_RUN_ONCE); /* it connects, */
    w->peer = accept(w->listener, NULL, NULL);
    assert_true(w->peer >= 0);
}

/* Runs the loop until a tick has seen everything. */
static void
run(struct world *w)
{
    upstream_want(w->upstream);
    for (int i = 0; i < 10; i++)
        uv_run(&w->loop, UV_RUN_ONCE);
}

/* The number in the request line of this method. */
static long
number_of(const struct world *w, const char *method)
{
    const char *at = strstr(w->asked, method);

    assert_non_null(at);
    while (at > w->asked && at[-1] != '\n')
        at--;
    at = strstr(at, "\"id\":");
    return strtol(at + strlen("\"id\":"), NULL, 10);
}

static void
answers(const struct world *w, const char *method)
{
    char line[64];
    int n = snprintf(line, sizeof line, "{\"id\":%ld,\"result\":{}}\n", number_of(w, method));

    assert_int_equal(write(w->peer, line, (size_t)n), n);
}

/* The daemon reads both requests, and answers the one for events. */
static void
take_questions(struct world *w)
{
    size_t n = 0;

    run(w);
    while (!strstr(w->asked, "\"report\"") || !strstr(w->asked, "\"events\"")) {
        ssize_t got = read(w->peer, w->asked + n, sizeof w->asked - 1 - n);
        assert_true(got > 0);
        n += (size_t)got;
    }
    answers(w, "\"events\"");
    run(w);
}

static void
finish(struct world *w)
{
    upstream_free(w->upstream);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    close(w->peer);
    close(w->listener);
    unlink(w->path);
    *strrchr(w->path, '/') = '\0';
    rmdir(w->path);
}

static void
test_a_long_answer_is_waited_for_as_long_as_there_are_signs(void **state)
{
    char sign[96];
    struct world w;

    (void)state;
    begin(&w);
    take_questions(&w);
    assert_non_null(strstr(w.asked, "\"progress\":true"));
    snprintf(sign, sizeof sign, "{\"method\":\"progress\",\"params\":{\"id\":%ld}}\n",
             number_of(&w, "\"report\""));
    for (int i = 0; i < 4; i++) {
        now_us += 10 * INT64_C(1000000);
        assert_int_equal(write(w.peer, sign, strlen(sign)), strlen(sign));
        run(&w);
    }
    assert_string_equal(w.error.text, "");
    answers(&w, "\"report\"");
    run(&w);
    assert_int_equal(w.n_answers, 1);
    finish(&w);
}

static void
test_a_silent_daemon_is_given_up(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    take_questions(&w);
    now_us += 16 * INT64_C(1000000);
    run(&w);
    assert_int_equal(w.n_errors, 1);
    assert_non_null(strstr(w.error.text, "has not answered for 15 s"));
    finish(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_long_answer_is_waited_for_as_long_as_there_are_signs),
        cmocka_unit_test(test_a_silent_daemon_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
