/* The table of jobs and their lines. One hash table by id; each job's single tree entry is in
 * the tree of the place where it belongs: its kind's line, those that wait for a time, parked,
 * held, active, ended. Fed by the daemon, read by plan.c; decides nothing about cards. */
#include "core/queue.h"

#include <bsd/sys/tree.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/array.h"

/* RB_GENERATE_STATIC needs BSD's __unused, which glibc does not have. */
#define TREE_FN static __attribute__((unused))

#define BUCKETS_FIRST 256 /* a power of two */

enum place {
    PLACE_NONE, /* not in the queue */
    PLACE_LINE,
    PLACE_LATER,
    PLACE_HELD,
    PLACE_PARKED,
    PLACE_ACTIVE,
    PLACE_ENDED,
};
#define PLACES (PLACE_ENDED + 1)

struct job_later {
    struct job *rbh_root;
};
struct job_ids {
    struct job *rbh_root;
};

/* How many of a user's jobs and tasks wait; by uid, ascending. */
struct waiting {
    uint32_t uid;
    int64_t n;
};

struct queue {
    struct job **buckets; /* by id */
    size_t n_buckets, n;
    size_t counts[JOB_STATES];
    struct job_later later;
    struct job_ids ids[PLACES]; /* held, parked, active, ended */
    struct kind **kinds;
    size_t n_kinds, cap_kinds;
    struct kind **kind_buckets; /* by hash of what makes the kind */
    size_t n_kind_buckets;
    uint64_t max_order;
    struct waiting *waiting;
    size_t n_waiting, cap_waiting;
    int64_t total_waiting, held_waiting; /* of the first, how many are held */
};

static int
compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int
compare_line(const struct job *a, const struct job *b)
{
    int c = compare_u64(a->order, b->order);
    return c ? c : compare_u64(a->id, b->id);
}

static int
compare_later(const struct job *a, const struct job *b)
{
    int c = (a->begin_us > b->begin_us) - (a->begin_us < b->begin_us);
    return c ? c : compare_u64(a->id, b->id);
}

static int
compare_ids(const struct job *a, const struct job *b)
{
    return compare_u64(a->id, b->id);
}

RB_GENERATE_INTERNAL(job_line, job, entry, compare_line, TREE_FN)
RB_GENERATE_INTERNAL(job_later, job, entry, compare_later, TREE_FN)
RB_GENERATE_INTERNAL(job_ids, job, entry, compare_ids, TREE_FN)

/* The table by id. */

static struct job **
job_slot(const struct queue *q, uint32_t id)
{
    struct job **p = &q->buckets[id & (q->n_buckets - 1)];
    while (*p && (*p)->id != id)
        p = &(*p)->hash_next;
    return p;
}

static void
jobs_grow(struct queue *q)
{
    size_t n = q->n_buckets;
    struct job **old = q->buckets;
    q->n_buckets = n * 2;
    q->buckets = xcalloc(q->n_buckets, sizeof(struct job *));
    for (size_t b = 0; b < n; b++) {
        for (struct job *job = old[b], *next; job; job = next) {
            next = job->hash_next;
            struct job **to = &q->buckets[job->id & (q->n_buckets - 1)];
            job->hash_next = *to;
            *to = job;
        }
    }
    free(old);
}

/* Kinds. */

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
kind_slot(const struct queue *q, const struct kind_key *key)
{
    struct kind **p = &q->kind_buckets[kind_hash(key) & (q->n_kind_buckets - 1)];
    while (*p && !kind_has_key(*p, key))
        p = &(*p)->hash_next;
    return p;
}

static struct kind **
slot_of_kind(const struct queue *q, const struct kind *k)
{
    const struct kind_key key = {k->demand, k->span_ms, k->uid, k->priority, k->preemptible};
    return kind_slot(q, &key);
}

static void
kinds_grow(struct queue *q)
{
    free(q->kind_buckets);
    q->n_kind_buckets *= 2;
    q->kind_buckets = xcalloc(q->n_kind_buckets, sizeof(struct kind *));
    for (size_t i = 0; i < q->n_kinds; i++) {
        struct kind *k = q->kinds[i];
        k->hash_next = NULL;
        *slot_of_kind(q, k) = k;
    }
}

