/* Admission to the queue: times, defaults of a request, limits on pending jobs per user and in
 * total, and on the stored text of one user's jobs. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/counted_text.h"
#include "base/request.h"
#include "daemon/request/file_sync.h"
#include "daemon_door.h"

#define ROOT 0
#define MIB  (INT64_C(1) << 20)

static int
setup(void **state)
{
    *state = door_open(2);
    return 0;
}

static int
teardown(void **state)
{
    door_close(*state);
    return 0;
}

/* A daemon for a single user. */
static void
make_private(struct door *d)
{
    d->w->s.system = d->budget.system = false;
}

#define assert_words(e, words)                                                                 \
    do {                                                                                       \
        if (!strstr((e).text, words))                                                          \
            fail_msg("%s", (e).text);                                                          \
    } while (0)

/* --- times --- */

static void
a_job_without_a_time_limit_gets_the_default(void **state)
{
    static const struct {
        int64_t usual_s, max_s, asked_ms, gets_ms; /* gets -1: refused */
    } cases[] = {
        {0, 0, 0, 0},          {0, 0, 5000, 5000},
        {60, 0, 0, 60000},     {60, 0, 5000, 5000},
        {60, 0, 90000, 90000}, {60, 100, 0, 60000},
        {200, 100, 0, 100000}, {0, 100, 0, 100000},
        {100, 100, 0, 100000}, {60, 100, 100000, 100000},
        {60, 100, 100001, -1},
    };
    struct door *d = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct request r = {.limit_ms = cases[i].asked_ms};
        struct err e = {0};
        d->config.time_default_s = cases[i].usual_s;
        d->config.time_max_s = cases[i].max_s;
        int rc = admit_time(&d->a, &r, &e);
        assert_int_equal(rc, cases[i].gets_ms < 0 ? -1 : 0);
        if (rc == 0)
            assert_int_equal(r.limit_ms, cases[i].gets_ms);
        else
            assert_words(e, "above the maximum of 1m40s (time_max_s)");
    }
}

/* --- defaults --- */

static void
set(char **field, const char *text)
{
    free(*field);
    *field = text ? xstrdup(text) : NULL;
}

static void
what_is_unsaid_is_as_the_settings_say(void **state)
{
    struct door *d = *state;
    struct request r;
    request_init(&r);
    d->config.grace_ms = 1234;
    d->config.oom_retries = 3;
    set(&d->config.env_setup, ". /opt/env");
    set(&d->config.conda, "ml");
    admit_unsaid(&d->a, &r);
    assert_int_equal(r.grace_ms, 1234);
    assert_int_equal(r.oom_retries, 3);
    assert_string_equal(r.env_setup, ". /opt/env");
    assert_string_equal(r.conda, "ml");
    r.grace_ms = r.oom_retries = 0; /* given explicitly */
    set(&r.env_setup, "mine");
    set(&r.conda, "");
    admit_unsaid(&d->a, &r);
    assert_int_equal(r.grace_ms, 0);
    assert_int_equal(r.oom_retries, 0);
    assert_string_equal(r.env_setup, "mine");
    assert_null(r.conda);
    request_free(&r);
}

/* The settings' set-up applies to this machine, not inside an image. */
static void
in_a_container_nothing_is_set_up(void **state)
{
    struct door *d = *state;
    struct request r;
    request_init(&r);
    set(&d->config.env_setup, ". /opt/env");
    set(&d->config.conda, "ml");
    r.container = xstrdup("image.sif");
    admit_unsaid(&d->a, &r);
    assert_null(r.env_setup);
    assert_null(r.conda);
    request_free(&r);
}

/* --- limits on pending jobs --- */

static void
submit_waiting(struct door *d, uint32_t uid, int n)
{
    for (int i = 0; i < n; i++)
        world_submit(d->w, world_job(d->w, uid, 1));
}

static void
a_user_may_have_so_many_waiting(void **state)
{
    struct door *d = *state;
    struct err e = {0};
    d->w->limits.each.pending = 3;
    submit_waiting(d, ALICE, 2);
    assert_int_equal(admit_room(&d->a, ALICE), 1);
    assert_int_equal(admit_pending(&d->a, ALICE, 1, &e), 0);
    assert_int_equal(admit_pending(&d->a, ALICE, 2, &e), -1);
    assert_words(e, "alice has 2 of at most 3 pending jobs: 2 jobs more would be too many "
                    "(user_max_pending)");
    assert_int_equal(admit_pending(&d->a, BOB, 3, &e), 0);
    assert_int_equal(admit_pending(&d->a, ROOT, 1000, &e), 0);
    assert_int_equal(admit_room(&d->a, ROOT), INT64_MAX);
    submit_waiting(d, ALICE, 3); /* the limit was lowered, or they were admitted before */
    assert_int_equal(admit_room(&d->a, ALICE), 0);
    assert_int_equal(admit_pending(&d->a, ALICE, 0, &e), 0);
    assert_int_equal(admit_pending(&d->a, ALICE, 1, &e), -1);
    assert_words(e, "1 job more");
    make_private(d);
    assert_int_equal(admit_pending(&d->a, ROOT, 4, &e), -1);
}

