/* Whether the machine's daemon, which does not answer, is worth waiting for, from what it has
 * left in its folder. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/ask/machine_turn.h"

static char folder[] = "/tmp/machine-turn.XXXXXX";

static void
path_of(const char *name, char out[96])
{
    snprintf(out, 96, "%s/%s", folder, name);
}

static int
listen_in(const char *name)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    path_of(name, addr.sun_path);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(listen(fd, 0), 0);
    return fd;
}

static void
leave_note(const char *how, time_t age_s)
{
    char path[96];
    path_of("left", path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(how, f);
    fclose(f);
    const struct timespec times[2] = {{.tv_sec = time(NULL) - age_s},
                                      {.tv_sec = time(NULL) - age_s}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void
is(enum machine_state state, bool soon)
{
    struct machine m = machine_look_in(folder, false);
    assert_int_equal(m.state, state);
    assert_int_equal(m.soon, soon);
}

static void
an_empty_folder_says_nothing_but_that_a_daemon_may_be_awaited(void **state)
{
    (void)state;
    is(MACHINE_UNSEEN, false);
    assert_true(machine_look_in(folder, true).soon);
    assert_int_equal(machine_look_in(folder, true).state, MACHINE_STARTING);
}

static void
a_daemon_starts_as_long_as_it_listens(void **state)
{
    (void)state;
    int starting = listen_in("starting"), callers[3];
    is(MACHINE_STARTING, true);
    is(MACHINE_STARTING, true);
    /* However many callers nobody accepts. */
    for (int i = 0; i < 3; i++) {
        struct sockaddr_un addr = {.sun_family = AF_UNIX};
        path_of("starting", addr.sun_path);
        callers[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(callers[i], (struct sockaddr *)&addr, sizeof addr);
    }
    is(MACHINE_STARTING, true);
    for (int i = 0; i < 3; i++)
        close(callers[i]);
    /* The socket of an earlier daemon that died does not matter meanwhile. */
    close(listen_in("berth.sock"));
    is(MACHINE_STARTING, true);
    close(starting);
    is(MACHINE_DIED, true);
    /* It has begun to serve since it was asked. */
    char socket_path[96];
    path_of("berth.sock", socket_path);
    unlink(socket_path);
    int serving = listen_in("berth.sock");
    is(MACHINE_STARTING, true);
    close(serving);
    is(MACHINE_DIED, true);
    unlink(socket_path);
    is(MACHINE_FAILED, true);
    char path[96];
    path_of("starting", path);
    unlink(path);
}

static void
a_daemon_that_has_just_left_may_be_back_soon(void **state)
{
    (void)state;
    leave_note("stopped", 0);
    is(MACHINE_STOPPED, true);
    leave_note("stopped", 60);
    is(MACHINE_STOPPED, false);
    leave_note("failed", 0);
    is(MACHINE_FAILED, true);
    leave_note("failed", 60);
    is(MACHINE_FAILED, false);
    assert_int_equal(machine_look_in(folder, true).state, MACHINE_FAILED);
    leave_note("failed", -3600); /* before the clock was set back */
    is(MACHINE_FAILED, false);
    /* Whatever it left, long ago or not, another may be starting. */
    close(listen_in("berth.sock"));
    is(MACHINE_DIED, true);
}

static int
make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int
remove_folder(void **state)
{
    static const char *const names[] = {"left", "berth.sock", "starting"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[96];
        path_of(names[i], path);
        unlink(path);
    }
    return rmdir(folder);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_folder_says_nothing_but_that_a_daemon_may_be_awaited),
        cmocka_unit_test(a_daemon_starts_as_long_as_it_listens),
        cmocka_unit_test(a_daemon_that_has_just_left_may_be_back_soon),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
