/* Random workloads on random machines, under every policy, checked after every instant: no GPU
 * is overcommitted, every job runs once, no job that could start waits where the policy
 * forbids that, and a promised start is kept when estimates are upper bounds. A failing seed
 * is printed; SIM_SEED runs that one alone. */
#include "sim/textbook/pass.h"
#include "support.h"

#define SEEDS 60
#define JOBS  250

static uint64_t random_state;
static size_t n_promised; /* lasting promises that were checked */

static uint32_t
draw(uint32_t n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % n;
}

static struct machine
draw_machine(void)
{
    static const int32_t sizes[] = {11264, 24576, 81920};
    struct machine m = machine_of(1 + (int)draw(10), sizes[draw(3)]);
    bool is_mixed = draw(3) == 0;
    for (int i = 0; is_mixed && i < m.n; i++)
        m.total_mib[i] = sizes[draw(3)];
    return m;
}

/* A random shape that fits on the empty machine. */
static struct shape
draw_shape(const struct machine *m)
{
    struct node node;
    struct shape s;
    node_init(&node, m->total_mib, m->n, m->margin_mib);
    do {
        s = (struct shape){
            .allowed = draw(4) ? UINT64_MAX : (uint64_t)draw(1 << 16),
            .vram_mib = (int32_t)draw(24000),
            .n = (uint8_t)(draw(3) ? 1 : 1 + draw((uint32_t)m->n)),
            .alone = draw(6) == 0,
        };
        if (s.alone && draw(2))
            s.vram_mib = 0;
    } while (!node_fits_empty(&node, &s));
    return s;
}

static void
draw_workload(const struct machine *m, struct workload *w)
{
    struct shape kinds[12];
    struct err e;
    int64_t now = 0;
    uint32_t longest = draw(3) ? 2000 : 40000;
    for (int i = 0; i < 12; i++)
        kinds[i] = draw_shape(m);
    for (int i = 0; i < JOBS; i++) {
        struct sim_job job = {
            .id = i, .arrival = now, .duration = 1 + draw(longest), .line = 1};
        job.estimate = job.duration + draw(4000);
        workload_add(w, &job, &kinds[draw(12)]);
        now += draw(3) ? draw(600) : 0;
    }
    assert_int_equal(workload_sort(w, "random", &e), 0);
    assert_int_equal(workload_check(w, m, "random", &e), 0);
}

static const struct shape *
shape_of(const struct workload *w, size_t i)
{
    return &w->shapes[w->jobs[i].shape];
}

/* What runs now, computed from the results alone. */
static void
check_cards(const struct sim *sim, const struct workload *w, const struct machine *m)
{
    int64_t used[GPU_MAX] = {0}, now = sim_now(sim);
    int jobs[GPU_MAX] = {0}, alone[GPU_MAX] = {0};
    for (size_t i = 0; i < w->n; i++) {
        const struct sim_run *run = &sim_runs(sim)[i];
        if (run->start < 0 || run->start + w->jobs[i].duration <= now)
            continue;
        assert_true(run->start >= w->jobs[i].arrival);
        assert_int_equal(__builtin_popcountll(run->cards), shape_of(w, i)->n);
        assert_int_equal(run->cards & ~shape_of(w, i)->allowed, 0);
        for (uint64_t cards = run->cards; cards; cards &= cards - 1) {
            int card = __builtin_ctzll(cards);
            assert_in_range(card, 0, m->n - 1);
            used[card] += shape_of(w, i)->vram_mib;
            jobs[card]++;
            alone[card] += shape_of(w, i)->alone || sim_pass(sim)->policy->whole;
        }
    }
    for (int i = 0; i < m->n; i++) {
        assert_true(used[i] <= m->total_mib[i]);
        assert_true(alone[i] == 0 || jobs[i] == 1);
        assert_int_equal(sim_pass(sim)->node->n_jobs[i], jobs[i]);
    }
}

