/* Which jobs' ends, and which GPUs, a blocked job waits for: in words, and verified by ending
 * exactly those jobs. */
#include "machine.h"

#define BLOCKED_JOB 99

/* A job that runs on these GPUs and is expected to end at end_s (0: unknown). */
static void
run(struct queue *q, struct ledger *l, uint32_t id, struct demand d, uint64_t cards, int end_s)
{
    struct job *job = new_job(id, d);
    uint8_t gpus[GPU_MAX];
    int n = 0;
    for (; cards; cards &= cards - 1)
        gpus[n++] = (uint8_t)__builtin_ctzll(cards);
    job->state = JOB_RUNNING;
    job->run = calloc(1, sizeof *job->run);
    job->run->started_us = 1;
    job->span_ms = (int64_t)end_s * 1000;
    queue_add(q, job);
    ledger_hold(l, id, &d, gpus, n);
}

static void
whole(struct queue *q, struct ledger *l, uint32_t id, int card, int end_s)
{
    run(q, l, id, want(1, 0), UINT64_C(1) << card, end_s);
}

/* Six GPUs: 0 and 1 idle. */

static void
three_alone(struct queue *q, struct ledger *l)
{
    whole(q, l, 12, 2, 500);
    whole(q, l, 13, 3, 900);
    whole(q, l, 14, 4, 0);
    whole(q, l, 15, 5, 100);
}

static void
two_of_one(struct queue *q, struct ledger *l)
{
    run(q, l, 12, want(2, 0), 0x0c, 300);
    whole(q, l, 14, 4, 200);
    whole(q, l, 15, 5, 0);
}

static void
all_shared(struct queue *q, struct ledger *l)
{
    for (int i = 0; i < 6; i++) {
        run(q, l, 20 + (uint32_t)i, want(1, 16384), UINT64_C(1) << i, 100 * (i + 1));
        run(q, l, 30 + (uint32_t)i, want(1, 1024), UINT64_C(1) << i, 50);
    }
}

static void
tasks_of_an_array(struct queue *q, struct ledger *l)
{
    three_alone(q, l);
    queue_get(q, 15)->array = 5;
    queue_get(q, 15)->task = 3;
}

static void
one_paused(struct queue *q, struct ledger *l)
{
    three_alone(q, l);
    ledger_set_admin(l, 1, GPU_PAUSED, 60000000);
}

static void
two_strangers(struct queue *q, struct ledger *l)
{
    (void)q;
    for (int i = 2; i < 6; i++)
        machine_stranger(l, i, 4700 + i, 9000 + i, 2);
}

static void
all_paused(struct queue *q, struct ledger *l)
{
    (void)q;
    for (int i = 0; i < 6; i++)
        ledger_set_admin(l, i, GPU_PAUSED, 60000000);
}

static void
cores(struct queue *q, struct ledger *l)
{
    struct demand d = want(0, 0);
    d.cpus = 3;
    run(q, l, 12, d, 0, 0);
    d.cpus = 4;
    run(q, l, 13, d, 0, 500);
}

static const struct row {
    void (*make)(struct queue *q, struct ledger *l);
    struct demand demand;
    const char *words;
} rows[] = {
    {three_alone,
     {.gpus = 4, .margin_mib = -1},
     "Resources: wants 4 idle GPUs; 2 of them have room, 2 more when jobs 15 and 12 end"},
    {tasks_of_an_array,
     {.gpus = 4, .margin_mib = -1},
     "Resources: wants 4 idle GPUs; 2 of them have room, 2 more when jobs 5_3 and 12 end"},
    {two_of_one,
     {.gpus = 4, .margin_mib = -1},
     "Resources: wants 4 idle GPUs; 2 of them have room, 2 more when job 12 ends"},
    {two_of_one,
     {.gpus = 3, .margin_mib = -1},
     "Resources: wants 3 idle GPUs; 2 of them have room, 1 more when job 14 ends"},
    {all_shared,
     {.gpus = 2, .margin_mib = -1, .vram_mib = 12288},
     "GpuMemory: needs 12.0 GiB + 512 MiB margin on each of 2 GPUs; none has room, 2 when jobs "
     "20 and 21 end"},
    {all_shared,
     {.gpus = 2, .margin_mib = -1, .n_ids = 2, .ids = {5, 3}},
     "GpuBusy: wants each of gpus 5,3 idle; none has room, 2 when jobs 33, 35, 23 and 25 end"},
    {one_paused,
     {.gpus = 6, .margin_mib = -1},
     "Resources: wants 6 idle GPUs; 1 of them has room, 4 more when jobs 15, 12, 13 and 14 "
     "end, 1 more when gpu 1 is freed; gpu 1 is paused since 1970-01-01T00:01:00Z"},
    {two_strangers,
     {.gpus = 4, .margin_mib = -1},
     "Resources: wants 4 idle GPUs; 2 of them have room, 2 more when 2 of gpus 2-5 are freed; "
     "gpu 2 has 9.7 GiB in use outside Berth (pid 4702)"},
    {all_paused,
     {.gpus = 2, .margin_mib = -1},
     "GpuPaused: wants 2 idle GPUs; gpu 0 is paused since 1970-01-01T00:01:00Z"},
    {cores,
     {.gpus = 0, .margin_mib = -1, .cpus = 2},
     "Cpus: needs 2 cores; 1 is free, enough when job 13 ends"},
    {cores,
     {.gpus = 3, .margin_mib = -1, .cpus = 8},
     "Cpus: needs 8 cores; 1 is free, enough when jobs 13 and 12 end"},
};

