/* Jobs found by their properties, removal of old rows, and users' usage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "store/store_priv.h"
#include "support.h"

struct fixture {
    struct dir *dir;
    struct store *s;
};

static int
setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);

    f->dir = dir_new();
    f->s = must_open(f->dir);
    *state = f;
    return 0;
}

static int
teardown(void **state)
{
    struct fixture *f = *state;

    store_close(f->s);
    dir_free(f->dir);
    free(f);
    return 0;
}

static void
put(struct store *s, struct job *job)
{
    struct err e = {0};

    if (store_job_insert(s, job, &e) < 0)
        fail_msg("%s", e.text);
    job_free(job);
}

static void
put_same(struct store *s, uint32_t id, uint32_t uid, const char *print, enum job_state state)
{
    struct job *job = plain_job(id, "true");

    job->uid = uid;
    job->state = state;
    job->fingerprint = xstrdup(print);
    put(s, job);
}

static uint32_t
same(struct store *s, uint32_t uid, const char *print)
{
    struct found_job found;

    assert_int_equal(store_find_same(s, uid, print, &found, NULL), 0);
    return found.id;
}

static void
test_the_same_command(void **state)
{
    struct fixture *f = *state;

    put_same(f->s, 1, 1000, "aa", JOB_COMPLETED);
    put_same(f->s, 2, 1000, "aa", JOB_PENDING);
    put_same(f->s, 3, 1000, "aa", JOB_FAILED);
    put_same(f->s, 4, 1001, "aa", JOB_RUNNING);
    put_same(f->s, 5, 1000, "bb", JOB_CANCELLED);
    put_same(f->s, 6, 1000, "cc", JOB_RUNNING);
    /* A completed task of an array that failed does not count as the same command. */
    put_same(f->s, 7, 1000, "ee", JOB_FAILED);
    struct job *task = plain_job(8, "true");
    task->uid = 1000;
    task->state = JOB_COMPLETED;
    task->fingerprint = xstrdup("ee");
    task->array = 7;
    put(f->s, task);
    assert_int_equal(same(f->s, 1000, "aa"), 2);
    assert_int_equal(same(f->s, 1001, "aa"), 4);
    assert_int_equal(same(f->s, 1000, "bb"), 0);
    assert_int_equal(same(f->s, 1000, "cc"), 6);
    assert_int_equal(same(f->s, 1000, "dd"), 0);
    assert_int_equal(same(f->s, 1000, "ee"), 0);
}

static void
test_the_newest_of_a_name(void **state)
{
    struct fixture *f = *state;
    struct found_job found;

    for (uint32_t id = 1; id <= 4; id++) {
        struct job *job = plain_job(id, "true");
        job->uid = id == 3 ? 1001 : 1000;
        job->req.name = xstrdup("prepare");
        job->array = id == 4 ? 99 : 0;
        put(f->s, job);
    }
    assert_int_equal(store_find_named(f->s, 1000, "prepare", &found, NULL), 0);
    assert_int_equal(found.id, 2);
    assert_int_equal(store_find_named(f->s, 1001, "prepare", &found, NULL), 0);
    assert_int_equal(found.id, 3);
    assert_int_equal(store_find_named(f->s, 1000, "train", &found, NULL), 0);
    assert_int_equal(found.id, 0);
}

/* Counts steps of SQLite's virtual machine, in hundreds. */
static int
on_steps(void *arg)
{
    ++*(int *)arg;
    return 0;
}

static uint32_t
newest_of(struct store *s, uint32_t uid, int *hundreds)
{
    struct found_job found;

    *hundreds = 0;
    sqlite3_progress_handler(s->db, 100, on_steps, hundreds);
    assert_int_equal(store_find_newest(s, uid, &found, NULL), 0);
    sqlite3_progress_handler(s->db, 0, NULL, NULL);
    return found.id;
}

