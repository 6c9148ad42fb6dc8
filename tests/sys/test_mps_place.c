/* The file of an MPS keeper: written and read; from an earlier version; from another boot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sys/mps_place.h"
#include "sys/procs.h"

static struct mps_state
sample(void)
{
    struct proc self;
    assert_int_equal(proc_read(getpid(), &self), 0);
    struct mps_state s = {.phase = MPS_DIED,
                          .uid = 4294967294,
                          .pid = self.pid,
                          .ticks = self.start_ticks,
                          .said_us = INT64_MAX,
                          .died_pid = INT32_MAX,
                          .died_ticks = UINT64_MAX,
                          .left = true,
                          .left_uid = 1000,
                          .control_pid = self.pid,
                          .control_ticks = self.start_ticks};
    memset(s.text, 'a', sizeof s.text - 1);
    memset(s.died_text, 'b', sizeof s.died_text - 1);
    memset(s.group, 'c', sizeof s.group - 1);
    memset(s.group_pids, 'd', sizeof s.group_pids - 1);
    return s;
}

static void
test_all_of_it_comes_back(void **state)
{
    auto_close int fd = memfd_create("keeper", MFD_CLOEXEC);
    struct mps_state s = sample(), got;
    (void)state;
    assert_false(mps_state_read(fd, &got));
    assert_int_equal(mps_state_write(fd, &s), 0);
    assert_true(mps_state_read(fd, &got));
    assert_int_equal(got.phase, s.phase);
    assert_true(got.uid == s.uid && got.said_us == s.said_us);
    assert_true(got.died_pid == s.died_pid && got.died_ticks == s.died_ticks);
    assert_true(got.left && got.left_uid == 1000);
    assert_string_equal(got.text, s.text);
    assert_string_equal(got.died_text, s.died_text);
    assert_string_equal(got.group, s.group);
    assert_string_equal(got.group_pids, s.group_pids);
    assert_true(mps_state_lives(&got) && mps_control_lives(&got));
    got.ticks--;
    got.control_ticks--;
    assert_false(mps_state_lives(&got) || mps_control_lives(&got));
}

static void
test_what_an_earlier_version_wrote_is_read(void **state)
{
    auto_close int fd = memfd_create("keeper", MFD_CLOEXEC);
    struct mps_state s = sample(), got;
    (void)state;
    assert_int_equal(mps_state_write(fd, &s), 0);
    assert_int_equal(ftruncate(fd, 512), 0);
    assert_true(mps_state_read(fd, &got));
    assert_int_equal(got.pid, s.pid);
    assert_string_equal(got.died_text, s.died_text);
    assert_false(got.left);
    assert_string_equal(got.group, "");
}

static void
test_another_boot_is_not_believed(void **state)
{
    auto_close int fd = memfd_create("keeper", MFD_CLOEXEC);
    struct mps_state s = sample(), got;
    static const char other[] = "00000000-0000-4000-8000-000000000000";
    (void)state;
    assert_int_equal(mps_state_write(fd, &s), 0);
    assert_int_equal(pwrite(fd, other, sizeof other - 1, 512), (int)sizeof other - 1);
    assert_false(mps_state_read(fd, &got));
}

static void
test_half_of_it_is_nothing(void **state)
{
    auto_close int fd = memfd_create("keeper", MFD_CLOEXEC);
    struct mps_state s = sample(), got;
    (void)state;
    assert_int_equal(mps_state_write(fd, &s), 0);
    assert_int_equal(ftruncate(fd, 700), 0);
    assert_false(mps_state_read(fd, &got));
    assert_int_equal(ftruncate(fd, 100), 0);
    assert_false(mps_state_read(fd, &got));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_of_it_comes_back),
        cmocka_unit_test(test_what_an_earlier_version_wrote_is_read),
        cmocka_unit_test(test_another_boot_is_not_believed),
        cmocka_unit_test(test_half_of_it_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
