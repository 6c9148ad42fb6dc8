/* Ending everything a job started: limits, cancels, signals, leftovers, however the job
 * resists. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "rig.h"
#include "sys/cgroup.h"
#include "sys/procs.h"

/* Waits for `ended`, lets the supervisor exit, and returns the record from the file. */
static void
finish(struct rig *r, struct exitrec *rec)
{
    json_decref(rig_await(r->ctl, &r->in, "ended"));
    rig_recorded(r);
    assert_int_equal(rig_wait(r), 0);
    assert_int_equal(rig_record(r, rec), 1);
}

static void
cancel(struct rig *r, int64_t grace_ms)
{
    auto_free char *line = xasprintf("{\"op\":\"cancel\",\"by\":\"alice\",\"grace_ms\":%lld}\n",
                                     (long long)grace_ms);
    rig_say(r->ctl, line);
}

static void
test_limit_ends_it_on_term(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "trap 'exit 3' TERM; while :; do sleep 100 & wait; done");
    rig_set_int(&r, "limit_ms", 8000); /* long enough for the shell to set its trap */
    rig_run(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_TIMEOUT);
    assert_int_equal(rec.ending.code, 3);
    assert_int_equal(rec.ending.signal, 0);
    assert_true(rec.ending.run_ms >= 8000);
    assert_string_equal(rec.ending.text, "time limit of 8.0s reached");
    rig_close(&r);
}

static void
test_limit_kills_what_ignores_term(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "trap '' TERM; echo $$ >$T/pid; while :; do sleep 1000; done");
    rig_set_int(&r, "limit_ms", 8000);
    rig_set_int(&r, "grace_ms", 100);
    rig_run(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_TIMEOUT);
    assert_int_equal(rec.ending.signal, SIGKILL);
    assert_int_equal(rec.ending.code, -1);
    assert_true(rec.ending.run_ms >= 8100);
    assert_string_equal(rec.ending.text,
                        "time limit of 8.0s reached, killed after the grace period");
    rig_close(&r);
}

/* The daemon is dead: the limit holds, and the record is on disk. */
static void
test_limit_without_a_daemon(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "sleep 1000");
    rig_set_int(&r, "limit_ms", 200);
    rig_start(&r);
    json_decref(rig_await(r.ctl, &r.in, "started"));
    close(r.ctl);
    r.ctl = -1;
    assert_int_equal(rig_wait(&r), 0);
    assert_int_equal(rig_record(&r, &rec), 1);
    assert_int_equal(rec.ending.outcome, OUTCOME_TIMEOUT);
    assert_int_equal(rec.ending.signal, SIGTERM);
    rig_close(&r);
}

static void
test_cancel(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "sleep 1000");
    rig_start(&r);
    json_decref(rig_await(r.ctl, &r.in, "started"));
    cancel(&r, 10000);
    finish(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_CANCELLED);
    assert_int_equal(rec.ending.signal, SIGTERM);
    assert_string_equal(rec.by, "alice");
    assert_string_equal(rec.ending.text, "cancelled by alice");
    rig_close(&r);
}

/* A second cancel with a shorter grace cuts the first one's; the outcome keeps the first
 * requester. */
static void
test_second_cancel_shortens_the_grace(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "trap 'echo 1 >$T/got' TERM; echo 1 >$T/ready; while :; do sleep 0.01; done");
    rig_make_fifo(&r, "ready");
    rig_make_fifo(&r, "got");
    rig_start(&r);
    rig_read_fifo(&r, "ready");
    cancel(&r, 3600000);
    rig_read_fifo(&r, "got");
    rig_say(r.ctl, "{\"op\":\"cancel\",\"by\":\"bob\",\"grace_ms\":0}\n");
    finish(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_CANCELLED);
    assert_int_equal(rec.ending.signal, SIGKILL);
    assert_string_equal(rec.by, "alice");
    rig_close(&r);
}

static void
test_stopped_job_is_ended_by_term(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "echo $$ >$T/ready; kill -STOP $$; sleep 1000");
    rig_make_fifo(&r, "ready");
    rig_start(&r);
    rig_read_fifo(&r, "ready");
    cancel(&r, 3600000);
    finish(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_CANCELLED);
    assert_int_equal(rec.ending.signal, SIGTERM);
    rig_close(&r);
}

