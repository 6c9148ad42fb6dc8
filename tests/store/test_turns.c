/* A turn is atomic: across kills at any moment, a full disk, or a failure in its middle. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "support.h"

#define LOG_TURNS 6
#define LOG_JOBS  30

static void
add_event(struct store *s, uint32_t job)
{
    struct store_event event = {.kind = "submitted", .job = job, .json = "{}", .json_len = 2};

    assert_int_equal(store_event_add(s, &event, NULL), 0);
}

/* One job and its event, stored together or not at all. */
static void
write_turn(struct store *s, uint32_t id)
{
    add_plain_job(s, id);
    add_event(s, id);
}

static bool
has_job(struct store *s, uint32_t id)
{
    struct err e = {0};
    struct job *job = store_job_load(s, id, &e);
    bool found = job != NULL;

    if (!found)
        assert_int_equal(e.code, ERR_NO_JOB);
    job_free(job);
    return found;
}

struct count {
    uint32_t job;
    int n;
};

static int
count_event(const struct store_event *event, void *arg)
{
    struct count *c = arg;

    c->n += event->job == c->job;
    return 0;
}

static int
events_of(struct store *s, uint32_t job)
{
    struct count c = {.job = job};

    assert_int_equal(store_events_read(s, 0, count_event, &c, NULL), 0);
    return c.n;
}

static void
assert_turn(struct store *s, uint32_t id, bool there)
{
    assert_int_equal(has_job(s, id), there);
    assert_int_equal(events_of(s, id), there ? 1 : 0);
}

/* Runs act in a child that must die of SIGKILL. */
static void
run_killed(const struct dir *d, void (*act)(struct store *s))
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct store *s = NULL;
        if (store_open(d->path, &s, NULL) < 0)
            _exit(1);
        act(s);
        _exit(2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void
die_between_writes(struct store *s)
{
    write_turn(s, 1);
    store_commit(s, NULL);
    add_plain_job(s, 2);
    raise(SIGKILL);
}

static void
die_before_commit(struct store *s)
{
    write_turn(s, 3);
    raise(SIGKILL);
}

static void
die_after_commit(struct store *s)
{
    write_turn(s, 4);
    store_commit(s, NULL);
    raise(SIGKILL);
}

/* More than the page cache holds, so that part of it is written when the process dies. */
static void
die_in_a_large_turn(struct store *s)
{
    for (uint32_t id = 100; id < 20100; id++)
        write_turn(s, id);
    raise(SIGKILL);
}

static void
die_after_checkpoint(struct store *s)
{
    write_turn(s, 5);
    store_commit(s, NULL);
    store_checkpoint(s, NULL);
    write_turn(s, 6);
    store_commit(s, NULL);
    raise(SIGKILL);
}

static void
test_killed_at_known_points(void **state)
{
    struct dir *d = dir_new();
    struct store *s;
    struct err e = {0};

    (void)state;
    run_killed(d, die_between_writes);
    run_killed(d, die_before_commit);
    run_killed(d, die_after_commit);
    run_killed(d, die_in_a_large_turn);
    run_killed(d, die_after_checkpoint);
    s = must_open(d);
    assert_turn(s, 1, true);
    assert_turn(s, 2, false);
    assert_turn(s, 3, false);
    assert_turn(s, 4, true);
    assert_turn(s, 100, false);
    assert_turn(s, 5, true);
    assert_turn(s, 6, true);
    assert_int_equal(store_next_job_id(s), 7);
    assert_int_equal(store_check(s, &e), 0);
    store_close(s);
    dir_free(d);
}

/* Commits turn after turn and reports each on the pipe once it is durable, until killed. */
static void
commit_forever(const struct dir *d, uint32_t id, int out)
{
    struct store *s = NULL;

    if (store_open(d->path, &s, NULL) < 0)
        _exit(1);
    for (;; id++) {
        write_turn(s, id);
        if (store_commit(s, NULL) < 0 || write(out, &id, sizeof id) != sizeof id)
            _exit(1);
        if (id % 16 == 0)
            store_checkpoint(s, NULL);
    }
}

/* The last turn that a child reported before it was killed after `acks` of them. */
static uint32_t
killed_after(const struct dir *d, uint32_t from, int acks)
{
    uint32_t last = from - 1, id;
    int ends[2], status;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        commit_forever(d, from, ends[1]);
    }
    close(ends[1]);
    for (int i = 0; i < acks; i++)
        assert_int_equal(read(ends[0], &last, sizeof last), sizeof last);
    kill(pid, SIGKILL);
    while (read(ends[0], &id, sizeof id) == sizeof id)
        last = id;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    close(ends[0]);
    return last;
}