static struct kind *
kind_of(struct queue *q, const struct job *job)
{
    const struct kind_key key = key_of(job);
    struct kind **slot = kind_slot(q, &key);
    if (*slot)
        return *slot;
    struct kind *k = xcalloc(1, sizeof *k);
    k->demand = job->req.demand;
    k->uid = job->uid;
    k->priority = job->req.priority;
    k->span_ms = job->span_ms;
    k->preemptible = job->req.preemptible;
    k->slot = q->n_kinds;
    *slot = k;
    if (q->n_kinds == q->cap_kinds) {
        q->cap_kinds = q->cap_kinds ? q->cap_kinds * 2 : 16;
        q->kinds = xrealloc(q->kinds, q->cap_kinds * sizeof(struct kind *));
    }
    q->kinds[q->n_kinds++] = k;
    if (q->n_kinds > q->n_kind_buckets)
        kinds_grow(q);
    return k;
}

static void
kind_drop(struct queue *q, struct kind *k)
{
    *slot_of_kind(q, k) = k->hash_next;
    struct kind *last = q->kinds[--q->n_kinds];
    q->kinds[k->slot] = last;
    last->slot = k->slot;
    free(k);
}

static void
line_insert(struct queue *q, struct job *job)
{
    struct kind *k = kind_of(q, job);
    RB_INSERT(job_line, &k->line, job);
    if (!k->head || compare_line(job, k->head) < 0)
        k->head = job;
    k->n++;
    job->kind = k;
}

/* The line stays, even if that was its last job: drop_if_empty. */
static struct kind *
line_remove(struct job *job)
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

static void
drop_if_empty(struct queue *q, struct kind *k)
{
    if (k && k->n == 0)
        kind_drop(q, k);
}

/* Those that wait, by user. */

static struct waiting *
waiting_of(const struct queue *q, uint32_t uid, size_t *at)
{
    size_t low = 0, high = q->n_waiting;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (q->waiting[mid].uid < uid)
            low = mid + 1;
        else
            high = mid;
    }
    *at = low;
    return low < q->n_waiting && q->waiting[low].uid == uid ? &q->waiting[low] : NULL;
}

static void
waiting_add(struct queue *q, uint32_t uid, int64_t n)
{
    size_t at;
    struct waiting *w = n ? waiting_of(q, uid, &at) : NULL;
    if (n && !w) {
        if (q->n_waiting == q->cap_waiting) {
            q->cap_waiting = q->cap_waiting ? q->cap_waiting * 2 : 8;
            q->waiting = xrealloc(q->waiting, q->cap_waiting * sizeof *q->waiting);
        }
        w = &q->waiting[at];
        memmove(w + 1, w, (q->n_waiting++ - at) * sizeof *w);
        *w = (struct waiting){uid, 0};
    }
    if (w)
        w->n += n;
    q->total_waiting += n;
}

static int32_t
count_waiting(const struct job *job)
{
    if (job->state != JOB_PENDING && job->state != JOB_HELD)
        return 0;
    return job->tasks ? array_n_pending(job) : 1;
}

int64_t
queue_n_waiting_of(const struct queue *q, uint32_t uid)
{
    size_t at;
    const struct waiting *w = waiting_of(q, uid, &at);
    return w ? w->n : 0;
}

int64_t
queue_n_in(const struct queue *q, enum job_state s)
{
    if (s == JOB_HELD)
        return q->held_waiting;
    return s == JOB_PENDING ? q->total_waiting - q->held_waiting : (int64_t)q->counts[s];
}

bool
queue_user_waiting(const struct queue *q, size_t i, uint32_t *uid, int64_t *n)
{
    if (i >= q->n_waiting)
        return false;
    *uid = q->waiting[i].uid;
    *n = q->waiting[i].n;
    return true;
}

int64_t
queue_n_waiting(const struct queue *q)
{
    return q->total_waiting;
}

/* Filing. */

static enum place
place_of(const struct job *job)
{
    if (job_state_is_final(job->state))
        return PLACE_ENDED;
    if (job_state_is_active(job->state))
        return PLACE_ACTIVE;
    if (job->state == JOB_HELD)
        return PLACE_HELD;
    if (job->parked || (job->tasks && array_next(job) < 0))
        return PLACE_PARKED;
    return job->begin_us ? PLACE_LATER : PLACE_LINE;
}

static void
file_at(struct queue *q, struct job *job, enum place place)
{
    if (place == PLACE_LINE)
        line_insert(q, job);
    else if (place == PLACE_LATER)
        RB_INSERT(job_later, &q->later, job);
    else
        RB_INSERT(job_ids, &q->ids[place], job);
    job->filed_place = (uint8_t)place;
    job->filed_state = (uint8_t)job->state;
    q->counts[job->state]++;
    job->filed_waiting = count_waiting(job);
    job->filed_uid = job->uid;
    waiting_add(q, job->filed_uid, job->filed_waiting);
    q->held_waiting += job->filed_state == JOB_HELD ? job->filed_waiting : 0;
    if (job->order > q->max_order)
        q->max_order = job->order;
}

