/* berth simjob: the memory it takes over time, how it ends, and how it fails. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "gpu/backend.h"
#include "gpu/sim_table.h"
#include "support.h"

#define ARGS_MAX 16

struct world {
    char *dir;
    struct sim_table *t;
    struct backend_sample s;
    int watch; /* inotify on the table */
    struct err e;
};

static int
setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    w->dir = support_make_dir();
    w->t = sim_table_create(w->dir, "3x10000", &w->e);
    w->watch = inotify_init1(IN_CLOEXEC);
    auto_free char *usage = xasprintf("%s/usage", w->dir);
    if (inotify_add_watch(w->watch, usage, IN_MODIFY) < 0)
        return -1;
    setenv("BERTH_SIM_DIR", w->dir, 1);
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    *state = w;
    return w->t ? 0 : -1;
}

static int
teardown(void **state)
{
    struct world *w = *state;

    close(w->watch);
    sim_table_close(w->t);
    backend_sample_free(&w->s);
    support_remove_dir(w->dir);
    free(w);
    return 0;
}

static struct child
start(const char *arguments)
{
    auto_free char *copy = xasprintf("simjob %s", arguments);
    const char *argv[ARGS_MAX] = {support_path("BERTH_TEST_BERTH")};
    char *next = copy;
    int n = 1;

    while (next && n < ARGS_MAX - 1)
        argv[n++] = strsep(&next, " ");
    return child_start(argv);
}

/* Runs one to its end. Returns the exit status; *words gets its standard error. */
static int
run(const char *arguments, char **words)
{
    struct child c = start(arguments);

    *words = child_read_all(c.err);
    return child_end(&c);
}

static void
check_run(const char *arguments, int want_status, const char *want_words)
{
    auto_free char *words = NULL;
    int status = run(arguments, &words);

    if (status != want_status || !strstr(words, want_words))
        fail_msg("'%s' ended with %d, saying: %s", arguments, status, words);
}

static void
sample(struct world *w)
{
    backend_sample_reset(&w->s);
    for (int i = 0; i < 3; i++)
        w->s.use[i].used_mib = w->s.use[i].util = 0;
    if (sim_table_sample(w->t, &w->s, &w->e) < 0)
        fail_msg("%s", w->e.text);
}

/* Waits for the next change of the table, or until the process of this pidfd has ended (-1: no
 * process). False if it has, and nothing has changed. */
