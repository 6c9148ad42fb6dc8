/* The compact node against the ledger and place_job, which the daemon uses: the same history
 * of jobs on both must choose the same GPUs each time. And lines against a plain search. */
#include "core/ledger/ledger.h"
#include "core/place/place.h"
#include "core/plan/expect.h"
#include "sim/textbook/lines.h"
#include "support.h"

#define CARDS  8
#define STEPS  20000
#define SHAPES 6

static uint64_t random_state = 7;

static uint32_t
draw(uint32_t n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % n;
}

static struct ledger *
ledger_of(const int32_t *total_mib, bool spread)
{
    struct ledger_policy policy;
    ledger_policy_init(&policy);
    policy.spread = spread;
    struct ledger *l = ledger_new(&policy);
    for (int i = 0; i < CARDS; i++) {
        struct gpu_info info = {.index = i, .numa = -1, .total_mib = total_mib[i]};
        struct gpu_sample idle = {.used_mib = 0};
        ledger_add_card(l, &info);
        ledger_sample(l, i, &idle, 1, NULL, NULL);
    }
    ledger_set_known(l);
    return l;
}

struct held {
    uint32_t id;
    struct shape shape;
    uint64_t cards;
};

/* One job arrives: both place it, on the same GPUs, or both refuse. */
static bool
place_both(struct ledger *l, struct node *node, uint32_t id, struct held *out)
{
    struct demand d;
    struct placement where;
    demand_init(&d);
    d.gpus = draw(2) ? 1 : 1 + (int32_t)draw(4);
    d.vram_mib = draw(5) ? 100 + (int32_t)draw(9) * 2500 : 0;
    d.exclusive = d.vram_mib > 0 && draw(8) == 0;
    d.devices = draw(4) ? 0 : 1 + draw(255);
    out->id = id;
    out->shape = (struct shape){.allowed = d.devices ? d.devices : UINT64_MAX,
                                .vram_mib = d.vram_mib,
                                .n = (uint8_t)d.gpus,
                                .alone = d.vram_mib == 0 || d.exclusive};
    out->cards = node_place(node, &out->shape);
    assert_true(node_fits(node, &out->shape) == (out->cards != 0));
    if (!place_job(&d, l, &where, NULL)) {
        assert_int_equal(out->cards, 0);
        return false;
    }
    uint64_t cards = 0;
    for (int i = 0; i < where.n; i++)
        cards |= UINT64_C(1) << where.gpus[i];
    assert_int_equal(out->cards, cards);
    ledger_hold(l, id, &d, where.gpus, where.n);
    node_take(node, &out->shape, cards);
    return true;
}

static void
same_as_the_ledger(bool spread, bool mixed)
{
    int32_t total[CARDS];
    struct held held[256];
    struct node node;
    size_t n = 0;
    for (int i = 0; i < CARDS; i++)
        total[i] = mixed && i % 3 == 0 ? 81920 : 24576;
    struct ledger *l = ledger_of(total, spread);
    node_init(&node, total, CARDS, ledger_policy(l)->margin_mib);
    node.rule = spread ? FIT_WORST : FIT_BEST;
    for (uint32_t step = 1; step <= STEPS; step++) {
        if (n < 256 && (n == 0 || draw(5) < 3)) {
            n += place_both(l, &node, step, &held[n]);
            continue;
        }
        struct held *leaver = &held[draw((uint32_t)n)];
        ledger_release(l, leaver->id);
        node_give(&node, &leaver->shape, leaver->cards);
        *leaver = held[--n];
    }
    for (int i = 0; i < CARDS; i++)
        assert_int_equal(node.n_jobs[i], ledger_card(l, i)->n_holds);
    ledger_free(l);
}

static void
test_same_as_the_ledger(void **state)
{
    (void)state;
    same_as_the_ledger(false, false);
    same_as_the_ledger(false, true);
    same_as_the_ledger(true, false);
    same_as_the_ledger(true, true);
}

/* The plain search that lines_best replaces. */
static uint32_t
plain_best(const struct lines *l, uint32_t begin, uint32_t end, uint32_t after, int64_t max_run)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i <= l->n; i++) {
        const struct entry *e = &l->entries[i];
        if (!e->waits || e->line < begin || e->line >= end || e->run > max_run)
            continue;
        if (after && !lines_precedes(l, after, i))
            continue;
        if (!best || lines_precedes(l, i, best))
            best = i;
    }
    return best;
}

static void
expect_best(const struct lines *l, uint32_t begin, uint32_t end, uint32_t after,
            int64_t max_run)
{
    uint32_t want = plain_best(l, begin, end, after, max_run);
    assert_int_equal(lines_best(l, begin, end, after, max_run, 0), want);
    /* A job earlier than all of them stays; a later one is passed over. */
    uint32_t any = 1 + draw((uint32_t)l->n);
    bool is_better = !want || lines_precedes(l, any, want);
    assert_int_equal(lines_best(l, begin, end, after, max_run, any), is_better ? any : want);
}