static void
test_killed_at_any_moment(void **state)
{
    struct dir *d = dir_new();
    struct rng r = {20240601};
    uint32_t next = 1;

    (void)state;
    for (int round = 0; round < 25; round++) {
        uint32_t told = killed_after(d, next, 1 + (int)(rng_next(&r) % 40));
        struct store *s = must_open(d);
        for (uint32_t id = next; id <= told; id++)
            assert_turn(s, id, true);
        /* The next one may have been committed and not reported; never half of it. */
        assert_turn(s, told + 1, has_job(s, told + 1));
        assert_turn(s, told + 2, false);
        next = store_next_job_id(s);
        assert_in_range(next, told + 1, told + 2);
        store_close(s);
    }
    dir_free(d);
}

static void
test_nothing_written_costs_nothing(void **state)
{
    struct dir *d = dir_new();
    struct store *s = must_open(d);
    auto_free char *wal = dir_file(d, "berth.db-wal");
    struct stat st;

    (void)state;
    assert_false(store_has_changes(s));
    assert_int_equal(has_job(s, 1), 0);
    must_commit(s);
    assert_true(stat(wal, &st) < 0 || st.st_size == 0);
    add_plain_job(s, 1);
    assert_true(store_has_changes(s));
    must_commit(s);
    assert_false(store_has_changes(s));
    assert_int_equal(stat(wal, &st), 0);
    assert_true(st.st_size > 0);
    store_close(s);
    dir_free(d);
}

static void
test_rollback_undoes_the_turn(void **state)
{
    struct dir *d = dir_new();
    struct store *s = must_open(d);
    uint32_t first = store_next_job_id(s);
    int64_t env;

    (void)state;
    write_turn(s, first);
    must_commit(s);
    write_turn(s, store_next_job_id(s));
    assert_int_equal(store_env_put(s, "A=1", 3, &env, NULL), 0);
    assert_int_equal(store_boot_id_set(s, "boot", NULL), 0);
    store_rollback(s);
    assert_turn(s, 2, false);
    assert_string_equal(store_boot_id(s), "");
    assert_int_equal(store_event_last(s), 1);
    assert_true(store_next_job_id(s) > 2);
    /* The undone turn left nothing in memory. */
    assert_int_equal(store_env_put(s, "A=1", 3, &env, NULL), 0);
    must_commit(s);
    auto_buf struct buf out = BUF_INIT;
    assert_int_equal(store_env_get(s, env, &out, NULL), 0);
    assert_string_equal(buf_str(&out), "A=1");
    store_close(s);
    dir_free(d);
}

/* The first failure fails the turn, whatever comes before and after. */
static void
test_failure_sticks_to_its_turn(void **state)
{
    struct dir *d = dir_new();
    struct store *s = must_open(d);
    struct job *twice = plain_job(1, "true");
    struct err first = {0}, later = {0}, end = {0};

    (void)state;
    add_plain_job(s, 1);
    assert_int_equal(store_job_insert(s, twice, &first), -1);
    job_free(twice);
    twice = plain_job(2, "true");
    assert_int_equal(store_job_insert(s, twice, &later), -1);
    assert_string_equal(first.text, later.text);
    assert_int_equal(store_commit(s, &end), -1);
    assert_string_equal(first.text, end.text);
    assert_false(has_job(s, 1));
    assert_int_equal(store_job_insert(s, twice, NULL), 0);
    must_commit(s);
    assert_true(has_job(s, 2));
    job_free(twice);
    store_close(s);
    dir_free(d);
}

