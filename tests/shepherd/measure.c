/* The cost of one attempt of `true`: runs N in sequence, each to its recorded end, starting
 * the program for each (the nursery spares that). Prints microseconds of CPU (supervisor and
 * command together) and of wall time. Not a test: run it by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/parse.h"
#include "rig.h"

static int64_t
children_cpu_us(void)
{
    struct rusage ru;
    getrusage(RUSAGE_CHILDREN, &ru);
    return ((int64_t)ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000 + ru.ru_utime.tv_usec +
           ru.ru_stime.tv_usec;
}

static void
measure(void **state)
{
    static const char *const ARGV[] = {"/bin/true", NULL};
    int64_t n = *(int64_t *)*state, wall_us = 0, first_us = 0, cpu_us = children_cpu_us();
    for (int64_t i = 0; i < n; i++) {
        struct rig r;
        rig_open(&r, "");
        rig_set_argv(&r, ARGV);
        int64_t from_us = clock_boot_us();
        rig_start(&r);
        json_t *started = rig_await(r.ctl, &r.in, "started");
        first_us += clock_boot_us() - from_us;
        json_decref(started);
        json_decref(rig_await(r.ctl, &r.in, "ended"));
        rig_recorded(&r);
        rig_wait(&r);
        wall_us += clock_boot_us() - from_us;
        rig_close(&r);
    }
    printf("attempts %lld  cpu %lld us  to-started %lld us  wall %lld us  (each)\n",
           (long long)n, (long long)((children_cpu_us() - cpu_us) / n),
           (long long)(first_us / n), (long long)(wall_us / n));
}

int
main(int argc, char **argv)
{
    static int64_t n = 500;
    if (argc > 1 && parse_int(argv[1], 1, 1000000, &n, NULL) < 0)
        return 2;
    const struct CMUnitTest tests[] = {
        {.name = "attempts of true", .test_func = measure, .initial_state = &n}};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
