/* The table of jobs: one hash table by id. Each job also has one tree entry, in the tree of
 * where it belongs: its kind's line (kinds.c), or the jobs that wait for a time, are parked,
 * held, active or ended. Fed by the daemon, read by plan.c; decides nothing about GPUs. */
#include "core/queue/queue.h"

#include <bsd/sys/tree.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/queue/array.h"
#include "core/queue/kinds.h"
#include "core/queue/singles.h"
#include "core/queue/waiting.h"

/* RB_GENERATE_STATIC needs BSD's __unused, which glibc does not have. */
#define TREE_FN static __attribute__((unused))

#define BUCKETS_FIRST 256 /* a power of two */
/* Bytes. Smaller environments, which most are, are not counted: the limit on jobs bounds
 * them. */
#define ENV_COUNTED 4096

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

struct queue {
    struct job **buckets; /* by id */
    size_t n_buckets, n;
    size_t counts[JOB_STATES];
    struct job_later later;
    struct job_ids ids[PLACES]; /* held, parked, active, ended */
    struct kinds kinds;
    struct waiting waiting;
    bool tells_users; /* demands name their users */
    struct singles singles;
    uint32_t *moved; /* owned; joined or left a line and not yet marked */
    size_t n_moved, cap_moved;
    struct dropped *dropped; /* owned */
    size_t n_dropped, cap_dropped;
};

static int
compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
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
    return waiting_of(&q->waiting, uid);
}

int64_t
queue_envs_of(const struct queue *q, uint32_t uid)
{
    return waiting_envs_of(&q->waiting, uid);
}

bool
queue_has_env(const struct queue *q, uint32_t uid, int64_t env)
{
    return waiting_has_env(&q->waiting, uid, env);
}

int64_t
queue_text_of(const struct queue *q, uint32_t uid)
{
    return waiting_text_of(&q->waiting, uid);
}

int64_t
queue_n_in(const struct queue *q, enum job_state s)
{
    if (s == JOB_HELD)
        return q->waiting.held;
    return s == JOB_PENDING ? q->waiting.total - q->waiting.held : (int64_t)q->counts[s];
}

bool
queue_user_waiting(const struct queue *q, size_t i, uint32_t *uid, int64_t *n)
{
    if (i >= q->waiting.n_users)
        return false;
    *uid = q->waiting.users[i].uid;
    *n = q->waiting.users[i].n;
    return true;
}

