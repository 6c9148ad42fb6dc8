/* External use, budgets, headroom, other programs, and memory that is returned. */
#include "machine.h"

static const struct card *
card0(const struct ledger *l)
{
    return ledger_card(l, 0);
}

static void
test_empty_card_is_all_free(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    assert_int_equal(card0(l)->headroom_mib, CARD_MIB);
    assert_int_equal(card0(l)->external_mib, 0);
    assert_true(card0(l)->countable);
    assert_int_equal(ledger_find_uuid(l, "GPU-0"), 0);
    assert_int_equal(ledger_find_uuid(l, "GPU-1"), -1);
    ledger_free(l);
}

static void
test_budget_counts_from_the_decision(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    book(l, 1, 0, 14336);
    assert_int_equal(card0(l)->headroom_mib, CARD_MIB - 14336);
    assert_int_equal(card0(l)->held_mib, 14336);
    ledger_release(l, 1);
    ledger_release(l, 1);
    assert_int_equal(card0(l)->headroom_mib, CARD_MIB);
    ledger_free(l);
}

static void
test_own_use_is_not_external(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    book(l, 1, 0, 8000);
    struct gpu_proc p[] = {{.pid = 10, .mib = 3000, .job = 1},
                           {.pid = 11, .mib = 2000, .job = 1}};
    machine_sample(l, 0, 5300, p, 2, 2);
    assert_int_equal(card0(l)->external_mib, 300);
    assert_int_equal(card0(l)->held_mib, 8000);
    assert_int_equal(ledger_find_hold(l, 0, 1)->now_mib, 5000);
    assert_int_equal(ledger_find_hold(l, 0, 1)->peak_mib, 5000);
    machine_sample(l, 0, 3300, p, 1, 3);
    assert_int_equal(ledger_find_hold(l, 0, 1)->now_mib, 3000);
    assert_int_equal(ledger_find_hold(l, 0, 1)->peak_mib, 5000);
    ledger_free(l);
}

struct told {
    int n;
    struct ledger_excess last;
};

static void
on_excess(void *arg, const struct ledger_excess *x)
{
    struct told *t = arg;
    t->n++;
    t->last = *x;
}

static void
sample_job(struct ledger *l, int32_t mib, int64_t now_us, struct told *t)
{
    struct gpu_proc p = {.pid = 10, .mib = mib, .job = 1};
    struct gpu_sample s = {mib, 90, 60, &p, 1, NULL, 0, 0};
    ledger_sample(l, 0, &s, now_us, on_excess, t);
}

static void
test_exceeding_is_told_once_and_budgeted(void **state)
{
    (void)state;
    struct told t = {0};
    struct ledger *l = machine_new(1, CARD_MIB);
    book(l, 1, 0, 8000);
    sample_job(l, 8000, 2, &t);
    assert_int_equal(t.n, 0);
    sample_job(l, 12001, 3, &t);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.last.job, 1);
    assert_int_equal(t.last.mib, 12001);
    assert_int_equal(t.last.declared_mib, 8000);
    assert_int_equal(card0(l)->held_mib, 13202); /* ceil(12001 * 1.1) */
    sample_job(l, 500, 4, &t);
    sample_job(l, 12500, 5, &t);
    assert_int_equal(t.n, 1);
    assert_int_equal(card0(l)->held_mib, 13750);
    ledger_free(l);
}

static void
sample_energy(struct ledger *l, int64_t energy_mj, int64_t now_us)
{
    struct gpu_sample s = {0, 90, 60, NULL, 0, NULL, 0, energy_mj};
    ledger_sample(l, 0, &s, now_us, NULL, NULL);
}

/* A GPU's energy between two samples is charged to a job in proportion to its time; jobs that
 * share the GPU have equal parts. */
