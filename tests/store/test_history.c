/* Queries beyond single jobs: filtered walks, environments, jobs files, events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/counted_text.h"
#include "base/text.h"
#include "core/learn/demands.h"
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

/* --- walks --- */

/* Ids in the order they come, compared as text. */
struct seen {
    struct buf ids;
    int stop_after; /* 0: never */
    int n;
};

static int
on_job(struct job *job, const char *const *uuids, void *arg)
{
    struct seen *seen = arg;

    assert_true((job->run != NULL) == (uuids != NULL));
    buf_addf(&seen->ids, "%u ", job->id);
    return ++seen->n == seen->stop_after;
}

static void
assert_selects(struct store *s, const struct store_filter *filter, const char *ids)
{
    struct seen seen = {.ids = BUF_INIT};

    assert_int_equal(store_jobs_select(s, filter, on_job, &seen, NULL), 0);
    assert_string_equal(buf_str(&seen.ids), ids);
    buf_free(&seen.ids);
}

/* Jobs 1..12: odd ones of user 1, even ones of user 2; every third FAILED, others PENDING;
 * file 5 from 10 on. */
static void
add_twelve(struct store *s)
{
    for (uint32_t id = 1; id <= 12; id++) {
        struct job *job = plain_job(id, "true");
        job->uid = id % 2 ? 1 : 2;
        job->state = id % 3 ? JOB_PENDING : JOB_FAILED;
        job->file = id >= 10 ? 5 : 0;
        job->ended_us = job->state == JOB_FAILED ? 1000 * id : 0;
        job->req.name = id == 4 ? xstrdup("Sweep") : NULL;
        assert_int_equal(store_job_insert(s, job, NULL), 0);
        job_free(job);
    }
    must_commit(s);
}

static void
test_select(void **state)
{
    struct fixture *f = *state;
    const struct store_range two[] = {{8, 9}, {2, 4}};
    const struct store_range overlapping[] = {{3, 5}, {4, 7}, {9, 8}, {1, 3}};
    const struct store_range nested[] = {{2, 9}, {1, 5}, {3, 4}};
    const struct {
        struct store_filter filter;
        const char *ids;
    } cases[] = {
        {{0}, "1 2 3 4 5 6 7 8 9 10 11 12 "},
        {{.newest_first = true}, "12 11 10 9 8 7 6 5 4 3 2 1 "},
        {{.limit = 3, .newest_first = true}, "12 11 10 "},
        {{.ranges = two, .n_ranges = 2}, "2 3 4 8 9 "},
        {{.ranges = two, .n_ranges = 2, .newest_first = true}, "9 8 4 3 2 "},
        {{.ranges = two, .n_ranges = 2, .limit = 3, .newest_first = true}, "9 8 4 "},
        {{.ranges = overlapping, .n_ranges = 4}, "1 2 3 4 5 6 7 "},
        {{.ranges = nested, .n_ranges = 3}, "1 2 3 4 5 6 7 8 9 "},
        {{.states = 1U << JOB_FAILED}, "3 6 9 12 "},
        {{.states = 1U << JOB_FAILED, .limit = 2, .newest_first = true}, "12 9 "},
        {{.states = 1U << JOB_FAILED | 1U << JOB_PENDING, .limit = 2, .newest_first = true},
         "12 11 "},
        {{.states = 1U << JOB_LOST}, ""},
        {{.states = 1U << JOB_LOST, .limit = 2, .newest_first = true}, ""},
        {{.has_uid = true, .uid = 2}, "2 4 6 8 10 12 "},
        {{.has_uid = true, .uid = 0}, ""},
        {{.has_uid = true, .uid = 1, .states = 1U << JOB_FAILED}, "3 9 "},
        {{.file = 5}, "10 11 12 "},
        {{.since_us = 6000}, "6 9 12 "},
        {{.until_us = 9000}, "3 6 "},
        {{.since_us = 6000, .until_us = 9001, .limit = 1, .newest_first = true}, "9 "},
        {{.search = "sweep"}, "4 "},
        {{.search = "rue", .limit = 2}, "12 11 "},
        {{.search = "sweep", .search_uid = 1, .has_search_uid = true}, ""},
        {{.search = "sweep", .search_uid = 2, .has_search_uid = true}, "4 "},
        {{.file = 5, .has_uid = true, .uid = 1}, "11 "},
    };

    add_twelve(f->s);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_selects(f->s, &cases[i].filter, cases[i].ids);
}