int64_t
queue_n_waiting(const struct queue *q)
{
    return q->waiting.total;
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

uint64_t
queue_user_of(uint32_t uid)
{
    return (uint64_t)uid + 1;
}

/* The time in line runs for jobs in line and stands still for others. */
static void
note_moved(struct queue *q, struct job *job, bool in_line)
{
    if (in_line && job->lined_us > 0 && !job->joined_us)
        job->joined_us = job->lined_us; /* loaded from the store */
    if (job->line_moved || in_line == (job->lined_us > 0))
        return;
    job->line_moved = true;
    q->moved = xgrow(q->moved, q->n_moved, &q->cap_moved, sizeof *q->moved);
    q->moved[q->n_moved++] = job->id;
}

/* True if it changed. */
static bool
mark_line(struct job *job, int64_t now_us)
{
    bool in_line = job->filed_place == PLACE_LINE;
    if (in_line == (job->lined_us > 0))
        return false;
    job->lined_us = in_line ? now_us + job->lined_us : -job_lined_us(job, now_us);
    if (in_line)
        job->joined_us = now_us;
    return true;
}

void
queue_mark_lines(struct queue *q, int64_t now_us, void (*fn)(struct job *job, void *arg),
                 void *arg)
{
    for (size_t i = 0; i < q->n_moved; i++) {
        struct job *job = queue_get(q, q->moved[i]);
        if (!job || !job->line_moved)
            continue;
        job->line_moved = false;
        if (mark_line(job, now_us) && fn)
            fn(job, arg);
    }
    q->n_moved = 0;
}

const struct dropped *
queue_dropped(const struct queue *q, size_t *n)
{
    *n = q->n_dropped;
    return q->dropped;
}

void
queue_forget_dropped(struct queue *q)
{
    q->n_dropped = 0;
}

/* Whether a job that leaves its line for this place will not start soon. A job that waits for
 * its array's running tasks, or for others of its name, is still queued work. */
static bool
is_dropped(const struct job *job, enum place place)
{
    if (place != PLACE_PARKED)
        return place != PLACE_ACTIVE;
    if (job->tasks && array_next(job) < 0)
        return job->cancel_asked || job->filed_waiting > 1; /* else the last has started */
    return job->parked & PARK_DEPENDENCY;
}

/* Call it before the job leaves its line for this place, or for another kind's line. */
static void
note_dropped(struct queue *q, const struct job *job, enum place place)
{
    const struct kind *k = job->kind;
    const struct demand *d = &job->req.demand;
    bool stays = place == PLACE_LINE;
    if (!k || !job->joined_us || (!stays && !is_dropped(job, place)))
        return;
    struct dropped x = {.joined_us = job->joined_us,
                        .n = job->filed_waiting,
                        .span_ms = k->span_ms,
                        .gpus = demand_n_gpus_here(&k->demand)};
    if (stays && k->span_ms == job->span_ms && x.gpus == demand_n_gpus_here(d))
        return;
    if (stays) {
        x.stays_n = count_waiting(job);
        x.stays_span_ms = job->span_ms;
        x.stays_gpus = demand_n_gpus_here(d);
    }
    q->dropped = xgrow(q->dropped, q->n_dropped, &q->cap_dropped, sizeof *q->dropped);
    q->dropped[q->n_dropped++] = x;
}

static void
file_at(struct queue *q, struct job *job, enum place place)
{
    job->req.demand.user = q->tells_users ? queue_user_of(job->uid) : 0;
    job->filed_waiting = count_waiting(job);
    note_moved(q, job, place == PLACE_LINE);
    if (place == PLACE_LINE)
        kinds_insert(&q->kinds, job);
    else if (place == PLACE_LATER)
        RB_INSERT(job_later, &q->later, job);
    else
        RB_INSERT(job_ids, &q->ids[place], job);
    job->filed_place = (uint8_t)place;
    job->filed_state = (uint8_t)job->state;
    q->counts[job->state]++;
    job->filed_uid = job->uid;
    waiting_add(&q->waiting, job->filed_uid, job->filed_waiting, job->filed_state == JOB_HELD);
    job->filed_text = request_text_bytes(&job->req);
    waiting_add_text(&q->waiting, job->filed_uid, job->filed_text);
    job->filed_env = job->env_bytes >= ENV_COUNTED ? job->env : 0;
    if (job->filed_env)
        waiting_add_env(&q->waiting, job->filed_uid, job->filed_env, job->env_bytes);
}

/* Removes the job from its tree by position, not by key, because its fields may have changed.
 * Returns the line that it leaves, for kinds_drop_if_empty; or NULL. */
static struct kind *
unfile_from(struct queue *q, struct job *job)
{
    struct kind *left = NULL;
    if (job->filed_place == PLACE_LINE)
        left = kinds_remove(job);
    else if (job->filed_place == PLACE_LATER)
        RB_REMOVE(job_later, &q->later, job);
    else
        RB_REMOVE(job_ids, &q->ids[job->filed_place], job);
    job->filed_place = PLACE_NONE;
    q->counts[job->filed_state]--;
    waiting_add(&q->waiting, job->filed_uid, -(int64_t)job->filed_waiting,
                job->filed_state == JOB_HELD);
    waiting_add_text(&q->waiting, job->filed_uid, -job->filed_text);
    if (job->filed_env)
        waiting_drop_env(&q->waiting, job->filed_uid, job->filed_env);
    return left;
}

static void
unfile(struct queue *q, struct job *job)
{
    kinds_drop_if_empty(&q->kinds, unfile_from(q, job));
}

static void
file_anew(struct queue *q, struct job *job)
{
    /* A job that leaves and rejoins its line must not lose what the plan recorded for the
     * line. */
    enum place place = place_of(job);
    note_dropped(q, job, place);
    struct kind *left = unfile_from(q, job);
    file_at(q, job, place);
    kinds_drop_if_empty(&q->kinds, left);
}

/* The job's new state may let another job of its name start, or stop it from starting. */
static void
settle_singles(struct queue *q, struct job *job, bool gone)
{
    struct job *moved[SINGLES_MOVED];
    int n = singles_settle(&q->singles, job, gone, moved);
    for (int i = 0; i < n; i++)
        file_anew(q, moved[i]);
}

struct queue *
queue_new(void)
{
    struct queue *q = xcalloc(1, sizeof *q);
    q->n_buckets = BUCKETS_FIRST;
    q->buckets = xcalloc(q->n_buckets, sizeof(struct job *));
    kinds_init(&q->kinds);
    return q;
}

void
queue_tell_users_apart(struct queue *q)
{
    if (q->n > 0)
        err_abort("%zu jobs are in lines already", q->n);
    q->tells_users = true;
}

bool
queue_tells_users_apart(const struct queue *q)
{
    return q->tells_users;
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
    kinds_free(&q->kinds);
    free(q->buckets);
    free(q->moved);
    free(q->dropped);
    waiting_free(&q->waiting);
    singles_free(&q->singles);
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
    settle_singles(q, job, false);
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
    settle_singles(q, job, true);
    return job;
}

struct job *
queue_get(const struct queue *q, uint32_t id)
{
    return *job_slot(q, id);
}

struct job *
queue_task(const struct queue *q, const struct job *array, int32_t task)
{
    const struct tasks *t = array->tasks;
    for (int32_t i = 0; t && i < t->live; i++) {
        struct job *job = queue_get(q, t->live_ids[i]);
        if (job && job->task == task)
            return job;
    }
    return NULL;
}

void
queue_refile(struct queue *q, struct job *job)
{
    struct job *moved[SINGLES_MOVED];
    int n = singles_settle(&q->singles, job, false, moved);
    /* The job first: it is still filed under its old key, so nothing may be inserted
     * before. */
    file_anew(q, job);
    for (int i = 0; i < n; i++)
        file_anew(q, moved[i]);
}

void
queue_reorder(struct queue *q, struct job *job, uint64_t order)
{
    job->order = order;
    queue_refile(q, job);
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

bool
queue_wake(struct queue *q, int64_t now_us)
{
    for (bool any = false;; any = true) {
        struct job *job = RB_MIN(job_later, &q->later);
        if (!job || job->begin_us > now_us)
            return any;
        unfile(q, job);
        if (job->lined_us <= 0)
            job->lined_us += job->begin_us;
        job->joined_us = job->begin_us;
        job->begin_us = 0; /* it has passed */
        file_at(q, job, PLACE_LINE);
    }
}

int64_t
queue_next_begin_us(const struct queue *q)
{
    const struct job *job = queue_later(q);
    return job ? job->begin_us : INT64_MAX;
}

struct job *
queue_later(const struct queue *q)
{
    struct job_later later = q->later;
    return RB_MIN(job_later, &later);
}

struct job *
queue_later_next(struct job *job)
{
    return RB_NEXT(job_later, NULL, job);
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
    return q->kinds.n;
}

struct kind *
queue_kind(const struct queue *q, size_t i)
{
    return q->kinds.at[i];
}

void
queue_set_work(struct queue *q, struct kind *k, int64_t work)
{
    q->kinds.work += work - k->work;
    k->work = work;
}

int64_t
queue_work(const struct queue *q)
{
    return q->kinds.work;
}

size_t
queue_n_users(const struct queue *q)
{
    return q->kinds.n_users;
}

struct kind_user *
queue_user(const struct queue *q, size_t i)
{
    return q->kinds.users[i];
}

/* Listings. Sort keys are copied out, so that sorting 100,000 jobs stays in the cache. */

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

/* Active jobs first, then waiting ones by falling priority, then ended ones. */
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

bool
queue_walk(const struct queue *q, struct queue_at *at, size_t buckets,
           void (*fn)(struct job *, void *), void *arg)
{
    at->begun_anew = at->n_buckets > 0 && at->n_buckets != q->n_buckets;
    if (at->n_buckets != q->n_buckets)
        at->bucket = 0;
    at->n_buckets = q->n_buckets;
    for (; buckets > 0 && !at->begun_anew && at->bucket < q->n_buckets; buckets--)
        for (struct job *job = q->buckets[at->bucket++]; job; job = job->hash_next)
            fn(job, arg);
    return at->bucket < q->n_buckets;
}

/* Checking. */

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
            if (singles_check(job))
                return singles_check(job);
        }
    }
    if (waiting != q->waiting.total || held != q->waiting.held || n != q->n ||
        memcmp(counts, q->counts, sizeof counts) != 0)
        return "the counts are wrong";
    const char *wrong = kinds_check(&q->kinds, &filed);
    if (wrong)
        return wrong;
    struct job_later later = q->later;
    const struct job *before = NULL;
    struct job *job;
    RB_FOREACH(job, job_later, &later)
    {
        if (before && compare_later(before, job) >= 0)
            return "those that wait for a time are out of order";
        before = job;
        filed++;
    }
    for (int p = PLACE_HELD; p < PLACES; p++)
        filed += tree_size(&q->ids[p]);
    return filed == n ? NULL : "a job stands nowhere, or in two places";
}
