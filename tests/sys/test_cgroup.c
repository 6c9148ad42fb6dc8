/* cgroups, where this process may create them; elsewhere the reason why not. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sys/cgroup.h"
#include "sys/procs.h"
#include "sys/spawn.h"

/* The base, or NULL if there is none; then e has the reason. */
static char *
find_base(void)
{
    char *base = NULL;
    struct err e = {0};
    auto_free char *name = xasprintf("berth-unit-%d", (int)getpid());
    if (cgroup_find_base(name, &base, &e) < 0)
        assert_true(strlen(e.text) > 0);
    return base;
}

/* A path beside the base; the caller frees it. */
static char *
make_beside(const char *base, const char *name)
{
    const char *own = base ? strrchr(base, '/') : NULL;
    if (!own)
        err_abort("%s is no absolute path", base);
    char *path = xasprintf("%.*s/%s", (int)(own - base), base, name);
    assert_int_equal(mkdir(path, 0755), 0);
    return path;
}

/* Removes groups of daemons that never came back, but not of those that live or whose jobs
 * do. */
static void
test_abandoned(void **state)
{
    (void)state;
    auto_free char *base = find_base();
    if (!base)
        skip();
    auto_free char *left = make_beside(base, "berth-00c0ffee");
    auto_free char *claimed = make_beside(base, "berth-0badcafe");
    auto_free char *with_job = make_beside(base, "berth-0badf00d");
    auto_free char *other = make_beside(base, "berth-something");
    auto_free char *job = xasprintf("%s/job-1.1", with_job);
    assert_int_equal(mkdir(job, 0755), 0);
    auto_close int claim = cgroup_claim(claimed);
    assert_true(claim >= 0);
    cgroup_remove_abandoned(base);
    assert_int_equal(access(left, F_OK), -1);
    assert_int_equal(cgroup_claim(left), -1);
    assert_int_equal(rmdir(claimed) | rmdir(job) | rmdir(with_job) | rmdir(other) | rmdir(base),
                     0);
}

static pid_t
start_in(int cgroup_fd)
{
    int errnum;
    enum spawn_stage stage;
    char sh[] = "/bin/sh", c[] = "-c", script[] = "exec sleep 1000";
    char *const argv[] = {sh, c, script, NULL}, *const env[] = {NULL};
    struct spawn s = SPAWN_INIT;
    s.argv = argv;
    s.envp = env;
    s.cgroup_fd = cgroup_fd;
    pid_t pid = spawn_process(&s, &errnum, &stage);
    assert_true(pid > 0);
    return pid;
}

static int
refuse(void *ctx)
{
    *(int *)ctx += 1;
    return EDOM;
}

/* Processes born in a group share the caller's memory until exec: each reports its own error,
 * and leaves the caller's stack unchanged. */
static void
test_failures_in_a_group(void **state)
{
    (void)state;
    struct err e;
    struct cgroup_limits none = {0};
    auto_free char *base = find_base();
    if (!base)
        skip();
    auto_free char *path = xasprintf("%s/job-2.1", base);
    auto_close int fd = cgroup_create(path, &none, &e);
    char missing[] = "/nowhere/to/be/found", sh[] = "/bin/sh", c[] = "-c", script[] = "exit 7";
    char *const absent[] = {missing, NULL}, *const present[] = {sh, c, script, NULL};
    char *const env[] = {NULL};
    for (int i = 0; i < 50; i++) {
        int errnum = 0, asked = 0, status;
        enum spawn_stage stage;
        struct spawn s = SPAWN_INIT;
        s.argv = absent;
        s.envp = env;
        s.cgroup_fd = fd;
        assert_int_equal(spawn_process(&s, &errnum, &stage), -1);
        assert_int_equal(stage, SPAWN_EXEC);
        assert_int_equal(errnum, ENOENT);
        s.argv = present;
        s.before_exec = refuse;
        s.ctx = &asked;
        assert_int_equal(spawn_process(&s, &errnum, &stage), -1);
        assert_int_equal(stage, SPAWN_CHILD);
        assert_int_equal(errnum, EDOM);
        s.before_exec = NULL;
        pid_t pid = spawn_process(&s, &errnum, &stage);
        assert_int_equal(stage, SPAWN_OK);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WEXITSTATUS(status), 7);
    }
    assert_int_equal(cgroup_remove(path), 0);
    assert_int_equal(cgroup_remove(base), 0);
}

