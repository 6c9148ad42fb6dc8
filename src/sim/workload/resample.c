/* The draws are those of Python's random.Random(seed).randrange(n), so that a script can make
 * the same workloads: the Mersenne Twister MT19937 (Matsumoto and Nishimura 1998, with the
 * initialisation by array of 2002); the highest bits of its words are used, and values not
 * below n are rejected. */
#include "sim/workload/resample.h"

#include <math.h>

#define WORDS  624
#define MIDDLE 397

struct twister {
    uint32_t word[WORDS];
    int at;
};

/* The part of a word's seeding that depends on the previous word. */
static uint32_t
stir(uint32_t before, uint32_t factor)
{
    return (before ^ before >> 30) * factor;
}

static void
twister_seed(struct twister *t, uint32_t seed)
{
    uint32_t *w = t->word, i = 1;
    w[0] = 19650218;
    for (uint32_t k = 1; k < WORDS; k++)
        w[k] = stir(w[k - 1], 1812433253) + k;
    for (int k = 0; k < WORDS; k++) { /* the key is a single word, the seed */
        w[i] = (w[i] ^ stir(w[i - 1], 1664525)) + seed;
        if (++i == WORDS) {
            w[0] = w[WORDS - 1];
            i = 1;
        }
    }
    for (int k = 0; k < WORDS - 1; k++) {
        w[i] = (w[i] ^ stir(w[i - 1], 1566083941)) - i;
        if (++i == WORDS) {
            w[0] = w[WORDS - 1];
            i = 1;
        }
    }
    w[0] = UINT32_C(1) << 31;
    t->at = WORDS;
}

static void
twister_turn(struct twister *t)
{
    for (int i = 0; i < WORDS; i++) {
        uint32_t joined = (t->word[i] & UINT32_C(0x80000000)) |
                          (t->word[(i + 1) % WORDS] & UINT32_C(0x7fffffff));
        uint32_t twist = joined & 1 ? UINT32_C(0x9908b0df) : 0;
        t->word[i] = t->word[(i + MIDDLE) % WORDS] ^ joined >> 1 ^ twist;
    }
    t->at = 0;
}

static uint32_t
twister_next(struct twister *t)
{
    if (t->at == WORDS)
        twister_turn(t);
    uint32_t x = t->word[t->at++];
    x ^= x >> 11;
    x ^= x << 7 & UINT32_C(0x9d2c5680);
    x ^= x << 15 & UINT32_C(0xefc60000);
    return x ^ x >> 18;
}

static uint32_t
draw_below(struct twister *t, uint32_t n)
{
    int spare = __builtin_clz(n);
    uint32_t x;
    do
        x = twister_next(t) >> spare;
    while (x >= n);
    return x;
}

/* Seconds since the previous job's arrival; for the first job, the mean gap. */
static int64_t
gap_before(const struct workload *base, size_t i)
{
    const struct sim_job *jobs = base->jobs;
    if (i > 0)
        return jobs[i].arrival - jobs[i - 1].arrival;
    if (base->n < 2)
        return 0;
    return (int64_t)rint((double)(jobs[base->n - 1].arrival - jobs[0].arrival) /
                         (double)(base->n - 1));
}

void
workload_resample(const struct workload *base, uint32_t seed, struct workload *out)
{
    struct twister t;
    int64_t now = 0, first = 0;
    twister_seed(&t, seed);
    while (out->n < base->n) {
        size_t at = draw_below(&t, (uint32_t)base->n), end = at + RESAMPLE_BLOCK;
        for (; at < end && at < base->n && out->n < base->n; at++) {
            struct sim_job job = base->jobs[at];
            now += gap_before(base, at);
            first = out->n == 0 ? now : first;
            job.id = (int64_t)out->n;
            job.arrival = now - first;
            workload_add(out, &job, &base->shapes[job.shape]);
        }
    }
}
