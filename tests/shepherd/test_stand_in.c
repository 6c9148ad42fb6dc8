/* The batch script of a Slurm job, without Slurm: the mark that decides which process runs an
 * attempt, and the command's fate when the batch script or a part of it fails. */
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "rig.h"
#include "shepherd/slurm/stand_in.h"

static bool
has_file(const struct rig *r, const char *name)
{
    auto_free char *path = xasprintf("%s/%s", r->dir, name);
    return access(path, F_OK) == 0;
}

static void
start(struct rig *r)
{
    json_object_set_new(r->spec, "slurm", json_true());
    rig_start_stand_in(r, 0, false);
}

/* Writes to a FIFO, once it has a reader. */
static void
say(const struct rig *r, const char *fifo, const char *text)
{
    auto_free char *path = xasprintf("%s/%s", r->dir, fifo);
    auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void
runs_the_command_of_an_attempt_once(void **state)
{
    struct exitrec rec;
    struct rig r;
    (void)state;
    rig_open(&r, "echo x >>$T/ran; exit 7");
    start(&r);
    assert_int_equal(WEXITSTATUS(rig_wait(&r)), 7);
    assert_int_equal(rig_record(&r, &rec), 1);
    assert_int_equal(rec.ending.code, 7);
    assert_true(has_file(&r, "a/started") && has_file(&r, "ran"));
    start(&r);
    assert_int_equal(WEXITSTATUS(rig_wait(&r)), SLURM_TAKEN);
    rig_close(&r);
}

static void
runs_nothing_where_the_mark_cannot_be_made(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, "echo x >>$T/ran");
    rig_write_spec(&r);
    assert_int_equal(fchmod(r.folder, 0500), 0);
    rig_start_stand_in(&r, 0, true);
    assert_int_equal(WEXITSTATUS(rig_wait(&r)), SLURM_UNREADABLE);
    assert_int_equal(fchmod(r.folder, 0700), 0);
    assert_false(has_file(&r, "ran"));
    assert_false(has_file(&r, "a/started"));
    rig_close(&r);
}

/* The inode of the socket behind this descriptor of the process; 0: not a socket. */
static long
socket_at(pid_t pid, const char *fd)
{
    long inode = 0;
    char text[64] = "";
    auto_free char *path = xasprintf("/proc/%d/fd/%s", (int)pid, fd);
    if (readlink(path, text, sizeof text - 1) > 0)
        (void)sscanf(text, "socket:[%ld]", &inode);
    return inode;
}

static int
count_shared_sockets(pid_t a, pid_t b)
{
    char fd[16];
    int n = 0;
    for (int i = 0; i < 32; i++) {
        snprintf(fd, sizeof fd, "%d", i);
        long inode = socket_at(a, fd);
        for (int k = 0; inode && k < 32; k++) {
            snprintf(fd, sizeof fd, "%d", k);
            n += socket_at(b, fd) == inode;
        }
    }
    return n;
}

/* A supervisor that itself held our end would not see us hang up. */
static void
leaves_its_end_of_the_connection_to_nobody(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, "echo $PPID >$T/up; read go <$T/go");
    rig_make_fifo(&r, "up");
    rig_make_fifo(&r, "go");
    start(&r);
    pid_t supervisor = (pid_t)rig_read_fifo(&r, "up");
    assert_true(supervisor > 0 && supervisor != r.pid);
    int shared = count_shared_sockets(r.pid, supervisor);
    say(&r, "go", "\n");
    assert_int_equal(rig_wait(&r), 0);
    rig_close(&r);
    assert_int_equal(shared, 0);
}

static void
ends_its_command_when_the_batch_script_is_killed(void **state)
{
    struct exitrec rec;
    struct rig r;
    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    rig_open(&r, "trap 'echo ended >$T/ended; exit 0' TERM; echo $PPID >$T/up; read go <$T/go");
    rig_make_fifo(&r, "up");
    rig_make_fifo(&r, "go");
    start(&r);
    pid_t supervisor = (pid_t)rig_read_fifo(&r, "up");
    assert_int_equal(kill(r.pid, SIGKILL), 0);
    (void)rig_wait(&r);
    (void)rig_wait_pid(supervisor);
    assert_true(has_file(&r, "ended"));
    assert_int_equal(rig_record(&r, &rec), 1);
    assert_int_equal(rec.ending.outcome, OUTCOME_LOST);
    assert_string_equal(rec.ending.text, "its batch script on the node was killed");
    rig_close(&r);
}

/* It then waits for a writer of `stop`, which nothing else makes a FIFO. */
static void
start_held_behind_its_mark(struct rig *r)
{
    rig_make_fifo(r, "a/stop");
    start(r);
    rig_await_file(r, "started");
}

static void
keeps_a_signal_that_comes_right_after_its_mark(void **state)
{
    struct exitrec rec;
    struct rig r;
    (void)state;
    rig_open(&r, "sleep 1000");
    start_held_behind_its_mark(&r);
    assert_int_equal(kill(r.pid, SIGTERM), 0);
    say(&r, "a/stop", "{\"op\":\"cancel\"}\n");
    assert_int_equal(WIFEXITED(rig_wait(&r)), 1);
    assert_int_equal(rig_record(&r, &rec), 1);
    assert_int_equal(rec.ending.outcome, OUTCOME_CANCELLED);
    rig_close(&r);
}

static void
records_that_no_process_can_be_started(void **state)
{
    struct exitrec rec;
    struct rig r;
    (void)state;
    rig_open(&r, "echo x >>$T/ran");
    rig_start_stand_in(&r, 7, false); /* a mark needs one more, a connection two */
    assert_int_equal(WEXITSTATUS(rig_wait(&r)), 1);
    assert_int_equal(rig_record(&r, &rec), 1);
    assert_int_equal(rec.ending.outcome, OUTCOME_NOT_STARTED);
    assert_int_equal(rec.ending.errno_value, EMFILE);
    assert_false(has_file(&r, "ran"));
    rig_close(&r);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_the_command_of_an_attempt_once),
        cmocka_unit_test(runs_nothing_where_the_mark_cannot_be_made),
        cmocka_unit_test(leaves_its_end_of_the_connection_to_nobody),
        cmocka_unit_test(ends_its_command_when_the_batch_script_is_killed),
        cmocka_unit_test(keeps_a_signal_that_comes_right_after_its_mark),
        cmocka_unit_test(records_that_no_process_can_be_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