static bool
wait_for_change_or_end(struct world *w, int pidfd)
{
    char events[4096];
    struct pollfd p[] = {{.fd = w->watch, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};

    if (poll(p, 2, 120000) < 1)
        fail_msg("the table does not change");
    if (!p[0].revents)
        return false;
    assert_true(read(w->watch, events, sizeof events) > 0);
    return true;
}

static void
wait_for_change(struct world *w)
{
    (void)wait_for_change_or_end(w, -1);
}

static void
wait_for_use(struct world *w, int card, int64_t mib)
{
    for (sample(w); w->s.use[card].used_mib != mib; sample(w))
        wait_for_change(w);
}

static void
test_takes_holds_and_gives_back(void **state)
{
    struct world *w = *state;
    struct child c = start("--vram 4G --ramp 0 --hold 1000 --util 55");

    wait_for_use(w, 1, 4096);
    assert_int_equal(w->s.use[0].used_mib, 0);
    assert_int_equal(w->s.use[2].used_mib, 0);
    assert_int_equal(w->s.use[1].util, 55);
    assert_int_equal(w->s.use[1].n_procs, 1);
    assert_int_equal(w->s.use[1].procs[0].pid, c.pid);
    kill(c.pid, SIGTERM);
    assert_int_equal(child_end(&c), 128 + SIGTERM);
    sample(w);
    assert_int_equal(w->s.use[1].used_mib, 0);
    assert_int_equal(w->s.use[1].util, 0);
}

static void
test_ends_with_its_code_after_its_time(void **state)
{
    struct world *w = *state;
    int64_t before_us = clock_boot_us();

    check_run("--vram 100 --ramp 0.1 --hold 0.15 --exit-code 7", 7, "");
    assert_true(clock_boot_us() - before_us >= 250000);
    sample(w);
    assert_int_equal(w->s.use[1].n_procs, 0);
    check_run("--vram 100 --ramp 0 --hold 0", 0, "");
}

/* On a busy machine a test sees too little of what happens within a second: it may be repeated
 * this often, each time with twice as much time (but for the spike itself). */
#define TRIES 5

/* Every amount seen during the ramp is one of the steps. Returns how many were seen. */
static int
see_ramp(struct world *w, double seconds)
{
    auto_free char *arguments = xasprintf("--vram 5000 --ramp %.1f --hold 1000", seconds);
    struct child c = start(arguments);
    int64_t last = 0;
    int seen = 0;

    for (sample(w); w->s.use[1].used_mib != 5000; sample(w)) {
        int64_t now = w->s.use[1].used_mib;
        assert_true(now >= last && now % 500 == 0);
        seen += now > last;
        last = now;
        wait_for_change(w);
    }
    kill(c.pid, SIGKILL);
    assert_int_equal(child_end(&c), 128 + SIGKILL);
    return seen;
}

static void
test_ramps_up_in_steps(void **state)
{
    int seen = 0;

    for (int i = 0; i < TRIES && seen < 2; i++)
        seen = see_ramp(*state, 0.5 * (1 << i));
    assert_true(seen >= 2);
}

/* Runs one with a spike to its end. True if its memory was seen before, in and after the
 * spike. */
static bool
see_spike(struct world *w, double seconds)
{
    static const int64_t wanted[] = {1000, 4000, 1000};
    auto_free char *arguments =
        xasprintf("--vram 1000 --ramp 0 --hold %.1f --spike 3000@%.1f", seconds * 2, seconds);
    struct child c = start(arguments);
    auto_close int pidfd = (int)syscall(SYS_pidfd_open, c.pid, 0);
    size_t seen = 0;

    assert_true(pidfd >= 0);
    do {
        sample(w);
        assert_true(w->s.use[1].used_mib % 1000 == 0 && w->s.use[1].used_mib <= 4000);
        seen += seen < 3 && w->s.use[1].used_mib == wanted[seen];
    } while (wait_for_change_or_end(w, pidfd));
    assert_int_equal(child_end(&c), 0);
    return seen == 3;
}

static void
test_spike(void **state)
{
    bool was_seen = false;

    for (int i = 0; i < TRIES && !was_seen; i++)
        was_seen = see_spike(*state, 0.3 * (1 << i));
    assert_true(was_seen);
}

static void
test_a_full_card_is_out_of_memory(void **state)
{
    struct world *w = *state;
    struct child c = start("--vram 7000 --ramp 0 --hold 1000");

    wait_for_use(w, 1, 7000);
    check_run(
        "--vram 3001 --ramp 0 --hold 0", 1,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3001 MiB. GPU 1 has "
        "a total capacity of 10000 MiB of which 3000 MiB is free.");
    check_run("--vram 3000 --ramp 0 --hold 0", 0, "");
    check_run("--vram 2000 --ramp 0 --hold 5 --spike 1500@0.1", 1, "allocate 1500 MiB");
    sample(w);
    assert_int_equal(w->s.use[1].used_mib, 7000);
    assert_int_equal(w->s.use[1].n_procs, 1);
    kill(c.pid, SIGKILL);
    child_end(&c);
}

static void
test_two_that_grow_together_do_not_both_fit(void **state)
{
    struct world *w = *state;
    int failed = 0;

    for (int i = 0; i < TRIES && failed == 0; i++) {
        double seconds = 0.4 * (1 << i);
        auto_free char *arguments =
            xasprintf("--vram 6000 --ramp %.1f --hold %.1f", seconds, seconds);
        struct child a = start(arguments), b = start(arguments);
        int first = child_end(&a), second = child_end(&b);
        failed = first + second; /* 0: one had ended before the other began */
    }
    assert_int_equal(failed, 1);
    sample(w);
    assert_int_equal(w->s.use[1].used_mib, 0);
}

static void
test_out_of_memory_once(void **state)
{
    struct world *w = *state;
    auto_free char *arguments =
        xasprintf("--vram 500 --ramp 0 --hold 0 --exit-code 3 --oom-once %s/marker", w->dir);

    check_run(arguments, 1, "CUDA out of memory");
    check_run(arguments, 3, "");
    check_run("--vram 500 --oom-once /nowhere/marker", 1, "/nowhere/marker");
}

static void
test_which_cards(void **state)
{
    struct world *w = *state;
    char uuid[SIM_UUID_MAX];
    static const struct {
        const char *visible; /* NULL: unset */
        const char *arguments;
        int64_t use[3];
    } cases[] = {
        {"2,0", "", {100, 0, 100}},    {NULL, "", {100, 0, 0}},
        {"1", "--gpu 2", {0, 0, 100}}, {NULL, "--gpu 0,1", {100, 100, 0}},
        {"uuid", "", {0, 0, 100}},
    };

    sim_table_uuid(w->t, 2, uuid);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *visible = cases[i].visible;
        if (!visible)
            unsetenv("CUDA_VISIBLE_DEVICES");
        else
            setenv("CUDA_VISIBLE_DEVICES", strcmp(visible, "uuid") ? visible : uuid, 1);
        auto_free char *arguments =
            xasprintf("--vram 100 --ramp 0 --hold 1000%s%s", cases[i].arguments[0] ? " " : "",
                      cases[i].arguments);
        struct child c = start(arguments);
        for (int card = 0; card < 3; card++) {
            if (cases[i].use[card])
                wait_for_use(w, card, 100);
        }
        for (int card = 0; card < 3; card++)
            assert_int_equal(w->s.use[card].used_mib, cases[i].use[card]);
        kill(c.pid, SIGKILL);
        child_end(&c);
    }
}

