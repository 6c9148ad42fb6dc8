/* Supervisors forked from the nursery behave like those started as programs. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "rig.h"
#include "sys/nursery_packets.h"
#include "sys/spawn.h"

struct nursery {
    pid_t pid;
    int fd;
};

static struct nursery
start_nursery(void)
{
    int pair[2], errnum;
    enum spawn_stage stage;
    char option[] = "--nursery";
    auto_free char *program = xstrdup(getenv("BERTH_SHEPHERD"));
    char *const argv[] = {program, option, NULL}, *const env[] = {NULL};
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    struct spawn s = SPAWN_INIT;
    s.argv = argv;
    s.envp = env;
    const int fds[] = {0, 1, 2, pair[1]};
    memcpy(s.fds, fds, sizeof fds);
    s.n_fds = 4;
    struct nursery n = {spawn_process(&s, &errnum, &stage), pair[0]};
    assert_true(n.pid > 0);
    close(pair[1]);
    return n;
}

/* One packet with the first n_fds of the descriptors. */
static void
send_packet(const struct nursery *n, char kind, const int *fds, size_t n_fds)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * 3)];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {.iov_base = &kind, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (n_fds > 0) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
    }
    assert_int_equal(sendmsg(n->fd, &msg, MSG_NOSIGNAL), 1);
}

/* Gives the rig's attempt to the nursery; our end of its socket is r->ctl. */
static void
hand_over_as(const struct nursery *n, struct rig *r, char kind)
{
    int pair[2];
    rig_write_spec(r);
    auto_close int lock = rig_take_lock(r);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    r->ctl = pair[0];
    const int fds[] = {pair[1], lock, r->folder};
    send_packet(n, kind, fds, 3);
    close(pair[1]);
}

static void
hand_over(const struct nursery *n, struct rig *r)
{
    hand_over_as(n, r, NURSERY_ATTEMPT);
}

static void
expect_code(struct rig *r, int code)
{
    struct exitrec rec;
    json_decref(rig_await(r->ctl, &r->in, "ended"));
    assert_int_equal(rig_record(r, &rec), 1);
    assert_int_equal(rec.ending.code, code);
    rig_recorded(r);
    assert_true(rig_at_end(r->ctl));
}

static void
test_several_at_once(void **state)
{
    (void)state;
    struct nursery n = start_nursery();
    struct rig rigs[8];
    for (int i = 0; i < 8; i++) {
        auto_free char *script = xasprintf("exit %d", 100 + i);
        rig_open(&rigs[i], script);
        hand_over(&n, &rigs[i]);
    }
    for (int i = 7; i >= 0; i--) {
        expect_code(&rigs[i], 100 + i);
        rig_close(&rigs[i]);
    }
    close(n.fd);
    assert_int_equal(rig_wait_pid(n.pid), 0);
}

static void
test_packets_that_make_no_sense(void **state)
{
    (void)state;
    struct nursery n = start_nursery();
    struct rig r;
    const int fds[] = {0, 1, 2};
    send_packet(&n, NURSERY_ATTEMPT, fds, 0);
    send_packet(&n, NURSERY_ATTEMPT, fds, 1);
    send_packet(&n, NURSERY_ATTEMPT, fds, 2);
    rig_open(&r, "exit 5");
    hand_over(&n, &r);
    expect_code(&r, 5);
    rig_close(&r);
    close(n.fd);
    assert_int_equal(rig_wait_pid(n.pid), 0);
}

/* The number of that process's descriptors that refer to this file. */
static int
count_open(pid_t pid, const char *path)
{
    char wanted[PATH_MAX], folder[64], target[PATH_MAX];
    int n = 0;
    assert_non_null(realpath(path, wanted));
    snprintf(folder, sizeof folder, "/proc/%d/fd", (int)pid);
    auto_dir DIR *dir = opendir(folder);
    assert_non_null(dir);
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        target[len > 0 ? len : 0] = '\0';
        n += strcmp(target, wanted) == 0;
    }
    return n;
}