static struct job *
block(struct queue *q, struct ledger *l, struct demand d)
{
    auto_plan struct plan p = PLAN_INIT;
    queue_add(q, new_job(BLOCKED_JOB, d));
    plan_once(q, l, 1000000, &p);
    return queue_get(q, BLOCKED_JOB);
}

static void
test_what_is_needed_in_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct queue *q = queue_new();
        struct ledger *l = machine_new(6, CARD_MIB);
        auto_buf struct buf text = BUF_INIT;
        ledger_set_host(l, 8, 64000);
        ledger_set_wall_offset(l, 0);
        rows[i].make(q, l);
        struct job *job = block(q, l, rows[i].demand);
        assert_true(plan_may_tell_needs(job));
        plan_tell_needs(q, l, job, 1000000);
        assert_false(plan_may_tell_needs(job));
        plan_explain_text(q, job, &text);
        assert_string_equal(buf_str(&text), rows[i].words);
        assert_null(ledger_check(l));
        queue_free(q);
        ledger_free(l);
    }
}

/* Nothing more is reported for a job that can use any GPU, or that is not pending. */
static void
test_one_card_says_all(void **state)
{
    (void)state;
    struct queue *q = queue_new();
    struct ledger *l = machine_new(1, CARD_MIB);
    whole(q, l, 1, 0, 0);
    assert_false(plan_may_tell_needs(block(q, l, want(1, 0))));
    assert_false(plan_may_tell_needs(queue_get(q, 1)));
    queue_free(q);
    ledger_free(l);
}

static uint32_t
draw(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 8) % n;
}

/* As many jobs as fit on eight GPUs, some of which are paused or used by other programs. */
static uint32_t
fill(struct queue *q, struct ledger *l, uint32_t *seed)
{
    uint32_t id = 1;
    for (int i = 0; i < 8; i++) {
        if (draw(seed, 8) == 0)
            machine_stranger(l, i, 4000 + i, 3000 + (int)draw(seed, 15000), 2);
    }
    for (int tries = 0; tries < 24; tries++) {
        struct demand d = want(1 + (int)draw(seed, 3), (int)draw(seed, 4) * 5000);
        struct placement where;
        d.cpus = (int)draw(seed, 4);
        if (!place_job(&d, l, &where, NULL))
            continue;
        uint64_t cards = 0;
        for (int i = 0; i < where.n; i++)
            cards |= UINT64_C(1) << where.gpus[i];
        run(q, l, id++, d, cards, (int)draw(seed, 5) * 100);
    }
    for (int i = 0; i < 8; i++) {
        if (draw(seed, 8) == 0)
            ledger_set_admin(l, i, GPU_PAUSED, 2);
    }
    return id;
}

/* Without the jobs whose ends are named, except one of them (-1: none). */
static bool
starts_without(const struct ledger *l, const struct blocked *why, const struct demand *d,
               int spared)
{
    struct placement unused;
    struct ledger *then = ledger_clone(l);
    for (int i = 0; i < why->n_ends; i++) {
        if (i != spared)
            ledger_release_ahead(then, why->ends[i].id);
    }
    bool starts = place_job(d, then, &unused, NULL);
    ledger_free(then);
    return starts;
}

/* 2,000 machines: the job starts when all named jobs have ended, and does not if any one of
 * them still runs; if GPUs must be freed as well, exactly as many as stated have room. */
static void
test_what_is_said_is_what_happens(void **state)
{
    (void)state;
    int by_ends = 0, by_freeing = 0;
    for (uint32_t seed = 1; seed <= 2000; seed++) {
        uint32_t s = seed;
        struct queue *q = queue_new();
        struct ledger *l = machine_new(8, CARD_MIB);
        ledger_set_host(l, 20, 64000);
        fill(q, l, &s);
        struct demand d = want(2 + (int)draw(&s, 5), (int)draw(&s, 3) * 6000);
        d.cpus = (int)draw(&s, 10);
        struct job *job = block(q, l, d);
        if (plan_may_tell_needs(job)) {
            struct blocked why;
            plan_tell_needs(q, l, job, 1000000);
            plan_explain(q, job, &why);
            bool named = why.n_ends <= BLOCKED_ENDS;
            if (named && !why.to_free && why.n_ends > 0) {
                assert_true(starts_without(l, &why, &d, -1));
                for (int i = 0; i < why.n_ends; i++)
                    assert_false(starts_without(l, &why, &d, i));
                by_ends++;
            }
            if (why.to_free && named) {
                d.gpus = why.n_room + why.n_freed;
                assert_true(d.gpus == 0 || starts_without(l, &why, &d, -1));
                d.gpus++;
                assert_false(starts_without(l, &why, &d, -1));
                by_freeing++;
            }
        }
        assert_null(ledger_check(l));
        queue_free(q);
        ledger_free(l);
    }
    assert_true(by_ends > 1000 && by_freeing > 50);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_needed_in_words),
        cmocka_unit_test(test_one_card_says_all),
        cmocka_unit_test(test_what_is_said_is_what_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
