/* The lines of pending jobs, one for each kind of request: same demand, user, priority,
 * expected run, preemptible and jobs file. A line is ordered by (order, id), and a plan
 * examines only its head. queue.c owns the lines and decides which jobs are in one; plan.c
 * reads them. */
#ifndef CORE_QUEUE_KINDS_H
#define CORE_QUEUE_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/queue/blocked.h"
#include "core/queue/job.h"

struct ledger;

struct job_line { /* libbsd's RB_HEAD(job_line, job), written out */
    struct job *rbh_root;
};
struct kind_tree { /* RB_HEAD(kind_tree, kind) */
    struct kind *rbh_root;
};

/* Sort key of a line among its user's lines: priority, then its head's place. */
struct kind_place {
    int32_t priority;
    uint32_t id;
    uint64_t order;
};

/* The lines of one user. */
struct kind_user {
    uint32_t uid;
    size_t n;              /* lines, never 0 */
    struct kind_tree tree; /* sorted by place */
    /* For plan_depth.c: the last line it examined in turn, if any, and how many lines it has
     * not examined since something happened. */
    struct kind_place seen;
    bool has_seen;
    size_t unseen;
    size_t n_again; /* successive lines examined in turn that had been examined already */
};

/* A line. Only kinds.c writes it, except blocked, refused and checked (plan.c) and seen
 * (plan_depth.c). */
struct kind {
    struct demand demand;
    uint64_t demand_hash;
    uint32_t uid;
    int32_t priority;
    uint32_t file;   /* the jobs file of all its jobs; 0: none */
    int64_t span_ms; /* expected run time; 0: unknown */
    bool preemptible;
    uint32_t n;             /* jobs in it, never 0 */
    int64_t waiting;        /* the same, but an array counts as its tasks not yet split off */
    struct job_line line;   /* tree of its jobs */
    struct job *head;       /* its first job */
    struct blocked blocked; /* why the head did not start in the last plan */
    uint64_t refused;       /* ledger_changes when refused for GPUs alone; 0: not refused */
    const struct ledger *refused_on;
    uint64_t checked; /* ledger generation in which it was found feasible; 0: none */
    int64_t work;     /* for balance.c: its jobs' work when it was last examined */
    uint64_t seen;    /* number of the last plan that examined it; 0: none */
    struct kind_user *user;
    struct kind_place place;
    struct {
        struct kind *rbe_left, *rbe_right, *rbe_parent;
        int rbe_color;
    } entry; /* RB_ENTRY(kind), in its user's tree */
    struct kind *hash_next;
    size_t slot; /* index in kinds.at */
};

struct kinds {
    struct kind **at; /* unordered */
    size_t n, cap;
    struct kind **buckets; /* by hash of the kind's key */
    size_t n_buckets;
    struct kind_user **users; /* users with lines, sorted by uid */
    size_t n_users, cap_users;
    int64_t work; /* sum over all lines */
};

void kinds_init(struct kinds *ks);
void kinds_free(struct kinds *ks); /* does not free the jobs */

/* Puts the job into the line of its kind, which is created if needed. */
void kinds_insert(struct kinds *ks, struct job *job);
/* Takes the job out of its line by position, because its fields may have changed. An empty
 * line stays until kinds_drop_if_empty. */
struct kind *kinds_remove(struct job *job);
void kinds_drop_if_empty(struct kinds *ks, struct kind *k); /* NULL is fine */

struct job *kind_next(struct job *job); /* the next job in its line, or NULL */

/* Below 0: a is before b. */
int kind_place_compare(const struct kind_place *a, const struct kind_place *b);
/* A user's lines sorted by place; kind_user_behind: the first line after a place, whether or
 * not a line is at that place. NULL: no more. */
struct kind *kind_user_first(const struct kind_user *u);
struct kind *kind_user_next(struct kind *k);
struct kind *kind_user_behind(const struct kind_user *u, const struct kind_place *place);

/* Recounts. NULL if it agrees, else what does not. Adds the number of jobs in lines to
 * *in_lines. */
const char *kinds_check(const struct kinds *ks, size_t *in_lines);

#endif