static void
test_a_walk_can_be_ended(void **state)
{
    struct fixture *f = *state;
    const struct store_range ranges[] = {{1, 2}, {4, 9}};
    const struct store_filter filter = {.ranges = ranges, .n_ranges = 2};
    struct seen seen = {.ids = BUF_INIT, .stop_after = 2};

    add_twelve(f->s);
    assert_int_equal(store_jobs_select(f->s, &filter, on_job, &seen, NULL), 0);
    assert_string_equal(buf_str(&seen.ids), "1 2 ");
    buf_free(&seen.ids);
}

/* Past the deadline, one job is examined, whether it contains the searched text or not. */
static void
test_a_walk_goes_on_where_it_was_late(void **state)
{
    struct fixture *f = *state;
    const struct store_range ranges[] = {{3, 5}, {11, 12}};
    const struct {
        struct store_filter filter;
        uint32_t last;
        const char *ids;
    } cases[] = {
        {{.newest_first = true}, 12, "12 "},
        {{0}, 3, "3 "},
        {{.states = 1U << JOB_PENDING, .newest_first = true}, 11, "11 "},
        {{.search = "sweep"}, 12, ""},
        {{.search = "sweep", .until_us = 6000}, 3, ""},
    };

    add_twelve(f->s);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct store_filter filter = cases[i].filter;
        struct seen seen = {.ids = BUF_INIT};
        struct store_pass pass = {.stop_us = 0};
        filter.ranges = ranges;
        filter.n_ranges = 2;
        assert_int_equal(store_jobs_pass(f->s, &filter, &pass, on_job, &seen, NULL), 0);
        assert_string_equal(buf_str(&seen.ids), cases[i].ids);
        assert_int_equal(pass.last, cases[i].last);
        assert_true(pass.stopped);
        buf_free(&seen.ids);
    }
}

struct live {
    struct job *jobs[16];
    char *uuid[16];
    int n;
};

static int
on_live(struct job *job, const char *const *uuids, void *arg)
{
    struct live *live = arg;

    live->uuid[live->n] = uuids && job->run->n_gpus ? xstrdup(uuids[0]) : NULL;
    live->jobs[live->n++] = job;
    return 0;
}

/* Jobs that have not ended, each with its last attempt. */
static void
test_live_jobs(void **state)
{
    struct fixture *f = *state;
    struct attempt first = {.number = 1, .n_gpus = 1}, second = {.number = 2, .n_gpus = 2};
    struct live live = {.n = 0};

    add_twelve(f->s);
    assert_int_equal(store_attempt_insert(f->s, 4, &first, some_uuids(0), NULL), 0);
    assert_int_equal(store_attempt_insert(f->s, 4, &second, some_uuids(7), NULL), 0);
    must_commit(f->s);
    assert_int_equal(store_jobs_load_live(f->s, on_live, &live, NULL), 0);
    assert_int_equal(live.n, 8);
    for (int i = 0; i < live.n; i++) {
        assert_true(live.jobs[i]->id % 3 != 0);
        assert_true((live.jobs[i]->run != NULL) == (live.jobs[i]->id == 4));
        if (live.jobs[i]->id == 4 && live.jobs[i]->run) {
            assert_int_equal(live.jobs[i]->run->number, 2);
            assert_string_equal(live.uuid[i], some_uuids(7)[0]);
        }
        job_free(live.jobs[i]);
        free(live.uuid[i]);
    }
}