static void
test_energy_is_divided_by_time_and_jobs(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    book(l, 1, 0, 8000);
    sample_energy(l, 500000, 1000000);
    assert_int_equal(ledger_energy_mj(l, 0, 0, INT64_MAX), 0); /* no start time is known */
    sample_energy(l, 800000, 2000000);
    assert_int_equal(ledger_energy_mj(l, 0, 0, INT64_MAX), 300000);
    assert_int_equal(ledger_energy_mj(l, 0, 1500000, INT64_MAX), 150000);
    assert_int_equal(ledger_energy_mj(l, 0, 0, 1100000), 30000);
    assert_int_equal(ledger_energy_mj(l, 0, 1200000, 1700000), 150000);
    /* The job ended before, or begins later. */
    assert_int_equal(ledger_energy_mj(l, 0, 0, 900000), 0);
    assert_int_equal(ledger_energy_mj(l, 0, 2000001, INT64_MAX), 0);
    book(l, 2, 0, 8000);
    sample_energy(l, 1000000, 3000000);
    assert_int_equal(ledger_energy_mj(l, 0, 0, INT64_MAX), 100000);
    /* A counter that restarts, or stops, gives nothing for the time before. */
    sample_energy(l, 7, 4000000);
    assert_int_equal(ledger_energy_mj(l, 0, 0, INT64_MAX), 0);
    sample_energy(l, 0, 5000000);
    sample_energy(l, 2000000, 6000000);
    assert_int_equal(ledger_energy_mj(l, 0, 0, INT64_MAX), 0);
    ledger_free(l);
}

/* One wrong sample does not end a job. */
static void
test_an_excess_is_sure_after_two_samples(void **state)
{
    (void)state;
    struct told t = {0};
    struct ledger *l = machine_new(1, CARD_MIB);
    book(l, 1, 0, 8000);
    sample_job(l, 12000, 2, &t);
    assert_false(t.last.is_sure);
    sample_job(l, 8000, 3, &t);
    sample_job(l, 12000, 4, &t);
    assert_int_equal(t.n, 1);
    sample_job(l, 12001, 5, &t);
    assert_int_equal(t.n, 2);
    assert_true(t.last.is_sure);
    assert_int_equal(t.last.mib, 12001);
    sample_job(l, 12001, 6, &t);
    assert_int_equal(t.n, 2);
    ledger_free(l);
}

static void
test_stranger_peak_is_kept_until_it_leaves(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    machine_stranger(l, 0, 99, 10001, 2);
    assert_int_equal(card0(l)->external_mib, 11002);
    machine_stranger(l, 0, 99, 100, 3);
    assert_int_equal(card0(l)->external_mib, 11002);
    assert_int_equal(card0(l)->n_strangers, 1);
    assert_int_equal(card0(l)->strangers[0].peak_mib, 10001);
    assert_int_equal(card0(l)->strangers[0].mib, 100);
    assert_int_equal(card0(l)->strangers[0].since_us, 2);
    assert_int_equal(card0(l)->strangers[0].uid, 1001);
    machine_sample(l, 0, 0, NULL, 0, 4);
    assert_int_equal(card0(l)->external_mib, 0);
    assert_int_equal(card0(l)->n_strangers, 0);
    ledger_free(l);
}

static void
test_a_share_holds_its_part_of_the_card(void **state)
{
    (void)state;
    struct told t = {0};
    struct ledger *l = machine_new(1, CARD_MIB);
    book_share(l, 1, 0, 250, 0);
    assert_int_equal(card0(l)->share_held, 250);
    assert_int_equal(card0(l)->held_mib, CARD_MIB / 4);
    assert_true(ledger_find_hold(l, 0, 1)->by_share);
    assert_false(card0(l)->taken);
    sample_job(l, CARD_MIB / 4, 2, &t);
    assert_int_equal(t.n, 0);
    sample_job(l, 10000, 3, &t);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.last.declared_mib, CARD_MIB / 4);
    assert_int_equal(card0(l)->held_mib, 11000);
    book_share(l, 2, 0, 500, 1000);
    assert_int_equal(card0(l)->share_held, 750);
    assert_int_equal(card0(l)->held_mib, 12000);
    ledger_release(l, 1);
    assert_int_equal(card0(l)->share_held, 500);
    assert_null(ledger_check(l));
    ledger_free(l);
}

