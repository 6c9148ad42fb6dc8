/* Which lines a pass examines: all, unless there are more than rules.depth. Then each user
 * gets an equal part of the depth, and parts that some users do not need go to the others.
 * After something has happened, half of a user's part goes to the user's first lines, and the
 * other half continues after the line where the last pass stopped; in later passes the whole
 * part continues there. So a pass costs the same however many kinds of request there are, and
 * each line is examined again and again: the caller makes plans until one reports that there
 * is no more. The lines of the job with the reservation, of promised jobs, and of jobs for
 * which victims leave or the rest of a limit is kept, are examined wherever they stand. Called
 * by plan.c; the daemon's wait_reason.c explains it to users. */
#include <stdlib.h>

#include "base/err.h"
#include "core/plan/plan_priv.h"

void
planner_look_anew(struct planner *p)
{
    p->anew = true;
}

bool
planner_has_seen(const struct planner *p, const struct kind *k)
{
    return !p->has_unseen || k->seen >= p->anew_since;
}

/* Whether the reason is not found in the ledger. */
static bool
is_of_rules(enum reason reason)
{
    return reason == REASON_USER_LIMIT || reason == REASON_QUEUE_LIMIT ||
           reason == REASON_ARRAY_LIMIT || reason == REASON_RESERVATION;
}

void
plan_tell_unseen(const struct planner *p, const struct ledger *l, const struct job *job)
{
    struct placement unused;
    struct blocked now = {.reason = REASON_NONE};
    if (!job->kind || planner_has_seen(p, job->kind) || is_of_rules(job->kind->blocked.reason))
        return;
    job->kind->blocked = place_job(&job->req.demand, l, &unused, &now)
                             ? (struct blocked){.reason = REASON_PRIORITY, .gpu = -1}
                             : now;
}

void
lines_watch(struct planner *p, uint32_t job)
{
    struct job_list *w = &p->watched;
    if (w->n == w->cap) {
        w->cap = w->cap ? w->cap * 2 : 16;
        w->ids = xrealloc(w->ids, w->cap * sizeof *w->ids);
    }
    w->ids[w->n++] = job;
}

bool
lines_are_watched(const struct planning *pl, const struct job *job)
{
    for (size_t i = 0; i < pl->watched.n; i++) {
        const struct job *x = queue_get(pl->q, pl->watched.ids[i]);
        if (x && x->kind == job->kind)
            return true;
    }
    return false;
}

/* True: the line is examined for the first time since something happened. */
static bool
look_at(struct planning *pl, struct kind *k)
{
    bool is_first = k->seen < pl->planner->anew_since;
    if (is_first && k->user->unseen > 0)
        k->user->unseen--;
    k->seen = pl->planner->plans;
    pl->lines[pl->n_lines++] = k;
    return is_first;
}

/* Lines per user; at least one in front and one further back. */
static size_t
share_of_each(const struct planning *pl)
{
    size_t users = queue_n_users(pl->q), left = pl->planner->rules.depth;
    size_t each = left / users, takers = 0;
    for (size_t i = 0; i < users; i++) {
        size_t n = queue_user(pl->q, i)->n;
        left -= n < each ? n : each;
        takers += n > each;
    }
    each += takers ? left / takers : 0;
    return each < 2 ? 2 : each;
}

static void
look_at_some(struct planning *pl, struct kind_user *u, size_t most)
{
    struct kind *k = kind_user_first(u);
    size_t in_front = pl->planner->anew ? most / 2 : 0, n;
    if (pl->planner->anew) {
        u->unseen = u->n;
        u->n_again = 0;
    }
    for (n = 0; n < in_front; n++, k = kind_user_next(k))
        look_at(pl, k);
    struct kind *from = u->has_seen ? kind_user_behind(u, &u->seen) : NULL;
    if (from && kind_place_compare(&from->place, &k->place) > 0)
        k = from;
    for (; n < most && k; n++, k = kind_user_next(k)) {
        u->n_again = look_at(pl, k) ? 0 : u->n_again + 1;
        u->seen = k->place;
    }
    u->has_seen = k != NULL; /* else it begins at the front again */
    if (u->n_again >= u->n)
        u->unseen = 0; /* a full round found none: the unseen lines are gone */
}

static void
look_at_user(struct planning *pl, struct kind_user *u, size_t most)
{
    if (u->n > most) {
        look_at_some(pl, u, most);
        return;
    }
    for (struct kind *k = kind_user_first(u); k; k = kind_user_next(k))
        look_at(pl, k);
    u->unseen = 0;
}

static void
look_at_line_of(struct planning *pl, uint32_t id)
{
    const struct job *job = queue_get(pl->q, id);
    if (job && job->kind && job->kind->seen != pl->planner->plans)
        look_at(pl, job->kind);
}

static void
look_at_parts(struct planning *pl)
{
    size_t users = queue_n_users(pl->q), each = share_of_each(pl);
    pl->lines = xcalloc(users * each + 1 + PROMISES_MAX + pl->watched.n, sizeof(struct kind *));
    for (size_t i = 0; i < users; i++)
        look_at_user(pl, queue_user(pl->q, i), each);
    look_at_line_of(pl, pl->planner->reserved.job);
    for (size_t i = 0; i < pl->planner->n_promises; i++)
        look_at_line_of(pl, pl->planner->promises[i].job);
    for (size_t i = 0; i < pl->watched.n; i++)
        look_at_line_of(pl, pl->watched.ids[i]);
    for (size_t i = 0; i < users; i++)
        pl->planner->has_unseen |= queue_user(pl->q, i)->unseen > 0;
}

static void
look_at_all(struct planning *pl)
{
    pl->lines = xcalloc(queue_n_kinds(pl->q) + 1, sizeof(struct kind *));
    for (size_t i = 0; i < queue_n_kinds(pl->q); i++)
        look_at(pl, queue_kind(pl->q, i));
}

void
lines_choose(struct planning *pl)
{
    struct planner *p = pl->planner;
    p->plans++;
    if (p->anew)
        p->anew_since = p->plans;
    if (p->anew || !p->has_unseen)
        p->wake_us = NEVER;
    p->has_unseen = false;
    pl->watched = p->watched;
    p->watched = (struct job_list){0};
    if (p->rules.depth && queue_n_kinds(pl->q) > p->rules.depth)
        look_at_parts(pl);
    else
        look_at_all(pl);
    p->anew = false;
}
