/* The compact node against the ledger and place_job, which the daemon asks: the same history
 * of jobs on both, and the same cards each time. And lines against a plain search. */
#include "core/ledger.h"
#include "core/lines.h"
#include "core/place.h"
#include "support.h"

#define CARDS 8
#define STEPS 20000

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

/* One job comes: both place it, on the same cards, or both do not. */
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

/* The search that lines_next is to spare. */
static uint32_t
plain_next(const struct lines *l, const struct line *line, uint32_t after, int64_t max_run)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i <= l->n; i++) {
        const struct entry *e = &l->entries[i];
        if (!e->waits || &l->all[e->line] != line || e->run > max_run)
            continue;
        if (after && !lines_precedes(l, after, i))
            continue;
        if (!best || lines_precedes(l, i, best))
            best = i;
    }
    return best;
}

static void
expect_lines(struct lines *l)
{
    size_t waiting = 0;
    uint32_t oldest = 0;
    for (uint32_t i = 1; i <= l->n; i++) {
        waiting += l->entries[i].waits;
        if (!oldest && l->entries[i].waits)
            oldest = i;
    }
    assert_int_equal(l->n_waiting, waiting);
    assert_int_equal(lines_oldest(l), oldest);
    for (uint32_t i = 0; i < l->n_live; i++) {
        const struct line *line = lines_live(l, i);
        uint32_t after = l->last_added ? 1 + draw(l->last_added) : 0;
        int64_t max_run = draw(400);
        assert_int_equal(line->first, plain_next(l, line, 0, INT64_MAX));
        assert_int_equal(lines_next(l, line, 0, max_run), plain_next(l, line, 0, max_run));
        assert_int_equal(lines_next(l, line, after, max_run),
                         plain_next(l, line, after, max_run));
        assert_int_equal(lines_next(l, line, after, INT64_MAX),
                         plain_next(l, line, after, INT64_MAX));
    }
}

static void
lines_in_order(enum policy_order order)
{
    static const struct shape shapes[3] = {
        {.n = 1, .vram_mib = 100}, {.n = 2, .vram_mib = 100}, {.n = 1, .vram_mib = 200}};
    struct entry entries[201];
    struct lines l;
    uint32_t added = 0;
    for (uint32_t i = 1; i <= 200; i++)
        entries[i] =
            (struct entry){.arrival = i / 3 * 10, .run = 1 + draw(200), .shape = draw(3)};
    lines_init(&l, entries, 200, shapes, order);
    while (added < 200 || l.n_waiting > 0) {
        if (added < 200 && (l.n_waiting == 0 || draw(2))) {
            lines_add(&l, ++added);
            l.now = entries[added].arrival + draw(50);
        } else {
            lines_remove(&l, lines_live(&l, draw(l.n_live))->first);
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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_the_ledger),
        cmocka_unit_test(test_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