/* Its tasks and other users' jobs follow it. */
static void
test_the_newest_of_a_user_is_found_without_a_walk(void **state)
{
    struct fixture *f = *state;
    int hundreds;

    for (uint32_t id = 1; id <= 2000; id++) {
        struct job *job = plain_job(id, "true");
        job->uid = id % 2 ? 1000 : 1001;
        job->array = id > 1 && id % 2 ? 1 : 0;
        put(f->s, job);
    }
    assert_int_equal(newest_of(f->s, 1000, &hundreds), 1);
    assert_true(hundreds <= 1);
    assert_int_equal(newest_of(f->s, 1001, &hundreds), 2000);
    assert_int_equal(newest_of(f->s, 1002, &hundreds), 0);
    assert_true(hundreds <= 1);
}

static int
on_task(uint32_t id, int32_t task, enum job_state s, void *arg)
{
    buf_addf(arg, "%u:%d:%s ", id, task, job_state_name(s));
    return 0;
}

static void
put_task(struct store *s, uint32_t id, uint32_t array, int32_t task, enum job_state state)
{
    struct job *job = plain_job(id, "true");

    job->array = array;
    job->task = task;
    job->state = state;
    job->ended_us = 1;
    put(s, job);
}

static void
test_tasks_of_an_array(void **state)
{
    struct fixture *f = *state;
    auto_buf struct buf seen = BUF_INIT;
    struct found_job found;

    add_plain_job(f->s, 1);
    put_task(f->s, 2, 1, 7, JOB_RUNNING);
    put_task(f->s, 3, 1, 0, JOB_FAILED);
    put_task(f->s, 4, 9, 7, JOB_LOST);
    assert_int_equal(store_tasks_walk(f->s, 1, 0, ARRAY_MAX, on_task, &seen, NULL), 0);
    assert_string_equal(buf_str(&seen), "3:0:FAILED 2:7:RUNNING ");
    assert_int_equal(store_find_task(f->s, 1, 7, &found, NULL), 0);
    assert_int_equal(found.id, 2);
    assert_int_equal(found.state, JOB_RUNNING);
    assert_int_equal(store_find_task(f->s, 1, 8, &found, NULL), 0);
    assert_int_equal(found.id, 0);
}

/* --- removal --- */

/* A job submitted and ended (0: not ended) at these times. */
static void
put_aged(struct store *s, uint32_t id, int64_t submitted_us, int64_t ended_us)
{
    struct rng r = {id * 77777U};
    struct job *job = plain_job(id, "true");
    struct attempt *run = random_attempt(&r, 1);

    job->submitted_us = submitted_us;
    job->ended_us = ended_us;
    job->state = ended_us ? JOB_COMPLETED : JOB_PENDING;
    put(s, job);
    assert_int_equal(store_attempt_insert(s, id, run, some_uuids(0), NULL), 0);
    free(run);
}

static int
on_job(struct job *job, const char *const *uuids, void *arg)
{
    (void)uuids;
    buf_addf(arg, "%u ", job->id);
    return 0;
}

static const char *
left(struct store *s)
{
    static char text[64];
    auto_buf struct buf ids = BUF_INIT;
    const struct store_filter all = {0};

    assert_int_equal(store_jobs_select(s, &all, on_job, &ids, NULL), 0);
    snprintf(text, sizeof text, "%s", buf_str(&ids));
    return text;
}

static void
test_old_jobs_go(void **state)
{
    struct fixture *f = *state;
    struct store_attempt *list;
    auto_buf struct buf bytes = BUF_INIT;

    put_aged(f->s, 1, 10, 20);
    put_aged(f->s, 2, 11, 0);
    put_aged(f->s, 3, 12, 200);
    put_aged(f->s, 4, 13, 30);
    put_aged(f->s, 5, 150, 160);
    for (uint32_t id = 4; id <= 5; id++)
        assert_int_equal(store_trace_put(f->s, id, 1, "x", 1, NULL), 0);
    must_commit(f->s);
    assert_int_equal(store_prune(f->s, 100, 0, 1, NULL), 1);
    assert_string_equal(left(f->s), "2 3 4 5 ");
    assert_int_equal(store_prune(f->s, 100, 0, 10, NULL), 1);
    assert_string_equal(left(f->s), "2 3 5 ");
    assert_int_equal(store_attempts_load(f->s, 4, &list, NULL), 0);
    assert_int_equal(store_trace_get(f->s, 4, 1, &bytes, NULL), 0);
    assert_int_equal(store_trace_get(f->s, 5, 1, &bytes, NULL), 1);
    assert_int_equal(store_prune(f->s, 100, 0, 10, NULL), 0);
    /* Also by number of jobs; a pending job is never removed. */
    assert_int_equal(store_prune(f->s, 0, 5, 10, NULL), 1);
    assert_string_equal(left(f->s), "2 5 ");
    must_commit(f->s);
}