/* The trees are left by position, not by key, so the job's fields may have changed. The line
 * that it leaves, for drop_if_empty; or NULL. */
static struct kind *
unfile_from(struct queue *q, struct job *job)
{
    struct kind *left = NULL;
    if (job->filed_place == PLACE_LINE)
        left = line_remove(job);
    else if (job->filed_place == PLACE_LATER)
        RB_REMOVE(job_later, &q->later, job);
    else
        RB_REMOVE(job_ids, &q->ids[job->filed_place], job);
    job->filed_place = PLACE_NONE;
    q->counts[job->filed_state]--;
    waiting_add(q, job->filed_uid, -(int64_t)job->filed_waiting);
    q->held_waiting -= job->filed_state == JOB_HELD ? job->filed_waiting : 0;
    return left;
}

static void
unfile(struct queue *q, struct job *job)
{
    drop_if_empty(q, unfile_from(q, job));
}

struct queue *
queue_new(void)
{
    struct queue *q = xcalloc(1, sizeof *q);
    q->n_buckets = BUCKETS_FIRST;
    q->buckets = xcalloc(q->n_buckets, sizeof(struct job *));
    q->n_kind_buckets = BUCKETS_FIRST;
    q->kind_buckets = xcalloc(q->n_kind_buckets, sizeof(struct kind *));
    return q;
}

void
queue_free(struct queue *q)
{
    if (!q)
        return;
    for (size_t b = 0; b < q->n_buckets; b++) {
        for (struct job *job = q->buckets[b], *next; job; job = next) {
            next = job->hash_next;
            job_free(job);
        }
    }
    for (size_t i = 0; i < q->n_kinds; i++)
        free(q->kinds[i]);
    free(q->kinds);
    free(q->kind_buckets);
    free(q->buckets);
    free(q->waiting);
    free(q);
}

void
queue_add(struct queue *q, struct job *job)
{
    struct job **slot = job_slot(q, job->id);
    if (*slot || job->id == 0)
        err_abort("job %u is added to the queue twice", job->id);
    *slot = job;
    job->hash_next = NULL;
    if (++q->n > q->n_buckets)
        jobs_grow(q);
    file_at(q, job, place_of(job));
}

struct job *
queue_remove(struct queue *q, uint32_t id)
{
    struct job **slot = job_slot(q, id);
    struct job *job = *slot;
    if (!job)
        return NULL;
    *slot = job->hash_next;
    job->hash_next = NULL;
    q->n--;
    unfile(q, job);
    return job;
}

struct job *
queue_get(const struct queue *q, uint32_t id)
{
    return *job_slot(q, id);
}

void
queue_refile(struct queue *q, struct job *job)
{
    /* A line that it only steps out of keeps what the plan said of it. */
    struct kind *left = unfile_from(q, job);
    file_at(q, job, place_of(job));
    drop_if_empty(q, left);
}

void
queue_reorder(struct queue *q, struct job *job, uint64_t order)
{
    job->order = order;
    queue_refile(q, job);
}

void
queue_requeue(struct queue *q, struct job *job)
{
    queue_reorder(q, job, queue_next_order(q));
}

uint64_t
queue_next_order(const struct queue *q)
{
    return q->max_order + 1;
}

size_t
queue_n(const struct queue *q)
{
    return q->n;
}

size_t
queue_count(const struct queue *q, enum job_state s)
{
    return q->counts[s];
}

size_t
queue_n_active(const struct queue *q)
{
    size_t n = 0;
    for (int s = JOB_STARTING; s <= JOB_COMPLETING; s++)
        n += q->counts[s];
    return n;
}

void
queue_wake(struct queue *q, int64_t now_us)
{
    for (;;) {
        struct job *job = RB_MIN(job_later, &q->later);
        if (!job || job->begin_us > now_us)
            return;
        unfile(q, job);
        job->begin_us = 0; /* it has come */
        file_at(q, job, PLACE_LINE);
    }
}

int64_t
queue_next_begin_us(const struct queue *q)
{
    struct job_later later = q->later;
    const struct job *job = RB_MIN(job_later, &later);
    return job ? job->begin_us : INT64_MAX;
}

struct job *
queue_active(const struct queue *q)
{
    struct job_ids active = q->ids[PLACE_ACTIVE];
    return RB_MIN(job_ids, &active);
}

