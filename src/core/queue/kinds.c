/* Lines of pending jobs by kind; see kinds.h. A hash table of kinds by their key; each kind
 * has a tree of its jobs, and each user a tree of kinds. */
#include "core/queue/kinds.h"

#include <bsd/sys/tree.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/search.h"

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

int
kind_place_compare(const struct kind_place *a, const struct kind_place *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static int
compare_kinds(const struct kind *a, const struct kind *b)
{
    return kind_place_compare(&a->place, &b->place);
}

RB_GENERATE_INTERNAL(kind_tree, kind, entry, compare_kinds, TREE_FN)

/* Users. */

static size_t
user_slot(const struct kinds *ks, uint32_t uid)
{
    return search_first(at, ks->n_users, ks->users[at]->uid < uid);
}

static struct kind_user *
user_of(struct kinds *ks, uint32_t uid)
{
    size_t at = user_slot(ks, uid);
    if (at < ks->n_users && ks->users[at]->uid == uid)
        return ks->users[at];
    ks->users = xgrow(ks->users, ks->n_users, &ks->cap_users, sizeof *ks->users);
    memmove(ks->users + at + 1, ks->users + at, (ks->n_users++ - at) * sizeof *ks->users);
    struct kind_user *u = ks->users[at] = xcalloc(1, sizeof *u);
    u->uid = uid;
    return u;
}

static void
user_drop(struct kinds *ks, struct kind_user *u)
{
    size_t at = user_slot(ks, u->uid);
    memmove(ks->users + at, ks->users + at + 1, (--ks->n_users - at) * sizeof *ks->users);
    free(u);
}

/* Makes the job the head of the line; NULL: the line is empty. */
static void
set_head(struct kind *k, struct job *job)
{
    if (k->head)
        RB_REMOVE(kind_tree, &k->user->tree, k);
    k->head = job;
    if (!job)
        return;
    k->place = (struct kind_place){k->priority, job->id, job->order};
    RB_INSERT(kind_tree, &k->user->tree, k);
}

struct kind *
kind_user_first(const struct kind_user *u)
{
    struct kind_tree tree = u->tree;
    return RB_MIN(kind_tree, &tree);
}

struct kind *
kind_user_next(struct kind *k)
{
    return RB_NEXT(kind_tree, NULL, k);
}

struct kind *
kind_user_behind(const struct kind_user *u, const struct kind_place *place)
{
    struct kind *k = u->tree.rbh_root, *found = NULL;
    while (k) {
        bool is_behind = kind_place_compare(&k->place, place) > 0;
        if (is_behind)
            found = k;
        k = is_behind ? RB_LEFT(k, entry) : RB_RIGHT(k, entry);
    }
    return found;
}

/* Kinds. */

/* The key of a kind. It has no padding, because it is hashed and compared by words. */
struct kind_key {
    struct demand demand;
    int64_t span_ms;
    uint32_t uid;
    int32_t priority;
    uint32_t preemptible;
    uint32_t file;
};
_Static_assert(sizeof(struct kind_key) == sizeof(struct demand) + 24, "no hidden padding");

static struct kind_key
key_of(const struct job *job)
{
    return (struct kind_key){job->req.demand,   job->span_ms,         job->uid,
                             job->req.priority, job->req.preemptible, job->file};
}

static bool
kind_has_key(const struct kind *k, const struct kind_key *key)
{
    return k->uid == key->uid && k->priority == key->priority && k->span_ms == key->span_ms &&
           k->preemptible == (key->preemptible != 0) && k->file == key->file &&
           memcmp(&k->demand, &key->demand, sizeof key->demand) == 0;
}

_Static_assert(sizeof(struct kind_key) % 8 == 0 && sizeof(struct demand) % 8 == 0,
               "a kind is hashed by words");

static uint64_t
hash_words(uint64_t h, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word;
        memcpy(&word, (const char *)from + i, 8);
        h = (h ^ word) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
    }
    return h;
}

