/* Makes a list of jobs in steps: see lineup.h. The first steps copy the sort keys out of the
 * jobs, because jobs may be removed before the list is finished. The copies are sorted by
 * merging, which can be split into steps of any size. */
#include "core/plan/lineup.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/plan/plan_priv.h"

#define BUCKETS_EACH 2048 /* buckets of the queue's table per step */
#define RUN          1024 /* entries sorted at once */
#define MERGE_EACH   4096 /* entries merged per step */

enum group { ACTIVE, ENDED_FIRST, IN_LINE, WAITING, HELD, ENDED };

struct entry {
    uint32_t id, uid;
    uint64_t order;
    int64_t priority;
    int64_t before; /* PLACES: pending jobs ahead of it */
    int32_t n;      /* pending jobs it stands for */
    uint8_t group;  /* enum group */
};

/* Additional keys of jobs in line. */
struct lined_up {
    int64_t used;
    double cost; /* added to its user's use by its start */
    struct turn turn;
    /* PLAN_BALANCED: the rest. */
    struct balance_key balance;
    uintptr_t line;  /* file number, or address of the kind: the line whose order is kept */
    uint32_t before; /* previous entry of its line; itself: none */
    uint32_t as;     /* entry that decides its turn: itself, or one that it may not pass */
    bool is_of_file;
};

struct owner {
    uint32_t uid;
    double used;
};

/* A merge sort of entry numbers; merges two runs of `width`, from `low` on. */
struct sorting {
    uint32_t *from, *to; /* owned; the runs, and the output of the merge */
    size_t width, low, left, right, at;
};

struct lineup {
    struct planner *planner;
    const struct queue *q;
    const struct ledger *l;
    int64_t now_us;
    enum lineup_order order;
    struct owner *owners; /* owned; by uid */
    size_t n_owners;
    int32_t top_priority;
    struct entry *entries;   /* owned */
    struct lined_up *lined;  /* owned; parallel to entries; NULL: not sorted by turn */
    struct balance *balance; /* owned; NULL: not PLAN_BALANCED */
    double mean_used;        /* of all users; PLAN_BALANCED */
    size_t n, cap;
    int64_t waiting;
    struct queue_at at;
    struct sorting sorting;
    enum {
        COLLECT,
        SORT_LINES,
        KEEP_LINES,
        SORT,
        CHARGE,
        SORT_CHARGED,
        NUMBER,
        SORT_NUMBERED,
        DONE
    } phase;
    size_t done; /* entries done in this phase */
};

/* Copies. */

static int
compare_owners(const void *a, const void *b)
{
    const struct owner *x = a, *y = b;
    return x->uid < y->uid ? -1 : x->uid > y->uid;
}

static struct owner *
owner_of(const struct lineup *x, uint32_t uid)
{
    const struct owner key = {.uid = uid};
    return x->n_owners == 0 ? NULL
                            : bsearch(&key, x->owners, x->n_owners, sizeof key, compare_owners);
}

/* The current use of users with jobs in line. */
static void
note_owners(struct lineup *x)
{
    struct planning pl = {.planner = x->planner,
                          .q = (struct queue *)x->q, /* only read */
                          .l = (struct ledger *)x->l,
                          .now_us = x->now_us};
    plan_users_begin(&pl);
    x->top_priority = plan_top_priority(x->q);
    x->n_owners = queue_n_users(x->q);
    x->owners = xcalloc(x->n_owners + 1, sizeof *x->owners);
    for (size_t i = 0; i < x->n_owners; i++) {
        uint32_t uid = queue_user(x->q, i)->uid;
        x->owners[i] = (struct owner){uid, plan_users_get(&pl, uid)->used};
    }
    x->mean_used = fronts_mean_used(&pl.users);
    plan_users_free(&pl);
}

static bool
is_about_turns(const struct lineup *x)
{
    return x->order == LINEUP_IN_TURN || x->order == LINEUP_PLACES;
}

static enum group
group_of(const struct lineup *x, const struct job *job)
{
    bool in_turn = is_about_turns(x);
    if (job_state_is_active(job->state))
        return ACTIVE;
    if (job_state_is_final(job->state))
        return in_turn ? ENDED_FIRST : ENDED;
    if (!in_turn)
        return WAITING;
    return job->state == JOB_HELD ? HELD : job->kind ? IN_LINE : WAITING;
}

static void
note_turn(const struct lineup *x, const struct job *job, struct entry *e, struct lined_up *u)
{
    const struct owner *owner = owner_of(x, job->uid); /* NULL: the user is new */
    struct planning pl = {.planner = x->planner,
                          .l = (struct ledger *)x->l,
                          .now_us = x->now_us,
                          .top_priority = x->top_priority};
    u->turn = turn_of(&pl, job);
    e->priority = u->turn.priority;
    u->used = owner ? used_in_steps(owner->used) : 0;
    u->cost = users_cost_anywhere(&pl, job->uid, &job->req.demand);
    if (!x->balance)
        return;
    balance_listed(x->balance, job->kind, job, &u->balance);
    u->is_of_file = job->file != 0;
    u->line = u->is_of_file ? job->file : (uintptr_t)job->kind;
}