/* --- environments --- */

static void
test_env_is_kept_once(void **state)
{
    struct fixture *f = *state;
    static const char a[] = "A=1\0B=\xff\xfe", b[] = "A=2";
    auto_buf struct buf out = BUF_INIT;
    int64_t first, second, again, empty;

    assert_int_equal(store_env_put(f->s, a, sizeof a, &first, NULL), 0);
    assert_int_equal(store_env_put(f->s, b, sizeof b, &second, NULL), 0);
    assert_int_equal(store_env_put(f->s, a, sizeof a, &again, NULL), 0);
    assert_int_equal(store_env_put(f->s, NULL, 0, &empty, NULL), 0);
    must_commit(f->s);
    assert_true(first != 0 && second != 0 && empty != 0 && first != second);
    assert_true(first == again);
    store_close(f->s);
    f->s = must_open(f->dir);
    assert_int_equal(store_env_put(f->s, a, sizeof a, &again, NULL), 0);
    assert_true(first == again);
    assert_false(store_has_changes(f->s));
    assert_int_equal(store_env_get(f->s, first, &out, NULL), 0);
    assert_int_equal(out.len, sizeof a);
    assert_memory_equal(out.data, a, sizeof a);
    assert_int_equal(store_env_get(f->s, empty, &out, NULL), 0);
    assert_int_equal(out.len, 0);
    assert_int_equal(store_env_get(f->s, 12345, &out, NULL), -1);
}

/* These two share the first 48 bits of their SHA-1, which is what the index stores. */
static void
test_envs_with_one_hash(void **state)
{
    struct fixture *f = *state;
    static const char a[] = "SEED=651968", b[] = "SEED=22005730";
    auto_buf struct buf out = BUF_INIT;
    char hash_a[13], hash_b[13];
    int64_t first, second;

    text_sha1_12(a, strlen(a), hash_a);
    text_sha1_12(b, strlen(b), hash_b);
    assert_string_equal(hash_a, hash_b);
    assert_int_equal(store_env_put(f->s, a, strlen(a), &first, NULL), 0);
    assert_int_equal(store_env_put(f->s, b, strlen(b), &second, NULL), 0);
    assert_true(first != second);
    assert_int_equal(store_env_get(f->s, second, &out, NULL), 0);
    assert_string_equal(buf_str(&out), b);
}

static void
test_large_env(void **state)
{
    struct fixture *f = *state;
    size_t n = 2 << 20;
    auto_free char *bytes = xmalloc(n);
    auto_buf struct buf out = BUF_INIT;
    int64_t first, again;

    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i * 31 >> 3);
    assert_int_equal(store_env_put(f->s, bytes, n, &first, NULL), 0);
    assert_int_equal(store_env_put(f->s, bytes, n, &again, NULL), 0);
    assert_true(first == again);
    must_commit(f->s);
    assert_int_equal(store_env_get(f->s, first, &out, NULL), 0);
    assert_int_equal(out.len, n);
    assert_memory_equal(out.data, bytes, n);
}

/* --- jobs files --- */

static void
add_line(struct store *s, uint32_t id, uint32_t file, const char *key, enum job_state state)
{
    struct job *job = plain_job(id, "true");

    job->file = file;
    job->key = xstrdup(key);
    job->line = (int32_t)id * 10;
    job->state = state;
    assert_int_equal(store_job_insert(s, job, NULL), 0);
    job_free(job);
}

static int
on_key(const struct store_key *key, void *arg)
{
    buf_addf(arg, "%s=%u:%d:%s:%s:%d:%d ", key->key, key->job, key->line,
             job_state_name(key->state), outcome_name(key->outcome), key->code, key->signal);
    return 0;
}