static void
test_group_of_a_job(void **state)
{
    (void)state;
    struct err e;
    struct cgroup_limits limits = {.mem_mib = 100, .cpus = 1, .pids = 100};
    auto_free char *base = find_base();
    if (!base)
        skip();
    auto_free char *path = xasprintf("%s/job-1.1", base);
    auto_close int fd = cgroup_create(path, &limits, &e);
    if (fd < 0)
        fail_msg("%s", e.text);
    assert_int_equal(cgroup_is_populated(fd), 0);
    pid_t pid = start_in(fd);
    char group[512];
    assert_true(proc_cgroup(pid, group, sizeof group));
    assert_non_null(strstr(group, "/job-1.1"));
    assert_int_equal(cgroup_is_populated(fd), 1);
    assert_int_equal(cgroup_remove(path), -1); /* not while a process is in it */
    bool own;
    assert_int_equal(cgroup_oom_kills(fd, &own), 0);
    cgroup_kill(fd);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    for (int i = 0; cgroup_is_populated(fd) == 1 && i < 100000; i++)
        sched_yield(); /* the sleeper, too, is about to exit */
    assert_int_equal(cgroup_is_populated(fd), 0);
    auto_free char *sub = xasprintf("%s/of-the-job", path);
    close(cgroup_create(sub, &limits, &e));
    assert_int_equal(cgroup_remove(path), 0);
    assert_int_equal(cgroup_remove(path), 0);
    assert_int_equal(cgroup_remove(base), 0);
}

static pid_t
start_in_list(const char *folder)
{
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    assert_true(pid > 0);
    auto_free char *path = xasprintf("%s/cgroup.procs", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "%d\n999999999\n", (int)pid);
    fclose(f);
    return pid;
}

static void
expect_killed(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* As before Linux 5.14: no cgroup.kill, only lists of processes. */
static void
test_kill_without_cgroup_kill(void **state)
{
    (void)state;
    char group[] = "/tmp/group.XXXXXX";
    assert_non_null(mkdtemp(group));
    auto_free char *below = xasprintf("%s/below", group);
    assert_int_equal(mkdir(below, 0700), 0);
    pid_t one = start_in_list(group), two = start_in_list(below);
    auto_close int fd = cgroup_open(group);
    assert_int_equal(cgroup_signal(fd, 0), 2);
    cgroup_kill(fd);
    expect_killed(one);
    expect_killed(two);
    const char *const names[] = {"below/cgroup.procs", "cgroup.procs"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(unlinkat(fd, names[i], 0), 0);
    assert_int_equal(cgroup_remove(group), 0);
}

static void
test_what_is_no_group(void **state)
{
    (void)state;
    struct err e;
    struct cgroup_limits limits = {0};
    assert_int_equal(cgroup_create("/no/such/folder/x", &limits, &e), -1);
    assert_int_equal(cgroup_create("/tmp", &limits, &e), -1);
    assert_true(strlen(e.text) > 0);
    assert_int_equal(cgroup_open("/no/such/folder"), -1);
    assert_int_equal(cgroup_is_populated(-1), -1);
}

/* A supervisor's umask is still 077 from the attempt before; others may read the group's files
 * all the same. */
static void
test_others_may_read_it(void **state)
{
    (void)state;
    char dir[] = "/tmp/berth-cgroup-XXXXXX";
    struct stat st;
    assert_non_null(mkdtemp(dir));
    auto_free char *group = xasprintf("%s/job-1.1", dir);
    mode_t before = umask(077);
    int made = cgroup_make_folder(AT_FDCWD, group), found = cgroup_make_folder(AT_FDCWD, group);
    umask(before);
    assert_int_equal(made | found, 0);
    assert_int_equal(stat(group, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    auto_free char *nowhere = xasprintf("%s/none/job-1.1", dir);
    assert_int_equal(cgroup_make_folder(AT_FDCWD, nowhere), -1);
    assert_int_equal(rmdir(group) | rmdir(dir), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_of_a_job),
        cmocka_unit_test(test_failures_in_a_group),
        cmocka_unit_test(test_abandoned),
        cmocka_unit_test(test_others_may_read_it),
        cmocka_unit_test(test_kill_without_cgroup_kill),
        cmocka_unit_test(test_what_is_no_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