static void
test_tasks_stay_with_their_array(void **state)
{
    struct fixture *f = *state;
    struct job *array;

    put_aged(f->s, 1, 10, 0);
    put_task(f->s, 2, 1, 0, JOB_COMPLETED);
    put_task(f->s, 3, 77, 0, JOB_COMPLETED); /* its array was removed before */
    assert_int_equal(store_prune(f->s, 100, 0, 10, NULL), 1);
    assert_string_equal(left(f->s), "1 2 ");
    array = store_job_load(f->s, 1, NULL);
    array->state = JOB_COMPLETED;
    array->ended_us = 50;
    assert_int_equal(store_job_update(f->s, array, NULL), 0);
    assert_int_equal(store_prune(f->s, 40, 0, 10, NULL), 0); /* too young to be removed */
    assert_string_equal(left(f->s), "1 2 ");
    assert_int_equal(store_prune(f->s, 100, 0, 10, NULL), 2);
    assert_string_equal(left(f->s), "");
    /* For one user: the array had not ended when examined. */
    array->state = JOB_PENDING;
    assert_int_equal(store_job_insert(f->s, array, NULL), 0);
    put_task(f->s, 2, 1, 0, JOB_COMPLETED);
    uint32_t at = 1;
    array->state = JOB_COMPLETED;
    assert_int_equal(store_job_update(f->s, array, NULL), 0);
    assert_int_equal(store_prune_user(f->s, array->uid, &at, 10, NULL), 0);
    assert_int_equal(at, 0);
    assert_int_equal(store_prune_user(f->s, array->uid, &at, 10, NULL), 2);
    assert_string_equal(left(f->s), "");
    job_free(array);
}

struct line {
    uint32_t job;
    enum job_state state;
};

static int
on_key(const struct store_key *key, void *arg)
{
    struct line *line = arg;

    assert_string_equal(key->key, "abc#1");
    *line = (struct line){key->job, key->state};
    return 0;
}

static struct line
line_of(struct store *s, uint32_t file)
{
    struct line line = {0};

    assert_int_equal(
        store_file_keys(s, file, &(struct store_keys_at){.job = 0}, on_key, &line, NULL), 0);
    return line;
}

static void
put_line(struct store *s, uint32_t id, uint32_t file, int64_t ended_us)
{
    struct job *job = plain_job(id, "true");

    job->file = file;
    job->key = xstrdup("abc#1");
    job->ended_us = ended_us;
    job->state = ended_us ? JOB_FAILED : JOB_PENDING;
    put(s, job);
}

static void
put_sized(struct store *s, uint32_t id, uint32_t uid, size_t bytes, enum job_state state)
{
    struct job *job = plain_job(id, "true");

    free(job->req.command);
    job->req.command = xcalloc(bytes + 1, 1);
    memset(job->req.command, 'x', bytes);
    job->uid = uid;
    job->state = state;
    job->ended_us = state >= JOB_COMPLETED ? 10 * id : 0;
    put(s, job);
}