static void
assert_keys(struct store *s, uint32_t file, const char *text)
{
    auto_buf struct buf out = BUF_INIT;

    assert_int_equal(
        store_file_keys(s, file, &(struct store_keys_at){.job = 0}, on_key, &out, NULL), 0);
    assert_string_equal(buf_str(&out), text);
}

static void
test_file_ids(void **state)
{
    struct fixture *f = *state;
    uint32_t mine, theirs, other, again;
    struct err e = {0};

    assert_int_equal(store_file_id(f->s, 1, "/a/jobs.txt", &mine, NULL), 0);
    assert_int_equal(store_file_id(f->s, 2, "/a/jobs.txt", &theirs, NULL), 0);
    assert_int_equal(store_file_id(f->s, 1, "/a/jobs.txt ", &other, NULL), 0);
    must_commit(f->s);
    assert_int_equal(store_file_id(f->s, 1, "/a/jobs.txt", &again, NULL), 0);
    assert_false(store_has_changes(f->s));
    assert_int_equal(mine, again);
    assert_true(mine && theirs && other && mine != theirs && mine != other && theirs != other);
    auto_free char *path = store_file_path(f->s, other, &e);
    assert_string_equal(path, "/a/jobs.txt ");
    assert_null(store_file_path(f->s, 999, &e));
    assert_non_null(strstr(e.text, "999"));
}

static void
test_file_keys(void **state)
{
    struct fixture *f = *state;
    struct attempt a1 = {.number = 1, .ending = {.outcome = OUTCOME_EXITED, .code = 3}};
    struct attempt a2 = {.number = 2, .ending = {.outcome = OUTCOME_SIGNALED, .signal = 9}};

    add_line(f->s, 1, 1, "aa#1", JOB_FAILED);
    add_line(f->s, 2, 2, "aa#1", JOB_PENDING);
    add_line(f->s, 3, 1, "bb#1", JOB_PENDING);
    assert_int_equal(store_attempt_insert(f->s, 1, &a1, NULL, NULL), 0);
    assert_int_equal(store_attempt_insert(f->s, 1, &a2, NULL, NULL), 0);
    must_commit(f->s);
    assert_keys(f->s, 1, "aa#1=1:10:FAILED:signaled:0:9 bb#1=3:30:PENDING:none:0:0 ");
    assert_keys(f->s, 2, "aa#1=2:20:PENDING:none:0:0 ");
    assert_keys(f->s, 3, "");
    assert_keys(f->s, 0, "");
}

static void
forget_file(struct store *s, uint32_t file)
{
    uint32_t at = 0;
    int rc;

    while ((rc = store_file_forget(s, file, &at, 1000, NULL)) > 0)
        ;
    assert_int_equal(rc, 0);
}

static void
test_forgotten_file(void **state)
{
    struct fixture *f = *state;

    add_line(f->s, 1, 1, "aa#1", JOB_COMPLETED);
    add_line(f->s, 2, 1, "bb#1", JOB_RUNNING);
    add_line(f->s, 3, 2, "aa#1", JOB_COMPLETED);
    forget_file(f->s, 1);
    must_commit(f->s);
    assert_keys(f->s, 1, "bb#1=2:20:RUNNING:none:0:0 ");
    assert_keys(f->s, 2, "aa#1=3:30:COMPLETED:none:0:0 ");
    add_line(f->s, 4, 1, "aa#1", JOB_PENDING);
    must_commit(f->s);
    assert_keys(f->s, 1, "bb#1=2:20:RUNNING:none:0:0 aa#1=4:40:PENDING:none:0:0 ");
    /* It stays in the history, with its file. */
    assert_selects(f->s, &(struct store_filter){.file = 1}, "1 2 4 ");
}

/* Each call examines a bounded number of the file's jobs, and the next continues after
 * them. */