/* A second one would hold the lock after the attempt closed its own. */
static void
test_each_descriptor_is_there_once(void **state)
{
    (void)state;
    struct nursery n = start_nursery();
    struct rig r;
    rig_open(&r, "read x <$T/gate");
    rig_make_fifo(&r, "gate");
    hand_over(&n, &r);
    json_t *hello = rig_await(r.ctl, &r.in, "hello");
    pid_t shepherd = (pid_t)json_integer_value(json_object_get(hello, "pid"));
    json_decref(hello);
    auto_free char *folder = xasprintf("%s/a", r.dir);
    auto_free char *lock = xasprintf("%s/lock", folder);
    auto_free char *gate = xasprintf("%s/gate", r.dir);
    assert_int_equal(count_open(shepherd, lock), 1);
    assert_int_equal(count_open(shepherd, folder), 1);
    auto_close int fd = open(gate, O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(fd, "\n", 1), 1);
    expect_code(&r, 0);
    rig_close(&r);
    close(n.fd);
    assert_int_equal(rig_wait_pid(n.pid), 0);
}

/* The nursery dies: its supervisors and their jobs go on. A sweep through another nursery
 * works. */
static void
test_shepherds_outlive_it(void **state)
{
    (void)state;
    struct nursery n = start_nursery();
    struct rig r;
    rig_open(&r, "sleep 1000");
    hand_over(&n, &r);
    json_t *hello = rig_await(r.ctl, &r.in, "hello");
    pid_t shepherd = (pid_t)json_integer_value(json_object_get(hello, "pid"));
    pid_t command = (pid_t)json_integer_value(json_object_get(hello, "command_pid"));
    json_decref(hello);
    kill(n.pid, SIGKILL);
    rig_wait_pid(n.pid);
    close(n.fd);
    assert_true(rig_lives(shepherd));
    assert_true(rig_lives(command));

    n = start_nursery();
    kill(shepherd, SIGKILL);
    json_decref(rig_await(r.ctl, &r.in, "started"));
    assert_true(rig_at_end(r.ctl));
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    auto_close int lock = openat(r.folder, "lock", O_RDWR | O_CLOEXEC);
    const int fds[] = {pair[1], lock, r.folder};
    send_packet(&n, NURSERY_SWEEP, fds, 3);
    close(pair[1]);
    auto_buf struct buf in = BUF_INIT;
    json_decref(rig_await(pair[0], &in, "swept"));
    assert_true(rig_at_end(pair[0])); /* the sweeper has finished */
    close(pair[0]);
    assert_false(rig_lives(command));
    close(n.fd);
    assert_int_equal(rig_wait_pid(n.pid), 0);
    rig_close(&r);
}

/* Its start becomes durable: it runs as any other, and receives what is sent right after
 * that. */
static void
test_ahead_and_go(void **state)
{
    (void)state;
    struct nursery n = start_nursery();
    struct rig r;
    rig_open(&r, "exit 7");
    hand_over_as(&n, &r, NURSERY_AHEAD);
    rig_say(r.ctl, NURSERY_GO);
    expect_code(&r, 7);
    rig_close(&r);

    struct exitrec rec;
    rig_open(&r, "sleep 1000");
    hand_over_as(&n, &r, NURSERY_AHEAD);
    rig_say(r.ctl, NURSERY_GO "{\"op\":\"cancel\",\"by\":\"alice\",\"grace_ms\":0}\n");
    json_decref(rig_await(r.ctl, &r.in, "ended"));
    assert_int_equal(rig_record(&r, &rec), 1);
    assert_int_equal(rec.ending.outcome, OUTCOME_CANCELLED);
    rig_recorded(&r);
    assert_true(rig_at_end(r.ctl));
    rig_close(&r);
    close(n.fd);
    assert_int_equal(rig_wait_pid(n.pid), 0);
}

/* The state in which a daemon that died, or whose commit failed, leaves the supervisor; or a
 * daemon that sends something else. */
enum silence { CLOSED, CLOSED_FOR_WRITING, CUT_SHORT, OTHER_WORDS };

