/* Reading /proc and starting programs, with real processes. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "sys/procs.h"
#include "sys/spawn.h"

/* Starts it with a pipe as standard output; *out is the read end. */
static pid_t
start(char *const *argv, char *const *envp, const char *path, int *out)
{
    int ends[2], errnum;
    enum spawn_stage stage;
    struct spawn s = SPAWN_INIT;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    s.argv = argv;
    s.envp = envp;
    s.path = path;
    const int fds[] = {STDIN_FILENO, ends[1], STDERR_FILENO};
    memcpy(s.fds, fds, sizeof fds);
    s.n_fds = 3;
    s.new_session = true;
    s.death_signal = SIGKILL;
    pid_t pid = spawn_process(&s, &errnum, &stage);
    assert_true(pid > 0);
    assert_int_equal(stage, SPAWN_OK);
    close(ends[1]);
    *out = ends[0];
    return pid;
}

static pid_t
start_sh(char *script, char *env, int *out)
{
    char sh[] = "/bin/sh", c[] = "-c";
    char *const argv[] = {sh, c, script, NULL};
    char *const envp[] = {env, NULL};
    return start(argv, envp, NULL, out);
}

static long
read_number(int fd)
{
    char text[64] = "";
    assert_true(read(fd, text, sizeof text - 1) > 0);
    return strtol(text, NULL, 10);
}

static void
end(pid_t pid, int fd)
{
    kill(-pid, SIGKILL);
    close(fd);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void
test_reading_a_process(void **state)
{
    (void)state;
    /* No exec after the echo: in the middle of exec a process shows no environment. */
    char script[] = "echo 1; sleep 1000; :", mark[] = "BERTH_MARK=abc:1.2", value[32],
         group[256];
    struct proc p, me;
    int out;
    pid_t pid = start_sh(script, mark, &out);
    read_number(out);
    assert_int_equal(proc_read(pid, &p), 0);
    assert_int_equal(proc_read(getpid(), &me), 0);
    assert_int_equal(p.pid, pid);
    assert_int_equal(p.ppid, getpid());
    assert_int_equal(p.sid, pid);
    assert_int_equal(p.pgid, pid);
    assert_true(p.start_ticks >= me.start_ticks);
    assert_true(p.start_ticks <= procs_ticks_of_boot_us(clock_boot_us()));
    assert_true(proc_mark(pid, value, sizeof value));
    assert_string_equal(value, "abc:1.2");
    assert_false(proc_mark(pid, value, 7)); /* does not fit */
    assert_true(proc_cgroup(pid, group, sizeof group));
    assert_int_equal(group[0], '/');
    end(pid, out);
    assert_int_equal(proc_read(pid, &p), -1);
    assert_false(proc_mark(pid, value, sizeof value));
}

/* Moves the bounds of this process's arguments and environment to unmapped memory. */
static bool
hide_arguments(void)
{
    char text[2048] = "";
    unsigned long long code[3], data[3];
    auto_close int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        return false;
    if (sscanf(strrchr(text, ')'),
               ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
               "%*u %*u %*d %*u %llu %llu %llu %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %*d %*u "
               "%*u %*u %*u %*d %llu %llu %llu",
               &code[0], &code[1], &code[2], &data[0], &data[1], &data[2]) != 6)
        return false;
    __u64 none = (__u64)(uintptr_t)text;
    struct prctl_mm_map map = {
        .start_code = code[0],
        .end_code = code[1],
        .start_stack = code[2],
        .start_data = data[0],
        .end_data = data[1],
        .start_brk = data[2],
        .brk = (__u64)(uintptr_t)sbrk(0),
        .arg_start = none,
        .arg_end = none,
        .env_start = none,
        .env_end = none,
        .exe_fd = (__u32)-1,
    };
    return prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0) == 0;
}

/* Makes the state lasting in which the kernel shows a process during exec: neither arguments
 * nor environment. -1 if the kernel refuses. */
static pid_t
start_as_if_in_exec(void)
{
    int ready[2];
    char word = 'n';
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        word = hide_arguments() ? 'y' : 'n';
        _exit(write(ready[1], &word, 1) == 1 && pause());
    }
    assert_int_equal(read(ready[0], &word, 1), 1);
    close(ready[0]);
    close(ready[1]);
    if (word == 'y')
        return pid;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return -1;
}