/* A few large jobs outweigh many small ones, and pending jobs do not count. */
static void
test_room_is_made_by_the_largest_user(void **state)
{
    struct fixture *f = *state;
    uint32_t uid = 0, at = 0;

    assert_int_equal(store_largest_user(f->s, &uid, NULL), 0);
    put_sized(f->s, 1, 7, 500000, JOB_PENDING);
    for (uint32_t id = 2; id <= 5; id++)
        put_sized(f->s, id, 8, 10, JOB_COMPLETED);
    put_sized(f->s, 6, 9, 100000, JOB_CANCELLED);
    put_sized(f->s, 7, 8, 10, JOB_COMPLETED);
    put_sized(f->s, 8, 9, 100000, JOB_CANCELLED);
    put_sized(f->s, 9, 9, 10, JOB_HELD);
    must_commit(f->s);
    assert_int_equal(store_largest_user(f->s, &uid, NULL), 1);
    assert_int_equal(uid, 9);
    assert_int_equal(store_prune_user(f->s, 9, &at, 1, NULL), 1);
    assert_int_equal(at, 6);
    assert_string_equal(left(f->s), "1 2 3 4 5 7 8 9 ");
    assert_int_equal(store_prune_user(f->s, 9, &at, 10, NULL), 1);
    assert_int_equal(at, 0);
    assert_string_equal(left(f->s), "1 2 3 4 5 7 9 ");
    assert_int_equal(store_largest_user(f->s, &uid, NULL), 1);
    assert_int_equal(uid, 8);
    assert_int_equal(store_prune_user(f->s, 9, &at, 10, NULL), 0);
}

static void
test_lines_of_a_file_are_remembered(void **state)
{
    struct fixture *f = *state;
    uint32_t file;

    assert_int_equal(store_file_id(f->s, 1000, "/w/jobs.txt", &file, NULL), 0);
    put_line(f->s, 1, file, 20);
    assert_int_equal(store_prune(f->s, 100, 0, 10, NULL), 1);
    assert_string_equal(left(f->s), "");
    assert_int_equal(line_of(f->s, file).job, 1);
    assert_int_equal(line_of(f->s, file).state, JOB_FAILED);
    put_line(f->s, 2, file, 0);
    assert_int_equal(line_of(f->s, file).job, 2);
    assert_int_equal(store_job_detach(f->s, 2, NULL), 0);
    assert_int_equal(store_file_forget(f->s, file, &(uint32_t){0}, 1000, NULL), 0);
    assert_int_equal(line_of(f->s, file).job, 0);
}

/* 64 bytes per line and per file, the key once and the path twice. */
static void
test_what_files_take_of_a_user_is_counted(void **state)
{
    struct fixture *f = *state;
    uint32_t file, other;

    assert_int_equal(store_kept_bytes(f->s, 1000, NULL), 0);
    assert_int_equal(store_file_id(f->s, 1000, "/a", &file, NULL), 0);
    assert_int_equal(store_file_id(f->s, 1000, "/a", &file, NULL), 0);
    assert_int_equal(store_file_id(f->s, 7, "/bcd", &other, NULL), 0);
    put_line(f->s, 1, file, 20);
    assert_int_equal(store_kept_bytes(f->s, 1000, NULL), 68);
    assert_int_equal(store_prune(f->s, 100, 0, 10, NULL), 1);
    assert_int_equal(store_kept_bytes(f->s, 1000, NULL), 68 + 69);
    /* The same line again, and lines rolled back with their turn. */
    must_commit(f->s);
    put_line(f->s, 2, file, 20);
    assert_int_equal(store_prune(f->s, 100, 0, 10, NULL), 1);
    assert_int_equal(line_of(f->s, file).job, 2);
    assert_int_equal(store_kept_bytes(f->s, 1000, NULL), 68 + 69);
    assert_int_equal(store_file_forget(f->s, file, &(uint32_t){0}, 1000, NULL), 0);
    assert_int_equal(store_kept_bytes(f->s, 1000, NULL), 68);
    store_rollback(f->s);
    assert_int_equal(store_kept_bytes(f->s, 1000, NULL), 68 + 69);
    assert_int_equal(store_kept_bytes_of_all(f->s, NULL), 68 + 69 + 72);
    assert_int_equal(store_kept_above(f->s, 72, NULL), 1000);
    assert_int_equal(store_kept_above(f->s, 68 + 69, NULL), STORE_NOBODY);
}