static void
expect_nothing(enum silence how)
{
    struct nursery n = start_nursery();
    struct rig r;
    rig_open(&r, "echo ran");
    hand_over_as(&n, &r, NURSERY_AHEAD);
    if (how == CUT_SHORT)
        assert_int_equal(send(r.ctl, NURSERY_GO, sizeof NURSERY_GO - 2, MSG_NOSIGNAL),
                         sizeof NURSERY_GO - 2);
    if (how == OTHER_WORDS)
        rig_say(r.ctl, "{\"op\":\"recorded\"}\n");
    else
        assert_int_equal(shutdown(r.ctl, how == CLOSED_FOR_WRITING ? SHUT_WR : SHUT_RDWR), 0);
    close(n.fd);
    assert_int_equal(rig_wait_pid(n.pid), 0); /* it stays as long as it has children */
    assert_false(rig_lock_is_held(&r));
    assert_int_equal(rig_started(&r), 0);
    auto_free char *log = xasprintf("%s/log", r.dir);
    assert_int_equal(access(log, F_OK), -1);
    rig_close(&r);
}

static void
test_ahead_in_vain(void **state)
{
    (void)state;
    expect_nothing(CLOSED);
    expect_nothing(CLOSED_FOR_WRITING);
    expect_nothing(CUT_SHORT);
    expect_nothing(OTHER_WORDS);
}

/* A file that it could not read while getting ready exists when it starts. */
static void
test_ahead_of_its_spec(void **state)
{
    (void)state;
    struct nursery n = start_nursery();
    struct rig r;
    int pair[2];
    rig_open(&r, "exit 9");
    auto_close int lock = rig_take_lock(&r);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    r.ctl = pair[0];
    const int fds[] = {pair[1], lock, r.folder};
    send_packet(&n, NURSERY_AHEAD, fds, 3);
    close(pair[1]);
    rig_write_spec(&r);
    rig_say(r.ctl, NURSERY_GO);
    close(TAKE_FD(lock));
    expect_code(&r, 9);
    rig_close(&r);
    close(n.fd);
    assert_int_equal(rig_wait_pid(n.pid), 0);
}

/* False: the supervisor that the attempt was handed to exited before starting it. A daemon
 * then has another one forked. */
static bool
begins_ahead(const struct nursery *n, struct rig *r)
{
    char byte;
    hand_over_as(n, r, NURSERY_AHEAD);
    return send(r->ctl, NURSERY_GO, sizeof NURSERY_GO - 1, MSG_NOSIGNAL) > 0 &&
           recv(r->ctl, &byte, 1, MSG_PEEK) == 1;
}

/* The pid of the supervisor of a started attempt, and its record. */
static pid_t
await_end(struct rig *r, struct exitrec *rec)
{
    json_t *hello = rig_await(r->ctl, &r->in, "hello");
    pid_t pid = (pid_t)json_integer_value(json_object_get(hello, "pid"));
    json_decref(hello);
    json_decref(rig_await(r->ctl, &r->in, "ended"));
    assert_int_equal(rig_record(r, rec), 1);
    rig_recorded(r);
    assert_true(rig_at_end(r->ctl));
    return pid;
}

static pid_t
run_ahead(const struct nursery *n, struct rig *r, struct exitrec *rec)
{
    assert_true(begins_ahead(n, r));
    return await_end(r, rec);
}

/* Waits until the supervisor is idle: it then has a signal descriptor, and none of the
 * attempt's folder. False: it exited. */