static void
test_in_exec(void **state)
{
    (void)state;
    assert_false(proc_is_in_exec(getpid()));
    assert_false(proc_is_in_exec(2)); /* a kernel thread, or no process */
    pid_t pid = start_as_if_in_exec();
    if (pid < 0)
        skip();
    assert_true(proc_is_in_exec(pid));
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT), 0);
    assert_false(proc_is_in_exec(pid)); /* a zombie */
    waitpid(pid, NULL, 0);
    assert_false(proc_is_in_exec(pid));
}

static void
test_whose_it_is(void **state)
{
    (void)state;
    assert_true(proc_is_of(getpid(), getuid()));
    assert_false(proc_is_of(getpid(), getuid() + 1));
    assert_true(proc_is_only_of(getpid(), getuid()));
    assert_false(proc_is_only_of(getpid(), getuid() + 1));
    assert_false(proc_is_only_of(-1, 0));
    assert_true(proc_is_of(1, 0));
    assert_false(proc_is_of(-1, 0));
}

/* A name with blanks and brackets must not be parsed as fields. */
static void
test_names_that_mislead(void **state)
{
    (void)state;
    char before[16] = "", name[] = "a) R 1 2 3 (b";
    struct proc p;
    prctl(PR_GET_NAME, before);
    prctl(PR_SET_NAME, name);
    assert_int_equal(proc_read(getpid(), &p), 0);
    prctl(PR_SET_NAME, before);
    assert_int_equal(p.ppid, getppid());
    assert_int_equal(p.sid, getsid(0));
}

static bool
holds(const struct procs *ps, pid_t pid)
{
    for (size_t i = 0; i < ps->n; i++)
        if (ps->v[i].pid == pid)
            return true;
    return false;
}

static void
test_descendants(void **state)
{
    (void)state;
    char script[] = "setsid /bin/sh -c 'echo $$; exec sleep 1000' & wait", none[] = "A=b",
         value[8];
    auto_procs struct procs found = PROCS_INIT;
    int out;
    pid_t pid = start_sh(script, none, &out);
    pid_t inner = (pid_t)read_number(out);
    assert_int_equal(procs_read_descendants(getpid(), &found), 0);
    assert_true(holds(&found, pid));
    assert_true(holds(&found, inner));
    assert_false(holds(&found, getpid()));
    assert_false(proc_mark(pid, value, sizeof value));
    auto_procs struct procs all = PROCS_INIT;
    assert_int_equal(procs_read_all(&all), 0);
    assert_true(holds(&all, inner));
    assert_true(holds(&all, getpid()));
    kill(inner, SIGKILL);
    kill(-inner, SIGKILL);
    end(pid, out);
}

