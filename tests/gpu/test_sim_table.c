/* The simulated GPUs' table: no process ever gets more than a GPU holds, whichever processes
 * are killed at whatever time. */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "gpu/backend.h"
#include "gpu/sim_table.h"
#include "support.h"

struct world {
    char *dir;
    struct sim_table *t;
    struct backend_sample s;
    struct err e;
};

static int
setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    w->dir = support_make_dir();
    w->t = sim_table_create(w->dir, "2x10000", &w->e);
    *state = w;
    return w->t ? 0 : -1;
}

static int
teardown(void **state)
{
    struct world *w = *state;

    sim_table_close(w->t);
    backend_sample_free(&w->s);
    support_remove_dir(w->dir);
    free(w);
    return 0;
}

/* The use of a GPU according to a sample. */
static int64_t
used(struct world *w, int card)
{
    backend_sample_reset(&w->s);
    w->s.use[0].used_mib = w->s.use[1].used_mib = 0;
    w->s.use[0].util = w->s.use[1].util = 0;
    if (sim_table_sample(w->t, &w->s, &w->e) < 0)
        fail_msg("%s", w->e.text);
    return w->s.use[card].used_mib;
}

static int
take(struct world *w, uint64_t cards, int32_t mib)
{
    int full;
    int32_t free_mib;
    int result = sim_table_take(w->t, cards, mib, 90, &full, &free_mib, &w->e);

    if (result < 0)
        fail_msg("%s", w->e.text);
    return result;
}

/* A process that takes its share through its own handle of the table, reports the result, and
 * stays until it is killed. */
struct holder {
    pid_t pid;
    int result; /* sim_table_take's result */
};

static struct holder
holder_start(const char *dir, uint64_t cards, int32_t mib)
{
    int ends[2], full, result = -1;
    int32_t free_mib;
    struct holder h;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    h.pid = fork();
    if (h.pid == 0) {
        struct sim_table *t = sim_table_open(dir, NULL);
        if (t)
            result = sim_table_take(t, cards, mib, 50, &full, &free_mib, NULL);
        if (write(ends[1], &result, sizeof result) != sizeof result)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &h.result, sizeof h.result), sizeof h.result);
    close(ends[0]);
    return h;
}

static void
holder_kill(struct holder *h)
{
    kill(h->pid, SIGKILL);
    assert_int_equal(waitpid(h->pid, NULL, 0), h->pid);
}

static void
test_take_grow_shrink_leave(void **state)
{
    struct world *w = *state;

    assert_int_equal(used(w, 0), 0);
    assert_int_equal(take(w, 1, 4000), 0);
    assert_int_equal(used(w, 0), 4000);
    assert_int_equal(used(w, 1), 0);
    assert_int_equal(w->s.use[0].n_procs, 1);
    assert_int_equal(w->s.use[0].procs[0].pid, getpid());
    assert_int_equal(w->s.use[0].util, 90);
    assert_int_equal(take(w, 1, 10000), 0);
    assert_int_equal(take(w, 1, 10), 0);
    assert_int_equal(used(w, 0), 10);
    assert_int_equal(w->s.use[0].n_procs, 1);
    assert_int_equal(sim_table_leave(w->t, &w->e), 0);
    assert_int_equal(used(w, 0), 0);
    assert_int_equal(w->s.use[0].n_procs, 0);
}

static void
test_a_full_card_refuses_and_changes_nothing(void **state)
{
    struct world *w = *state;
    struct holder h = holder_start(w->dir, 2, 7000);
    int full = -1;
    int32_t free_mib = -1;

    assert_int_equal(h.result, 0);
    assert_int_equal(take(w, 3, 1000), 0);
    assert_int_equal(sim_table_take(w->t, 3, 3001, 90, &full, &free_mib, &w->e), 1);
    assert_int_equal(full, 1);
    assert_int_equal(free_mib, 3000);
    assert_int_equal(used(w, 0), 1000);
    assert_int_equal(used(w, 1), 8000);
    assert_int_equal(take(w, 3, 3000), 0);
    assert_int_equal(used(w, 1), 10000);
    holder_kill(&h);
}