static void
make_room(struct lineup *x)
{
    if (x->n < x->cap)
        return;
    x->cap = x->cap ? x->cap * 2 : 1024;
    x->entries = xrealloc(x->entries, x->cap * sizeof *x->entries);
    if (is_about_turns(x))
        x->lined = xrealloc(x->lined, x->cap * sizeof *x->lined);
}

static void
collect(struct job *job, void *arg)
{
    struct lineup *x = arg;
    make_room(x);
    struct entry *e = &x->entries[x->n++];
    *e = (struct entry){.id = job->id, .uid = job->uid};
    if (x->order == LINEUP_BY_ID)
        return;
    e->group = (uint8_t)group_of(x, job);
    if (job->state == JOB_PENDING)
        e->n = job->tasks ? array_n_pending(job) : 1;
    if (e->group != IN_LINE && e->group != WAITING && e->group != HELD)
        return; /* these are sorted by id */
    e->order = job->order;
    e->priority = job->req.priority;
    if (e->group == IN_LINE)
        note_turn(x, job, e, &x->lined[x->n - 1]);
}

/* Orders. */

static bool
is_same_line(const struct lined_up *u, const struct lined_up *v)
{
    return u->line == v->line && u->is_of_file == v->is_of_file;
}

/* By line; in a jobs file, due jobs first: see plan_order.c. */
static int
compare_in_line(const struct lined_up *u, const struct lined_up *v)
{
    if (u->is_of_file != v->is_of_file)
        return u->is_of_file ? -1 : 1;
    if (u->line != v->line)
        return u->line < v->line ? -1 : 1;
    if (u->is_of_file && u->balance.due != v->balance.due)
        return u->balance.due ? -1 : 1;
    return 0;
}

static int
compare_balanced(const struct lineup *x, const struct lined_up *u, const struct lined_up *v)
{
    return turn_compare_balanced(x->mean_used, u->used, &u->balance, v->used, &v->balance);
}

static int
compare_turns(const struct lineup *x, const struct lined_up *u, const struct lined_up *v)
{
    if (x->phase == SORT_LINES)
        return compare_in_line(u, v);
    if (x->balance)
        return compare_balanced(x, &x->lined[u->as], &x->lined[v->as]);
    int c = (u->used > v->used) - (u->used < v->used);
    return c ? c : turn_compare(x->planner->rules.order, &u->turn, &v->turn);
}