/* What could not be examined for lack of a descriptor may exist. */
static void
test_without_descriptors(void **state)
{
    (void)state;
    struct rlimit before, few;
    auto_procs struct procs found = PROCS_INIT;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = dup(0);
    assert_true(next >= 0);
    close(next);
    for (int n_free = 0; n_free < 2; n_free++) {
        few = (struct rlimit){(rlim_t)(next + n_free), before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        int all = procs_read_all(&found), below = procs_read_descendants(getppid(), &found);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(all, -1);
        assert_int_equal(below, -1);
    }
}

/* A handler counts, ignoring does not. */
static void
test_catches(void **state)
{
    (void)state;
    char script[] = "trap : USR2; trap '' USR1; echo 1; while :; do sleep 0.01; done",
         none[] = "A=b";
    int out;
    pid_t pid = start_sh(script, none, &out);
    read_number(out);
    assert_true(proc_catches(pid, SIGUSR2));
    assert_false(proc_catches(pid, SIGUSR1));
    assert_false(proc_catches(pid, SIGHUP));
    assert_false(proc_catches(pid, 0));
    assert_false(proc_catches(pid, 65));
    end(pid, out);
    assert_false(proc_catches(pid, SIGUSR2));
}

/* The same pid with another start time is another process. */
static void
test_signal_only_to_whom_was_read(void **state)
{
    (void)state;
    char script[] = "echo 1; exec sleep 1000", none[] = "A=b";
    struct proc p;
    int out, status;
    pid_t pid = start_sh(script, none, &out);
    read_number(out);
    assert_int_equal(proc_read(pid, &p), 0);
    struct proc other = p;
    other.start_ticks--;
    assert_int_equal(proc_signal(&other, SIGKILL), -1);
    assert_int_equal(proc_signal(&p, 0), 0);
    assert_int_equal(proc_signal(&p, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(proc_signal(&p, SIGKILL), -1);
    close(out);
}

static void
expect_failure(char *const *argv, const char *path, enum spawn_stage want, int want_errnum)
{
    int errnum = 0;
    enum spawn_stage stage = SPAWN_OK;
    char *const env[] = {NULL};
    struct spawn s = SPAWN_INIT;
    s.argv = argv;
    s.envp = env;
    s.path = path;
    assert_int_equal(spawn_process(&s, &errnum, &stage), -1);
    assert_int_equal(stage, want);
    assert_int_equal(errnum, want_errnum);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void
test_why_it_cannot_be_executed(void **state)
{
    (void)state;
    char missing[] = "/no/such/program", folder[] = "/tmp", plain[] = "/etc/passwd",
         name[] = "no-such-program", empty[] = "";
    char *const argv_missing[] = {missing, NULL}, *const argv_folder[] = {folder, NULL},
                *const argv_plain[] = {plain, NULL}, *const argv_name[] = {name, NULL},
                *const argv_empty[] = {empty, NULL};
    expect_failure(argv_missing, NULL, SPAWN_EXEC, ENOENT);
    expect_failure(argv_folder, NULL, SPAWN_EXEC, EACCES);
    expect_failure(argv_plain, NULL, SPAWN_EXEC, EACCES);
    expect_failure(argv_name, "/bin:/usr/bin", SPAWN_EXEC, ENOENT);
    expect_failure(argv_name, NULL, SPAWN_EXEC, ENOENT);
    expect_failure(argv_empty, "/bin", SPAWN_EXEC, ENOENT);
}

static int
refuse(void *ctx)
{
    return *(int *)ctx;
}

static void
test_before_exec_can_refuse(void **state)
{
    (void)state;
    int why = ENOSPC, errnum = 0;
    enum spawn_stage stage = SPAWN_OK;
    char sh[] = "/bin/sh";
    char *const argv[] = {sh, NULL}, *const env[] = {NULL};
    struct spawn s = SPAWN_INIT;
    s.argv = argv;
    s.envp = env;
    s.before_exec = refuse;
    s.ctx = &why;
    assert_int_equal(spawn_process(&s, &errnum, &stage), -1);
    assert_int_equal(stage, SPAWN_CHILD);
    assert_int_equal(errnum, ENOSPC);
}

/* Descriptors that are each other's targets all arrive. */
static void
test_descriptors_that_cross(void **state)
{
    (void)state;
    int ends[2], errnum;
    enum spawn_stage stage;
    char sh[] = "/bin/sh", c[] = "-c", script[] = "echo 42 >&4; [ -e /dev/fd/5 ] || exit 9";
    char *const argv[] = {sh, c, script, NULL}, *const env[] = {NULL};
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    int low = fcntl(ends[1], F_DUPFD_CLOEXEC, 0);
    struct spawn s = SPAWN_INIT;
    s.argv = argv;
    s.envp = env;
    const int fds[] = {2, 0, 1, ends[0], low};
    memcpy(s.fds, fds, sizeof fds);
    s.n_fds = 5;
    pid_t pid = spawn_process(&s, &errnum, &stage);
    assert_true(pid > 0);
    assert_int_equal(read_number(ends[0]), 42);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 9);
    close(low);
    close(ends[0]);
    close(ends[1]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reading_a_process),
        cmocka_unit_test(test_in_exec),
        cmocka_unit_test(test_whose_it_is),
        cmocka_unit_test(test_names_that_mislead),
        cmocka_unit_test(test_descendants),
        cmocka_unit_test(test_without_descriptors),
        cmocka_unit_test(test_catches),
        cmocka_unit_test(test_signal_only_to_whom_was_read),
        cmocka_unit_test(test_why_it_cannot_be_executed),
        cmocka_unit_test(test_before_exec_can_refuse),
        cmocka_unit_test(test_descriptors_that_cross),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