static void
root_is_bound_by_what_was_set_for_root(void **state)
{
    struct door *d = *state;
    struct err e = {0};
    struct user_limit own = {.uid = ROOT, .limit = {.pending = 2}};
    d->w->limits.users = &own;
    d->w->limits.n_users = 1;
    assert_int_equal(admit_room(&d->a, ROOT), 2);
    assert_int_equal(admit_pending(&d->a, ROOT, 3, &e), -1);
    d->w->limits.users = NULL;
    d->w->limits.n_users = 0;
}

/* No user can lock root out. */
static void
a_full_queue_has_a_tenth_more_for_root(void **state)
{
    struct door *d = *state;
    struct err e = {0};
    d->w->limits.all.pending = 20;
    submit_waiting(d, ALICE, 19);
    assert_int_equal(admit_room(&d->a, BOB), 1);
    assert_int_equal(admit_pending(&d->a, BOB, 1, &e), 0);
    assert_int_equal(admit_pending(&d->a, BOB, 2, &e), -1);
    assert_words(e, "the queue is full: 19 of at most 20 jobs are pending (pending_max), and "
                    "this would add 2 jobs");
    assert_int_equal(admit_room(&d->a, ROOT), 3);
    assert_int_equal(admit_pending(&d->a, ROOT, 3, &e), 0);
    assert_int_equal(admit_pending(&d->a, ROOT, 4, &e), -1);
    make_private(d);
    assert_int_equal(admit_room(&d->a, ROOT), 1);
    submit_waiting(d, ALICE, 3);
    assert_int_equal(admit_room(&d->a, BOB), 0);
    assert_int_equal(admit_pending(&d->a, BOB, 0, &e), 0); /* nothing more is added */
}

static void
the_smaller_limit_binds(void **state)
{
    struct door *d = *state;
    d->w->limits.all.pending = 10;
    d->w->limits.each.pending = 4;
    submit_waiting(d, BOB, 3);
    assert_int_equal(admit_room(&d->a, ALICE), 4);
    submit_waiting(d, BOB, 5);
    assert_int_equal(admit_room(&d->a, ALICE), 2);
}

/* An admitted file counts at once, though its jobs come in pieces. */
static void
what_is_let_in_counts_before_it_has_come(void **state)
{
    struct door *d = *state;
    struct err e = {0};
    struct sync alices = {.uid = ALICE, .n_more = 5, .more_text = 120 * MIB};
    struct sync bobs = {.uid = BOB, .n_more = 2, .more_text = -MIB, .next = &alices};
    d->w->limits.all.pending = 10;
    d->w->limits.each.pending = 6;
    d->a.syncs = &bobs;
    assert_int_equal(admit_room(&d->a, ALICE), 1);
    assert_int_equal(admit_room(&d->a, BOB), 3);
    assert_int_equal(admit_text(&d->a, ALICE, 8 * MIB, &e), 0);
    assert_int_equal(admit_text(&d->a, ALICE, 8 * MIB + 1, &e), -1);
    assert_words(e, "alice's jobs would take 128 MiB; the maximum is 128");
    assert_int_equal(admit_text(&d->a, BOB, 128 * MIB, &e), 0); /* shorter lines free no room */
    assert_int_equal(admit_text(&d->a, BOB, 129 * MIB, &e), -1);
    alices.more_text = 129 * MIB;
    assert_int_equal(admit_text(&d->a, ALICE, 0, &e), 0);
}

/* --- limits on stored text --- */

static void
text_is_bounded_where_a_daemon_is_shared(void **state)
{
    struct door *d = *state;
    struct err e = {0};
    struct job *job = world_job(d->w, ALICE, 1);
    free(job->req.command);
    job->req.command = xcalloc(1, (size_t)MIB + 1);
    memset(job->req.command, 'x', (size_t)MIB);
    world_submit(d->w, job);
    assert_int_equal(admit_text(&d->a, ALICE, 128 * MIB, &e), -1);
    assert_int_equal(admit_text(&d->a, ALICE, 126 * MIB, &e), 0);
    assert_int_equal(admit_text(&d->a, ALICE, 0, &e), 0);
    assert_int_equal(admit_text(&d->a, ROOT, 1000 * MIB, &e), 0);
    make_private(d);
    assert_int_equal(admit_text(&d->a, ALICE, 1000 * MIB, &e), 0);
}

static void
environments_are_bounded_each_counted_once(void **state)
{
    struct door *d = *state;
    struct err e = {0};
    for (int i = 0; i < 2; i++) {
        struct job *job = world_job(d->w, ALICE, 1);
        job->env = 7;
        job->env_bytes = 200 * (int32_t)MIB;
        world_submit(d->w, job);
    }
    assert_int_equal(admit_env(&d->a, ALICE, 56 * MIB, &e), 0);
    assert_int_equal(admit_env(&d->a, ALICE, 57 * MIB, &e), -1);
    assert_words(e, "alice's jobs would take 257 MiB; the maximum is 256");
    assert_int_equal(admit_env(&d->a, BOB, 256 * MIB, &e), 0);
    assert_int_equal(admit_env(&d->a, ROOT, 1000 * MIB, &e), 0);
    struct job *job = world_job(d->w, ALICE, 1);
    job->env = 8;
    job->env_bytes = 57 * (int32_t)MIB; /* admitted before */
    world_submit(d->w, job);
    assert_int_equal(admit_env(&d->a, ALICE, 0, &e), 0);
    assert_int_equal(admit_env(&d->a, ALICE, 1, &e), -1);
    make_private(d);
    assert_int_equal(admit_env(&d->a, ALICE, 1000 * MIB, &e), 0);
}

