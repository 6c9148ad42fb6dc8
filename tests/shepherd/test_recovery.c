/* Daemons that come and go, supervisors that die at every edge, full disks: the attempt's
 * folder always shows whether the attempt ended, never ran, or is lost. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "rig.h"

static void
expect_field(const json_t *o, const char *key, const char *want)
{
    const char *got = json_string_value(json_object_get(o, key));
    assert_non_null(got);
    assert_string_equal(got, want);
}

static void
drop_first_peer(struct rig *r)
{
    close(r->ctl);
    r->ctl = -1;
}

static void
test_hello_and_started(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, "read x <$T/go");
    rig_make_fifo(&r, "go");
    rig_start(&r);
    json_t *hello = rig_read(r.ctl, &r.in);
    json_t *started = rig_read(r.ctl, &r.in);
    expect_field(hello, "event", "hello");
    expect_field(hello, "phase", "running");
    expect_field(started, "event", "started");
    assert_int_equal(json_integer_value(json_object_get(hello, "job")), 12);
    assert_int_equal(json_integer_value(json_object_get(hello, "attempt")), 3);
    assert_int_equal(json_integer_value(json_object_get(hello, "pid")), r.pid);
    json_int_t command = json_integer_value(json_object_get(started, "command_pid"));
    assert_int_equal(json_integer_value(json_object_get(hello, "command_pid")), command);
    assert_int_equal(rig_started(&r), command);
    assert_true(json_integer_value(json_object_get(started, "at_us")) > 0);
    json_decref(hello);
    json_decref(started);
    auto_free char *go = xasprintf("%s/go", r.dir);
    close(open(go, O_WRONLY | O_CLOEXEC));
    json_decref(rig_await(r.ctl, &r.in, "ended"));
    rig_recorded(&r);
    assert_int_equal(rig_wait(&r), 0);
    rig_close(&r);
}

/* The first daemon exits; two others come, one cancels, one records. */
static void
test_later_daemons(void **state)
{
    (void)state;
    struct rig r;
    struct exitrec rec;
    auto_buf struct buf in1 = BUF_INIT, in2 = BUF_INIT;
    rig_open(&r, "sleep 1000");
    rig_start(&r);
    json_decref(rig_await(r.ctl, &r.in, "started"));
    drop_first_peer(&r);
    auto_close int one = rig_connect(&r);
    auto_close int two = rig_connect(&r);
    json_t *hello1 = rig_read(one, &in1);
    json_t *hello2 = rig_read(two, &in2);
    expect_field(hello1, "event", "hello");
    expect_field(hello2, "event", "hello");
    json_decref(hello1);
    json_decref(hello2);
    rig_say(one, "{\"op\":\"cancel\",\"by\":\"carol\"}\n");
    json_t *ended1 = rig_read(one, &in1);
    json_t *ended2 = rig_read(two, &in2);
    expect_field(ended1, "by", "carol");
    expect_field(ended2, "outcome", "cancelled");
    json_decref(ended1);
    json_decref(ended2);
    assert_true(rig_lock_is_held(&r));
    rig_say(two, "{\"op\":\"recorded\"}\n");
    assert_int_equal(rig_wait(&r), 0);
    assert_true(rig_at_end(one));
    assert_int_equal(rig_record(&r, &rec), 1);
    rig_close(&r);
}

/* Until the end is recorded, any other daemon that connects is told the outcome too. */
static void
test_daemon_that_comes_after_the_end(void **state)
{
    (void)state;
    struct rig r;
    auto_buf struct buf in = BUF_INIT;
    rig_open(&r, "exit 6");
    rig_start(&r);
    json_decref(rig_await(r.ctl, &r.in, "ended"));
    auto_close int late = rig_connect(&r);
    json_t *hello = rig_read(late, &in);
    json_t *ended = rig_read(late, &in);
    expect_field(hello, "phase", "ending");
    expect_field(ended, "event", "ended");
    assert_int_equal(json_integer_value(json_object_get(ended, "code")), 6);
    json_decref(hello);
    json_decref(ended);
    drop_first_peer(&r);
    rig_say(late, "{\"op\":\"recorded\"}\n");
    assert_int_equal(rig_wait(&r), 0);
    rig_close(&r);
}

/* The daemon dies between `ended` and `recorded`: the supervisor keeps the record on disk and
 * exits. */
static void
test_daemon_dies_before_recording(void **state)
{
    (void)state;
    struct rig r;
    struct exitrec rec;
    rig_open(&r, "exit 8");
    rig_start(&r);
    json_decref(rig_await(r.ctl, &r.in, "ended"));
    drop_first_peer(&r);
    assert_int_equal(rig_wait(&r), 0);
    assert_int_equal(rig_record(&r, &rec), 1);
    assert_int_equal(rec.ending.code, 8);
    rig_close(&r);
}