static void
test_a_file_is_forgotten_in_pieces(void **state)
{
    static const char *const keys[] = {"a#1", "b#1", "c#1", "d#1"};
    static const char pending[] =
        "a#1=1:10:PENDING:none:0:0 b#1=2:20:PENDING:none:0:0 c#1=3:30:PENDING:none:0:0 "
        "d#1=4:40:PENDING:none:0:0 ";
    struct fixture *f = *state;
    uint32_t at = 0;

    for (uint32_t id = 1; id <= 4; id++)
        add_line(f->s, id, 1, keys[id - 1], JOB_PENDING);
    add_line(f->s, 5, 1, "e#1", JOB_COMPLETED);
    add_line(f->s, 6, 2, "e#1", JOB_COMPLETED);
    must_commit(f->s);
    for (uint32_t seen = 2; seen <= 4; seen += 2) {
        assert_int_equal(store_file_forget(f->s, 1, &at, 2, NULL), 1);
        assert_int_equal(at, seen);
    }
    assert_int_equal(store_file_forget(f->s, 1, &at, 2, NULL), 1);
    assert_int_equal(store_file_forget(f->s, 1, &at, 2, NULL), 0);
    must_commit(f->s);
    assert_keys(f->s, 1, pending);
    assert_keys(f->s, 2, "e#1=6:60:COMPLETED:none:0:0 ");
}

static void
assert_piece(struct store *s, uint32_t uid, int number, const char *expected)
{
    auto_free char *text = store_progress_get(s, uid, "token", number);

    assert_string_equal(text ? text : "", expected);
}

static void
test_progress_of_a_request(void **state)
{
    const struct store_piece first = {0, 10, "one"}, second = {1, 20, "two"};
    struct fixture *f = *state;

    assert_int_equal(store_progress_add(f->s, 7, "token", &first, NULL), 0);
    assert_int_equal(store_progress_add(f->s, 7, "token", &second, NULL), 0);
    assert_int_equal(store_progress_add(f->s, 8, "token", &second, NULL), 0);
    must_commit(f->s);
    assert_piece(f->s, 7, 0, "one");
    assert_piece(f->s, 7, 1, "two");
    assert_piece(f->s, 7, 2, "");
    assert_int_equal(store_progress_trim(f->s, 20, NULL), 0);
    assert_piece(f->s, 7, 0, "");
    assert_int_equal(store_progress_drop(f->s, 7, "token", NULL), 0);
    assert_piece(f->s, 7, 1, "");
    assert_piece(f->s, 8, 1, "two");
}

static void
test_detached_job(void **state)
{
    struct fixture *f = *state;
    struct job *job;

    add_line(f->s, 1, 1, "aa#1", JOB_RUNNING);
    add_line(f->s, 2, 1, "bb#1", JOB_RUNNING);
    assert_int_equal(store_job_detach(f->s, 1, NULL), 0);
    must_commit(f->s);
    assert_keys(f->s, 1, "bb#1=2:20:RUNNING:none:0:0 ");
    /* Permanently: later changes do not bring it back. */
    job = store_job_load(f->s, 1, NULL);
    job->state = JOB_COMPLETED;
    assert_int_equal(store_job_update(f->s, job, NULL), 0);
    must_commit(f->s);
    assert_keys(f->s, 1, "bb#1=2:20:RUNNING:none:0:0 ");
    job_free(job);
}

/* --- events --- */

static void
add_event_at(struct store *s, int64_t at_us, uint32_t job, uint32_t file, const char *json)
{
    struct store_event event = {
        .at_us = at_us, .kind = "started", .job = job, .file = file, .json = json};
    int64_t last = store_event_last(s);

    event.json_len = strlen(json);
    assert_int_equal(store_event_add(s, &event, NULL), 0);
    assert_int_equal(event.seq, last + 1);
    assert_int_equal(store_event_last(s), last + 1);
}

static void
add_event(struct store *s, uint32_t job, uint32_t file, const char *json)
{
    add_event_at(s, 5, job, file, json);
}