static void
test_ids_are_not_used_again(void **state)
{
    struct dir *d = dir_new();
    struct store *s = must_open(d);
    uint64_t order;

    (void)state;
    assert_int_equal(store_next_job_id(s), 1);
    assert_int_equal(store_next_job_id(s), 2);
    order = store_next_order(s);
    assert_true(store_next_order(s) > order);
    add_plain_job(s, 40);
    must_commit(s);
    store_close(s);
    s = must_open(d);
    assert_int_equal(store_next_job_id(s), 41);
    assert_true(store_next_order(s) > 40);
    store_close(s);
    dir_free(d);
}

/* --- a full disk --- */

/* Small enough to fill, large enough to start in. NULL if mounting is not allowed. */
static struct dir *
small_disk(void)
{
    struct dir *d = dir_new();

    if (mount("berth-test", d->path, "tmpfs", 0, "size=3m") == 0)
        return d;
    dir_free(d);
    return NULL;
}

static void
small_disk_free(struct dir *d)
{
    assert_int_equal(umount(d->path), 0);
    dir_free(d);
}

static void
fill_disk(const struct dir *d)
{
    auto_free char *path = dir_file(d, "filler");
    auto_fclose FILE *f = fopen(path, "w");
    char block[4096];

    if (!f)
        fail_msg("%s: %s", path, strerror(errno));
    memset(block, 'x', sizeof block);
    setvbuf(f, NULL, _IONBF, 0);
    while (fwrite(block, 1, sizeof block, f) == sizeof block)
        ;
    assert_int_equal(errno, ENOSPC);
}

/* Runs turns until one fails; returns the number of the first that failed. */
static uint32_t
write_until_full(struct store *s, uint32_t id, struct err *e)
{
    for (;; id++) {
        write_turn(s, id);
        if (store_commit(s, e) < 0)
            return id;
    }
}

static void
test_full_disk(void **state)
{
    struct dir *d = small_disk();
    struct err e = {0};

    (void)state;
    if (!d) {
        print_message("SKIPPED: no right to mount a small tmpfs, so no disk to fill\n");
        skip();
    }
    auto_free char *filler = dir_file(d, "filler");
    struct store *s = must_open(d);
    write_turn(s, 1);
    must_commit(s);
    fill_disk(d);
    uint32_t failed = write_until_full(s, 2, &e);
    assert_int_equal(e.code, ERR_NO_SPACE);
    assert_non_null(strstr(e.text, "no space left"));
    assert_turn(s, failed, false);
    assert_turn(s, failed - 1, true);
    /* The reserve makes room for outcomes. */
    assert_true(store_reserve_release(s));
    assert_false(store_reserve_release(s));
    write_turn(s, failed);
    must_commit(s);
    fill_disk(d);
    assert_int_equal(store_reserve_restore(s, &e), -1);
    assert_int_equal(e.code, ERR_NO_SPACE);
    assert_int_equal(unlink(filler), 0);
    assert_int_equal(store_reserve_restore(s, &e), 0);
    write_turn(s, failed + 1);
    must_commit(s);
    store_close(s);
    s = must_open(d);
    for (uint32_t id = 1; id <= failed + 1; id++)
        assert_turn(s, id, true);
    store_close(s);
    small_disk_free(d);
}

static void
test_large_turn_on_a_full_disk(void **state)
{
    struct dir *d = small_disk();
    struct err e = {0};

    (void)state;
    if (!d) {
        print_message("SKIPPED: no right to mount a small tmpfs, so no disk to fill\n");
        skip();
    }
    struct store *s = must_open(d);
    for (uint32_t id = 1; id <= 20000; id++) {
        struct job *job = plain_job(id, "python train.py --config configs/a-long-one.yaml");
        store_job_insert(s, job, NULL);
        job_free(job);
    }
    assert_int_equal(store_commit(s, &e), -1);
    assert_int_equal(e.code, ERR_NO_SPACE);
    assert_false(has_job(s, 1));
    write_turn(s, 1);
    must_commit(s);
    store_close(s);
    small_disk_free(d);
}

