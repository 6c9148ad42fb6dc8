/* scheduler_10x's memory limit: memory shared by processes counts once, and a process that
 * left its parent and its session still counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "compat/scheduler/x10_memory.h"

#define LIMIT_MIB 96
#define SOME_MIB  64
#define MIB       1048576
#define CHILDREN  3

/* Memory that is really resident, and read again by the process that inherits it. */
static char *
take_memory(void)
{
    char *data = xmalloc(SOME_MIB * MIB);

    for (size_t i = 0; i < SOME_MIB * MIB; i += 4096)
        data[i] = (char)(i / 4096 + 1);
    return data;
}

static void
share(char *data)
{
    for (size_t i = 0; i < SOME_MIB * MIB; i += 4096)
        (void)*(volatile char *)&data[i];
}

/* A child that works, reports so, and lives until it is killed or the test ends. */
static void
start_child(void (*work)(char *data), char *data, const int ready[2], int until)
{
    char byte;
    pid_t pid = fork();

    if (pid == 0) {
        work(data);
        (void)!write(ready[1], "", 1);
        (void)!read(until, &byte, 1);
        _exit(0);
    }
    (void)!read(ready[0], &byte, 1);
}

/* Continues in a grandchild after its parent exited; the pipe then has one writer less. */
static void
leave_and_take(char *data)
{
    int parent[2];
    char byte;

    (void)data;
    if (pipe(parent) < 0 || fork() > 0)
        _exit(0);
    close(parent[1]);
    (void)setsid();
    if (read(parent[0], &byte, 1) == 0)
        (void)take_memory();
}

/* Returns 0 if all checks hold. */
static int
look_twice(int until)
{
    int ready[2];
    char *data = take_memory();
    struct memory_watch w;

    if (pipe(ready) < 0)
        return 1;
    memory_watch_begin(&w, LIMIT_MIB);
    for (int i = 0; i < CHILDREN; i++)
        start_child(share, data, ready, until);
    w.due_us = 0;
    memory_watch_look(&w);
    if (w.is_over)
        return 2;
    start_child(leave_and_take, NULL, ready, until);
    w.due_us = 0;
    memory_watch_look(&w);
    if (!w.is_over)
        return 3;
    while (wait(NULL) > 0)
        continue;
    return 0;
}

static void
counts_what_is_the_jobs(void **state)
{
    int until[2], status;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(until), 0);
    pid = fork();
    if (pid == 0) {
        close(until[1]);
        _exit(look_twice(until[0]));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(until[0]);
    close(until[1]);
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(WIFEXITED(status));
}

static void
looks_when_it_is_time(void **state)
{
    struct memory_watch w;

    (void)state;
    memory_watch_begin(&w, 0);
    assert_int_equal(memory_watch_wait_ms(&w), -1);
    memory_watch_look(&w);
    assert_false(w.is_over);
    memory_watch_begin(&w, 1);
    assert_in_range(memory_watch_wait_ms(&w), 1, 1000);
    w.due_us = 0;
    assert_int_equal(memory_watch_wait_ms(&w), 0);
    memory_watch_look(&w); /* no processes left below this one */
    assert_false(w.is_over);
    assert_true(w.due_us > 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_what_is_the_jobs),
        cmocka_unit_test(looks_when_it_is_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