static void
test_the_dead_hold_nothing(void **state)
{
    struct world *w = *state;
    struct holder h = holder_start(w->dir, 1, 9000);

    assert_int_equal(take(w, 1, 9000), 1);
    kill(h.pid, SIGKILL);
    /* Not reaped: a zombie's memory is returned all the same. */
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)h.pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(take(w, 1, 9000), 0);
    assert_int_equal(used(w, 0), 9000);
    holder_kill(&h);
    assert_int_equal(sim_table_leave(w->t, &w->e), 0);
    assert_int_equal(used(w, 0), 0);
}

static off_t
usage_size(const char *dir)
{
    auto_free char *path = xasprintf("%s/usage", dir);
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static void
test_the_table_is_emptied_when_all_have_gone(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 20; i++) {
        struct holder h = holder_start(w->dir, 3, 100);
        assert_int_equal(h.result, 0);
        holder_kill(&h);
    }
    assert_true(usage_size(w->dir) > 0);
    assert_int_equal(used(w, 0), 0);
    assert_int_equal(usage_size(w->dir), 0);
}

/* The pid matches, the start time is another process's. */
static void
test_a_reused_pid_is_not_the_holder(void **state)
{
    struct world *w = *state;
    auto_free char *path = xasprintf("%s/usage", w->dir);
    uint64_t start;

    assert_int_equal(take(w, 1, 4000), 0);
    auto_close int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, &start, sizeof start, 8), sizeof start);
    start--;
    assert_int_equal(pwrite(fd, &start, sizeof start, 8), sizeof start);
    assert_int_equal(used(w, 0), 0);
}

static void
test_nonsense_in_the_table_counts_for_nothing(void **state)
{
    struct world *w = *state;
    auto_free char *path = xasprintf("%s/usage", w->dir);
    unsigned char bytes[333];

    memset(bytes, 0xa5, sizeof bytes);
    auto_close int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(fd, bytes, sizeof bytes, 0), sizeof bytes);
    assert_int_equal(take(w, 1, 10000), 0);
    assert_int_equal(used(w, 0), 10000);
    assert_int_equal(used(w, 1), 0);
}

static void
test_exactly_as_many_as_fit_get_in(void **state)
{
    struct world *w = *state;
    struct holder h[8];
    int in = 0;

    for (int i = 0; i < 8; i++) {
        h[i] = holder_start(w->dir, 1, 3000);
        in += h[i].result == 0;
    }
    assert_int_equal(in, 3);
    assert_int_equal(used(w, 0), 9000);
    assert_int_equal(w->s.use[0].n_procs, 3);
    for (int i = 0; i < 8; i++)
        holder_kill(&h[i]);
}

/* Number of times each contender gets memory. */
#define ROUNDS 4000

/* The first GPU's use, as a contender sees it; -1: an error. */
static int64_t
seen_in_use(struct sim_table *t, struct backend_sample *s)
{
    backend_sample_reset(s);
    s->use[0].used_mib = 0;
    return sim_table_sample(t, s, NULL) < 0 ? -1 : s->use[0].used_mib;
}

/* Takes and releases repeatedly, from the moment the gate (a pipe) is closed, and checks the
 * whole GPU after each take. Exit status: 0 good, 1 more in use than there is, 2 an error. */
static int
contend(const char *dir, unsigned seed, int gate)
{
    struct sim_table *t = sim_table_open(dir, NULL);
    struct backend_sample s = {0};
    int full, status = t ? 0 : 2;
    int32_t free_mib;
    char byte;

    if (read(gate, &byte, 1) != 0)
        return 2;
    for (int got = 0; got < ROUNDS && status == 0;) {
        int32_t mib = (int32_t)(1000 + rand_r(&seed) % 5000);
        int result = sim_table_take(t, 1, mib, 90, &full, &free_mib, NULL);
        sched_yield();
        if (result > 0)
            continue;
        int64_t in_use = result < 0 ? -1 : seen_in_use(t, &s);
        got++;
        if (in_use < mib || sim_table_leave(t, NULL) < 0)
            status = 2;
        else if (in_use > 10000)
            status = 1;
    }
    backend_sample_free(&s);
    sim_table_close(t);
    return status;
}

static void
test_many_at_once_never_exceed_the_card(void **state)
{
    struct world *w = *state;
    pid_t pids[6];
    int how, gate[2];

    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    for (unsigned i = 0; i < 6; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            close(gate[1]);
            _exit(contend(w->dir, i + 1, gate[0]));
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < ROUNDS; i++)
        assert_in_range(used(w, 0), 0, 10000);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(waitpid(pids[i], &how, 0), pids[i]);
        assert_int_equal(how, 0);
    }
    assert_int_equal(used(w, 0), 0);
}

