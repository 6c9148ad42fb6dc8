/* Expected run times from runs of the same command, and which other jobs share a
 * fingerprint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "core/learn/runtimes.h"
#include "core/queue/job.h"

static struct job *
make(uint32_t id, uint32_t uid, const char *fingerprint)
{
    struct job *job = job_new();
    job->id = id;
    job->uid = uid;
    job->fingerprint = fingerprint ? xstrdup(fingerprint) : NULL;
    return job;
}

static void
test_span_classes(void **state)
{
    static const struct {
        int64_t estimate, span;
    } rows[] = {
        {0, 0},       {-5, 0},      {1, 1000},
        {1000, 1000}, {1001, 1250}, {1250, 1250},
        {1251, 1562}, {1953, 2440}, {3600000, 0 /* checked below */},
    };
    (void)state;
    for (size_t i = 0; i + 1 < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(span_class(rows[i].estimate), rows[i].span);
    for (int64_t ms = 1000; ms < INT64_C(40000000000); ms += ms / 3) {
        int64_t span = span_class(ms);
        assert_true(span >= ms && span - span / 4 <= ms + ms / 100);
        assert_int_equal(span_class(span), span);
    }
}

static void
test_mean_of_the_last_two(void **state)
{
    (void)state;
    struct history *h = history_new();
    struct job *job = make(1, 7, "aa");
    history_enter(h, job);
    assert_int_equal(job->estimate_ms, 0);
    assert_int_equal(job->span_ms, 0);
    history_note(h, job, 4000);
    assert_true(history_expect(h, job));
    assert_int_equal(job->estimate_ms, 4000);
    history_note(h, job, 2000);
    history_expect(h, job);
    assert_int_equal(job->estimate_ms, 3000);
    assert_int_equal(job->span_ms, span_class(3000));
    struct runs r = history_note(h, job, 3002);
    assert_int_equal(r.last_ms, 3002);
    assert_int_equal(r.before_ms, 2000);
    history_expect(h, job);
    assert_int_equal(job->estimate_ms, 2501);
    job->req.limit_ms = 777;
    assert_true(history_expect(h, job));
    assert_int_equal(job->span_ms, 777); /* a limit is used as it is, not rounded to a class */
    assert_int_equal(job->estimate_ms, 2501);
    history_leave(h, job);
    job_free(job);
    history_free(h);
}

static void
test_users_and_commands_apart(void **state)
{
    (void)state;
    struct history *h = history_new();
    struct job *mine = make(1, 7, "aa"), *theirs = make(2, 8, "aa"), *other = make(3, 7, "ab"),
               *none = make(4, 7, NULL);
    history_restore(h, 7, "aa", (struct runs){.last_ms = 5000});
    struct job *const all[] = {mine, theirs, other, none};
    for (int i = 0; i < 4; i++)
        history_enter(h, all[i]);
    assert_int_equal(mine->estimate_ms, 5000);
    assert_int_equal(theirs->estimate_ms, 0);
    assert_int_equal(other->estimate_ms, 0);
    assert_int_equal(none->estimate_ms, 0);
    assert_ptr_equal(history_first(h, mine), mine);
    assert_null(mine->same_next);
    assert_null(history_first(h, none));
    for (int i = 0; i < 4; i++) {
        history_leave(h, all[i]);
        history_leave(h, all[i]);
        job_free(all[i]);
    }
    history_free(h);
}

#define MANY     3000
#define COMMANDS 700

/* Jobs of 700 commands come and go in random order; after each step the lists match a plain
 * count. */
static void
test_lists_under_a_crowd(void **state)
{
    (void)state;
    struct history *h = history_new();
    struct job *jobs[MANY];
    bool in[MANY] = {false};
    uint64_t lot = 88172645463325252U;
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i % COMMANDS);
        jobs[i] = make((uint32_t)i + 1, 1, name);
    }
    for (int step = 0; step < 40000; step++) {
        lot ^= lot << 13, lot ^= lot >> 7, lot ^= lot << 17;
        int i = (int)(lot % MANY), listed = 0, expected = 0;
        if (in[i])
            history_leave(h, jobs[i]);
        else
            history_enter(h, jobs[i]);
        in[i] = !in[i];
        if (step % 97 == 0)
            history_note(h, jobs[i], step + 1);
        for (struct job *j = history_first(h, jobs[i]); j; j = j->same_next, listed++)
            assert_true(in[j->id - 1] && (int)(j->id - 1) % COMMANDS == i % COMMANDS);
        for (int k = i % COMMANDS; k < MANY; k += COMMANDS)
            expected += in[k];
        assert_int_equal(listed, expected);
    }
    for (int i = 0; i < MANY; i++) {
        history_leave(h, jobs[i]);
        job_free(jobs[i]);
    }
    history_free(h);
}

/* One after the other, whichever leave in between; a run recorded meanwhile starts another
 * round over all of them after the first. */
static void
test_who_follows_a_run(void **state)
{
    (void)state;
    struct history *h = history_new();
    struct job *jobs[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = make((uint32_t)i + 1, 7, i < 3 ? "aa" : "ab");
        history_enter(h, jobs[i]);
    }
    assert_null(history_next(h));
    history_note(h, jobs[0], 4000);
    assert_true(history_has_next(h));
    assert_ptr_equal(history_next(h), jobs[2]);
    history_leave(h, jobs[1]); /* it was the next one */
    history_note(h, jobs[0], 2000);
    history_note(h, jobs[3], 2000);
    assert_ptr_equal(history_next(h), jobs[3]);
    assert_ptr_equal(history_next(h), jobs[0]);
    assert_ptr_equal(history_next(h), jobs[2]);
    assert_ptr_equal(history_next(h), jobs[0]);
    assert_null(history_next(h));
    assert_false(history_has_next(h));
    for (int i = 0; i < 4; i++) {
        history_leave(h, jobs[i]);
        job_free(jobs[i]);
    }
    history_free(h);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_span_classes),
        cmocka_unit_test(test_mean_of_the_last_two),
        cmocka_unit_test(test_users_and_commands_apart),
        cmocka_unit_test(test_lists_under_a_crowd),
        cmocka_unit_test(test_who_follows_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
