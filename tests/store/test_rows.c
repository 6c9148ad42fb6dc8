/* Jobs and attempts read back exactly as written, whatever their fields hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/request.h"
#include "core/queue/array.h"
#include "support.h"

#define RANDOM_JOBS 300

/* Inserts `count` random jobs, about half with a run, and returns them. */
static struct job **
insert_random(struct store *s, struct rng *r, int count)
{
    struct job **jobs = xcalloc((unsigned long)count, sizeof(struct job *));

    for (int i = 0; i < count; i++) {
        jobs[i] = random_job(r, store_next_job_id(s));
        assert_int_equal(store_job_insert(s, jobs[i], NULL), 0);
        if (rng_next(r) & 256) {
            jobs[i]->run = random_attempt(r, 1);
            assert_int_equal(
                store_attempt_insert(s, jobs[i]->id, jobs[i]->run, some_uuids(0), NULL), 0);
        }
    }
    return jobs;
}

static void
free_jobs(struct job **jobs, int count)
{
    for (int i = 0; i < count; i++)
        job_free(jobs[i]);
    free(jobs);
}

static void
assert_stored(struct store *s, struct job *const *jobs, int count)
{
    for (int i = 0; i < count; i++) {
        struct job *found = store_job_load(s, jobs[i]->id, NULL);
        assert_non_null(found);
        assert_same_job(jobs[i], found);
        job_free(found);
    }
}

static void
test_random_jobs_come_back(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct rng r = {seed * 0x9e3779b97f4a7c15U};
        struct dir *d = dir_new();
        struct store *s = must_open(d);
        struct job **jobs = insert_random(s, &r, RANDOM_JOBS);

        assert_stored(s, jobs, RANDOM_JOBS); /* within the turn */
        must_commit(s);
        store_close(s);
        s = must_open(d);
        assert_stored(s, jobs, RANDOM_JOBS);
        store_close(s);
        free_jobs(jobs, RANDOM_JOBS);
        dir_free(d);
    }
}

/* A new random job with the same values in the fields that an update leaves alone. */
static struct job *
changed_job(struct rng *r, const struct job *old)
{
    struct job *job = random_job(r, old->id);

    job->uid = old->uid;
    job->submitted_us = old->submitted_us;
    job->file = old->file;
    free(job->key);
    job->key = old->key ? xstrdup(old->key) : NULL;
    free(job->fingerprint);
    job->fingerprint = old->fingerprint ? xstrdup(old->fingerprint) : NULL;
    hooks_free(job->req.hooks);
    job->req.hooks = hooks_copy(old->req.hooks);
    job->array = old->array;
    job->task = old->task;
    task_set_free(&job->req.array);
    task_set_copy(&job->req.array, &old->req.array);
    array_free(job->tasks);
    job->tasks = NULL;
    if (old->tasks)
        array_begin(job);
    return job;
}

static void
test_update_writes_everything_else(void **state)
{
    struct rng r = {4711};
    struct dir *d = dir_new();
    struct store *s = must_open(d);
    struct job **jobs = insert_random(s, &r, RANDOM_JOBS);

    (void)state;
    must_commit(s);
    for (int i = 0; i < RANDOM_JOBS; i++) {
        struct job *job = changed_job(&r, jobs[i]);
        assert_int_equal(store_job_update(s, job, NULL), 0);
        job->run = TAKE(jobs[i]->run);
        job_free(jobs[i]);
        jobs[i] = job;
    }
    must_commit(s);
    assert_stored(s, jobs, RANDOM_JOBS);
    free_jobs(jobs, RANDOM_JOBS);
    store_close(s);
    dir_free(d);
}

static void
test_notes_are_kept_and_replaced(void **state)
{
    struct dir *d = dir_new();
    struct store *s = must_open(d);

    (void)state;
    assert_null(store_note_get(s, "gpu:GPU-a"));
    assert_int_equal(store_note_put(s, "gpu:GPU-a", "first", NULL), 0);
    assert_int_equal(store_note_put(s, "gpu:GPU-b", "", NULL), 0);
    assert_int_equal(store_note_put(s, "gpu:GPU-a", "{\"by\":\"Zoë\"}", NULL), 0);
    must_commit(s);
    assert_int_equal(store_note_put(s, "gpu:GPU-a", "never committed", NULL), 0);
    store_close(s);
    s = must_open(d);
    auto_free char *a = store_note_get(s, "gpu:GPU-a");
    auto_free char *b = store_note_get(s, "gpu:GPU-b");
    assert_string_equal(a, "{\"by\":\"Zoë\"}");
    assert_string_equal(b, "");
    /* The store's internal notes are not accessible. */
    assert_null(store_note_get(s, "token"));
    store_close(s);
    dir_free(d);
}

