/* The dependencies between lines of a jobs file, and the order in which lines become jobs. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/request/file_deps.h"
#include "daemon_world.h"

#define LINES_MAX 4

struct file {
    struct request req[LINES_MAX];
    struct file_dep_line lines[LINES_MAX];
    size_t n;
};

/* Adds a line; after: the name it depends on; NULL: none. */
static void
add(struct file *f, const char *name, const char *after)
{
    struct request *r = &f->req[f->n];
    request_init(r);
    r->name = name ? xstrdup(name) : NULL;
    if (after) {
        r->deps = xcalloc(1, sizeof *r->deps);
        r->n_deps = 1;
        r->deps[0] = (struct dep){.task = -1, .name = xstrdup(after)};
    }
    f->lines[f->n] = (struct file_dep_line){.req = r, .number = (int32_t)f->n + 1};
    f->n++;
}

static void
clear(struct file *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->lines[i].links);
        request_free(&f->req[i]);
    }
}

static void
a_name_means_the_nearest_line_before_else_the_first_behind(void **state)
{
    struct file f = {0};
    (void)state;
    add(&f, "a", "b"); /* the first one after it */
    add(&f, "b", NULL);
    add(&f, "b", NULL);
    add(&f, NULL, "b"); /* the nearest one before it */
    assert_true(file_deps_link(f.lines, f.n));
    assert_int_equal(f.lines[0].links[0], 1);
    assert_int_equal(f.lines[3].links[0], 2);
    assert_null(f.lines[1].links);
    clear(&f);
}

static void
lines_become_jobs_behind_those_that_they_wait_for(void **state)
{
    static const int32_t expected[] = {1, 0, 2};
    struct file f = {0};
    struct err e = {0};
    auto_free int32_t *order = NULL;
    (void)state;
    add(&f, "a", "b");
    add(&f, "b", NULL);
    add(&f, "c", "a");
    assert_true(file_deps_link(f.lines, f.n));
    assert_int_equal(file_deps_put_in_order(f.lines, f.n, &order, &e), 0);
    assert_memory_equal(order, expected, sizeof expected);
    clear(&f);
}

static void
a_circle_is_refused_with_both_lines(void **state)
{
    struct file f = {0};
    struct err e = {0};
    int32_t *order = NULL;
    (void)state;
    add(&f, "a", "b");
    add(&f, "b", "a");
    assert_true(file_deps_link(f.lines, f.n));
    assert_int_equal(file_deps_put_in_order(f.lines, f.n, &order, &e), -1);
    assert_non_null(strstr(e.text, "line 2: it waits for line 1"));
    clear(&f);
}

/* A job submitted later waits for earlier ones of its name; b depends on it through others. */
static void
a_circle_over_singletons_is_refused(void **state)
{
    static const struct {
        uint32_t first, last; /* jobs of these lines; 0: new */
        bool has_ended, single, refused;
    } cases[] = {
        {0, 0, false, true, true},  {0, 0, false, false, false}, {7, 9, false, true, true},
        {9, 7, false, true, false}, {7, 9, true, true, false},   {0, 7, false, true, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct file f = {0};
        struct err e = {0};
        auto_free int32_t *order = NULL;
        add(&f, "one", "over");
        add(&f, "two", NULL);
        add(&f, "one", NULL);
        add(&f, "over", "one"); /* the nearest one before it */
        f.req[2].singleton = cases[i].single;
        f.lines[0].job = cases[i].first;
        f.lines[0].has_ended = cases[i].has_ended;
        f.lines[2].job = cases[i].last;
        assert_true(file_deps_link(f.lines, f.n));
        int rc = file_deps_put_in_order(f.lines, f.n, &order, &e);
        assert_int_equal(rc, cases[i].refused ? -1 : 0);
        assert_true(!cases[i].refused ||
                    strstr(e.text, "line 3: it waits for line 1, which waits for this one: "
                                   "neither could start (singletons of one name"));
        clear(&f);
    }
}

/* A name that no line has refers to a job of the same user. */
static void
what_is_not_in_the_file_must_be_a_job(void **state)
{
    struct world *w = world_open(1);
    struct file f = {0};
    struct err e = {0};
    struct job *job = world_job(w, ALICE, 1);
    (void)state;
    job->req.name = xstrdup("there");
    uint32_t id = world_submit(w, job);
    add(&f, "a", "there");
    assert_true(file_deps_link(f.lines, f.n));
    assert_int_equal(f.lines[0].links[0], -1);
    assert_int_equal(file_deps_resolve(&w->s, BOB, &f.lines[0], &e), -1);
    assert_non_null(strstr(e.text, "line 1"));
    assert_int_equal(file_deps_resolve(&w->s, ALICE, &f.lines[0], &e), 0);
    assert_int_equal(f.req[0].deps[0].job, id);
    clear(&f);
    world_close(w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_means_the_nearest_line_before_else_the_first_behind),
        cmocka_unit_test(lines_become_jobs_behind_those_that_they_wait_for),
        cmocka_unit_test(a_circle_is_refused_with_both_lines),
        cmocka_unit_test(a_circle_over_singletons_is_refused),
        cmocka_unit_test(what_is_not_in_the_file_must_be_a_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