static void
test_cards_that_are_not_there(void **state)
{
    (void)state;
    check_run("--vram 1 --gpu 3", 2, "not one of the 3 simulated GPUs");
    setenv("CUDA_VISIBLE_DEVICES", "0,SIM-", 1);
    check_run("--vram 1", 1, "CUDA_VISIBLE_DEVICES: 'SIM-'");
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    check_run("--vram 1", 1, "no CUDA-capable device");
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    unsetenv("BERTH_SIM_DIR");
    check_run("--vram 1", 1, "berth run --sim 2");
    setenv("BERTH_SIM_DIR", "/nowhere", 1);
    check_run("--vram 1", 1, "/nowhere");
}

static void
test_command_lines_that_make_no_sense(void **state)
{
    static const struct {
        const char *arguments;
        const char *words;
    } cases[] = {
        {"--hold 1", "--vram is missing"},
        {"--vram 8X", "8X"},
        {"--vram 17T", "16T"},
        {"--vram 1 --ramp -1", "--ramp"},
        {"--vram 1 --hold soon", "--hold"},
        {"--vram 1 --util 101", "--util"},
        {"--vram 1 --exit-code 256", "--exit-code"},
        {"--vram 1 --spike 5", "MEMORY@SECONDS"},
        {"--vram 1 --spike 5@", "--spike"},
        {"--vram 1 --spike @5", "--spike"},
        {"--vrma 1", "--vram"},
        {"--vram 1 word", "'word'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_run(cases[i].arguments, 2, cases[i].words);
}

/* CPU time of all children so far. */
static int64_t
children_cpu_us(void)
{
    struct rusage use;

    getrusage(RUSAGE_CHILDREN, &use);
    return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * INT64_C(1000000) +
           use.ru_utime.tv_usec + use.ru_stime.tv_usec;
}

static int64_t
run_cpu_us(const char *arguments)
{
    int64_t before_us = children_cpu_us();

    check_run(arguments, 0, "");
    return children_cpu_us() - before_us;
}

/* Start-up CPU time varies, on a busy machine and with sanitizers by more than this; a busy
 * loop would use more each time. */
static void
test_holding_takes_no_processor(void **state)
{
    int64_t most_us = run_cpu_us("--vram 1 --ramp 0 --hold 0") + 100000;
    bool is_idle = false;

    (void)state;
    for (int i = 0; i < 5 && !is_idle; i++)
        is_idle = run_cpu_us("--vram 1 --ramp 0 --hold 1") < most_us;
    assert_true(is_idle);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_takes_holds_and_gives_back),
        TEST(test_ends_with_its_code_after_its_time),
        TEST(test_ramps_up_in_steps),
        TEST(test_spike),
        TEST(test_a_full_card_is_out_of_memory),
        TEST(test_two_that_grow_together_do_not_both_fit),
        TEST(test_out_of_memory_once),
        TEST(test_which_cards),
        TEST(test_cards_that_are_not_there),
        TEST(test_command_lines_that_make_no_sense),
        TEST(test_holding_takes_no_processor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
