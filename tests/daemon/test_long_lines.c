/* Lines whose sender disconnects before they are parsed: what is dropped, and what still
 * counts. The thread blocks in budget_check_line, which this test replaces, until the test
 * lets it continue. */
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "daemon/request/budget.h"
#include "daemon/rpc/long_lines.h"
#include "daemon/rpc/user_shares.h"

#define ALICE      1000
#define BOB        1001
#define CAROL      1002
#define LINE       "{}"
#define CPU_US     30000 /* more than a user's budget per round */
#define BUFFER_MAX 1000

static sem_t begun, may_go_on;
static int n_read;

int
budget_check_line(const struct budget *b, uid_t uid, const char *line, size_t len,
                  struct err *e)
{
    int64_t until_us = clock_thread_us() + CPU_US;
    (void)b, (void)uid, (void)line, (void)len, (void)e;
    n_read++;
    sem_post(&begun);
    sem_wait(&may_go_on);
    while (clock_thread_us() < until_us)
        continue;
    return 0;
}

struct world {
    uv_loop_t loop;
    uv_idle_t keeps_on; /* lines alone do not keep a loop alive */
    struct budget budget;
    struct peers *peers;
    struct long_lines *lines;
    int n_done;
};

static void
on_idle(uv_idle_t *idle)
{
    (void)idle;
}

static void
world_open(struct world *w)
{
    static const uid_t users[] = {ALICE, BOB, CAROL};
    uid_t group, crowd;
    struct err e;
    n_read = 0;
    sem_init(&begun, 0, 0);
    sem_init(&may_go_on, 0, 0);
    *w = (struct world){.n_done = 0};
    uv_loop_init(&w->loop);
    uv_idle_init(&w->loop, &w->keeps_on);
    uv_idle_start(&w->keeps_on, on_idle);
    w->peers = peers_new(true, "/nonexistent");
    peers_set_limits(w->peers, 3, BUFFER_MAX);
    for (int i = 0; i < 3; i++)
        assert_int_equal(peers_enter(w->peers, users[i], i, 1000000, &group, &crowd, &e), 0);
    w->lines = long_lines_new(&w->loop, &w->budget, w->peers);
}

static void
world_close(struct world *w)
{
    uv_close((uv_handle_t *)&w->keeps_on, NULL);
    long_lines_close(w->lines);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    long_lines_free(w->lines);
    peers_free(w->peers);
    sem_destroy(&begun);
    sem_destroy(&may_go_on);
}

static void
on_line(void *arg, struct parsed *p, size_t len)
{
    struct world *w = arg;
    assert_int_equal(len, strlen(LINE));
    json_decref(p->root);
    w->n_done++;
}

static struct reading *
ask(struct world *w, uid_t uid, struct frame *f)
{
    frame_init(f, 100);
    buf_adds(&f->bytes, LINE);
    struct reading *r =
        reading_begin(w->lines, uid, uid, f->bytes.data, strlen(LINE), on_line, w);
    assert_non_null(r);
    return r;
}

/* The thread parses the next line; the loop runs until nothing of this user's is left. */
static void
read_next(struct world *w, uid_t uid)
{
    sem_post(&may_go_on);
    while (long_lines_has(w->lines, uid))
        uv_run(&w->loop, UV_RUN_NOWAIT);
}

static void
a_line_that_waits_is_forgotten_when_its_sender_goes(void **state)
{
    struct world w;
    struct frame alice, bob, carol;
    (void)state;
    world_open(&w);
    ask(&w, ALICE, &alice);
    sem_wait(&begun); /* so that the others queue up */
    struct reading *left = ask(&w, BOB, &bob);
    ask(&w, CAROL, &carol);
    assert_true(long_lines_has(w.lines, BOB));
    reading_leave(w.lines, left, &bob);
    assert_false(long_lines_has(w.lines, BOB));
    assert_int_equal(bob.bytes.len, 0);
    assert_true(peers_keep(w.peers, BOB, BUFFER_MAX)); /* none of it counts any more */
    read_next(&w, ALICE);
    read_next(&w, CAROL);
    assert_int_equal(w.n_done, 2);
    assert_int_equal(n_read, 2);
    assert_false(peers_had_round(w.peers, BOB));
    frame_free(&alice);
    frame_free(&carol);
    world_close(&w);
}

static void
a_line_that_is_being_read_counts_for_its_user_to_the_end(void **state)
{
    struct world w;
    struct frame alice;
    int64_t line = (int64_t)strlen(LINE);
    (void)state;
    world_open(&w);
    struct reading *r = ask(&w, ALICE, &alice);
    sem_wait(&begun);
    reading_leave(w.lines, r, &alice);
    peers_leave(w.peers, ALICE);
    assert_true(long_lines_has(w.lines, ALICE));
    assert_false(peers_keep(w.peers, ALICE, BUFFER_MAX - line + 1));
    assert_true(peers_keep(w.peers, ALICE, -(BUFFER_MAX - line + 1)));
    assert_false(peers_had_round(w.peers, ALICE));
    read_next(&w, ALICE);
    assert_int_equal(w.n_done, 0);
    assert_true(peers_had_round(w.peers, ALICE));
    assert_true(peers_keep(w.peers, ALICE, BUFFER_MAX));
    world_close(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_that_waits_is_forgotten_when_its_sender_goes),
        cmocka_unit_test(a_line_that_is_being_read_counts_for_its_user_to_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
