/* Walks over the history: what a page contains, the newest-first order, and the time check
 * after each job, by which no request delays others. In these tests the deadline has always
 * passed, so each piece does the minimum. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/queue/array.h"
#include "daemon/common/caller.h"
#include "daemon/common/instance.h"
#include "daemon/request/roles.h"
#include "daemon/request/selection.h"
#include "daemon/view/history_page.h"
#include "daemon_world.h"
#include "store/store.h"

#define LATE   0
#define N_JOBS 10

struct fixture {
    struct world *w;
    struct instance inst;
    struct roles roles;
    struct caller caller;
};

/* Jobs 1..10 have ended: every fifth FAILED; job 3 is named "prep". */
static void
add_past(struct world *w)
{
    for (uint32_t id = 1; id <= N_JOBS; id++) {
        struct job *job = world_job(w, ALICE, 0);
        job->id = store_next_job_id(w->store);
        assert_int_equal(job->id, id);
        job->state = id % 5 ? JOB_COMPLETED : JOB_FAILED;
        job->ended_us = id;
        job->req.name = id == 3 ? xstrdup("prep") : NULL;
        assert_int_equal(store_job_insert(w->store, job, NULL), 0);
        job_free(job);
    }
    assert_int_equal(store_commit(w->store, NULL), 0);
}

static int
setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->w = world_open(1);
    add_past(f->w);
    f->inst =
        (struct instance){.store = f->w->store, .state = &f->w->s, .queue = f->w->s.queue};
    f->roles = (struct roles){.inst = &f->inst, .caller = &f->caller};
    f->caller = (struct caller){.uid = ALICE, .admin = true};
    *state = f;
    return 0;
}

static int
teardown(void **state)
{
    struct fixture *f = *state;
    world_close(f->w);
    free(f);
    return 0;
}

static int
on_job(struct job *job, const char *const *uuids, void *arg)
{
    (void)uuids;
    buf_addf(arg, "%u ", job->id);
    return 0;
}

static int
on_first(struct job *job, const char *const *uuids, void *arg)
{
    on_job(job, uuids, arg);
    return 1;
}

static json_t *
params_of(const char *text)
{
    json_t *params = json_loads(text, 0, NULL);
    assert_non_null(params);
    return params;
}

/* --- pages --- */

/* A page's jobs, the next page's, and the number of pieces: "8 9 10 |8 in 4". */
static void
page_words(struct fixture *f, const char *text, int64_t search_max_us, struct buf *out)
{
    json_t *params = params_of(text);
    struct select s;
    struct page p;
    struct err e;
    int n = 1, rc;
    assert_int_equal(select_read(&f->roles, ALICE, params, &s, &e), 0);
    assert_int_equal(page_read(&f->inst, &f->caller, params, &p, &e), 0);
    p.search_max_us = search_max_us;
    while ((rc = page_walk(&f->inst, &s, &p, LATE, on_job, out, &e)) == 0)
        n++;
    assert_int_equal(rc, 1);
    buf_addf(out, "|%u in %d", p.older, n);
    page_free(&p);
    select_free(&s);
    json_decref(params);
}

static void
assert_page(struct fixture *f, const char *params, const char *words)
{
    auto_buf struct buf out = BUF_INIT;
    page_words(f, params, INT64_MAX, &out);
    assert_string_equal(buf_str(&out), words);
}

static void
a_page_is_found_in_pieces(void **state)
{
    struct fixture *f = *state;
    assert_page(f, "{\"ended\":true,\"limit\":3}", "8 9 10 |8 in 6");
    assert_page(f, "{\"ended\":true,\"limit\":3,\"before_id\":3}", "1 2 |0 in 5");
    assert_page(f, "{\"ended\":true,\"limit\":2,\"select\":[\"1-3\",\"5\",\"7-8\"]}",
                "7 8 |7 in 6");
    assert_page(f, "{\"ended\":true,\"limit\":9,\"state\":\"FAILED\"}", "5 10 |0 in 6");
    assert_page(f, "{\"ended\":true,\"limit\":9,\"since_us\":4,\"until_us\":7}",
                "4 5 6 |0 in 8");
}

/* Resolving the selection does not count: it happens before the first job. */
static void
a_page_that_takes_long_ends_and_says_where(void **state)
{
    struct fixture *f = *state;
    const char *params = "{\"ended\":true,\"limit\":3,\"select\":[\"1-5\",\"7-8\"]}";
    auto_buf struct buf out = BUF_INIT;
    page_words(f, params, 0, &out);
    assert_string_equal(buf_str(&out), "7 8 |7 in 5");
}

/* Each job may have megabytes of text to search. */
static void
a_search_looks_at_the_clock_behind_each_job(void **state)
{
    struct fixture *f = *state;
    assert_page(f, "{\"ended\":true,\"limit\":1,\"search\":\"zzzz\"}", "|0 in 11");
    assert_page(f, "{\"ended\":true,\"limit\":2,\"search\":\"prep\"}", "3 |0 in 12");
}