/* The daemon removes the folder once it has recorded the outcome. On a busy machine the
 * supervisor may see that before the daemon's message; that is no loss and must not be
 * reported as one. */
static void
test_folder_goes_before_the_word(void **state)
{
    (void)state;
    struct rig r;
    auto_buf struct buf said = BUF_INIT;
    int errors = memfd_create("stderr", MFD_CLOEXEC), own = dup(STDERR_FILENO);
    rig_open(&r, "exit 8");
    assert_true(errors >= 0 && own >= 0 && dup2(errors, STDERR_FILENO) >= 0);
    rig_start(&r);
    assert_true(dup2(own, STDERR_FILENO) >= 0);
    json_decref(rig_await(r.ctl, &r.in, "ended"));
    rig_remove_folder(&r);
    struct pollfd gone = {.fd = r.ctl, .events = POLLIN};
    assert_int_equal(poll(&gone, 1, 300), 0); /* it would write its record after 100 ms */
    rig_recorded(&r);
    assert_int_equal(rig_wait(&r), 0);
    auto_free char *path = xasprintf("/proc/self/fd/%d", errors);
    assert_int_equal(file_read(path, 10000, &said, NULL), 0);
    assert_string_equal(buf_str(&said), "");
    close(errors);
    close(own);
    rig_close(&r);
}

static void
test_no_daemon_at_all(void **state)
{
    (void)state;
    struct rig r;
    struct exitrec rec;
    rig_open(&r, "read x <$T/go; exit 9");
    rig_make_fifo(&r, "go");
    rig_start(&r);
    drop_first_peer(&r);
    auto_free char *go = xasprintf("%s/go", r.dir);
    close(open(go, O_WRONLY | O_CLOEXEC));
    assert_int_equal(rig_wait(&r), 0);
    assert_int_equal(rig_record(&r, &rec), 1);
    assert_int_equal(rec.ending.code, 9);
    assert_false(rig_lock_is_held(&r));
    rig_close(&r);
}

/* Whatever a peer sends, the job goes on and others are served. */
static void
test_malformed_messages(void **state)
{
    (void)state;
    static const char *const HARMLESS[] = {
        "\n{}\n",
        "{\"op\":\"dance\"}\n",
        "{\"op\":7}\n",
        "{\"op\":\"signal\"}\n",
        "{\"op\":\"signal\",\"signal\":0}\n{\"op\":\"signal\",\"signal\":65}\n",
        "{\"op\":\"recorded\"}\n",
        "{\"op\":\"signal\",\"signal\":\"KILL\"}\n"};
    static const char *const FATAL[] = {"hello\n", "[1]\n", "{\"op\":\"cancel\"\n",
                                        "\xff\xfe\n", "{\"op\":\"cancel\\u0000\"}\n"};
    struct rig r;
    rig_open(&r, "sleep 1000");
    rig_start(&r);
    json_decref(rig_await(r.ctl, &r.in, "started"));
    for (size_t i = 0; i < sizeof HARMLESS / sizeof *HARMLESS; i++)
        rig_say(r.ctl, HARMLESS[i]);
    for (size_t i = 0; i < sizeof FATAL / sizeof *FATAL; i++) {
        auto_buf struct buf in = BUF_INIT;
        auto_close int fd = rig_connect(&r);
        json_decref(rig_read(fd, &in));
        rig_say(fd, FATAL[i]);
        assert_true(rig_at_end(fd));
    }
    auto_buf struct buf in = BUF_INIT, endless = BUF_INIT;
    auto_close int fd = rig_connect(&r);
    json_decref(rig_read(fd, &in));
    while (endless.len < 70000)
        buf_addc(&endless, ' ');
    (void)!write(fd, endless.data, endless.len);
    assert_true(rig_at_end(fd));
    rig_say(r.ctl, "{\"op\":\"cancel\",\"by\":\"\"}\n");
    json_t *ended = rig_await(r.ctl, &r.in, "ended");
    expect_field(ended, "outcome", "cancelled");
    json_decref(ended);
    rig_recorded(&r);
    assert_int_equal(rig_wait(&r), 0);
    rig_close(&r);
}