static bool
await_idle(pid_t pid)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    char signals[64], folder[64];
    snprintf(signals, sizeof signals, "/proc/%d/fd/11", (int)pid);
    snprintf(folder, sizeof folder, "/proc/%d/fd/5", (int)pid);
    while (rig_lives(pid)) {
        struct stat st;
        if (lstat(signals, &st) == 0 && lstat(folder, &st) < 0)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

#define CHAIN_TRIES 20 /* an idle one may time out on a busy machine */

/* The second attempt in the process of the first has its own usage, descriptors, mask and
 * outcome. */
static void
test_one_after_the_other(void **state)
{
    (void)state;
    static const char large[] =
        "umask 027; v=$(head -c 60000000 /dev/zero | tr '\\0' x); exit 3";
    struct nursery n = start_nursery();
    struct exitrec first, second;
    pid_t one = 0, other = -1;
    for (int i = 0; i < CHAIN_TRIES && one != other; i++) {
        struct rig r;
        rig_open(&r, large);
        one = run_ahead(&n, &r, &first);
        rig_close(&r);
        assert_int_equal(first.ending.code, 3);
        assert_true(first.ending.max_rss_kib > 60000);
        (void)await_idle(one);
        rig_open(&r, "ls -l /proc/self/fd; exit 4");
        other = run_ahead(&n, &r, &second);
        auto_buf struct buf log = BUF_INIT;
        rig_read_log(&r, &log);
        assert_null(strstr(buf_str(&log), " 4 -> ")); /* ls itself has 3 */
        rig_close(&r);
        assert_int_equal(second.ending.code, 4);
        assert_true(second.ending.max_rss_kib < first.ending.max_rss_kib);
        assert_true(second.ending.cpu_ms >= 0);
    }
    assert_int_equal(one, other);
    close(n.fd);
    assert_int_equal(rig_wait_pid(n.pid), 0); /* it waits for idle ones, too */
    assert_false(rig_lives(other));
}

/* A signal ends an idle supervisor but no later job: an attempt handed to it has not
 * started. */
static void
test_an_idle_one_is_ended(void **state)
{
    (void)state;
    struct nursery n = start_nursery();
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "exit 3");
    pid_t idle = run_ahead(&n, &r, &rec);
    rig_close(&r);
    if (await_idle(idle))
        kill(idle, SIGTERM);
    rig_open(&r, "exit 4");
    if (!begins_ahead(&n, &r)) {
        assert_int_equal(rig_started(&r), 0);
        rig_close(&r);
        rig_open(&r, "exit 4");
        assert_true(begins_ahead(&n, &r));
    }
    (void)await_end(&r, &rec);
    rig_close(&r);
    assert_int_equal(rec.ending.outcome, OUTCOME_EXITED);
    assert_int_equal(rec.ending.code, 4);
    close(n.fd);
    assert_int_equal(rig_wait_pid(n.pid), 0);
}

/* A killed supervisor takes its own attempt with it, not those that the nursery hands over
 * later. */
static void
test_an_idle_one_is_killed(void **state)
{
    (void)state;
    struct nursery n = start_nursery();
    struct exitrec rec;
    struct rig r;
    rig_open(&r, "exit 3");
    pid_t idle = run_ahead(&n, &r, &rec);
    rig_close(&r);
    if (await_idle(idle))
        kill(idle, SIGSTOP);
    rig_open(&r, "echo ran");
    hand_over_as(&n, &r, NURSERY_AHEAD);
    kill(idle, SIGKILL);
    bool ran = send(r.ctl, NURSERY_GO, sizeof NURSERY_GO - 1, MSG_NOSIGNAL) > 0;
    struct pollfd p = {.fd = r.ctl, .events = POLLIN};
    assert_int_equal(poll(&p, 1, -1), 1);
    char byte;
    if (ran && recv(r.ctl, &byte, 1, MSG_PEEK) == 1) { /* it had already exited by itself */
        json_decref(rig_await(r.ctl, &r.in, "ended"));
        rig_recorded(&r);
        assert_true(rig_at_end(r.ctl));
    } else {
        assert_int_equal(rig_started(&r), 0);
        const struct timespec pause = {.tv_nsec = 1000000};
        while (rig_lock_is_held(&r)) /* closed after the connection */
            nanosleep(&pause, NULL);
    }
    rig_close(&r);
    rig_open(&r, "exit 5");
    (void)run_ahead(&n, &r, &rec);
    rig_close(&r);
    assert_int_equal(rec.ending.code, 5);
    close(n.fd);
    assert_int_equal(rig_wait_pid(n.pid), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_several_at_once),
        cmocka_unit_test(test_packets_that_make_no_sense),
        cmocka_unit_test(test_each_descriptor_is_there_once),
        cmocka_unit_test(test_shepherds_outlive_it),
        cmocka_unit_test(test_ahead_and_go),
        cmocka_unit_test(test_ahead_in_vain),
        cmocka_unit_test(test_ahead_of_its_spec),
        cmocka_unit_test(test_one_after_the_other),
        cmocka_unit_test(test_an_idle_one_is_ended),
        cmocka_unit_test(test_an_idle_one_is_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