/* No job in the table, none in the history and no line; others' files stay. */
static void
test_files_of_which_nothing_is_left_go(void **state)
{
    struct fixture *f = *state;
    static const char *const paths[] = {"/empty", "/line", "/job", "/old", "/last"};
    uint32_t file[5], found, at = 0;

    assert_int_equal(store_file_id(f->s, 7, "/his", &found, NULL), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(store_file_id(f->s, 1000, paths[i], &file[i], NULL), 0);
    put_line(f->s, 1, file[1], 20);
    assert_int_equal(store_prune(f->s, 100, 0, 10, NULL), 1);
    put_line(f->s, 2, file[2], 0);
    put_line(f->s, 3, file[3], 20);
    assert_int_equal(store_job_detach(f->s, 3, NULL), 0);
    assert_int_equal(store_prune_files(f->s, 1000, &at, 1, NULL), 0);
    assert_int_equal(store_prune_files(f->s, 1000, &at, 100, NULL), 1);
    assert_int_equal(at, file[4]);
    assert_int_equal(store_prune_files(f->s, 1000, &at, 100, NULL), 0);
    assert_int_equal(at, 0);
    assert_int_equal(store_file_find(f->s, 1000, "/empty", &found, NULL), 0);
    assert_int_equal(found, 0);
    assert_int_equal(store_file_find(f->s, 7, "/his", &found, NULL), 0);
    assert_int_not_equal(found, 0);
    for (int i = 1; i < 5; i++) {
        assert_int_equal(store_file_find(f->s, 1000, paths[i], &found, NULL), 0);
        assert_int_equal(found, file[i]);
    }
}

static void
test_environments_go_with_their_last_job(void **state)
{
    struct fixture *f = *state;
    auto_buf struct buf out = BUF_INIT;
    int64_t kept, gone, at = 0;
    struct job *job = plain_job(1, "true");

    assert_int_equal(store_env_put(f->s, "A=1", 4, &kept, NULL), 0);
    assert_int_equal(store_env_put(f->s, "B=2", 4, &gone, NULL), 0);
    job->env = kept;
    put(f->s, job);
    assert_int_equal(store_prune_envs(f->s, &at, 100, NULL), 1);
    assert_int_equal(at, 0);
    assert_int_equal(store_env_get(f->s, kept, &out, NULL), 0);
    assert_int_equal(store_env_get(f->s, gone, &out, NULL), -1);
    /* and is made anew when it comes again */
    assert_int_equal(store_env_put(f->s, "B=2", 4, &gone, NULL), 0);
    assert_int_equal(store_env_get(f->s, gone, &out, NULL), 0);
}

/* However many and large they are, one call is short. */
static void
test_environments_go_in_pieces(void **state)
{
    enum { N = 10, SIZE = 1 << 20 };
    struct fixture *f = *state;
    auto_free char *bytes = calloc(1, SIZE);
    int64_t id, at = 0;
    int n = 0, pieces = 0;

    for (int i = 0; i < N; i++) {
        bytes[0] = (char)('a' + i);
        assert_int_equal(store_env_put(f->s, bytes, SIZE, &id, NULL), 0);
    }
    for (; n < N; pieces++) {
        int piece = store_prune_envs(f->s, &at, 100, NULL);
        assert_in_range(piece, 1, 4);
        n += piece;
    }
    assert_int_equal(pieces, 3);
    for (int i = 0; i < N; i++) {
        bytes[0] = (char)i;
        assert_int_equal(store_env_put(f->s, bytes, 4, &id, NULL), 0);
    }
    at = 0;
    assert_int_equal(store_prune_envs(f->s, &at, 6, NULL), 6);
    assert_true(at > 0);
    assert_int_equal(store_prune_envs(f->s, &at, 6, NULL), 4);
    assert_int_equal(at, 0);
}

/* --- the rest --- */

static void
on_usage(uint32_t uid, double gpu_seconds, int64_t at_us, void *arg)
{
    buf_addf(arg, "%u:%.3f@%lld ", uid, gpu_seconds, (long long)at_us);
}

static void
test_usage(void **state)
{
    struct fixture *f = *state;
    auto_buf struct buf seen = BUF_INIT;

    assert_int_equal(store_usage_set(f->s, 1000, 1.5, 10, NULL), 0);
    assert_int_equal(store_usage_set(f->s, 1001, 7, 11, NULL), 0);
    assert_int_equal(store_usage_set(f->s, 1000, 2.125, 12, NULL), 0);
    assert_int_equal(store_usage_load(f->s, on_usage, &seen, NULL), 0);
    assert_string_equal(buf_str(&seen), "1000:2.125@12 1001:7.000@11 ");
}

static void
test_ids_that_a_plan_gives_out(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(store_next_job_id(f->s), 1);
    assert_int_equal(store_peek_job_id(f->s), 2);
    store_advance_job_id(f->s, 7);
    store_advance_job_id(f->s, 3);
    assert_int_equal(store_next_job_id(f->s), 7);
}

static int
on_letter(const struct store_letter *l, void *arg)
{
    buf_addf(arg, "%d:%u:%u:%s:%s:%s:%d%s ", (int)l->id, l->job, l->uid, l->kind, l->target,
             l->event, l->tries, l->site ? ":site" : "");
    return l->job == 9;
}

static void
assert_outbox(struct store *s, int64_t from, int64_t to, const char *text)
{
    auto_buf struct buf out = BUF_INIT;

    assert_int_equal(store_outbox_walk(s, from, to, on_letter, &out, NULL), 0);
    assert_string_equal(buf_str(&out), text);
}

static void
test_what_is_to_be_told(void **state)
{
    struct fixture *f = *state;
    struct store_letter a = {.job = 7, .uid = 1, .kind = "mail", .target = "x", .event = "{}"};
    struct store_letter b = {
        .job = 8, .uid = 2, .kind = "on_end", .target = "y", .event = "{}", .site = true};
    struct store_letter c = b;

    assert_outbox(f->s, 0, INT64_MAX, "");
    assert_int_equal(store_outbox_add(f->s, &a, NULL), 0);
    assert_int_equal(store_outbox_add(f->s, &b, NULL), 0);
    assert_int_equal(store_commit(f->s, NULL), 0);
    assert_outbox(f->s, 0, INT64_MAX, "1:7:1:mail:x:{}:0 2:8:2:on_end:y:{}:0:site ");
    assert_int_equal(store_outbox_tried(f->s, a.id, 3, NULL), 0);
    assert_int_equal(store_outbox_remove(f->s, b.id, NULL), 0);
    assert_outbox(f->s, 0, INT64_MAX, "1:7:1:mail:x:{}:3 ");
    store_rollback(f->s);
    assert_outbox(f->s, 2, 2, "2:8:2:on_end:y:{}:0:site ");
    assert_int_equal(store_outbox_remove(f->s, b.id, NULL), 0);
    assert_int_equal(store_commit(f->s, NULL), 0);
    assert_int_equal(store_outbox_add(f->s, &c, NULL), 0);
    assert_int_equal(c.id, 3); /* a removed job's number is not reused */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_same_command, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_newest_of_a_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_newest_of_a_user_is_found_without_a_walk,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_tasks_of_an_array, setup, teardown),
        cmocka_unit_test_setup_teardown(test_old_jobs_go, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tasks_stay_with_their_array, setup, teardown),
        cmocka_unit_test_setup_teardown(test_room_is_made_by_the_largest_user, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lines_of_a_file_are_remembered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_files_take_of_a_user_is_counted, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_files_of_which_nothing_is_left_go, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_environments_go_in_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(test_environments_go_with_their_last_job, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_what_is_to_be_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_usage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ids_that_a_plan_gives_out, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