/* Nine at once: those over the limit are refused, the others served. */
static void
test_many_peers(void **state)
{
    (void)state;
    struct rig r;
    struct buf in[12] = {BUF_INIT};
    int fds[12];
    rig_open(&r, "sleep 1000");
    rig_start(&r);
    json_decref(rig_await(r.ctl, &r.in, "started"));
    for (int i = 0; i < 12; i++)
        fds[i] = rig_connect(&r);
    for (int i = 0; i < 7; i++) /* the first is the socket pair */
        json_decref(rig_await(fds[i], &in[i], "hello"));
    for (int i = 7; i < 12; i++)
        assert_true(rig_at_end(fds[i]));
    rig_say(fds[6], "{\"op\":\"cancel\"}\n");
    for (int i = 0; i < 7; i++)
        json_decref(rig_await(fds[i], &in[i], "ended"));
    rig_recorded(&r);
    assert_int_equal(rig_wait(&r), 0);
    for (int i = 0; i < 12; i++) {
        close(fds[i]);
        buf_free(&in[i]);
    }
    rig_close(&r);
}

enum left { LEFT_NOTHING, LEFT_STARTED, LEFT_RECORD };

/* Dies at the label; then: is the lock free, what does the folder show, did the command's
 * first line run, is the command still alive? */
static void
crash_at(const char *label, enum left want, bool ran)
{
    struct rig r;
    struct exitrec rec;
    rig_open(&r, "echo ran; [ -e $T/stay ] && sleep 1000; exit 21");
    r.crash_at = label;
    rig_start(&r);
    int status = rig_wait(&r);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(rig_wait_pid(rig_start_sweep(&r)), 0);
    assert_false(rig_lock_is_held(&r));
    int recorded = rig_record(&r, &rec);
    int32_t started = rig_started(&r);
    if (recorded != (want == LEFT_RECORD) || (started > 0) != (want != LEFT_NOTHING))
        fail_msg("%s: record %d, started %d", label, recorded, started);
    if (recorded)
        assert_int_equal(rec.ending.code, 21);
    if (started)
        assert_false(rig_lives(started));
    auto_buf struct buf log = BUF_INIT;
    auto_free char *path = xasprintf("%s/log", r.dir);
    if (access(path, F_OK) == 0)
        rig_read_log(&r, &log);
    if (ran)
        assert_string_equal(buf_str(&log), "ran\n");
    else if (want == LEFT_NOTHING)
        assert_int_equal(log.len, 0);
    rig_close(&r);
}

static void
test_crash_points(void **state)
{
    (void)state;
    crash_at("shepherd-start", LEFT_NOTHING, false);
    crash_at("shepherd-before-fork", LEFT_NOTHING, false);
    crash_at("shepherd-before-exec", LEFT_STARTED, false);
    crash_at("shepherd-after-exec", LEFT_STARTED, false);
    crash_at("shepherd-child-exited", LEFT_STARTED, true);
    crash_at("shepherd-before-note", LEFT_STARTED, true);
    crash_at("shepherd-before-rename", LEFT_RECORD, true);
    crash_at("shepherd-after-rename", LEFT_RECORD, true);
    crash_at("shepherd-before-ended", LEFT_RECORD, true);
}

/* kill -9 of a supervisor: its command dies with it, the rest is swept; no outcome is
 * invented. */
static void
test_killed_shepherd_and_sweep(void **state)
{
    (void)state;
    struct rig r;
    struct exitrec rec;
    /* a child of its session without the mark, and a session of its own with it */
    rig_open(&r,
             "env -i T=$T /bin/sh -c 'trap \"\" TERM HUP; echo $$ >$T/one; sleep 1000;"
             " sleep 1000' & setsid /bin/sh -c 'trap \"\" TERM; echo $$ >$T/two; sleep 1000;"
             " sleep 1000' & (sleep 1000 &) ; echo $$ >$T/main; wait");
    rig_make_fifo(&r, "one");
    rig_make_fifo(&r, "two");
    rig_make_fifo(&r, "main");
    rig_start(&r);
    pid_t one = (pid_t)rig_read_fifo(&r, "one");
    pid_t two = (pid_t)rig_read_fifo(&r, "two");
    pid_t command = (pid_t)rig_read_fifo(&r, "main");
    assert_int_equal(rig_started(&r), command);
    kill(r.pid, SIGKILL);
    rig_wait(&r);
    assert_int_equal(rig_wait_pid(rig_start_sweep(&r)), 0);
    assert_false(rig_lives(one));
    assert_false(rig_lives(two));
    assert_false(rig_lives(command));
    assert_int_equal(rig_record(&r, &rec), 0);
    assert_false(rig_lock_is_held(&r));
    rig_close(&r);
}