/* They are looked up one per piece; then each piece examines one of the five jobs. */
static void
many_words_do_not_make_a_piece_longer(void **state)
{
    struct fixture *f = *state;
    auto_buf struct buf params = BUF_INIT;
    buf_adds(&params, "{\"ended\":true,\"limit\":1,\"search\":\"zzzz\",\"select\":[");
    for (int i = 1; i < 200; i += 2)
        buf_addf(&params, "%s\"%d-%d\"", i > 1 ? "," : "", i, i);
    buf_adds(&params, "]}");
    assert_page(f, buf_str(&params), "|0 in 106");
}

/* Tasks that left their array: 11 is the array, 12 to 111 are its tasks 0 to 99. */
static void
add_array(struct world *w)
{
    struct job *job = world_job(w, ALICE, 0);
    job->id = store_next_job_id(w->store);
    job->state = JOB_COMPLETED;
    job->ended_us = 1;
    assert_int_equal(store_job_insert(w->store, job, NULL), 0);
    for (int32_t task = 0; task < 100; task++) {
        job->array = N_JOBS + 1;
        job->task = task;
        job->id = store_next_job_id(w->store);
        assert_int_equal(store_job_insert(w->store, job, NULL), 0);
    }
    job_free(job);
    assert_int_equal(store_commit(w->store, NULL), 0);
}

/* Two pieces find the 100 tasks, since 50 are looked up before each time check; walking their
 * range takes one piece per task. */
static void
tasks_of_a_page_are_looked_up_in_pieces(void **state)
{
    struct fixture *f = *state;
    add_array(f->w);
    assert_page(f, "{\"ended\":true,\"limit\":2,\"select\":[\"11_[0-99]\"]}",
                "110 111 |110 in 6");
    assert_page(f,
                "{\"ended\":true,\"limit\":1,\"select\":[\"11_[0-99]\"],\"search\":\"zzzz\"}",
                "|0 in 103");
}

/* --- newest first --- */

/* The jobs delivered in pieces, with the pieces' ends where cb says so. */
static void
assert_past(struct fixture *f, const char *text, bool newest_first, select_cb cb,
            const char *words)
{
    auto_buf struct buf out = BUF_INIT;
    json_t *params = params_of(text);
    struct select_past past = {.newest_first = newest_first};
    struct select s;
    struct err e;
    int n = 1, rc = 0;
    assert_int_equal(select_read(&f->roles, ALICE, params, &s, &e), 0);
    assert_int_equal(select_read_where(params, &s, &e), 0);
    while (cb == on_first && !out.len && rc == 0)
        rc = select_past_walk(&f->inst, &s, &past, INT64_MAX, cb, &out, &e);
    while (cb == on_job &&
           (rc = select_past_walk(&f->inst, &s, &past, LATE, cb, &out, &e)) == 0)
        n++;
    assert_true(rc >= 0);
    buf_addf(&out, "in %d", n);
    assert_string_equal(buf_str(&out), words);
    select_past_free(&past);
    select_free(&s);
    json_decref(params);
}

static void
the_past_goes_both_ways(void **state)
{
    struct fixture *f = *state;
    assert_past(f, "{}", false, on_job, "1 2 3 4 5 6 7 8 9 10 in 12");
    assert_past(f, "{}", true, on_job, "10 9 8 7 6 5 4 3 2 1 in 11");
    assert_past(f, "{\"select\":[\"2-4000000000\",\"1\"],\"state\":[\"FAILED\"]}", true, on_job,
                "10 5 in 5");
    assert_past(f, "{\"state\":[\"RUNNING\"]}", true, on_job, "in 1");
    assert_past(f, "{\"select\":[\"name:prep\"]}", true, on_first, "3 in 1");
    assert_past(f, "{\"select\":[\"4-6\",\"9\"]}", true, on_first, "9 in 1");
}

/* As for a list with a limit: down to the oldest of them, and up again. */
static void
the_past_is_turned(void **state)
{
    struct fixture *f = *state;
    auto_buf struct buf out = BUF_INIT;
    json_t *params = params_of("{\"select\":[\"1-3\",\"5-8\"]}");
    struct select_past past = {.newest_first = true};
    struct select s;
    struct err e;
    assert_int_equal(select_read(&f->roles, ALICE, params, &s, &e), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(select_past_walk(&f->inst, &s, &past, INT64_MAX, on_first, &out, &e),
                         0);
    assert_string_equal(buf_str(&out), "8 7 6 5 3 ");
    select_past_turn(&past, 3);
    assert_int_equal(select_past_walk(&f->inst, &s, &past, INT64_MAX, on_job, &out, &e), 1);
    assert_string_equal(buf_str(&out), "8 7 6 5 3 3 5 6 7 8 ");
    select_past_free(&past);
    select_free(&s);
    json_decref(params);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_page_is_found_in_pieces),
        TEST(a_page_that_takes_long_ends_and_says_where),
        TEST(a_search_looks_at_the_clock_behind_each_job),
        TEST(many_words_do_not_make_a_piece_longer),
        TEST(tasks_of_a_page_are_looked_up_in_pieces),
        TEST(the_past_goes_both_ways),
        TEST(the_past_is_turned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