/* In a forecast a job's measured use is freed with the job, whatever else runs there. */
static void
test_release_ahead_gives_measured_memory_back(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    book(l, 1, 0, 8000);
    book(l, 2, 0, 4000);
    struct gpu_proc p[] = {{.pid = 10, .mib = 7000, .job = 1},
                           {.pid = 11, .mib = 3000, .job = 2},
                           {.pid = 12, .mib = 1000}};
    machine_sample(l, 0, 11300, p, 3, 2);
    assert_int_equal(card0(l)->external_mib, 1300);
    struct ledger *now = ledger_clone(l), *ahead = ledger_clone(l);
    ledger_release(now, 1);
    assert_int_equal(card0(now)->headroom_mib, CARD_MIB - 8300 - 4000);
    ledger_release_ahead(ahead, 1);
    assert_int_equal(card0(ahead)->headroom_mib, CARD_MIB - 1300 - 4000);
    assert_int_equal(card0(ahead)->util, -1);
    ledger_release_ahead(ahead, 2);
    assert_int_equal(card0(ahead)->headroom_mib, CARD_MIB - 1300);
    assert_null(ledger_check(ahead));
    assert_int_equal(card0(l)->n_holds, 2);
    ledger_free(ahead);
    ledger_free(now);
    ledger_free(l);
}

/* The same if the job's memory is not reported: use that nothing else explains is attributed
 * to it. */
static void
test_release_ahead_of_a_silent_job(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    book(l, 1, 0, 8000);
    struct gpu_proc p = {.pid = 10, .mib = -1, .job = 1};
    machine_sample(l, 0, 6000, &p, 1, 2);
    struct ledger *ahead = ledger_clone(l);
    ledger_release_ahead(ahead, 1);
    assert_int_equal(card0(ahead)->headroom_mib, CARD_MIB);
    ledger_free(ahead);
    machine_sample(l, 0, 9000, NULL, -1, 3); /* and 1,000 that cannot be attributed */
    ahead = ledger_clone(l);
    ledger_release_ahead(ahead, 1);
    assert_int_equal(card0(ahead)->headroom_mib, CARD_MIB - 1000);
    ledger_free(ahead);
    ledger_free(l);
}

static void
test_why_a_card_is_sick_stays_until_it_is_up(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    assert_int_equal(ledger_state_since_wall_us(l, card0(l)), 0); /* no wall clock was set */
    ledger_set_wall_offset(l, 1000000);
    ledger_set_sick(l, 0, 79, "the card has fallen off the bus", 5);
    assert_int_equal(card_state(card0(l)), GPU_SICK);
    assert_int_equal(card0(l)->xid, 79);
    assert_string_equal(card0(l)->health_text, "the card has fallen off the bus");
    assert_int_equal(ledger_state_since_wall_us(l, card0(l)), 1000005);
    machine_sample(l, 0, 0, NULL, 0, 6); /* a sample is not a health check */
    assert_int_equal(card_state(card0(l)), GPU_SICK);
    ledger_set_admin(l, 0, GPU_PAUSED, 7);
    assert_int_equal(card_state(card0(l)), GPU_SICK);
    ledger_set_health(l, 0, GPU_LOST, 8);
    assert_int_equal(card0(l)->xid, 79);
    ledger_set_health(l, 0, GPU_UP, 9);
    assert_int_equal(card_state(card0(l)), GPU_PAUSED);
    assert_int_equal(card0(l)->xid, 0);
    assert_string_equal(card0(l)->health_text, "");
    char longest[200];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    ledger_set_sick(l, 0, 0, longest, 10);
    assert_int_equal(strlen(card0(l)->health_text), sizeof card0(l)->health_text - 1);
    ledger_free(l);
}

static void
test_reused_pid_is_another_process(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    struct gpu_proc p = {.pid = 99, .mib = 10000, .start = 5};
    machine_sample(l, 0, 10000, &p, 1, 2);
    p.start = 6;
    p.mib = 100;
    machine_sample(l, 0, 100, &p, 1, 3);
    assert_int_equal(card0(l)->external_mib, 110);
    assert_int_equal(card0(l)->strangers[0].since_us, 3);
    ledger_free(l);
}