struct job *
queue_active_next(struct job *job)
{
    return RB_NEXT(job_ids, NULL, job);
}

size_t
queue_n_kinds(const struct queue *q)
{
    return q->n_kinds;
}

struct kind *
queue_kind(const struct queue *q, size_t i)
{
    return q->kinds[i];
}

struct job *
kind_next(struct job *job)
{
    return RB_NEXT(job_line, NULL, job);
}

/* Listings. The keys are copied out, so that sorting 100,000 jobs does not walk memory. */

struct listed {
    int64_t group; /* smaller first */
    uint64_t order;
    uint32_t id;
    struct job *job;
};

static int
compare_listed(const void *va, const void *vb)
{
    const struct listed *a = va, *b = vb;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    int c = compare_u64(a->order, b->order);
    return c ? c : compare_u64(a->id, b->id);
}

/* Active ones in front, ended ones behind, between them by falling priority. */
static void
key_in_order(struct listed *key, const struct job *job)
{
    if (job_state_is_active(job->state)) {
        key->group = INT64_MIN;
    } else if (job_state_is_final(job->state)) {
        key->group = INT64_MAX;
    } else {
        key->group = -(int64_t)job->req.priority;
        key->order = job->order;
    }
}

static struct job **
list_sorted(const struct queue *q, uint32_t states, bool in_order, size_t *n)
{
    size_t total = 0, at = 0;
    for (int s = 0; s < JOB_STATES; s++)
        total += states >> s & 1 ? q->counts[s] : 0;
    *n = total;
    if (!total)
        return NULL;
    struct listed *keys = xmalloc(total * sizeof *keys);
    for (size_t b = 0; b < q->n_buckets; b++) {
        for (struct job *job = q->buckets[b]; job; job = job->hash_next) {
            if (!(states >> job->filed_state & 1))
                continue;
            keys[at] = (struct listed){0, 0, job->id, job};
            if (in_order)
                key_in_order(&keys[at], job);
            at++;
        }
    }
    qsort(keys, total, sizeof *keys, compare_listed);
    struct job **jobs = xmalloc(total * sizeof *jobs);
    for (size_t i = 0; i < total; i++)
        jobs[i] = keys[i].job;
    free(keys);
    return jobs;
}

struct job **
queue_list_by_id(const struct queue *q, uint32_t states, size_t *n)
{
    return list_sorted(q, states, false, n);
}

struct job **
queue_list_in_order(const struct queue *q, uint32_t states, size_t *n)
{
    return list_sorted(q, states, true, n);
}

/* Checking. */

static const char *
check_kind(const struct kind *k, size_t *in_lines)
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

static size_t
tree_size(const struct job_ids *tree)
{
    size_t n = 0;
    struct job_ids ids = *tree;
    struct job *job;
    RB_FOREACH(job, job_ids, &ids)
    n++;
    return n;
}

const char *
queue_check(const struct queue *q)
{
    size_t n = 0, filed = 0, counts[JOB_STATES] = {0};
    int64_t waiting = 0, held = 0;
    for (size_t b = 0; b < q->n_buckets; b++) {
        for (const struct job *job = q->buckets[b]; job; job = job->hash_next) {
            n++;
            counts[job->state]++;
            waiting += count_waiting(job);
            held += job->state == JOB_HELD ? count_waiting(job) : 0;
            if (job->filed_waiting != count_waiting(job) || job->filed_uid != job->uid)
                return "a job's tasks or user changed and it was not refiled";
            if (job->state != (enum job_state)job->filed_state)
                return "a job's state changed and it was not refiled";
            if ((job->filed_place == PLACE_LINE) != (job->kind != NULL))
                return "a job's line and its place disagree";
        }
    }
    if (waiting != q->total_waiting || held != q->held_waiting || n != q->n ||
        memcmp(counts, q->counts, sizeof counts) != 0)
        return "the counts are wrong";
    for (size_t i = 0; i < q->n_kinds; i++) {
        const char *wrong = check_kind(q->kinds[i], &filed);
        if (wrong || q->kinds[i]->slot != i)
            return wrong ? wrong : "a kind is in another's slot";
    }
    struct job_later later = q->later;
    struct job *job;
    RB_FOREACH(job, job_later, &later)
    filed++;
    for (int p = PLACE_HELD; p < PLACES; p++)
        filed += tree_size(&q->ids[p]);
    return filed == n ? NULL : "a job stands nowhere, or in two places";
}