/* A sweep during the supervisor's life waits for it and harms nothing. */
static void
test_sweep_waits_for_a_living_shepherd(void **state)
{
    (void)state;
    struct rig r;
    struct exitrec rec;
    rig_open(&r, "read x <$T/go; exit 33");
    rig_make_fifo(&r, "go");
    rig_start(&r);
    json_decref(rig_await(r.ctl, &r.in, "started"));
    pid_t sweep = rig_start_sweep(&r);
    auto_free char *go = xasprintf("%s/go", r.dir);
    close(open(go, O_WRONLY | O_CLOEXEC));
    json_decref(rig_await(r.ctl, &r.in, "ended"));
    assert_int_equal(waitpid(sweep, NULL, WNOHANG), 0);
    rig_recorded(&r);
    assert_int_equal(rig_wait(&r), 0);
    assert_int_equal(rig_wait_pid(sweep), 0);
    assert_int_equal(rig_record(&r, &rec), 1);
    assert_int_equal(rec.ending.code, 33);
    rig_close(&r);
}

/* If a process outside the job loads its environment into a child of its shell, it loses only
 * that child. */
static void
test_sweep_spares_strangers(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, "sleep 1000");
    rig_start(&r);
    json_decref(rig_await(r.ctl, &r.in, "started"));
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t stranger = fork();
    if (stranger == 0) {
        setsid();
        pid_t child = fork();
        if (child == 0) {
            setenv("BERTH_MARK", r.mark, 1);
            execl("/bin/sleep", "sleep", "1000", (char *)NULL);
            _exit(127);
        }
        (void)!write(ready[1], &child, sizeof child);
        close(ready[1]);
        int status;
        waitpid(child, &status, 0);
        _exit(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : 1);
    }
    pid_t child;
    assert_int_equal(read(ready[0], &child, sizeof child), sizeof child);
    close(ready[1]);
    assert_int_equal(read(ready[0], &child, sizeof child), 0); /* its exec closed the last */
    kill(r.pid, SIGKILL);
    rig_wait(&r);
    assert_int_equal(rig_wait_pid(rig_start_sweep(&r)), 0);
    assert_int_equal(rig_wait_pid(stranger), 0);
    close(ready[0]);
    rig_close(&r);
}

/* The attempt's folder is full: the outcome is reported all the same and stored in the lock
 * file, which has its block already; a file of its own is written once there is room. Needs a
 * file system of its own, so root. */
static void
test_full_disk(void **state)
{
    (void)state;
    struct rig r;
    struct exitrec rec;
    rig_open(&r, "cat /dev/zero >$T/a/filler 2>/dev/null; exit 13");
    auto_free char *path = xasprintf("%s/a", r.dir);
    if (geteuid() != 0 || mount("berth-test", path, "tmpfs", 0, "size=64k") < 0) {
        rig_close(&r);
        skip();
    }
    close(r.folder);
    r.folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rig_start(&r);
    json_t *ended = rig_await(r.ctl, &r.in, "ended");
    assert_int_equal(json_integer_value(json_object_get(ended, "code")), 13);
    json_decref(ended);
    assert_int_equal(rig_record(&r, &rec), 1);
    assert_int_equal(faccessat(r.folder, "exit", F_OK, 0), -1);
    drop_first_peer(&r); /* not recorded yet: the supervisor must not exit */
    auto_buf struct buf in = BUF_INIT;
    auto_close int late = rig_connect(&r);
    json_decref(rig_await(late, &in, "ended"));
    assert_int_equal(unlinkat(r.folder, "filler", 0), 0);
    close(TAKE_FD(late));
    assert_int_equal(rig_wait(&r), 0);
    assert_int_equal(faccessat(r.folder, "exit", F_OK, 0), 0);
    assert_int_equal(rig_record(&r, &rec), 1);
    assert_int_equal(rec.ending.code, 13);
    close(r.folder);
    assert_int_equal(umount2(path, MNT_DETACH), 0);
    r.folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rig_close(&r);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hello_and_started),
        cmocka_unit_test(test_later_daemons),
        cmocka_unit_test(test_daemon_that_comes_after_the_end),
        cmocka_unit_test(test_daemon_dies_before_recording),
        cmocka_unit_test(test_folder_goes_before_the_word),
        cmocka_unit_test(test_no_daemon_at_all),
        cmocka_unit_test(test_malformed_messages),
        cmocka_unit_test(test_many_peers),
        cmocka_unit_test(test_crash_points),
        cmocka_unit_test(test_killed_shepherd_and_sweep),
        cmocka_unit_test(test_sweep_waits_for_a_living_shepherd),
        cmocka_unit_test(test_sweep_spares_strangers),
        cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