static void
test_process_listed_twice_adds_up(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    struct gpu_proc p[] = {{.pid = 99, .mib = 100}, {.pid = 99, .mib = 200}};
    for (int64_t t = 2; t < 5; t++) {
        machine_sample(l, 0, 300, p, 2, t);
        assert_int_equal(card0(l)->n_strangers, 1);
        assert_int_equal(card0(l)->strangers[0].peak_mib, 300);
    }
    ledger_free(l);
}

/* A job's process on a GPU that the job does not hold counts as another program there. */
static void
test_process_on_a_foreign_card(void **state)
{
    (void)state;
    struct ledger *l = machine_new(2, CARD_MIB);
    book(l, 1, 0, 8000);
    struct gpu_proc p = {.pid = 10, .mib = 3000, .job = 1};
    machine_sample(l, 1, 3000, &p, 1, 2);
    assert_int_equal(ledger_card(l, 1)->external_mib, 3300);
    assert_int_equal(ledger_card(l, 1)->n_strangers, 1);
    ledger_free(l);
}

static void
test_unknown_used_is_not_free(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    struct gpu_proc p = {.pid = 99, .mib = -1};
    machine_sample(l, 0, -1, NULL, 0, 2);
    assert_false(card0(l)->countable);
    machine_sample(l, 0, -1, &p, 1, 3);
    assert_true(card0(l)->external_mib >= ledger_policy(l)->idle_mib);
    p.mib = 4000;
    machine_sample(l, 0, -1, &p, 1, 4);
    assert_int_equal(card0(l)->external_mib, 4400);
    ledger_free(l);
}

static void
test_missing_list_keeps_the_last_one(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    book(l, 1, 0, 8000);
    struct gpu_proc p[] = {{.pid = 10, .mib = 3000, .job = 1}, {.pid = 99, .mib = 1000}};
    machine_sample(l, 0, 4000, p, 2, 2);
    machine_sample(l, 0, 9000, NULL, -1, 3);
    assert_int_equal(ledger_find_hold(l, 0, 1)->now_mib, 3000);
    assert_int_equal(card0(l)->n_strangers, 1);
    assert_int_equal(card0(l)->external_mib, 6000);
    ledger_free(l);
}

static void
test_silent_job_takes_the_blame_up_to_its_budget(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    book(l, 1, 0, 8000);
    struct gpu_proc p[] = {{.pid = 10, .mib = -1, .job = 1}, {.pid = 99, .mib = -1}};
    machine_sample(l, 0, 6000, p, 1, 2);
    assert_int_equal(card0(l)->external_mib, 0);
    assert_int_equal(ledger_find_hold(l, 0, 1)->peak_mib, -1);
    machine_sample(l, 0, 9500, p, 1, 3);
    assert_int_equal(card0(l)->external_mib, 1500);
    machine_sample(l, 0, 6000, p, 2, 4);
    assert_int_equal(card0(l)->external_mib, 6000);
    ledger_free(l);
}

/* Inside a container the process list is empty: our jobs' allocations are attributed to them
 * up to their declared demand, and memory used before they started is not. */
static void
test_used_memory_of_hidden_processes_is_first_our_own(void **state)
{
    (void)state;
    for (int n_procs = 0; n_procs >= -1; n_procs--) {
        struct ledger *l = machine_new(1, CARD_MIB);
        machine_sample(l, 0, 300, NULL, n_procs, 2);
        book(l, 1, 0, 12000);
        assert_int_equal(card0(l)->external_mib, 300);
        machine_sample(l, 0, 12300, NULL, n_procs, 3);
        assert_int_equal(card0(l)->external_mib, 300);
        assert_int_equal(card0(l)->headroom_mib, CARD_MIB - 300 - 12000);
        book(l, 2, 0, 8000);
        machine_sample(l, 0, 20300, NULL, n_procs, 4);
        assert_int_equal(card0(l)->external_mib, 300);
        machine_sample(l, 0, 20900, NULL, n_procs, 5);
        assert_int_equal(card0(l)->external_mib, 900);
        struct ledger *ahead = ledger_clone(l);
        ledger_release_ahead(ahead, 1);
        assert_int_equal(card0(ahead)->headroom_mib, CARD_MIB - 900 - 8000);
        ledger_free(ahead);
        ledger_release(l, 1);
        machine_sample(l, 0, 8300, NULL, n_procs, 6);
        assert_int_equal(card0(l)->external_mib, 300);
        ledger_release(l, 2);
        machine_sample(l, 0, 5000, NULL, n_procs, 7);
        assert_int_equal(card0(l)->external_mib, 5000);
        book(l, 3, 0, 8000);
        machine_sample(l, 0, 5000, NULL, n_procs, 8);
        assert_int_equal(card0(l)->external_mib, 5000);
        machine_sample(l, 0, 13000, NULL, n_procs, 9);
        assert_int_equal(card0(l)->external_mib, 5000);
        machine_sample(l, 0, 2000, NULL, n_procs, 10);
        assert_int_equal(card0(l)->external_mib, 2000);
        assert_null(ledger_check(l));
        ledger_free(l);
    }
}