static int
on_event(const struct store_event *event, void *arg)
{
    assert_string_equal(event->kind, "started");
    assert_int_equal(event->at_us, 5);
    assert_int_equal(event->json_len, strlen(event->json));
    buf_addf(arg, "%d:%u:%u:%s ", (int)event->seq, event->job, event->file, event->json);
    return event->job == 99; /* the walk ends there */
}

static void
assert_events(struct store *s, int64_t since, const char *text)
{
    auto_buf struct buf out = BUF_INIT;

    assert_int_equal(store_events_read(s, since, on_event, &out, NULL), 0);
    assert_string_equal(buf_str(&out), text);
}

static void
test_events(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(store_event_first(f->s), 0);
    add_event(f->s, 7, 1, "{}");
    add_event(f->s, 8, 1, "{\"a\":\"\xc3\xa4\"}");
    add_event(f->s, 9, 2, "{}");
    must_commit(f->s);
    add_event(f->s, 0, 0, "{}");
    assert_int_equal(store_event_first(f->s), 1);
    assert_events(f->s, 0, "1:7:1:{} 2:8:1:{\"a\":\"\xc3\xa4\"} 3:9:2:{} 4:0:0:{} ");
    assert_events(f->s, 2, "3:9:2:{} 4:0:0:{} ");
    assert_events(f->s, 4, "");
    add_event(f->s, 99, 0, "{}");
    add_event(f->s, 1, 0, "{}");
    assert_events(f->s, 3, "4:0:0:{} 5:99:0:{} ");
}

static void
test_events_are_trimmed(void **state)
{
    struct fixture *f = *state;

    for (uint32_t job = 1; job <= 10; job++)
        add_event(f->s, job, 0, "{}");
    assert_int_equal(store_events_trim(f->s, 20, 100, NULL), 0);
    assert_int_equal(store_events_trim(f->s, 2, 3, NULL), 1);
    must_commit(f->s);
    assert_int_equal(store_event_first(f->s), 4);
    assert_int_equal(store_events_trim(f->s, 2, 3, NULL), 1);
    assert_int_equal(store_events_trim(f->s, 2, 3, NULL), 0);
    must_commit(f->s);
    assert_int_equal(store_event_first(f->s), 9);
    assert_events(f->s, 0, "9:9:0:{} 10:10:0:{} ");
    assert_int_equal(store_events_trim(f->s, 0, 100, NULL), 0);
    must_commit(f->s);
    assert_events(f->s, 0, "10:10:0:{} ");
    store_close(f->s);
    f->s = must_open(f->dir);
    add_event(f->s, 11, 0, "{}");
    assert_events(f->s, 10, "11:11:0:{} ");
}

