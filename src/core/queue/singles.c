/* One group per user and name, with a tree of waiting jobs and one of running jobs. Only the
 * first waiting job may start, and only while none runs, so a change moves at most two jobs of
 * a group, however large it is. Called by queue.c, deps.c and plan_explain.c. */
#include "core/queue/singles.h"

#include <bsd/sys/tree.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/err.h"
#include "core/queue/array.h"
#include "core/queue/job.h"

#define TREE_FN static __attribute__((unused))

enum part { PART_NONE, PART_WAITING, PART_RUNNING };

struct job_singles {
    struct job *rbh_root;
};

struct single_group {
    char *key; /* owned; "UID NAME" */
    uint32_t uid;
    const char *name; /* in key */
    struct job_singles waiting, running;
    const struct job *open; /* the job that may start; NULL: none */
    UT_hash_handle hh;
};

/* By submission; an array goes before its split-off tasks. */
static int
compare_singles(const struct job *a, const struct job *b)
{
    uint32_t x = a->array ? a->array : a->id, y = b->array ? b->array : b->id;
    if (x != y)
        return x < y ? -1 : 1;
    if (a->task != b->task)
        return a->task < b->task ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

RB_GENERATE_INTERNAL(job_singles, job, single_entry, compare_singles, TREE_FN)

static enum part
part_of(const struct job *job)
{
    if (!job->req.name || job_state_is_final(job->state))
        return PART_NONE;
    if (job_state_is_active(job->state))
        return PART_RUNNING;
    return job->tasks && array_next(job) < 0 ? PART_NONE : PART_WAITING;
}

static bool
is_in(const struct job *job, const struct single_group *g)
{
    return g && g->uid == job->uid && strcmp(g->name, job->req.name) == 0;
}

static struct single_group *
find_or_make(struct singles *s, const struct job *job)
{
    struct single_group *g;
    char *key = xasprintf("%u %s", job->uid, job->req.name);
    HASH_FIND_STR(s->groups, key, g);
    if (g) {
        free(key);
        return g;
    }
    g = xcalloc(1, sizeof *g);
    g->key = key;
    g->uid = job->uid;
    g->name = strchr(key, ' ') + 1;
    HASH_ADD_KEYPTR(hh, s->groups, g->key, strlen(g->key), g);
    return g;
}

static void
drop(struct singles *s, struct single_group *g)
{
    HASH_DEL(s->groups, g);
    free(g->key);
    free(g);
}

void
singles_free(struct singles *s)
{
    struct single_group *g, *next;
    HASH_ITER(hh, s->groups, g, next)
    drop(s, g);
}

static void
leave(struct job *job)
{
    struct single_group *g = job->single;
    if (job->single_part == PART_WAITING)
        RB_REMOVE(job_singles, &g->waiting, job);
    else if (job->single_part == PART_RUNNING)
        RB_REMOVE(job_singles, &g->running, job);
    if (g && g->open == job)
        g->open = NULL;
    job->single_part = PART_NONE;
    job->single = NULL;
}

static void
enter(struct job *job, struct single_group *g, enum part part)
{
    RB_INSERT(job_singles, part == PART_WAITING ? &g->waiting : &g->running, job);
    job->single_part = (uint8_t)part;
    job->single = g;
}

/* True if it changed. */
static bool
mark(struct job *job)
{
    uint8_t before = job->parked;
    bool waits = job->single_part == PART_WAITING && job->req.singleton;
    if (waits && job->single->open != job)
        job->parked |= PARK_SINGLETON;
    else
        job->parked &= (uint8_t)~PARK_SINGLETON;
    return job->parked != before;
}

/* Updates which job may start; appends the jobs that this changed, except one. */
static int
open_first(struct single_group *g, const struct job *except, struct job **moved, int n)
{
    struct job *first = RB_EMPTY(&g->running) ? RB_MIN(job_singles, &g->waiting) : NULL;
    struct job *before = (struct job *)g->open;
    if (before == first)
        return n;
    g->open = first;
    if (before && mark(before) && before != except)
        moved[n++] = before;
    if (first && mark(first) && first != except)
        moved[n++] = first;
    return n;
}

static int
settle_group(struct singles *s, struct single_group *g, const struct job *except,
             struct job **moved, int n)
{
    if (!g)
        return n;
    n = open_first(g, except, moved, n);
    if (RB_EMPTY(&g->running) && RB_EMPTY(&g->waiting))
        drop(s, g);
    return n;
}

int
singles_settle(struct singles *s, struct job *job, bool gone, struct job *moved[SINGLES_MOVED])
{
    struct single_group *before = job->single, *now = NULL;
    enum part part = gone ? PART_NONE : part_of(job);
    int n = 0;
    if (part != PART_NONE)
        now = is_in(job, before) ? before : find_or_make(s, job);
    if (now != before || part != (enum part)job->single_part) {
        leave(job);
        if (now)
            enter(job, now, part);
    }
    if (before != now)
        n = settle_group(s, before, job, moved, n);
    n = settle_group(s, now, job, moved, n);
    mark(job);
    return n;
}

const struct job *
singles_before(const struct job *job)
{
    const struct single_group *g = job->single;
    if (!g)
        return NULL;
    struct job_singles running = g->running, waiting = g->waiting;
    const struct job *first = RB_MIN(job_singles, &running);
    if (!first)
        first = RB_MIN(job_singles, &waiting);
    return first == job ? NULL : first;
}

const struct job *
singles_next(const struct job *job)
{
    struct job *at = job->single_part == PART_WAITING ? (struct job *)job : NULL;
    while (at && ((at = RB_NEXT(job_singles, NULL, at)) != NULL) && !at->req.singleton)
        ;
    return at;
}

bool
singles_is_behind(const struct job *job, const struct job *other)
{
    return job->req.singleton && job->single_part == PART_WAITING &&
           other->single_part == PART_WAITING && job->single == other->single &&
           compare_singles(other, job) < 0;
}

const char *
singles_check(const struct job *job)
{
    enum part part = part_of(job);
    if ((enum part)job->single_part != part || (part != PART_NONE && !is_in(job, job->single)))
        return "a job's name or state changed and it was not refiled";
    if (part == PART_WAITING && job->req.singleton &&
        !(job->parked & PARK_SINGLETON) != !singles_before(job))
        return "a singleton is parked and should not be, or should be and is not";
    return NULL;
}