/* After a pass: jobs that wait although they would fit. */
static void
check_waiting(const struct sim *sim, const struct workload *w)
{
    const struct pass *p = sim_pass(sim);
    bool is_oldest = true;
    for (size_t i = 0; i < w->n && w->jobs[i].arrival <= sim_now(sim); i++) {
        if (sim_runs(sim)[i].start >= 0)
            continue;
        bool must_wait = !node_fits(p->node, shape_of(w, i));
        if (p->policy->blocked == BLOCKED_PASS ||
            (is_oldest && p->policy->head == HEAD_OLDEST && p->policy->head_age_s == 0))
            assert_true(must_wait);
        assert_true(!must_wait == (node_place(p->node, shape_of(w, i)) != 0));
        is_oldest = false;
    }
}

/* A head job that was promised a time keeps that promise, or gets a better one. */
static void
check_promise(const struct sim *sim, int64_t *promised)
{
    const struct pass *p = sim_pass(sim);
    uint32_t who = p->promise.who;
    if (p->lines.n_waiting == 0 || who == 0)
        return;
    assert_true(p->promise.at > sim_now(sim));
    if (p->policy->head != HEAD_OLDEST)
        return;
    assert_true(p->promise.at <= promised[who - 1]);
    if (promised[who - 1] == INT64_MAX)
        n_promised++;
    promised[who - 1] = p->promise.at;
}

static void
run_one(const struct workload *w, const struct machine *m, const struct policy *policy)
{
    struct sim *sim = sim_new(w, m, policy);
    auto_free int64_t *promised = xmalloc(w->n * sizeof *promised);
    for (size_t i = 0; i < w->n; i++)
        promised[i] = INT64_MAX;
    while (sim_step(sim)) {
        check_cards(sim, w, m);
        check_waiting(sim, w);
        check_promise(sim, promised);
    }
    for (size_t i = 0; i < w->n; i++) {
        assert_true(sim_runs(sim)[i].start >= 0);
        assert_true(sim_runs(sim)[i].start <= promised[i]);
    }
    sim_free(sim);
}

static void
run_seed(uint64_t seed)
{
    auto_workload struct workload w = WORKLOAD_INIT;
    random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    struct machine m = draw_machine();
    draw_workload(&m, &w);
    for (const struct policy *p = policies; p->name; p++) {
        print_message("seed %llu policy %s\n", (unsigned long long)seed, p->name);
        run_one(&w, &m, p);
    }
}

static void
test_invariants(void **state)
{
    const char *one = getenv("SIM_SEED");
    (void)state;
    for (uint64_t seed = one ? strtoull(one, NULL, 10) : 1; seed <= SEEDS; seed++) {
        run_seed(seed);
        if (one)
            return;
    }
    /* Fewer would mean that nothing was tested. */
    assert_true(n_promised > 1000);
}

/* A stream of 1-GPU jobs, more than the GPUs can serve, and one job that wants all four
 * GPUs. */
static void
stream_against_one(const char *policy, int64_t *start, int64_t *promised)
{
    auto_workload struct workload w = WORKLOAD_INIT;
    struct machine m = machine_of(4, 24576);
    struct err e;
    for (int i = 0; i < 3000; i++) {
        add_job(&w, i * 20, 100, 1, 20000);
        if (i == 10)
            add_job(&w, i * 20 + 1, 100, 4, 20000);
    }
    assert_int_equal(workload_sort(&w, "stream", &e), 0);
    struct sim *sim = sim_new(&w, &m, policy_find(policy));
    *promised = -1;
    while (sim_step(sim)) {
        const struct pass *p = sim_pass(sim);
        if (p->promise.who == 12 && *promised < 0)
            *promised = p->promise.at;
    }
    *start = sim_runs(sim)[11].start;
    sim_free(sim);
}

static void
test_wide_job_in_a_stream(void **state)
{
    int64_t start, promised;
    (void)state;
    stream_against_one("easy-e", &start, &promised);
    assert_int_equal(start, promised);
    /* The four GPUs are taken until 340 s; then it starts. */
    assert_int_equal(start, 340);
    stream_against_one("greedy", &start, &promised);
    assert_int_equal(promised, -1);
    assert_true(start > 74000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_invariants),
        cmocka_unit_test(test_wide_job_in_a_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
