/* The lines in which pending jobs stand, one for each kind of request: same demand, user,
 * priority, expected run, preemptible and jobs file. A line is ordered by (order, id), and a
 * plan looks at its head only. queue.c owns them, and says which jobs stand in line; plan.c
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

/* Where a line stands among those of its user: by priority, then as its head does. */
struct kind_place {
    int32_t priority;
    uint32_t id;
    uint64_t order;
};

/* The lines of one user. */
struct kind_user {
    uint32_t uid;
    size_t n;              /* lines, never 0 */
    struct kind_tree tree; /* in the order of their places */
    /* plan_depth.c's: the last line at which it has looked in turn, if any, and how many it has
     * not looked at since something happened. */
    struct kind_place seen;
    bool has_seen;
    size_t unseen;
    size_t n_again; /* looked at in turn one after the other, each for the second time since */
};

/* A line. Read it; kinds.c writes it, plan.c writes blocked, refused and checked, plan_depth.c
 * seen. */
struct kind {
    struct demand demand;
    uint64_t demand_hash;
    uint32_t uid;
    int32_t priority;
    uint32_t file;   /* the jobs file that all of it came from; 0: none */
    int64_t span_ms; /* what one run is expected to take; 0: not known */
    bool preemptible;
    uint32_t n;             /* jobs in it, never 0 */
    int64_t waiting;        /* the same, an array as its tasks that have not left it */
    struct job_line line;   /* their tree */
    struct job *head;       /* the first of it */
    struct blocked blocked; /* why the head did not start in the last plan */
    uint64_t
        refused; /* ledger_changes of that one when blocked, about cards alone, was true; 0 */
    const struct ledger *refused_on;
    uint64_t checked; /* ledger generation for which it is known to be feasible; 0 */
    int64_t work;     /* balance.c's: what its jobs come to, as of when it was last looked at */
    uint64_t seen;    /* the last plan that has looked at it; 0: none has */
    struct kind_user *user;
    struct kind_place place;
    struct {
        struct kind *rbe_left, *rbe_right, *rbe_parent;
        int rbe_color;
    } entry; /* RB_ENTRY(kind), in its user's tree */
    struct kind *hash_next;
    size_t slot; /* in the array of kinds */
};

struct kinds {
    struct kind **at; /* in no order */
    size_t n, cap;
    struct kind **buckets; /* by hash of what makes the kind */
    size_t n_buckets;
    struct kind_user **users; /* users with lines, by uid, ascending */
    size_t n_users, cap_users;
    int64_t work; /* of all */
};

void kinds_init(struct kinds *ks);
void kinds_free(struct kinds *ks); /* the jobs are not theirs */

/* Into the line of its kind, which is made if there is none. */
void kinds_insert(struct kinds *ks, struct job *job);
/* Out of its line, by position: its fields may have changed. The line stays, even if that was
 * its last job, until kinds_drop_if_empty. */
struct kind *kinds_remove(struct job *job);
void kinds_drop_if_empty(struct kinds *ks, struct kind *k); /* NULL is fine */

struct job *kind_next(struct job *job); /* the one behind it in its line, or NULL */

/* Below 0: a is before b. */
int kind_place_compare(const struct kind_place *a, const struct kind_place *b);
/* A user's lines in the order of their places; the one behind a place, be there one at it or
 * not. NULL: no more. */
struct kind *kind_user_first(const struct kind_user *u);
struct kind *kind_user_next(struct kind *k);
struct kind *kind_user_behind(const struct kind_user *u, const struct kind_place *place);

/* Recounts; NULL when all is well, else what is not. Adds how many stand in lines. */
const char *kinds_check(const struct kinds *ks, size_t *in_lines);

#endif