static void
test_attempts_keep_their_cards(void **state)
{
    struct rng r = {99};
    struct dir *d = dir_new();
    struct store *s = must_open(d);
    struct attempt *kept[5];
    struct store_attempt *list;

    (void)state;
    add_plain_job(s, 7);
    for (int i = 0; i < 5; i++) {
        kept[i] = random_attempt(&r, i + 1);
        assert_int_equal(store_attempt_insert(s, 7, kept[i], some_uuids(i), NULL), 0);
    }
    must_commit(s);
    assert_int_equal(store_attempts_load(s, 7, &list, NULL), 5);
    for (int i = 0; i < 5; i++) {
        assert_same_attempt(kept[i], &list[i].attempt);
        for (int k = 0; k < kept[i]->n_gpus; k++) {
            assert_string_equal(list[i].uuids[k], some_uuids(i)[k]);
            assert_int_equal(list[i].attempt.now_mib[k], -1);
        }
        free(kept[i]);
    }
    store_attempts_free(list, 5);
    assert_int_equal(store_attempts_load(s, 8, &list, NULL), 0);
    store_attempts_free(list, 0);
    store_close(s);
    dir_free(d);
}

static void
test_attempt_update_writes_all_but_cards(void **state)
{
    struct rng r = {5};
    struct dir *d = dir_new();
    struct store *s = must_open(d);
    struct store_attempt *list;

    (void)state;
    add_plain_job(s, 1);
    for (int i = 0; i < 50; i++) {
        struct attempt *old = random_attempt(&r, i + 1), *new = random_attempt(&r, i + 1);
        assert_int_equal(store_attempt_insert(s, 1, old, some_uuids(0), NULL), 0);
        new->n_gpus = old->n_gpus;
        memcpy(new->gpus, old->gpus, sizeof new->gpus);
        assert_int_equal(store_attempt_update(s, 1, new, NULL), 0);
        assert_int_equal(store_attempts_load(s, 1, &list, NULL), i + 1);
        assert_same_attempt(new, &list[i].attempt);
        store_attempts_free(list, i + 1);
        free(old);
        free(new);
    }
    store_close(s);
    dir_free(d);
}

/* An attempt that never ran is started again under its number. */
static void
test_attempt_is_replaced(void **state)
{
    struct rng r = {6};
    struct dir *d = dir_new();
    struct store *s = must_open(d);
    struct attempt *first = random_attempt(&r, 1), *second = random_attempt(&r, 1);
    struct job *job;

    (void)state;
    add_plain_job(s, 1);
    assert_int_equal(store_attempt_insert(s, 1, first, some_uuids(0), NULL), 0);
    assert_int_equal(store_attempt_insert(s, 1, second, some_uuids(0), NULL), 0);
    must_commit(s);
    job = store_job_load(s, 1, NULL);
    assert_non_null(job);
    assert_same_attempt(job->run, second);
    job_free(job);
    free(first);
    free(second);
    store_close(s);
    dir_free(d);
}

static void
test_what_is_not_there(void **state)
{
    struct dir *d = dir_new();
    struct store *s = must_open(d);
    struct job *job = plain_job(3, "true");
    struct attempt a = {.number = 1};
    struct err e = {0};

    (void)state;
    assert_null(store_job_load(s, 3, &e));
    assert_int_equal(e.code, ERR_NO_JOB);
    assert_int_equal(store_job_update(s, job, &e), -1);
    assert_int_equal(e.code, ERR_NO_JOB);
    store_rollback(s);
    assert_int_equal(store_attempt_update(s, 3, &a, &e), -1);
    assert_int_equal(e.code, ERR_NO_JOB);
    store_rollback(s);
    job_free(job);
    store_close(s);
    dir_free(d);
}

static void
test_gpu_id_with_a_comma_is_refused(void **state)
{
    static const char *const bad[] = {"GPU-1,GPU-2"};
    struct dir *d = dir_new();
    struct store *s = must_open(d);
    struct attempt a = {.number = 1, .n_gpus = 1};
    struct err e = {0};

    (void)state;
    add_plain_job(s, 1);
    assert_int_equal(store_attempt_insert(s, 1, &a, bad, &e), -1);
    assert_non_null(strstr(e.text, "comma"));
    store_close(s);
    dir_free(d);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_jobs_come_back),
        cmocka_unit_test(test_update_writes_everything_else),
        cmocka_unit_test(test_notes_are_kept_and_replaced),
        cmocka_unit_test(test_attempts_keep_their_cards),
        cmocka_unit_test(test_attempt_update_writes_all_but_cards),
        cmocka_unit_test(test_attempt_is_replaced),
        cmocka_unit_test(test_what_is_not_there),
        cmocka_unit_test(test_gpu_id_with_a_comma_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
