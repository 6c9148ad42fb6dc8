/* Lines of pending jobs by kind; see kinds.h. A hash table of kinds by what makes them, and in
 * each a tree of its jobs. */
#include "core/kinds.h"

#include <bsd/sys/tree.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* RB_GENERATE_STATIC needs BSD's __unused, which glibc does not have. */
#define TREE_FN static __attribute__((unused))

#define BUCKETS_FIRST 256 /* a power of two */

static int
compare_line(const struct job *a, const struct job *b)
{
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

RB_GENERATE_INTERNAL(job_line, job, entry, compare_line, TREE_FN)

/* What makes a kind. No padding: it is hashed and compared by words. */
struct kind_key {
    struct demand demand;
    int64_t span_ms;
    uint32_t uid;
    int32_t priority;
    int64_t preemptible;
};
_Static_assert(sizeof(struct kind_key) == sizeof(struct demand) + 24, "no hidden padding");

static struct kind_key
key_of(const struct job *job)
{
    return (struct kind_key){job->req.demand, job->span_ms, job->uid, job->req.priority,
                             job->req.preemptible};
}

static bool
kind_has_key(const struct kind *k, const struct kind_key *key)
{
    return k->uid == key->uid && k->priority == key->priority && k->span_ms == key->span_ms &&
           k->preemptible == (key->preemptible != 0) &&
           memcmp(&k->demand, &key->demand, sizeof key->demand) == 0;
}

static uint64_t
kind_hash(const struct kind_key *key)
{
    uint64_t words[sizeof *key / 8];
    _Static_assert(sizeof *key % 8 == 0, "a kind is hashed by words");
    memcpy(words, key, sizeof *key);
    uint64_t h = UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < sizeof words / 8; i++) {
        h = (h ^ words[i]) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
    }
    return h;
}

static struct kind **
kind_slot(const struct kinds *ks, const struct kind_key *key)
{
    struct kind **p = &ks->buckets[kind_hash(key) & (ks->n_buckets - 1)];
    while (*p && !kind_has_key(*p, key))
        p = &(*p)->hash_next;
    return p;
}

static struct kind **
slot_of_kind(const struct kinds *ks, const struct kind *k)
{
    const struct kind_key key = {k->demand, k->span_ms, k->uid, k->priority, k->preemptible};
    return kind_slot(ks, &key);
}

static void
grow(struct kinds *ks)
{
    free(ks->buckets);
    ks->n_buckets *= 2;
    ks->buckets = xcalloc(ks->n_buckets, sizeof(struct kind *));
    for (size_t i = 0; i < ks->n; i++) {
        struct kind *k = ks->at[i];
        k->hash_next = NULL;
        *slot_of_kind(ks, k) = k;
    }
}

static struct kind *
kind_of(struct kinds *ks, const struct job *job)
{
    const struct kind_key key = key_of(job);
    struct kind **slot = kind_slot(ks, &key);
    if (*slot)
        return *slot;
    struct kind *k = xcalloc(1, sizeof *k);
    k->demand = job->req.demand;
    k->uid = job->uid;
    k->priority = job->req.priority;
    k->span_ms = job->span_ms;
    k->preemptible = job->req.preemptible;
    k->slot = ks->n;
    *slot = k;
    if (ks->n == ks->cap) {
        ks->cap = ks->cap ? ks->cap * 2 : 16;
        ks->at = xrealloc(ks->at, ks->cap * sizeof(struct kind *));
    }
    ks->at[ks->n++] = k;
    if (ks->n > ks->n_buckets)
        grow(ks);
    return k;
}

static void
kind_drop(struct kinds *ks, struct kind *k)
{
    *slot_of_kind(ks, k) = k->hash_next;
    struct kind *last = ks->at[--ks->n];
    ks->at[k->slot] = last;
    last->slot = k->slot;
    free(k);
}

void
kinds_insert(struct kinds *ks, struct job *job)
{
    struct kind *k = kind_of(ks, job);
    RB_INSERT(job_line, &k->line, job);
    if (!k->head || compare_line(job, k->head) < 0)
        k->head = job;
    k->n++;
    job->kind = k;
}

struct kind *
kinds_remove(struct job *job)
{
    struct kind *k = job->kind;
    if (!k)
        err_abort("job %u stands in a line and in none", job->id);
    if (k->head == job)
        k->head = RB_NEXT(job_line, &k->line, job);
    RB_REMOVE(job_line, &k->line, job);
    job->kind = NULL;
    k->n--;
    return k;
}

void
kinds_drop_if_empty(struct kinds *ks, struct kind *k)
{
    if (k && k->n == 0)
        kind_drop(ks, k);
}

void
kinds_init(struct kinds *ks)
{
    *ks = (struct kinds){.n_buckets = BUCKETS_FIRST};
    ks->buckets = xcalloc(ks->n_buckets, sizeof(struct kind *));
}

void
kinds_free(struct kinds *ks)
{
    for (size_t i = 0; i < ks->n; i++)
        free(ks->at[i]);
    free(ks->at);
    free(ks->buckets);
}

struct job *
kind_next(struct job *job)
{
    return RB_NEXT(job_line, NULL, job);
}

static const char *
check(const struct kind *k, size_t *in_lines)
{
    size_t n = 0;
    struct job_line line = k->line;
    struct job *job, *before = NULL;
    if (k->head != RB_MIN(job_line, &line))
        return "a kind's head is not the first of its line";
    RB_FOREACH(job, job_line, &line)
    {
        if (before && compare_line(before, job) >= 0)
            return "a line is out of order";
        if (job->kind != k || job->state != JOB_PENDING)
            return "a job stands in a line that is not its own";
        const struct kind_key key = key_of(job);
        if (!kind_has_key(k, &key))
            return "a job stands in the line of another kind";
        before = job;
        n++;
    }
    *in_lines += n;
    return n == k->n && n > 0 ? NULL : "a kind's count is wrong";
}

const char *
kinds_check(const struct kinds *ks, size_t *in_lines)
{
    for (size_t i = 0; i < ks->n; i++) {
        const char *wrong = check(ks->at[i], in_lines);
        if (wrong || ks->at[i]->slot != i)
            return wrong ? wrong : "a kind is in another's slot";
    }
    return NULL;
}