static void
test_term_to_the_shepherd(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "sleep 1000");
    rig_start(&r);
    json_decref(rig_await(r.ctl, &r.in, "started"));
    kill(r.pid, SIGHUP);
    kill(r.pid, SIGINT);
    kill(r.pid, SIGTERM);
    finish(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_CANCELLED);
    assert_int_equal(rec.ending.signal, SIGTERM);
    auto_free char *who = xasprintf("its supervisor was stopped (TERM from pid %d, uid %d)",
                                    (int)getpid(), (int)getuid());
    assert_string_equal(rec.ending.text, who);
    rig_close(&r);
}

static void
test_signal_goes_to_the_group(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "trap 'exit 44' USR1; (trap '' TERM; trap 'echo 1 >$T/child; exit' USR1; echo "
                 "1 >$T/ready;"
                 " while :; do sleep 0.01; done) & while :; do wait; done");
    rig_make_fifo(&r, "ready");
    rig_make_fifo(&r, "child");
    rig_start(&r);
    rig_read_fifo(&r, "ready");
    rig_say(r.ctl, "{\"op\":\"signal\",\"signal\":10}\n");
    assert_int_equal(rig_read_fifo(&r, "child"), 1);
    finish(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_EXITED);
    assert_int_equal(rec.ending.code, 44);
    rig_close(&r);
}

/* A session of its own, double fork, no mark in its environment: it still ends with the
 * job. */
static void
test_daemonised_child_ends_with_the_job(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "(env -i setsid /bin/sh -c '(echo $$ >$0/deep; exec sleep 1000) &' $T &); "
                 "read x <$T/go; exit 5");
    rig_make_fifo(&r, "deep");
    rig_make_fifo(&r, "go");
    rig_start(&r);
    rig_read_fifo(&r, "deep");
    auto_free char *go = xasprintf("%s/go", r.dir);
    auto_close int fd = open(go, O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(fd, "1\n", 2), 2);
    json_decref(rig_await(r.ctl, &r.in, "ended"));
    /* no process has the supervisor as ancestor */
    auto_free char *path = xasprintf("/proc/%d/task/%d/children", (int)r.pid, (int)r.pid);
    auto_fclose FILE *children = fopen(path, "re");
    assert_non_null(children);
    assert_int_equal(fgetc(children), EOF);
    rig_recorded(&r);
    assert_int_equal(rig_wait(&r), 0);
    assert_int_equal(rig_record(&r, &rec), 1);
    assert_int_equal(rec.ending.outcome, OUTCOME_EXITED);
    assert_int_equal(rec.ending.code, 5);
    rig_close(&r);
}

static void
test_daemon_that_ignores_term_is_killed(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r,
             "setsid /bin/sh -c 'trap \"\" TERM HUP; echo $$ >$0/pid; while :; do sleep 1000;"
             " done' $T & read x <$T/go; exit 0");
    rig_make_fifo(&r, "pid");
    rig_make_fifo(&r, "go");
    rig_set_int(&r, "grace_ms", 50);
    rig_start(&r);
    long pid = rig_read_fifo(&r, "pid");
    assert_true(rig_lives((pid_t)pid));
    auto_free char *go = xasprintf("%s/go", r.dir);
    close(open(go, O_WRONLY | O_CLOEXEC));
    finish(&r, &rec);
    assert_false(rig_lives((pid_t)pid));
    assert_int_equal(rec.ending.outcome, OUTCOME_EXITED);
    rig_close(&r);
}

/* A well-behaved server gets its TERM, and time to act on it. */
static void
test_what_is_left_gets_term_first(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "setsid /bin/sh -c 'trap \"echo bye; exit\" TERM; echo 1 >$0/pid; while :; do "
                 "sleep 0.01; done' $T & read x <$T/go");
    rig_make_fifo(&r, "pid");
    rig_make_fifo(&r, "go");
    rig_start(&r);
    rig_read_fifo(&r, "pid");
    auto_free char *go = xasprintf("%s/go", r.dir);
    close(open(go, O_WRONLY | O_CLOEXEC));
    finish(&r, &rec);
    auto_buf struct buf log = BUF_INIT;
    rig_read_log(&r, &log);
    assert_non_null(strstr(buf_str(&log), "bye\n"));
    rig_close(&r);
}

/* Forks as fast as it can, in new sessions, with TERM ignored. The processes have the test's
 * folder as working folder, so that every one can be searched for afterwards. */
