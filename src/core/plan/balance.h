/* The order `balanced`: short mean waits and bounded waits of wide jobs, from time limits and
 * estimates alone. It costs lines that are looked at and running jobs, never pending ones: only
 * the front of each line is looked at. plan.c asks it; the owner of the queue reports to it
 * what came and what ended.
 *
 * The job that has waited longest in proportion to what it costs the others is first. A narrow
 * job (one card) costs its expected run time, by the root of its part of the card; a wide one
 * also the time in which its cards must be emptied, more when many narrow jobs come, and less
 * the longer it has waited. A wide job waits three hours longer than the node needed, at worst
 * since it came, to work off all that was queued (what was cancelled or held does not count);
 * then it is first for good. Waits are those in line (job_lined_us). It is due when
 * draining its cards would bring it there, and is promised its start (firm.c). A narrow one is
 * first for good only after four times as long: it seldom needs that, and would delay the wide
 * ones. Where nobody knows when the jobs that run will end, a wide job waits longer: up to a
 * day, and so long that emptying its cards idles at most a tenth of the node over its wait;
 * no cards are emptied for it before. Expected run times are the limits and estimates,
 * corrected by how far ended jobs with like ones stayed below theirs. docs/scheduling.md has
 * what this gives, measured, and where the constants come from.
 *
 * Reports are not stored: the daemon feeds a new planner from its history. A job with a limit
 * about which nothing is known is assumed to take a quarter of it. */
#ifndef CORE_PLAN_BALANCE_H
#define CORE_PLAN_BALANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/queue/job.h"

struct balance;
struct kind;
struct ledger;
struct queue;

struct balance *balance_new(void);
void balance_free(struct balance *b);                   /* NULL is fine */
struct balance *balance_clone(const struct balance *b); /* for a look ahead */

/* So many jobs (tasks of an array) with this demand have been submitted. */
void balance_submitted(struct balance *b, const struct demand *d, int64_t n, int64_t now_us);
/* A run has ended that was expected to take span_ms (0: not known) and took run_ms. */
void balance_ended(struct balance *b, int64_t span_ms, int64_t run_ms);

/* A run was cancelled after so long: what was expected of it beyond that is no backlog. */
void balance_stopped(struct balance *b, const struct job *job, int64_t run_ms);
/* The wall clock was set. */
void balance_clock_set(struct balance *b, int64_t by_us);

/* GPU-seconds that this line has before it, which the backlog counts from then on: of each line
 * that a pass looks at, before the pass begins. */
void balance_weigh(struct balance *b, struct queue *q, struct kind *k);
/* Once in each pass, before anything is booked: the backlog and the ends that are expected. */
void balance_begin(struct balance *b, const struct queue *q, const struct ledger *l,
                   int64_t now_us);

/* Something has been booked since. */
void balance_booked(struct balance *b);

/* Where the front job of a line stands in this pass. */
struct balance_key {
    int64_t first_since_us; /* it has waited for its limit; 0: it has not */
    int64_t waited_ms;
    int64_t charge; /* what its start costs the others, 1/1024 s */
    bool due;       /* first for good, or a wide job that draining its cards brings there */
    bool reserves;  /* when it does not fit it is to have a reservation; else passed over */
};

/* May set job->first_since_us. */
void balance_key(struct balance *b, const struct kind *k, struct job *job,
                 struct balance_key *out);

/* For lists: balance_listed says where any job of the line stands, and sets nothing. The copy
 * is to be used for nothing else; q and l may change meanwhile. */
struct balance *balance_clone_for_list(const struct balance *b, const struct queue *q,
                                       const struct ledger *l, int64_t now_us);
void balance_listed(struct balance *b, const struct kind *k, const struct job *job,
                    struct balance_key *out);

/* Below 0: a is tried before b; 0: the order of submission says. */
int balance_compare(const struct balance_key *a, const struct balance_key *b);

#endif