/* A process list is authoritative: a job that was listed once is not hidden, and a job is not
 * assumed where others are listed. */
static void
test_a_list_that_names_somebody_hides_nobody(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    book(l, 1, 0, 8000);
    machine_stranger(l, 0, 99, 4000, 2);
    assert_int_equal(card0(l)->external_mib, 4400);
    struct gpu_proc p = {.pid = 10, .mib = 3000, .job = 1};
    machine_sample(l, 0, 3000, &p, 1, 3);
    assert_int_equal(card0(l)->external_mib, 0);
    machine_sample(l, 0, 3000, NULL, 0, 4);
    assert_int_equal(card0(l)->external_mib, 3000);
    ledger_free(l);
}

/* After a restart, use is first attributed to the jobs that are found. */
static void
test_jobs_found_on_a_card_that_names_nobody(void **state)
{
    (void)state;
    struct ledger *l = ledger_new(NULL);
    struct gpu_info info = {.minor = 0, .numa = -1, .total_mib = CARD_MIB};
    ledger_add_card(l, &info);
    book(l, 1, 0, 8000);
    machine_sample(l, 0, 9000, NULL, 0, 2);
    assert_int_equal(card0(l)->external_mib, 1000);
    assert_null(ledger_check(l));
    ledger_free(l);
}

static void
test_states_have_two_voices(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    assert_int_equal(card_state(card0(l)), GPU_UP);
    ledger_set_admin(l, 0, GPU_PAUSED, 5);
    ledger_set_health(l, 0, GPU_UNKNOWN, 6);
    assert_int_equal(card_state(card0(l)), GPU_UNKNOWN);
    assert_int_equal(card0(l)->state_since_us, 6);
    machine_sample(l, 0, 0, NULL, 0, 7);
    assert_int_equal(card_state(card0(l)), GPU_PAUSED);
    ledger_set_health(l, 0, GPU_SICK, 8);
    machine_sample(l, 0, 0, NULL, 0, 9);
    assert_int_equal(card_state(card0(l)), GPU_SICK);
    ledger_free(l);
}

static void
test_host_booking(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    struct demand d = want(0, 0);
    ledger_set_host(l, 8, 64000);
    ledger_hold(l, 1, &d, NULL, 0);
    d.cpus = 3;
    d.mem_mib = 1000;
    ledger_hold(l, 2, &d, NULL, 0);
    assert_int_equal(ledger_cpus_held(l), 4); /* a CPU-only job without --cpus books one */
    assert_int_equal(ledger_mem_held(l), 1000);
    ledger_release(l, 2);
    assert_int_equal(ledger_cpus_held(l), 1);
    assert_true(ledger_holds(l, 1));
    assert_false(ledger_holds(l, 2));
    ledger_free(l);
}

static void
test_restored_peak_is_budgeted(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    book(l, 1, 0, 8000);
    ledger_restore_peak(l, 0, 1, 10000);
    assert_int_equal(card0(l)->held_mib, 11000);
    ledger_restore_peak(l, 0, 1, 9000);
    assert_int_equal(ledger_find_hold(l, 0, 1)->peak_mib, 10000);
    ledger_free(l);
}

