/* Which step of a start fails, and whose fault that is. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sys/cgroup.h"
#include "sys/cgroup_v1.h"
#include "sys/spawn.h"

static char *const TRUE[] = {"true", NULL};
static char *const NOTHING[] = {NULL};

static struct spawn
a_start(void)
{
    struct spawn s = SPAWN_INIT;
    s.argv = TRUE;
    s.envp = NOTHING;
    return s;
}

static int
a_folder(char *path)
{
    assert_non_null(mkdtemp(path));
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* As for a group that was removed after it was created. */
static void
test_a_group_that_has_gone_is_told_from_what_the_child_could_not_do(void **state)
{
    char path[] = "/tmp/berth-spawn.XXXXXX";
    enum spawn_stage stage;
    struct spawn s = a_start();
    int errnum = 0;
    (void)state;
    s.cgroup_fd = a_folder(path);
    s.must_join = true;
    assert_int_equal(spawn_process(&s, &errnum, &stage), -1);
    assert_int_equal(stage, SPAWN_JOIN);
    assert_int_equal(errnum, ENOENT);
    s.must_join = false;
    pid_t pid = spawn_process(&s, &errnum, &stage);
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(s.cgroup_fd);
    assert_int_equal(rmdir(path), 0);
}

static int
refuse(void *ctx)
{
    return *(const int *)ctx;
}

static void
test_the_last_steps_say_whether_a_group_was_the_reason(void **state)
{
    enum spawn_stage stage;
    struct spawn s = a_start();
    int errnum = 0, why = -ENODEV;
    (void)state;
    s.before_exec = refuse;
    s.ctx = &why;
    assert_int_equal(spawn_process(&s, &errnum, &stage), -1);
    assert_int_equal(stage, SPAWN_JOIN);
    assert_int_equal(errnum, ENODEV);
    why = EPERM;
    assert_int_equal(spawn_process(&s, &errnum, &stage), -1);
    assert_int_equal(stage, SPAWN_CHILD);
    assert_int_equal(errnum, EPERM);
}

/* An ordinary folder has no limit file, like a kernel without that limit. */
static void
test_a_limit_of_v1_that_cannot_be_set_is_no_group(void **state)
{
    char path[] = "/tmp/berth-spawn.XXXXXX";
    const char *paths[CGROUP_V1_N] = {[CGROUP_V1_MEMORY] = path};
    struct cgroup_limits limits = {.mem_mib = 100};
    int fds[CGROUP_V1_N];
    (void)state;
    close(a_folder(path));
    cgroup_v1_create(paths, &limits, fds);
    assert_int_equal(fds[CGROUP_V1_MEMORY], -ENOENT);
    limits.mem_mib = 0;
    cgroup_v1_create(paths, &limits, fds);
    assert_true(fds[CGROUP_V1_MEMORY] >= 0);
    assert_int_equal(cgroup_v1_join(fds), ENOENT);
    close(fds[CGROUP_V1_MEMORY]);
    assert_int_equal(rmdir(path), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_group_that_has_gone_is_told_from_what_the_child_could_not_do),
        cmocka_unit_test(test_the_last_steps_say_whether_a_group_was_the_reason),
        cmocka_unit_test(test_a_limit_of_v1_that_cannot_be_set_is_no_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
