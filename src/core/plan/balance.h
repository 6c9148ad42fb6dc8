/* The order `balanced`: short mean waits, and bounded waits of wide jobs, from time limits and
 * estimates alone. Only the front of each line is considered, so the cost depends on the lines
 * examined and the running jobs, never on the pending jobs. plan.c calls it; the owner of the
 * queue reports submissions and ends.
 *
 * The job that has waited longest in proportion to what it costs the others goes first. A
 * narrow job (one GPU) costs its expected run time, times the root of its part of the GPU. A
 * wide job also costs the time to drain its GPUs: more when many narrow jobs arrive, and less
 * the longer it has waited. A wide job waits at most the time the node needed to work off the
 * queue at its worst since the job came (without cancelled or held jobs), plus three hours;
 * then it is first for good. Waits are times in line (job_lined_us). It is due, and promised
 * its start (firm.c), once draining its GPUs takes until then. A narrow job is first for good
 * only after four times as long: it seldom needs that, and would delay the wide ones. When the
 * ends of running jobs are unknown, a wide job waits longer: up to a day, and long enough that
 * draining its GPUs idles at most a tenth of the node over its wait; no GPUs are drained for
 * it before. Expected run times are limits and estimates, corrected by how far ended jobs with
 * similar ones stayed below theirs. docs/scheduling.md has measured results and the origin of
 * the constants.
 *
 * Reports are not stored: the daemon feeds a new planner from its history. Until jobs have
 * ended, a job is expected to run for a quarter of its limit. */
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

/* n jobs (or tasks of an array) with this demand were submitted. */
void balance_submitted(struct balance *b, const struct demand *d, int64_t n, int64_t now_us);
/* A run ended that was expected to take span_ms (0: unknown) and took run_ms. */
void balance_ended(struct balance *b, int64_t span_ms, int64_t run_ms);

/* A run was cancelled after run_ms: the rest of its expected time leaves the backlog. */
void balance_stopped(struct balance *b, const struct job *job, int64_t run_ms);
/* The wall clock was set. */
void balance_clock_set(struct balance *b, int64_t by_us);

/* Sets this line's part of the backlog, in GPU-seconds. To be called for each line that a pass
 * examines, before the pass begins. */
void balance_weigh(struct balance *b, struct queue *q, struct kind *k);
/* Once per pass, before anything is booked: computes the backlog and the expected ends. */
void balance_begin(struct balance *b, const struct queue *q, const struct ledger *l,
                   int64_t now_us);

/* Something was booked since balance_begin. */
void balance_booked(struct balance *b);

/* Where the front job of a line stands in this pass. */
struct balance_key {
    int64_t first_since_us; /* since when it is past its maximum wait; 0: it is not */
    int64_t waited_ms;
    int64_t charge; /* cost of its start to the others, 1/1024 s */
    bool due;       /* first for good, or wide and it is time to drain its GPUs */
    bool reserves;  /* if it does not fit it gets a reservation; else it is skipped */
};

/* May set job->first_since_us. */
void balance_key(struct balance *b, const struct kind *k, struct job *job,
                 struct balance_key *out);

/* For lists: a copy that must be used for nothing but balance_listed, which computes the key
 * of any job of the line and changes nothing. q and l may change meanwhile. */
struct balance *balance_clone_for_list(const struct balance *b, const struct queue *q,
                                       const struct ledger *l, int64_t now_us);
void balance_listed(struct balance *b, const struct kind *k, const struct job *job,
                    struct balance_key *out);

/* Below 0: a is tried before b; 0: submission order decides. */
int balance_compare(const struct balance_key *a, const struct balance_key *b);

#endif
