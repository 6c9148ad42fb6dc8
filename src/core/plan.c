/* The pass over the queue. Heads of lines are looked at in scheduling order (priority, then
 * order); a line whose head finds no room is left for this pass, since room only shrinks
 * while a plan is made and whoever stands behind asks for the same. So the cost follows the
 * number of kinds and of starts, not the number of jobs. */
#include "core/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/balance.h"
#include "core/ledger.h"
#include "core/queue.h"

struct planner {
    struct plan_rules rules;
    struct fair *fair;
    struct reservation reserved;
    struct balance *balance;
};

struct planner *
planner_new(const struct plan_rules *r, struct fair *f)
{
    struct planner *planner = xcalloc(1, sizeof *planner);
    planner->rules = *r;
    planner->fair = f;
    planner->balance = balance_new();
    return planner;
}

void
planner_free(struct planner *p)
{
    if (!p)
        return;
    balance_free(p->balance);
    free(p);
}

void
planner_set_rules(struct planner *p, const struct plan_rules *r)
{
    p->rules = *r;
}

const struct plan_rules *
planner_rules(const struct planner *p)
{
    return &p->rules;
}

const struct reservation *
planner_reservation(const struct planner *p)
{
    return &p->reserved;
}

void
planner_submitted(struct planner *p, const struct demand *d, int64_t n, int64_t now_us)
{
    balance_submitted(p->balance, d, n, now_us);
}

void
planner_ended(struct planner *p, int64_t span_ms, int64_t run_ms)
{
    balance_ended(p->balance, span_ms, run_ms);
}

void
plan_free(struct plan *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->decisions[i].text);
    free(p->decisions);
    *p = (struct plan)PLAN_INIT;
}

static struct decision *
plan_add(struct plan *p, enum decision_type type, uint32_t job)
{
    if (p->n == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 16;
        p->decisions = xrealloc(p->decisions, p->cap * sizeof *p->decisions);
    }
    struct decision *d = &p->decisions[p->n++];
    *d = (struct decision){.type = type, .job = job, .task = -1};
    return d;
}

/* The lines still in play, a binary heap: the one whose next job comes first on top. */

struct lines {
    struct job **heap;
    size_t n;
};

static bool
is_before(const struct job *a, const struct job *b)
{
    if (a->req.priority != b->req.priority)
        return a->req.priority > b->req.priority;
    if (a->order != b->order)
        return a->order < b->order;
    return a->id < b->id;
}

static void
lines_sink(struct lines *h, size_t at)
{
    struct job *job = h->heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= h->n)
            break;
        if (child + 1 < h->n && is_before(h->heap[child + 1], h->heap[child]))
            child++;
        if (!is_before(h->heap[child], job))
            break;
        h->heap[at] = h->heap[child];
        at = child;
    }
    h->heap[at] = job;
}

static void
lines_fill(struct lines *h, const struct queue *q)
{
    h->n = queue_n_kinds(q);
    h->heap = xmalloc((h->n + 1) * sizeof(struct job *));
    for (size_t i = 0; i < h->n; i++)
        h->heap[i] = queue_kind(q, i)->head;
    for (size_t i = h->n / 2; i-- > 0;)
        lines_sink(h, i);
}

/* The top line goes on with this job; NULL: it is out of play. */
static void
lines_next(struct lines *h, struct job *job)
{
    h->heap[0] = job ? job : h->heap[--h->n];
    if (h->n > 0)
        lines_sink(h, 0);
}

/* Everyone in a line that can never start here, with the words why. */
static bool
refuse_infeasible(struct kind *k, const struct ledger *l, struct plan *p)
{
    auto_buf struct buf why = BUF_INIT;
    if (k->checked == ledger_generation(l))
        return false;
    if (place_feasible(&k->demand, l, &why)) {
        k->checked = ledger_generation(l);
        return false;
    }
    for (struct job *job = k->head; job; job = kind_next(job))
        plan_add(p, PLAN_INFEASIBLE, job->id)->text = xstrdup(buf_str(&why));
    return true;
}

static bool
start(struct job *job, struct ledger *l, struct plan *p)
{
    struct placement where;
    if (!place_job(&job->req.demand, l, &where, &job->kind->blocked))
        return false;
    ledger_hold(l, job->id, &job->req.demand, where.gpus, where.n);
    plan_add(p, PLAN_START, job->id)->where = where;
    return true;
}

/* Those passed over early were told of room that others have taken since. */
static void
refresh_reasons(struct queue *q, const struct ledger *l)
{
    for (size_t i = 0; i < queue_n_kinds(q); i++) {
        struct kind *k = queue_kind(q, i);
        struct placement unused;
        if (k->blocked.reason != REASON_NONE)
            place_job(&k->demand, l, &unused, &k->blocked);
    }
}

void
plan_make(struct planner *planner, struct queue *q, struct ledger *l, int64_t now_us,
          uint32_t *next_id, struct plan *p)
{
    (void)planner;
    (void)next_id;
    struct lines h;
    plan_free(p);
    queue_wake(q, now_us);
    lines_fill(&h, q);
    while (h.n > 0) {
        struct job *job = h.heap[0];
        if (refuse_infeasible(job->kind, l, p)) {
            lines_next(&h, NULL);
        } else if (start(job, l, p)) {
            lines_next(&h, kind_next(job));
        } else {
            /* Here the first blocked job will get its reservation, which those behind it
             * must respect: what BLOCKED_RESERVE of policy.h is to pass.c, over the ledger's
             * cards. Until then what does not fit is passed over, as `greedy` does. */
            lines_next(&h, NULL);
        }
    }
    free(h.heap);
    if (p->n > 0)
        refresh_reasons(q, l);
    p->wake_us = queue_next_begin_us(q);
}

void
plan_explain(const struct job *job, struct blocked *out)
{
    *out = (struct blocked){.gpu = -1};
    if (job->state == JOB_HELD) {
        out->reason = REASON_HELD;
    } else if (job->state == JOB_PENDING && !job->kind) {
        out->reason = REASON_BEGIN_TIME;
        out->until_us = job->begin_us;
    } else if (job->state == JOB_PENDING) {
        *out = job->kind->blocked;
        if (out->reason == REASON_NONE)
            out->reason = REASON_PRIORITY;
        if (job->kind->head != job)
            out->ahead = job->kind->head->id;
    }
}

void
plan_explain_text(const struct job *job, struct buf *out)
{
    struct blocked why;
    plan_explain(job, &why);
    blocked_text(&why, &job->req.demand, out);
}