static void
expect_lines(struct lines *l)
{
    size_t waiting = 0, in_families = 0;
    uint32_t oldest = 0, line = draw(l->n_lines),
             after = l->last_added ? 1 + draw(l->last_added) : 0;
    for (uint32_t i = 1; i <= l->n; i++) {
        waiting += l->entries[i].waits;
        if (!oldest && l->entries[i].waits)
            oldest = i;
    }
    for (uint32_t i = 0; i < l->n_families; i++)
        in_families += l->families[i].n_waiting;
    assert_int_equal(l->n_waiting, waiting);
    assert_int_equal(in_families, waiting);
    assert_int_equal(lines_oldest(l), oldest);
    expect_best(l, 0, l->n_lines, 0, INT64_MAX);
    expect_best(l, 0, l->n_lines, after, draw(400));
    expect_best(l, line, line + 1, after, draw(400));
    expect_best(l, line / 2, line, 0, draw(400));
    expect_best(l, line, l->n_lines, after, INT64_MAX);
    assert_int_equal(l->all[line].first, plain_best(l, line, line + 1, 0, INT64_MAX));
}

/* Shapes that differ only in VRAM are neighbours, ordered by VRAM. */
static void
expect_families(const struct lines *l)
{
    assert_int_equal(l->n_families, 3);
    for (uint32_t i = 0; i < l->n_families; i++) {
        const struct family *f = &l->families[i];
        assert_int_equal(f->begin, i ? f[-1].end : 0);
        for (uint32_t j = f->begin; j < f->end; j++) {
            int32_t vram = l->all[j].shape->vram_mib;
            assert_int_equal(l->all[j].shape->n, l->all[f->begin].shape->n);
            assert_true(j == f->begin || l->all[j - 1].shape->vram_mib <= vram);
            assert_true(lines_above(l, f, vram) > j);
            assert_true(lines_above(l, f, vram - 1) <= j);
        }
    }
    assert_int_equal(l->families[2].end, l->n_lines);
}

static uint32_t
draw_waiting(const struct lines *l)
{
    uint32_t who = 1 + draw((uint32_t)l->n);
    while (!l->entries[who].waits)
        who = who % (uint32_t)l->n + 1;
    return who;
}

static void
lines_in_order(enum policy_order order)
{
    static const struct shape shapes[SHAPES] = {
        {.n = 1, .vram_mib = 300}, {.n = 2, .vram_mib = 100}, {.n = 1, .vram_mib = 100},
        {.n = 1, .alone = true},   {.n = 2, .vram_mib = 700}, {.n = 1, .vram_mib = 200}};
    struct entry entries[201];
    struct lines l;
    uint32_t added = 0;
    for (uint32_t i = 1; i <= 200; i++)
        entries[i] =
            (struct entry){.arrival = i / 3 * 10, .run = 1 + draw(200), .shape = draw(SHAPES)};
    lines_init(&l, entries, 200, shapes, SHAPES, order);
    expect_families(&l);
    while (added < 200 || l.n_waiting > 0) {
        if (added < 200 && (l.n_waiting == 0 || draw(2))) {
            lines_add(&l, ++added);
            l.now = entries[added].arrival + draw(50);
        } else {
            lines_remove(&l, draw_waiting(&l));
        }
        expect_lines(&l);
    }
    lines_free(&l);
}

static void
test_lines(void **state)
{
    (void)state;
    lines_in_order(ORDER_ARRIVAL);
    lines_in_order(ORDER_SHORTEST);
    lines_in_order(ORDER_LONGEST);
    lines_in_order(ORDER_RATIO);
}

static void
test_expectation(void **state)
{
    static struct expect x;
    (void)state;
    expect_init(&x);
    /* A quarter before anything is known; always between 1 and the estimate. */
    assert_int_equal(expect_run(&x, 4000), 1000);
    assert_int_equal(expect_run(&x, 1), 1);
    assert_int_equal(expect_run(&x, 0), 1);
    /* Doubled until it exceeds the elapsed time. */
    assert_int_equal(expect_length(&x, 4000, 999), 1000);
    assert_int_equal(expect_length(&x, 4000, 1000), 2000);
    assert_int_equal(expect_length(&x, 4000, 3900), 4000);
    assert_int_equal(expect_length(&x, 4000, 9000), 4000);
    /* all = 4000 * (3600 + 4000) / (14400 + 4000) = 1652; (4000 + 4 * 1652) / 5 / 4000 */
    expect_learn(&x, 4000, 4000);
    assert_int_equal(expect_run(&x, 4000), 2121);
    /* Another class learns only through the ratio over all classes: 100 * 7600 / 18400. */
    assert_int_equal(expect_run(&x, 100), 41);
    for (int i = 0; i < 1000; i++)
        expect_learn(&x, 100, 300);
    assert_int_equal(expect_run(&x, 100), 100);
    assert_true(expect_run(&x, 4000) > 2121);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_the_ledger),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_expectation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
