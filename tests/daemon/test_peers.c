/* Each user's share of the daemon, and which connections count as one user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "daemon/rpc/subuids.h"
#include "daemon/rpc/user_shares.h"

static void
write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void
lent_numbers_count_as_one_user(void **state)
{
    char path[] = "/tmp/subuid.XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    close(fd);
    write_file(path, "alice:100000:65536\n# nothing\nbob:x:9\n\ncarol:300000:10\ndave:5\n");
    struct subuids *s = subuids_new(path);
    assert_int_equal(subuids_group(s, 1000), 1000);
    assert_int_equal(subuids_group(s, 99999), 99999);
    assert_int_equal(subuids_group(s, 100000), 100000);
    assert_int_equal(subuids_group(s, 165535), 100000);
    assert_int_equal(subuids_group(s, 165536), 165536);
    assert_int_equal(subuids_group(s, 300009), 300000);
    assert_int_equal(subuids_group(s, 300010), 300010);
    write_file(path, "carol:300000:20\n");
    subuids_refresh(s);
    assert_int_equal(subuids_group(s, 300010), 300000);
    assert_int_equal(subuids_group(s, 165535), 165535);
    unlink(path);
    subuids_refresh(s);
    assert_int_equal(subuids_group(s, 300010), 300010);
    subuids_free(s);
}

static void
bounds_each_and_lets_newcomers_in(void **state)
{
    struct peers *p = peers_new(true, "/nonexistent");
    struct err e;
    uid_t group, crowd = 0;
    int total = 0;

    (void)state;
    peers_set_limits(p, 3, 1000);
    for (int i = 0; i < 3; i++)
        assert_int_equal(peers_enter(p, 7, total++, 0, &group, &crowd, &e), 0);
    assert_int_equal(peers_enter(p, 7, total, 0, &group, &crowd, &e), -1);
    assert_non_null(strstr(e.text, "user_max_connections"));
    assert_int_equal(peers_enter(p, 8, total++, 0, &group, &crowd, &e), 0);
    assert_int_equal(crowd, 0);
    /* All places are taken: a user with one gets no second; a user with none replaces a
     * connection of the user with the most. */
    assert_int_equal(peers_enter(p, 8, PEERS_CLIENTS_MAX, 0, &group, &crowd, &e), -1);
    assert_int_equal(crowd, 0);
    assert_int_equal(peers_enter(p, 9, PEERS_CLIENTS_MAX, 0, &group, &crowd, &e), 0);
    assert_int_equal(crowd, 7);
    crowd = 0;
    for (int i = 0; i < 10; i++)
        assert_int_equal(peers_enter(p, 0, PEERS_CLIENTS_MAX, 0, &group, &crowd, &e), 0);
    assert_int_equal(crowd, 0);
    assert_true(peers_keep(p, 7, 1000));
    assert_false(peers_keep(p, 7, 1));
    assert_true(peers_keep(p, 8, 1000));
    assert_true(peers_keep(p, 0, 1000000));
    assert_true(peers_may_wait(p, 7)); /* a long request is none that waits for its answer */
    peers_keep_waiting(p, 7, 499);
    assert_true(peers_may_wait(p, 7));
    peers_keep_waiting(p, 7, 1);
    assert_false(peers_may_wait(p, 7));
    peers_keep_waiting(p, 7, -500);
    assert_true(peers_may_wait(p, 7));
    peers_free(p);
}

static void
time_is_a_debt_that_time_pays(void **state)
{
    struct peers *p = peers_new(true, "/nonexistent");
    struct err e;
    uid_t group, crowd;

    (void)state;
    peers_enter(p, 7, 0, 1000000, &group, &crowd, &e);
    peers_charge(p, 7, 1000000, 1000000);
    assert_true(peers_may_ask(p, 7, 1000000)); /* no other user is connected */
    peers_enter(p, 8, 1, 1000000, &group, &crowd, &e);
    peers_charge(p, 7, 1000000, 1000000);
    assert_false(peers_may_ask(p, 7, 1000000));
    assert_true(peers_may_ask(p, 8, 1000000));
    /* Disconnecting does not reset it. */
    peers_leave(p, 7);
    peers_enter(p, 7, 1, 1000000, &group, &crowd, &e);
    assert_false(peers_may_ask(p, 7, 1100000));
    assert_true(peers_may_ask(p, 7, 1000000 + 4 * 1000000));
    peers_free(p);
}

static void
leaving_gives_no_time_back(void **state)
{
    struct peers *p = peers_new(true, "/nonexistent");
    struct err e;
    uid_t group, crowd;

    (void)state;
    peers_enter(p, 8, 0, 1000000, &group, &crowd, &e);
    for (int i = 0; i < 2; i++) {
        peers_enter(p, 7, 1, 1000000, &group, &crowd, &e);
        peers_charge(p, 7, 40000, 1000000);
        peers_leave(p, 7);
    }
    peers_enter(p, 7, 1, 1000000, &group, &crowd, &e);
    assert_false(peers_may_ask(p, 7, 1000000));
    peers_free(p);
}

static void
a_connection_leaves_the_group_that_it_entered(void **state)
{
    char path[] = "/tmp/subuid.XXXXXX";
    int fd = mkstemp(path);
    struct err e;
    uid_t group[3], crowd;

    (void)state;
    close(fd);
    struct peers *p = peers_new(true, path);
    peers_set_limits(p, 2, 1000);
    assert_int_equal(peers_enter(p, 100001, 0, 0, &group[0], &crowd, &e), 0);
    assert_int_equal(group[0], 100001);
    write_file(path, "alice:100000:65536\n");
    assert_int_equal(peers_enter(p, 100001, 1, 0, &group[1], &crowd, &e), 0);
    assert_int_equal(group[1], 100000);
    peers_keep(p, group[0], 600);
    peers_leave(p, group[0]);
    /* The other connection still counts, once, and none of the first one's bytes do. */
    assert_true(peers_keep(p, group[1], 1000));
    assert_int_equal(peers_enter(p, 100002, 1, 0, &group[2], &crowd, &e), 0);
    assert_int_equal(peers_enter(p, 100003, 2, 0, &group[2], &crowd, &e), -1);
    peers_free(p);
    unlink(path);
}

/* The same for a single user, for root, and for everyone if there are no bounds. */
static void
a_round_is_bounded_for_everybody(void **state)
{
    struct err e;
    uid_t group, crowd = 0;

    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        struct peers *p = peers_new(shared, "/nonexistent");
        for (uid_t uid = 0; uid < 2; uid++) {
            assert_int_equal(peers_enter(p, uid, 0, 0, &group, &crowd, &e), 0);
            assert_false(peers_had_round(p, group));
            peers_charge(p, group, 1000000, 0);
            assert_true(peers_had_round(p, group));
            peers_new_round(p);
            assert_false(peers_had_round(p, group));
        }
        peers_free(p);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lent_numbers_count_as_one_user),
        cmocka_unit_test(bounds_each_and_lets_newcomers_in),
        cmocka_unit_test(time_is_a_debt_that_time_pays),
        cmocka_unit_test(leaving_gives_no_time_back),
        cmocka_unit_test(a_round_is_bounded_for_everybody),
        cmocka_unit_test(a_connection_leaves_the_group_that_it_entered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