/* Times may repeat, and the oldest may be gone. */
static void
test_events_of_a_time_are_found(void **state)
{
    struct fixture *f = *state;
    static const int64_t times[] = {10, 20, 20, 20, 30, 50, 50, 80};
    static const struct {
        int64_t at_us, before;
    } asked[] = {{0, 0},  {10, 0}, {11, 1}, {20, 1}, {21, 4},
                 {30, 4}, {50, 5}, {80, 7}, {81, 8}};

    assert_int_equal(store_event_before(f->s, 5), 0);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        add_event_at(f->s, times[i], 1, 0, "{}");
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        assert_int_equal(store_event_before(f->s, asked[i].at_us), asked[i].before);
    must_commit(f->s);
    assert_int_equal(store_events_trim(f->s, 4, 100, NULL), 0);
    must_commit(f->s);
    assert_true(store_event_before(f->s, 15) <= 4); /* everything left comes after it */
    assert_int_equal(store_event_before(f->s, 50), 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void
on_runs(const struct store_runs *r, void *arg)
{
    buf_addf(arg, "%u %s %lld %lld %lld\n", r->uid, r->fingerprint, (long long)r->last_ms,
             (long long)r->before_ms, (long long)r->ended_us);
}

/* One row per user and command, replaced by the newer, newest first. */
static void
test_runs(void **state)
{
    struct fixture *f = *state;
    static const struct store_runs put[] = {
        {1, "aa", 5000, 0, 10},
        {2, "aa", 7, 9, 30},
        {1, "bb", 1, 2, 20},
        {1, "aa", 6000, 5000, 40},
    };
    auto_buf struct buf seen = BUF_INIT;

    for (size_t i = 0; i < sizeof put / sizeof put[0]; i++)
        assert_int_equal(store_runs_put(f->s, &put[i], NULL), 0);
    assert_int_equal(store_runs_trim(f->s, NULL), 0);
    must_commit(f->s);
    assert_int_equal(store_runs_load(f->s, on_runs, &seen, NULL), 0);
    assert_string_equal(buf_str(&seen), "1 aa 6000 5000 40\n2 aa 7 9 30\n1 bb 1 2 20\n");
}

/* Stored bytes of attempts and GPUs come back unchanged or not at all; an attempt's go with
 * its job. */
static void
test_what_was_used_over_time(void **state)
{
    struct fixture *f = *state;
    auto_buf struct buf got = BUF_INIT;

    assert_int_equal(store_trace_get(f->s, 7, 1, &got, NULL), 0);
    assert_int_equal(store_trace_put(f->s, 7, 1, "a\0b", 3, NULL), 0);
    assert_int_equal(store_trace_put(f->s, 7, 2, "two", 3, NULL), 0);
    assert_int_equal(store_trace_put(f->s, 7, 2, "", 0, NULL), 0);
    assert_int_equal(store_series_put(f->s, "GPU-a", "card", 4, NULL), 0);
    must_commit(f->s);
    assert_int_equal(store_trace_get(f->s, 7, 1, &got, NULL), 1);
    assert_int_equal(got.len, 3);
    assert_memory_equal(got.data, "a\0b", 3);
    assert_int_equal(store_trace_get(f->s, 7, 2, &got, NULL), 1);
    assert_int_equal(got.len, 0);
    assert_int_equal(store_series_get(f->s, "GPU-a", &got, NULL), 1);
    assert_string_equal(buf_str(&got), "card");
    assert_int_equal(store_series_get(f->s, "GPU-b", &got, NULL), 0);
}

static void
on_total(uint32_t uid, int64_t gpu_ms, void *arg)
{
    buf_addf(arg, "%u %lld\n", uid, (long long)gpu_ms);
}

static void
test_totals(void **state)
{
    struct fixture *f = *state;
    auto_buf struct buf seen = BUF_INIT;

    assert_int_equal(store_total_put(f->s, 1000, 5, NULL), 0);
    assert_int_equal(store_total_put(f->s, 0, 7, NULL), 0);
    assert_int_equal(store_total_put(f->s, 1000, INT64_C(1) << 40, NULL), 0);
    must_commit(f->s);
    assert_int_equal(store_totals_load(f->s, on_total, &seen, NULL), 0);
    assert_string_equal(buf_str(&seen), "0 7\n1000 1099511627776\n");
}

/* --- reports --- */

static void
test_learned_peaks(void **state)
{
    struct fixture *f = *state;
    const struct store_peaks_key key = {7, "0123456789abcdef", 2},
                                 one = {7, key.fingerprint, 1};
    struct learned in = {.peaks_mib = {6000, 0, 7000}, .n = 3, .oom_mib = 8000, .oom_runs = 2};
    struct learned out;

    assert_int_equal(store_peaks_get(f->s, &key, &out, NULL), 0);
    assert_int_equal(out.n, 0);
    assert_int_equal(store_peaks_put(f->s, &key, &in, 1000, NULL), 0);
    assert_int_equal(store_peaks_get(f->s, &key, &out, NULL), 0); /* also before the commit */
    assert_memory_equal(&in, &out, sizeof in);
    must_commit(f->s);
    assert_int_equal(store_peaks_get(f->s, &one, &out, NULL), 0);
    assert_int_equal(out.n, 0);
    assert_int_equal(store_peaks_trim(f->s, NULL), 0);
    must_commit(f->s);
    assert_int_equal(store_peaks_get(f->s, &key, &out, NULL), 0);
    assert_memory_equal(&in, &out, sizeof in);
}

static void
on_ended(const struct store_ended *x, void *arg)
{
    buf_addf(arg, "%u%s ", x->id, x->user);
}

static void
on_used(const struct store_used *x, void *arg)
{
    buf_addf(arg, "%u.%d%s ", x->job, x->attempt->number, x->user ? x->user : "");
}

/* Jobs 1..6: 4 and 5 ended at the same moment, 6 has not ended; 2 has two attempts. */
static void
add_past(struct store *s)
{
    static const int64_t ended[] = {100, 200, 300, 400, 400, 0};
    const char *const uuids[] = {"GPU-a"};

    for (uint32_t id = 1; id <= 6; id++) {
        struct job *job = plain_job(id, "true");
        struct attempt run = {.number = id == 2 ? 2 : 1, .n_gpus = 1, .started_us = 10 * id};
        job->ended_us = ended[id - 1];
        job->user = id == 2 ? shared_new("ann") : NULL;
        job->state = job->ended_us ? JOB_COMPLETED : JOB_RUNNING;
        assert_int_equal(store_job_insert(s, job, NULL), 0);
        run.ending = (struct ending){.ended_us = job->ended_us, .run_ms = 5};
        run.ending.outcome = job->ended_us ? OUTCOME_EXITED : OUTCOME_NONE;
        assert_int_equal(store_attempt_insert(s, id, &run, uuids, NULL), 0);
        job_free(job);
    }
    const struct attempt first = {.number = 1,
                                  .n_gpus = 1,
                                  .started_us = 12,
                                  .ending = {.outcome = OUTCOME_EXITED, .ended_us = 150}};
    assert_int_equal(store_attempt_insert(s, 2, &first, uuids, NULL), 0);
    must_commit(s);
}

/* However many are requested at once, each comes once, newest first. */
static void
test_walks_of_the_past(void **state)
{
    struct fixture *f = *state;
    int64_t begin_us;

    add_past(f->s);
    for (int max = 1; max <= 7; max++) {
        struct store_place jobs = STORE_PLACE_NOW, runs = STORE_PLACE_NOW;
        auto_buf struct buf ended = BUF_INIT, used = BUF_INIT;
        while (store_ended_walk(f->s, &jobs, 150, max, on_ended, &ended, NULL) == max)
            continue;
        while (store_used_walk(f->s, &runs, 150, max, on_used, &used, NULL) == max)
            continue;
        assert_string_equal(buf_str(&ended), "5 4 3 2ann ");
        assert_string_equal(buf_str(&used), "5.1 4.1 3.1 2.2ann 2.1ann ");
    }
    assert_int_equal(store_past_begin(f->s, &begin_us, NULL), 0);
    assert_int_equal(begin_us, 10);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_select),
        TEST(test_learned_peaks),
        TEST(test_walks_of_the_past),
        TEST(test_a_walk_can_be_ended),
        TEST(test_a_walk_goes_on_where_it_was_late),
        TEST(test_live_jobs),
        TEST(test_env_is_kept_once),
        TEST(test_envs_with_one_hash),
        TEST(test_large_env),
        TEST(test_file_ids),
        TEST(test_file_keys),
        TEST(test_forgotten_file),
        TEST(test_a_file_is_forgotten_in_pieces),
        TEST(test_progress_of_a_request),
        TEST(test_detached_job),
        TEST(test_events),
        TEST(test_events_are_trimmed),
        TEST(test_events_of_a_time_are_found),
        TEST(test_runs),
        TEST(test_what_was_used_over_time),
        TEST(test_totals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