/* A sixteenth of the database's maximum size. */
static void
lines_of_files_are_bounded(void **state)
{
    struct door *d = *state;
    struct err e = {0};
    char path[2048];
    uint32_t file;
    d->config.keep_mib = 1;
    assert_int_equal(admit_kept_max(&d->a), 65536);
    assert_int_equal(admit_lines(&d->a, ALICE, &e), 0);
    for (int i = 0; i < 64; i++) {
        snprintf(path, sizeof path, "/%02d/%01500d", i, 0);
        assert_int_equal(store_file_id(d->w->store, ALICE, path, &file, &e), 0);
    }
    assert_int_equal(admit_lines(&d->a, ALICE, &e), -1);
    assert_words(e, "the maximum is 64 (1/16 of keep_mib)");
    assert_int_equal(admit_lines(&d->a, BOB, &e), 0);
    d->config.keep_mib = 0;
    assert_int_equal(admit_lines(&d->a, ALICE, &e), 0);
}

/* --- the jobs of one request --- */

struct jobs {
    struct job *v[2];
};

static struct jobs
two_jobs(struct door *d)
{
    return (struct jobs){{world_job(d->w, ALICE, 1), world_job(d->w, ALICE, 1)}};
}

static int
admit_and_free(struct door *d, struct jobs *jobs, size_t n, struct err *e)
{
    int rc = admit_jobs(&d->a, ALICE, jobs->v, n, e);
    for (size_t i = 0; i < 2; i++)
        job_free(jobs->v[i]);
    return rc;
}

static void
each_job_is_held_to_time_and_limits(void **state)
{
    struct door *d = *state;
    struct err e = {0};
    d->config.time_max_s = 60;
    struct jobs jobs = two_jobs(d);
    jobs.v[1]->req.limit_ms = 61000;
    assert_int_equal(admit_and_free(d, &jobs, 2, &e), -1);
    assert_words(e, "job 2 of 2: its time limit");
    d->w->limits.each.gpus = 1;
    jobs = two_jobs(d);
    jobs.v[0]->req.demand.gpus = 2;
    assert_int_equal(admit_and_free(d, &jobs, 2, &e), -1);
    assert_words(e, "job 1 of 2: ");
    jobs = two_jobs(d);
    jobs.v[0]->req.demand.gpus = 2;
    assert_int_equal(admit_and_free(d, &jobs, 1, &e), -1);
    assert_null(strstr(e.text, "job 1"));
    jobs = two_jobs(d);
    assert_int_equal(admit_and_free(d, &jobs, 2, &e), 0);
}

static void
an_array_counts_with_all_its_tasks(void **state)
{
    struct door *d = *state;
    struct err e = {0};
    for (int over = 0; over <= 1; over++) {
        struct jobs jobs = two_jobs(d);
        struct task_set *tasks = &jobs.v[0]->req.array;
        tasks->ranges = xcalloc(1, sizeof *tasks->ranges);
        tasks->ranges[0] = (struct task_range){5, 9};
        tasks->n = 1;
        d->w->limits.each.pending = 6 - over;
        assert_int_equal(admit_and_free(d, &jobs, 2, &e), -over);
    }
    assert_words(e, "6 jobs more would be too many");
}

static void
the_text_of_a_request_is_added_up(void **state)
{
    struct door *d = *state;
    struct err e = {0};
    for (int over = 0; over <= 1; over++) {
        struct sync coming = {.uid = ALICE};
        struct jobs jobs = two_jobs(d);
        coming.more_text = 128 * MIB - request_text_bytes(&jobs.v[0]->req) -
                           request_text_bytes(&jobs.v[1]->req) + over;
        d->a.syncs = &coming;
        assert_int_equal(admit_and_free(d, &jobs, 2, &e), -over);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_job_without_a_time_limit_gets_the_default),
        TEST(what_is_unsaid_is_as_the_settings_say),
        TEST(in_a_container_nothing_is_set_up),
        TEST(a_user_may_have_so_many_waiting),
        TEST(root_is_bound_by_what_was_set_for_root),
        TEST(a_full_queue_has_a_tenth_more_for_root),
        TEST(the_smaller_limit_binds),
        TEST(what_is_let_in_counts_before_it_has_come),
        TEST(text_is_bounded_where_a_daemon_is_shared),
        TEST(environments_are_bounded_each_counted_once),
        TEST(lines_of_files_are_bounded),
        TEST(each_job_is_held_to_time_and_limits),
        TEST(an_array_counts_with_all_its_tasks),
        TEST(the_text_of_a_request_is_added_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
