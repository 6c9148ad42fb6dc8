/* A request's defaults, and that demands can be compared as bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/request.h"

static void
begins_with_one_whole_gpu(void **state)
{
    struct request r;

    (void)state;
    memset(&r, 0xa5, sizeof r);
    request_init(&r);
    assert_int_equal(r.demand.gpus, 1);
    assert_int_equal(r.demand.vram_mib, 0);
    assert_int_equal(r.oom_retries, -1);
    assert_int_equal(r.grace_ms, -1);
    assert_int_equal(request_grace_ms(&r), GRACE_DEFAULT_MS);
    assert_false(r.hold || r.cancel || r.requeue);
    assert_true(!r.name && !r.command && !r.argv && !r.log);
}

static void
equal_demands_are_equal_bytes(void **state)
{
    struct demand a, b;

    (void)state;
    memset(&a, 0x11, sizeof a);
    memset(&b, 0xee, sizeof b);
    demand_init(&a);
    demand_init(&b);
    a.vram_mib = b.vram_mib = 8192;
    a.exclusive = b.exclusive = 1;
    assert_memory_equal(&a, &b, sizeof a);
    b.ids[15] = 1;
    assert_memory_not_equal(&a, &b, sizeof a);
}

static void
frees_what_it_owns_once(void **state)
{
    struct request r;

    (void)state;
    request_init(&r);
    r.name = xstrdup("n");
    r.command = xstrdup("c");
    r.log = xstrdup("l");
    r.argv = xcalloc(3, sizeof *r.argv);
    r.argv[0] = xstrdup("a");
    r.argv[1] = xstrdup("b");
    request_free(&r);
    assert_true(!r.name && !r.command && !r.argv && !r.log);
    request_free(&r);
    request_free(NULL);
}

static void
copies_all_that_it_owns(void **state)
{
    struct request a, b;

    (void)state;
    request_init(&a);
    a.name = xstrdup("n");
    a.argv = xcalloc(2, sizeof *a.argv);
    a.argv[0] = xstrdup("prog");
    a.tags = xcalloc(2, sizeof *a.tags);
    a.tags[0] = xstrdup("t");
    a.deps = xcalloc(2, sizeof *a.deps);
    a.deps[1] = (struct dep){.type = DEP_FAILED, .job = 7, .task = 3, .name = xstrdup("first")};
    a.n_deps = 2;
    task_set_add(&a.array, 4);
    request_copy(&b, &a);
    request_free(&a);
    assert_string_equal(b.name, "n");
    assert_string_equal(b.argv[0], "prog");
    assert_null(b.argv[1]);
    assert_string_equal(b.tags[0], "t");
    assert_int_equal(b.deps[1].job, 7);
    assert_string_equal(b.deps[1].name, "first");
    assert_true(task_set_has(&b.array, 4));
    assert_null(b.command);
    request_free(&b);
}

/* Adds and removes every task in some order: the set must agree with a plain list. */
static void
task_sets_join_and_split(void **state)
{
    struct task_set t = {NULL, 0};
    bool there[32] = {false};
    uint32_t lot = 1;

    (void)state;
    for (int i = 0; i < 4000; i++) {
        int32_t task = (int32_t)((lot = lot * 1103515245 + 12345) >> 16 & 31);
        bool add = lot >> 24 & 1;
        assert_int_equal(add ? task_set_add(&t, task) : task_set_remove(&t, task),
                         there[task] != add);
        there[task] = add;
        for (int k = 0; k < 32; k++)
            assert_int_equal(task_set_has(&t, k), there[k]);
        for (int k = 1; k < t.n; k++)
            assert_true(t.ranges[k].first > t.ranges[k - 1].last + 1);
    }
    task_set_free(&t);
}

static void
task_sets_are_stepped_through(void **state)
{
    struct task_set t = {NULL, 0};

    (void)state;
    assert_int_equal(task_set_next(&t, 0, ARRAY_MAX), -1);
    task_set_add(&t, 3);
    task_set_add(&t, 4);
    task_set_add(&t, 9);
    assert_int_equal(task_set_next(&t, 0, ARRAY_MAX), 3);
    assert_int_equal(task_set_next(&t, 4, ARRAY_MAX), 4);
    assert_int_equal(task_set_next(&t, 5, ARRAY_MAX), 9);
    assert_int_equal(task_set_next(&t, 5, 8), -1);
    assert_int_equal(task_set_next(&t, 10, ARRAY_MAX), -1);
    task_set_free(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_with_one_whole_gpu),
        cmocka_unit_test(equal_demands_are_equal_bytes),
        cmocka_unit_test(frees_what_it_owns_once),
        cmocka_unit_test(copies_all_that_it_owns),
        cmocka_unit_test(task_sets_join_and_split),
        cmocka_unit_test(task_sets_are_stepped_through),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