static void
test_reserve_is_a_megabyte(void **state)
{
    struct dir *d = dir_new();
    struct store *s = must_open(d);
    auto_free char *path = dir_file(d, "reserve");
    struct stat st;

    (void)state;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 1 << 20);
    assert_true(st.st_blocks * 512 >= 1 << 20);
    assert_true(store_reserve_release(s));
    assert_int_equal(stat(path, &st), -1);
    assert_int_equal(store_reserve_restore(s, NULL), 0);
    assert_int_equal(stat(path, &st), 0);
    store_close(s);
    dir_free(d);
}

static void
test_log_is_bounded(void **state)
{
    struct dir *d = dir_new();
    struct store *s = must_open(d);
    auto_free char *wal = dir_file(d, "berth.db-wal");
    auto_free char *command = xcalloc(1, 64 * 1024);
    struct stat st;

    (void)state;
    memset(command, 'x', 64 * 1024 - 1);
    for (uint32_t id = 1; id <= 800; id++) {
        struct job *job = plain_job(id, command);
        assert_int_equal(store_job_insert(s, job, NULL), 0);
        job_free(job);
        must_commit(s);
    }
    assert_int_equal(stat(wal, &st), 0);
    assert_in_range(st.st_size, 1, 18 << 20);
    assert_int_equal(store_checkpoint(s, NULL), 0);
    assert_false(store_wants_checkpoint(s));
    store_close(s);
    dir_free(d);
}

/* Commits that fit into the room preallocated for the log, and some larger ones, in turn; then
 * the process is gone. */
static void
commit_small_and_large(const struct dir *d)
{
    struct store *s = must_open(d);
    auto_free char *command = xcalloc(1, 64 * 1024);

    memset(command, 'x', 64 * 1024 - 1);
    for (uint32_t id = 1; id <= LOG_TURNS * LOG_JOBS; id++) {
        struct job *job = plain_job(id, command);
        assert_int_equal(store_job_insert(s, job, NULL), 0);
        job_free(job);
        if (id % LOG_JOBS == 0 || id % LOG_JOBS == 1)
            must_commit(s);
    }
    _exit(0);
}

static void
test_room_in_the_log_overwrites_nothing(void **state)
{
    struct dir *d = dir_new();
    int status = -1;
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        commit_small_and_large(d);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    struct store *s = must_open(d);
    for (uint32_t id = 1; id <= LOG_TURNS * LOG_JOBS; id++)
        assert_true(has_job(s, id));
    assert_int_equal(store_check(s, NULL), 0);
    store_close(s);
    dir_free(d);
}

/* A commit of the same size as the one before does not lengthen the file. */
static void
test_log_has_room(void **state)
{
    struct dir *d = dir_new();
    struct store *s = must_open(d);
    auto_free char *wal = dir_file(d, "berth.db-wal");
    struct stat before, after;

    (void)state;
    add_plain_job(s, 1);
    must_commit(s);
    assert_int_equal(stat(wal, &before), 0);
    add_plain_job(s, 2);
    must_commit(s);
    assert_int_equal(stat(wal, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    store_close(s);
    dir_free(d);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_at_known_points),
        cmocka_unit_test(test_killed_at_any_moment),
        cmocka_unit_test(test_nothing_written_costs_nothing),
        cmocka_unit_test(test_rollback_undoes_the_turn),
        cmocka_unit_test(test_failure_sticks_to_its_turn),
        cmocka_unit_test(test_ids_are_not_used_again),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_large_turn_on_a_full_disk),
        cmocka_unit_test(test_reserve_is_a_megabyte),
        cmocka_unit_test(test_log_is_bounded),
        cmocka_unit_test(test_room_in_the_log_overwrites_nothing),
        cmocka_unit_test(test_log_has_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