/* A sample equal to the previous one changes nothing; any other number may. */
static void
test_a_sample_changes_the_room_or_not(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    struct gpu_proc mine = {.pid = 10, .mib = 6000, .job = 1};
    book(l, 1, 0, 8000);
    machine_sample(l, 0, 6400, &mine, 1, 2);
    struct ledger *before = ledger_clone(l);
    machine_sample(l, 0, 6400, &mine, 1, 3);
    assert_true(ledger_has_room_as(l, before));
    machine_sample(l, 0, 6500, &mine, 1, 4); /* a guard may depend on that */
    assert_false(ledger_has_room_as(l, before));
    machine_sample(l, 0, 6400, &mine, 1, 5);
    assert_true(ledger_has_room_as(l, before));
    ledger_set_health(l, 0, GPU_LOST, 6);
    assert_false(ledger_has_room_as(l, before));
    ledger_set_health(l, 0, GPU_UP, 7);
    assert_true(ledger_has_room_as(l, before));
    ledger_release(l, 1);
    assert_false(ledger_has_room_as(l, before));
    ledger_free(before);
    ledger_free(l);
}

/* The driver keeps 400 MiB that no process explains, before, during and after. */
static void
test_clear_waits_for_process_and_memory(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    struct gpu_proc p[] = {{.pid = 10, .mib = 6000, .job = 1}, {.pid = 99, .mib = 1000}};
    machine_sample(l, 0, 1400, p + 1, 1, 2);
    book(l, 1, 0, 8000);
    machine_sample(l, 0, 7400, p, 2, 3);
    assert_false(ledger_is_clear(l, 0, 1, 10)); /* not sampled since */
    machine_sample(l, 0, 7400, p, 2, 10);
    assert_false(ledger_is_clear(l, 0, 1, 10)); /* still listed */
    machine_sample(l, 0, 7400, p + 1, 1, 11);
    assert_false(ledger_is_clear(l, 0, 1, 10)); /* process gone, memory still in use */
    machine_sample(l, 0, 1400 + 257, p + 1, 1, 12);
    assert_false(ledger_is_clear(l, 0, 1, 10));
    machine_sample(l, 0, 1400 + 256, p + 1, 1, 13);
    assert_true(ledger_is_clear(l, 0, 1, 10));
    p[1].mib = 9000; /* the other program grows at the same time */
    machine_sample(l, 0, 9400, p + 1, 1, 14);
    assert_true(ledger_is_clear(l, 0, 1, 10));
    assert_true(ledger_job_is_clear(l, 1, 10));
    assert_false(ledger_job_is_clear(l, 1, 15));
    ledger_set_health(l, 0, GPU_LOST, 15);
    assert_true(ledger_job_is_clear(l, 1, 15));
    ledger_free(l);
}

static void
test_clear_without_reports(void **state)
{
    (void)state;
    struct ledger *l = machine_new(2, CARD_MIB);
    book(l, 1, 0, 0);
    machine_sample(l, 0, 9000, NULL, -1, 10);
    assert_false(ledger_is_clear(l, 0, 1, 10));
    machine_sample(l, 0, 200, NULL, -1, 11);
    assert_true(ledger_is_clear(l, 0, 1, 10));
    machine_sample(l, 0, -1, NULL, -1, 12);
    assert_true(ledger_is_clear(l, 0, 1, 10));
    assert_true(ledger_is_clear(l, 1, 1, 10)); /* it holds nothing there */
    ledger_free(l);
}

static void
test_clone_is_apart(void **state)
{
    (void)state;
    struct ledger *l = machine_new(2, CARD_MIB);
    book(l, 1, 0, 8000);
    machine_stranger(l, 1, 99, 500, 2);
    struct ledger *copy = ledger_clone(l);
    for (uint32_t id = 2; id < 200; id++)
        book(copy, id, 1, 10);
    ledger_release(copy, 1);
    machine_stranger(copy, 1, 98, 900, 3);
    assert_null(ledger_check(copy));
    assert_null(ledger_check(l));
    assert_int_equal(card0(l)->held_mib, 8000);
    assert_int_equal(ledger_card(l, 1)->strangers[0].pid, 99);
    assert_int_equal(ledger_card(l, 1)->n_holds, 0);
    ledger_free(copy);
    ledger_free(l);
}

