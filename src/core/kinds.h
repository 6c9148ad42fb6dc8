/* The lines in which pending jobs stand, one for each kind of request: same demand, user,
 * priority, expected run and preemptible. A line is ordered by (order, id), and a plan looks at
 * its head only. queue.c owns them, and says which jobs stand in line; plan.c reads them. */
#ifndef CORE_KINDS_H
#define CORE_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/job.h"
#include "core/place.h"

struct job_line { /* libbsd's RB_HEAD(job_line, job), written out */
    struct job *rbh_root;
};

/* A line. Read it; kinds.c writes it, plan.c writes blocked and checked. */
struct kind {
    struct demand demand;
    uint32_t uid;
    int32_t priority;
    int64_t span_ms; /* what one run is expected to take; 0: not known */
    bool preemptible;
    uint32_t n;             /* jobs in it, never 0 */
    struct job_line line;   /* their tree */
    struct job *head;       /* the first of it */
    struct blocked blocked; /* why the head did not start in the last plan */
    uint64_t checked;       /* ledger generation for which it is known to be feasible; 0 */
    struct kind *hash_next;
    size_t slot; /* in the array of kinds */
};

struct kinds {
    struct kind **at; /* in no order */
    size_t n, cap;
    struct kind **buckets; /* by hash of what makes the kind */
    size_t n_buckets;
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

/* Recounts; NULL when all is well, else what is not. Adds how many stand in lines. */
const char *kinds_check(const struct kinds *ks, size_t *in_lines);

#endif
