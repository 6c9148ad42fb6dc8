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
    memset(&r, 0xa5, sizeof(r));
    request_init(&r);
    assert_int_equal(r.demand.gpus, 1);
    assert_int_equal(r.demand.vram_mib, 0);
    assert_int_equal(r.oom_retries, -1);
    assert_int_equal(r.grace_ms, GRACE_DEFAULT_MS);
    assert_false(r.hold || r.cancel || r.requeue);
    assert_true(!r.name && !r.command && !r.argv && !r.log);
}

static void
equal_demands_are_equal_bytes(void **state)
{
    struct demand a, b;

    (void)state;
    memset(&a, 0x11, sizeof(a));
    memset(&b, 0xee, sizeof(b));
    demand_init(&a);
    demand_init(&b);
    a.vram_mib = b.vram_mib = 8192;
    a.exclusive = b.exclusive = 1;
    assert_memory_equal(&a, &b, sizeof(a));
    b.ids[15] = 1;
    assert_memory_not_equal(&a, &b, sizeof(a));
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
    r.argv = xcalloc(3, sizeof(*r.argv));
    r.argv[0] = xstrdup("a");
    r.argv[1] = xstrdup("b");
    request_free(&r);
    assert_true(!r.name && !r.command && !r.argv && !r.log);
    request_free(&r);
    request_free(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_with_one_whole_gpu),
        cmocka_unit_test(equal_demands_are_equal_bytes),
        cmocka_unit_test(frees_what_it_owns_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