/* A clone's parts are in one block: growth moves them out of it, and they are freed. */
static void
test_a_clone_grows(void **state)
{
    (void)state;
    struct ledger *l = machine_new(2, CARD_MIB);
    book(l, 1, 0, 1000);
    book(l, 2, 1, 1000);
    machine_stranger(l, 1, 77, 500, 2);
    struct ledger *copy = ledger_clone(l);
    struct gpu_info third = {.index = 2, .numa = -1, .total_mib = CARD_MIB};
    for (uint32_t job = 3; job < 300; job++)
        book(copy, job, job % 2, 10);
    machine_stranger(copy, 1, 78, 700, 3);
    ledger_release(copy, 1);
    ledger_add_card(copy, &third);
    assert_null(ledger_check(copy));
    assert_null(ledger_check(l));
    assert_int_equal(ledger_card(l, 0)->n_holds, 1);
    assert_int_equal(ledger_card(copy, 0)->n_holds, 148);
    ledger_free(copy);
    assert_true(ledger_holds(l, 1));
    ledger_free(l);
}

/* A clone has no generation: another clone with the same one might differ. */
static void
test_whatever_changes_room_counts(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB), *copy = ledger_clone(l);
    uint64_t before = ledger_changes(l);
    assert_int_not_equal(before, 0);
    book(l, 1, 0, 1000);
    assert_int_not_equal(ledger_changes(l), before);
    before = ledger_changes(l);
    machine_stranger(l, 0, 77, 500, 2);
    assert_int_not_equal(ledger_changes(l), before);
    before = ledger_changes(l);
    ledger_set_admin(l, 0, GPU_PAUSED, 3);
    assert_int_not_equal(ledger_changes(l), before);
    before = ledger_changes(l);
    ledger_release(l, 1);
    assert_int_not_equal(ledger_changes(l), before);
    book(copy, 1, 0, 1000);
    assert_int_equal(ledger_changes(copy), 0);
    ledger_free(copy);
    ledger_free(l);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_card_is_all_free),
        cmocka_unit_test(test_budget_counts_from_the_decision),
        cmocka_unit_test(test_own_use_is_not_external),
        cmocka_unit_test(test_exceeding_is_told_once_and_budgeted),
        cmocka_unit_test(test_energy_is_divided_by_time_and_jobs),
        cmocka_unit_test(test_an_excess_is_sure_after_two_samples),
        cmocka_unit_test(test_stranger_peak_is_kept_until_it_leaves),
        cmocka_unit_test(test_a_share_holds_its_part_of_the_card),
        cmocka_unit_test(test_release_ahead_gives_measured_memory_back),
        cmocka_unit_test(test_release_ahead_of_a_silent_job),
        cmocka_unit_test(test_why_a_card_is_sick_stays_until_it_is_up),
        cmocka_unit_test(test_reused_pid_is_another_process),
        cmocka_unit_test(test_process_listed_twice_adds_up),
        cmocka_unit_test(test_process_on_a_foreign_card),
        cmocka_unit_test(test_unknown_used_is_not_free),
        cmocka_unit_test(test_missing_list_keeps_the_last_one),
        cmocka_unit_test(test_silent_job_takes_the_blame_up_to_its_budget),
        cmocka_unit_test(test_used_memory_of_hidden_processes_is_first_our_own),
        cmocka_unit_test(test_a_list_that_names_somebody_hides_nobody),
        cmocka_unit_test(test_jobs_found_on_a_card_that_names_nobody),
        cmocka_unit_test(test_states_have_two_voices),
        cmocka_unit_test(test_host_booking),
        cmocka_unit_test(test_restored_peak_is_budgeted),
        cmocka_unit_test(test_a_sample_changes_the_room_or_not),
        cmocka_unit_test(test_clear_waits_for_process_and_memory),
        cmocka_unit_test(test_clear_without_reports),
        cmocka_unit_test(test_clone_is_apart),
        cmocka_unit_test(test_a_clone_grows),
        cmocka_unit_test(test_whatever_changes_room_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