static int
compare(const void *va, const void *vb, void *arg)
{
    const struct lineup *x = arg;
    uint32_t i = *(const uint32_t *)va, j = *(const uint32_t *)vb;
    const struct entry *a = &x->entries[i], *b = &x->entries[j];
    if (x->phase == SORT_NUMBERED)
        return (a->id > b->id) - (a->id < b->id);
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    int c = a->group == IN_LINE ? compare_turns(x, &x->lined[i], &x->lined[j]) : 0;
    if (c)
        return c;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static void
begin_sorting(struct lineup *x)
{
    struct sorting *s = &x->sorting;
    bool first = !s->from;
    s->from = first ? xcalloc(x->n + 1, sizeof *s->from) : s->from;
    s->to = first ? xcalloc(x->n + 1, sizeof *s->to) : s->to;
    for (size_t i = 0; first && i < x->n; i++)
        s->from[i] = (uint32_t)i;
    s->width = s->low = 0;
}

static void
begin_pair(struct sorting *s, size_t low)
{
    s->low = s->left = s->at = low;
    s->right = low + s->width;
}

static void
sort_run(struct lineup *x)
{
    struct sorting *s = &x->sorting;
    size_t n = x->n - s->low < RUN ? x->n - s->low : RUN;
    if (n > 1)
        qsort_r(s->from + s->low, n, sizeof *s->from, compare, x);
    s->low += n;
    if (s->low < x->n)
        return;
    s->width = RUN;
    begin_pair(s, 0);
}

static void
merge_some(struct lineup *x)
{
    struct sorting *s = &x->sorting;
    for (size_t k = 0; k < MERGE_EACH && s->at < x->n; k++) {
        size_t middle = s->low + s->width, end = middle + s->width;
        middle = middle < x->n ? middle : x->n;
        end = end < x->n ? end : x->n;
        bool left = s->left < middle &&
                    (s->right >= end || compare(&s->from[s->left], &s->from[s->right], x) <= 0);
        s->to[s->at++] = s->from[left ? s->left++ : s->right++];
        if (s->at == end)
            begin_pair(s, end);
    }
    if (s->at < x->n)
        return;
    uint32_t *merged = s->to;
    s->to = s->from;
    s->from = merged;
    s->width *= 2;
    begin_pair(s, 0);
}

/* True: the sort is finished. */
static bool
sort_some(struct lineup *x)
{
    if (x->sorting.width == 0)
        sort_run(x);
    else if (x->sorting.width < x->n)
        merge_some(x);
    return x->sorting.width > 0 && x->sorting.width >= x->n;
}

/* Gives a job that may not pass the previous one of its line that job's turn, if it is
 * later. */
static void
keep_behind(const struct lineup *x, uint32_t i)
{
    struct lined_up *u = &x->lined[i];
    uint32_t before = x->lined[u->before].as;
    u->as = i;
    if (u->before != i && compare_balanced(x, u, &x->lined[before]) < 0)
        u->as = before;
}

static bool
keep_some(struct lineup *x)
{
    const uint32_t *in_lines = x->sorting.from;
    for (size_t k = 0; k < MERGE_EACH && x->done < x->n; k++, x->done++) {
        uint32_t i = in_lines[x->done], before = x->done ? in_lines[x->done - 1] : i;
        if (x->entries[i].group != IN_LINE)
            continue;
        bool is_behind = x->entries[before].group == IN_LINE &&
                         x->entries[before].priority == x->entries[i].priority &&
                         is_same_line(&x->lined[i], &x->lined[before]);
        x->lined[i].before = is_behind ? before : i;
        keep_behind(x, i);
    }
    return x->done == x->n;
}

/* Charges each job as if its user's jobs ahead of it had started. */
static bool
charge_some(struct lineup *x)
{
    for (size_t k = 0; k < MERGE_EACH && x->done < x->n; k++) {
        uint32_t i = x->sorting.from[x->done++];
        const struct entry *e = &x->entries[i];
        struct owner *owner = e->group == IN_LINE ? owner_of(x, e->uid) : NULL;
        if (!owner)
            continue;
        x->lined[i].used = used_in_steps(owner->used);
        owner->used += x->lined[i].cost;
        if (x->balance)
            keep_behind(x, i);
    }
    return x->done == x->n;
}

static bool
number_some(struct lineup *x)
{
    for (size_t k = 0; k < MERGE_EACH && x->done < x->n; k++) {
        struct entry *e = &x->entries[x->sorting.from[x->done++]];
        e->before = x->waiting;
        x->waiting += e->n;
    }
    return x->done == x->n;
}

struct lineup *
lineup_begin(struct planner *planner, const struct queue *q, const struct ledger *l,
             int64_t now_us, enum lineup_order order)
{
    struct lineup *x = xcalloc(1, sizeof *x);
    *x = (struct lineup){.planner = planner, .q = q, .l = l, .now_us = now_us, .order = order};
    if (is_about_turns(x))
        note_owners(x);
    if (is_about_turns(x) && planner->rules.order == PLAN_BALANCED)
        x->balance = balance_clone_for_list(planner->balance, q, l, now_us);
    return x;
}

void
lineup_free(struct lineup *x)
{
    if (!x)
        return;
    balance_free(x->balance);
    free(x->owners);
    free(x->entries);
    free(x->lined);
    free(x->sorting.from);
    free(x->sorting.to);
    free(x);
}

static bool
do_some(struct lineup *x)
{
    switch (x->phase) {
    case SORT_LINES:
    case SORT:
    case SORT_CHARGED:
    case SORT_NUMBERED:
        return sort_some(x);
    case KEEP_LINES:
        return keep_some(x);
    case CHARGE:
        return charge_some(x);
    case NUMBER:
        return number_some(x);
    case COLLECT:
    case DONE:
        break;
    }
    bool done = !queue_walk(x->q, &x->at, BUCKETS_EACH, collect, x);
    if (x->at.begun_anew)
        x->n = 0;
    return done;
}

static void
next_phase(struct lineup *x)
{
    bool is_last = (x->phase == SORT && !is_about_turns(x)) ||
                   (x->phase == SORT_CHARGED && x->order == LINEUP_IN_TURN);
    bool keeps_lines = x->phase != COLLECT || x->balance;
    x->phase = is_last ? DONE : keeps_lines ? x->phase + 1 : SORT;
    x->done = 0;
    if (x->phase == SORT_LINES || x->phase == SORT || x->phase == SORT_CHARGED ||
        x->phase == SORT_NUMBERED)
        begin_sorting(x);
    if (x->phase == NUMBER || x->phase == DONE) {
        free(x->lined);
        x->lined = NULL;
    }
}

bool
lineup_step(struct lineup *x)
{
    if (x->phase != DONE && do_some(x))
        next_phase(x);
    return x->phase != DONE;
}

uint32_t *
lineup_ids(const struct lineup *x, size_t *n)
{
    uint32_t *ids = xcalloc(x->n + 1, sizeof *ids);
    for (size_t i = 0; i < x->n; i++)
        ids[i] = x->entries[x->sorting.from[i]].id;
    *n = x->n;
    return ids;
}

bool
lineup_place(const struct lineup *x, uint32_t id, int64_t *before)
{
    size_t low = 0, high = x->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct entry *e = &x->entries[x->sorting.from[mid]];
        *before = e->before;
        if (e->id == id)
            return e->n > 0;
        if (e->id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

int64_t
lineup_waiting(const struct lineup *x)
{
    return x->waiting;
}