static void
test_uuids_belong_to_the_folder(void **state)
{
    struct world *w = *state;
    auto_free char *link = xasprintf("%s.link", w->dir);
    char here[SIM_UUID_MAX], again[SIM_UUID_MAX], there[SIM_UUID_MAX];
    char *other_dir = support_make_dir();

    sim_table_uuid(w->t, 1, here);
    assert_int_equal(strlen(here), 4 + 12 + 2);
    assert_int_equal(strncmp(here, "SIM-", 4), 0);
    assert_string_equal(here + 16, "-1");
    assert_int_equal(symlink(w->dir, link), 0);
    struct sim_table *same = sim_table_open(link, &w->e);
    assert_non_null(same);
    sim_table_uuid(same, 1, again);
    assert_string_equal(again, here);
    struct sim_table *other = sim_table_create(other_dir, "2", &w->e);
    sim_table_uuid(other, 1, there);
    assert_string_not_equal(there, here);
    sim_table_close(same);
    sim_table_close(other);
    unlink(link);
    support_remove_dir(other_dir);
}

static void
test_a_folder_keeps_its_cards_and_their_users(void **state)
{
    struct world *w = *state;
    struct holder h = holder_start(w->dir, 1, 5000);
    struct sim_table *again = sim_table_create(w->dir, NULL, &w->e);

    assert_non_null(again);
    assert_int_equal(sim_table_spec(again)->n, 2);
    assert_int_equal(sim_table_spec(again)->total_mib[1], 10000);
    assert_int_equal(used(w, 0), 5000);
    sim_table_close(again);
    assert_null(sim_table_create(w->dir, "2x", &w->e));
    assert_int_equal(w->e.code, ERR_USAGE);
    again = sim_table_create(w->dir, "3", &w->e);
    assert_int_equal(sim_table_spec(again)->n, 3);
    sim_table_close(again);
    assert_int_equal(used(w, 0), 5000);
    holder_kill(&h);
}

static void
test_a_folder_without_cards_is_an_error_with_advice(void **state)
{
    struct world *w = *state;
    char *empty = support_make_dir();

    assert_null(sim_table_open(empty, &w->e));
    assert_non_null(strstr(w->e.text, "--sim"));
    assert_null(sim_table_open("/nowhere", &w->e));
    assert_non_null(strstr(w->e.text, "/nowhere"));
    assert_null(sim_table_create(empty, NULL, &w->e));
    support_remove_dir(empty);
}

static void
test_faults(void **state)
{
    struct world *w = *state;
    struct sim_faults f;

    assert_int_equal(sim_table_faults(w->t, &f, &w->e), 0);
    assert_false(f.hang || f.die || f.error || f.silent_procs || f.lost);
    support_write(w->dir, "fault", "lost 0\nsilent-procs\nlost 1\n");
    assert_int_equal(sim_table_faults(w->t, &f, &w->e), 0);
    assert_true(f.silent_procs && f.lost == 3 && !f.hang && !f.die && !f.error);
    support_write(w->dir, "fault", "hang");
    assert_int_equal(sim_table_faults(w->t, &f, &w->e), 0);
    assert_true(f.hang && !f.lost);
    support_write(w->dir, "fault", "hnag\n");
    assert_int_equal(sim_table_faults(w->t, &f, &w->e), -1);
    assert_non_null(strstr(w->e.text, "hnag"));
    support_write(w->dir, "fault", "lost 64\n");
    assert_int_equal(sim_table_faults(w->t, &f, &w->e), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_take_grow_shrink_leave),
        TEST(test_a_full_card_refuses_and_changes_nothing),
        TEST(test_the_dead_hold_nothing),
        TEST(test_the_table_is_emptied_when_all_have_gone),
        TEST(test_a_reused_pid_is_not_the_holder),
        TEST(test_nonsense_in_the_table_counts_for_nothing),
        TEST(test_exactly_as_many_as_fit_get_in),
        TEST(test_many_at_once_never_exceed_the_card),
        TEST(test_uuids_belong_to_the_folder),
        TEST(test_a_folder_keeps_its_cards_and_their_users),
        TEST(test_a_folder_without_cards_is_an_error_with_advice),
        TEST(test_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