static uint64_t
demand_hash(const struct demand *d)
{
    return hash_words(UINT64_C(0x9e3779b97f4a7c15), d, sizeof *d);
}

static struct kind **
kind_slot(const struct kinds *ks, const struct kind_key *key)
{
    uint64_t h = hash_words(demand_hash(&key->demand), &key->span_ms,
                            sizeof *key - offsetof(struct kind_key, span_ms));
    struct kind **p = &ks->buckets[h & (ks->n_buckets - 1)];
    while (*p && !kind_has_key(*p, key))
        p = &(*p)->hash_next;
    return p;
}

static struct kind **
slot_of_kind(const struct kinds *ks, const struct kind *k)
{
    const struct kind_key key = {k->demand,   k->span_ms,     k->uid,
                                 k->priority, k->preemptible, k->file};
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
    k->demand_hash = demand_hash(&k->demand);
    k->uid = job->uid;
    k->priority = job->req.priority;
    k->span_ms = job->span_ms;
    k->preemptible = job->req.preemptible;
    k->file = job->file;
    k->slot = ks->n;
    k->user = user_of(ks, job->uid);
    k->user->n++;
    *slot = k;
    ks->at = xgrow(ks->at, ks->n, &ks->cap, sizeof(struct kind *));
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
    ks->work -= k->work;
    if (--k->user->n == 0)
        user_drop(ks, k->user);
    free(k);
}

void
kinds_insert(struct kinds *ks, struct job *job)
{
    struct kind *k = kind_of(ks, job);
    RB_INSERT(job_line, &k->line, job);
    if (!k->head || compare_line(job, k->head) < 0)
        set_head(k, job);
    k->n++;
    k->waiting += job->filed_waiting;
    job->kind = k;
}

struct kind *
kinds_remove(struct job *job)
{
    struct kind *k = job->kind;
    if (!k)
        err_abort("job %u stands in a line and in none", job->id);
    if (k->head == job)
        set_head(k, RB_NEXT(job_line, &k->line, job));
    RB_REMOVE(job_line, &k->line, job);
    job->kind = NULL;
    k->n--;
    k->waiting -= job->filed_waiting;
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
    for (size_t i = 0; i < ks->n_users; i++)
        free(ks->users[i]);
    free(ks->users);
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
    int64_t waiting = 0;
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
        waiting += job->filed_waiting;
        n++;
    }
    *in_lines += n;
    return n == k->n && n > 0 && waiting == k->waiting ? NULL : "a kind's count is wrong";
}

static const char *
check_user(const struct kind_user *u, size_t *n)
{
    struct kind *before = NULL;
    size_t had = *n;
    for (struct kind *k = kind_user_first(u); k; k = kind_user_next(k)) {
        const struct kind_place place = {k->priority, k->head->id, k->head->order};
        if (k->uid != u->uid || kind_place_compare(&k->place, &place) != 0 ||
            (before && compare_kinds(before, k) >= 0))
            return "a kind is not in its place among its user's";
        before = k;
        ++*n;
    }
    return *n - had == u->n && u->n > 0 ? NULL : "a user's count of kinds is wrong";
}

const char *
kinds_check(const struct kinds *ks, size_t *in_lines)
{
    size_t n = 0;
    int64_t work = 0;
    for (size_t i = 0; i < ks->n; i++) {
        const char *wrong = check(ks->at[i], in_lines);
        work += ks->at[i]->work;
        if (wrong || ks->at[i]->slot != i)
            return wrong ? wrong : "a kind is in another's slot";
    }
    for (size_t i = 0; i < ks->n_users; i++) {
        const char *wrong = check_user(ks->users[i], &n);
        if (wrong)
            return wrong;
    }
    if (work != ks->work)
        return "the sum of the kinds' work is wrong";
    return n == ks->n ? NULL : "a kind is in no user's tree";
}