static void
test_fork_bomb_does_not_win(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r,
             "ulimit -u 4000; trap '' TERM; echo 1 >$T/ready; bomb() { i=0; while [ $i -lt 8 ];"
             " do i=$((i+1)); (exec setsid /bin/sh -c 'trap \"\" TERM; while :; do (sleep 0.01;"
             " sleep 0.01) & sleep 0.005; done') & done; wait; }; bomb");
    rig_make_fifo(&r, "ready");
    rig_start(&r);
    rig_read_fifo(&r, "ready");
    cancel(&r, 0);
    finish(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_CANCELLED);
    assert_int_equal(rec.ending.signal, SIGKILL);
    pid_t sweep = rig_start_sweep(&r); /* finds by mark what the supervisor could have missed */
    assert_int_equal(rig_wait_pid(sweep), 0);
    rig_close(&r);
}

/* Cancelled when the command has ended and only its children are left: it keeps its
 * outcome. */
static void
test_cancel_after_the_command_has_gone(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r,
             "setsid /bin/sh -c 'trap \"echo 1 >$0/got\" TERM; echo 1 >$0/ready; while :; do "
             "sleep 0.01; done' $T & read x <$T/go; exit 17");
    rig_make_fifo(&r, "ready");
    rig_make_fifo(&r, "got");
    rig_make_fifo(&r, "go");
    rig_start(&r);
    rig_read_fifo(&r, "ready");
    auto_free char *go = xasprintf("%s/go", r.dir);
    close(open(go, O_WRONLY | O_CLOEXEC));
    rig_read_fifo(&r, "got");
    cancel(&r, 0);
    finish(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_EXITED);
    assert_int_equal(rec.ending.code, 17);
    assert_string_equal(rec.by, "");
    rig_close(&r);
}

/* In a cgroup of its own from its start, where cgroups exist; nothing of it remains. */
static void
test_cgroup_of_the_attempt(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    char *base = NULL, group[512];
    auto_free char *name = xasprintf("berth-shep-%d", (int)getpid());
    if (cgroup_find_base(name, &base, NULL) < 0)
        skip();
    auto_free char *path = xasprintf("%s/job-12.3", base);
    rig_open(&r, "trap '' TERM; setsid sleep 1000 & sleep 1000; sleep 1000");
    rig_set_text(&r, "cgroup", path);
    rig_set_int(&r, "cpus", 1);
    rig_set_int(&r, "mem_mib", 512);
    rig_start(&r);
    json_t *started = rig_await(r.ctl, &r.in, "started");
    pid_t command = (pid_t)json_integer_value(json_object_get(started, "command_pid"));
    json_decref(started);
    assert_true(proc_cgroup(command, group, sizeof group));
    assert_non_null(strstr(group, "/job-12.3"));
    assert_true(proc_cgroup(r.pid, group, sizeof group)); /* the supervisor is not confined */
    assert_null(strstr(group, "/job-12.3"));
    cancel(&r, 0);
    finish(&r, &rec);
    assert_int_equal(rec.ending.outcome, OUTCOME_CANCELLED);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(cgroup_remove(base), 0);
    free(base);
    rig_close(&r);
}

/* Without a cgroup the job runs unconfined. */
static void
test_cgroup_that_is_not_to_be_had(void **state)
{
    (void)state;
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "exit 3");
    rig_set_text(&r, "cgroup", "/no/such/group");
    rig_run(&r, &rec);
    assert_int_equal(rec.ending.code, 3);
    rig_close(&r);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit_ends_it_on_term),
        cmocka_unit_test(test_limit_kills_what_ignores_term),
        cmocka_unit_test(test_limit_without_a_daemon),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_second_cancel_shortens_the_grace),
        cmocka_unit_test(test_stopped_job_is_ended_by_term),
        cmocka_unit_test(test_term_to_the_shepherd),
        cmocka_unit_test(test_signal_goes_to_the_group),
        cmocka_unit_test(test_daemonised_child_ends_with_the_job),
        cmocka_unit_test(test_daemon_that_ignores_term_is_killed),
        cmocka_unit_test(test_what_is_left_gets_term_first),
        cmocka_unit_test(test_fork_bomb_does_not_win),
        cmocka_unit_test(test_cancel_after_the_command_has_gone),
        cmocka_unit_test(test_cgroup_of_the_attempt),
        cmocka_unit_test(test_cgroup_that_is_not_to_be_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
