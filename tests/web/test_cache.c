/* Many clients ask and one request goes to the daemon: the cache with a daemon of this test,
 * which counts its requests. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
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
#include "web/http/query.h"
#include "web/http/reply.h"
#include "web/pages/cache.h"
#include "web/pages/upstream.h"

struct world {
    char folder[32], path[64];
    int listener;
    pthread_t daemon;
    atomic_int n_status; /* number of status requests */
    uv_loop_t loop;
    struct upstream *upstream;
    struct cache *cache;
    int answered, wanted, last_status;
};

/* Answers each line with an empty object; counts `status`. Ends with the connection. */
static void *
serve(void *arg)
{
    struct world *w = arg;
    char line[4096];
    int fd = accept(w->listener, NULL, NULL);
    FILE *in = fd >= 0 ? fdopen(fd, "r") : NULL;
    while (in && fgets(line, sizeof line, in)) {
        json_t *ask = json_loads(line, 0, NULL);
        long long id = json_integer_value(json_object_get(ask, "id"));
        if (strcmp(json_string_value(json_object_get(ask, "method")), "status") == 0)
            atomic_fetch_add(&w->n_status, 1);
        dprintf(fd, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"version\":1}}\n", id);
        json_decref(ask);
    }
    if (in)
        fclose(in);
    return NULL;
}

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
on_ready(void *ctx, struct reply *reply)
{
    struct world *w = ctx;
    w->last_status = reply->status;
    if (++w->answered == w->wanted)
        uv_stop(&w->loop);
}

static void
set_up(struct world *w, bool with_daemon)
{
    const struct upstream_calls calls = {on_event, on_state, w};
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    *w = (struct world){.listener = -1};
    strcpy(w->folder, "/tmp/berth-cache.XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->path, sizeof w->path, "%s/sock", w->folder);
    if (with_daemon) {
        memcpy(addr.sun_path, w->path, strlen(w->path) + 1);
        w->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(w->listener, (struct sockaddr *)&addr, sizeof addr), 0);
        assert_int_equal(listen(w->listener, 1), 0);
        assert_int_equal(pthread_create(&w->daemon, NULL, serve, w), 0);
    }
    uv_loop_init(&w->loop);
    w->upstream = upstream_new(&w->loop, w->path, NULL, &calls);
    w->cache = cache_new(w->upstream);
}

static void
tear_down(struct world *w)
{
    upstream_free(w->upstream);
    cache_free(w->cache);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    if (w->listener >= 0) {
        pthread_join(w->daemon, NULL);
        close(w->listener);
    }
    unlink(w->path);
    rmdir(w->folder);
}

static void
ask(struct world *w, enum query_kind kind, int64_t job, int n)
{
    const struct query q = {.kind = kind, .job = job};
    struct waiter *waiting;
    w->answered = 0;
    w->wanted = n;
    for (int i = 0; i < n; i++)
        cache_get(w->cache, &q, on_ready, w, &waiting);
    if (w->answered < n)
        uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(w->answered, n);
}

static void
test_asked_once(void **state)
{
    struct world w;
    (void)state;
    set_up(&w, true);
    ask(&w, QUERY_STATUS, 0, 100);
    assert_int_equal(w.last_status, 200);
    assert_int_equal(atomic_load(&w.n_status), 1);
    tear_down(&w);
}

static void
test_nobody_there(void **state)
{
    struct world w;
    (void)state;
    set_up(&w, false);
    ask(&w, QUERY_STATUS, 0, 3);
    assert_int_equal(w.last_status, 503);
    tear_down(&w);
}

/* A client that leaves before the answer arrives gets none. */
static void
test_forgotten(void **state)
{
    const struct query q = {.kind = QUERY_STATUS};
    struct waiter *waiting;
    struct world w;
    (void)state;
    set_up(&w, true);
    w.wanted = 2;
    cache_get(w.cache, &q, on_ready, &w, &waiting);
    assert_non_null(waiting);
    cache_forget(waiting);
    ask(&w, QUERY_STATUS, 0, 1);
    assert_int_equal(w.answered, 1);
    tear_down(&w);
}

/* Different requests without end: some are refused, none is kept for ever. */
static void
test_bounded(void **state)
{
    struct world w;
    int refused = 0;
    (void)state;
    set_up(&w, false);
    w.wanted = 1000;
    for (int i = 0; i < w.wanted; i++) {
        const struct query q = {.kind = QUERY_JOB, .job = i + 1};
        struct waiter *waiting;
        int before = w.answered;
        cache_get(w.cache, &q, on_ready, &w, &waiting);
        refused += w.answered - before;
    }
    assert_true(refused >= 800);
    uv_run(&w.loop, UV_RUN_DEFAULT);
    assert_int_equal(w.answered, w.wanted);
    ask(&w, QUERY_JOB, 5000, 1); /* there is room again */
    assert_int_equal(w.last_status, 503);
    tear_down(&w);
}

int
main(void)
{
    signal(SIGPIPE, SIG_IGN); /* as the program does: the peer may have closed first */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asked_once),
        cmocka_unit_test(test_nobody_there),
        cmocka_unit_test(test_forgotten),
        cmocka_unit_test(test_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
