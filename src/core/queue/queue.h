/* The table of live jobs. Jobs are owned here and named by id elsewhere. Pending jobs stand
 * in lines, one for each kind (same demand, user, priority, expected run and preemptible),
 * ordered by (order, id); a plan looks at the head of each line only. Jobs that wait for a
 * time, parked (for a dependency, or an array that is full), held, active and ended ones stand
 * elsewhere. An array stands in one line as one job, for as long as tasks have not left it.
 * Every operation is O(log n).
 *
 * After any change of a job's state, order, begin_us, demand, uid, priority, span_ms,
 * preemptible, parked, name or singleton, and before the next call here, call queue_refile: it
 * finds the place the job now belongs to. */
#ifndef CORE_QUEUE_QUEUE_H
#define CORE_QUEUE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/queue/job.h"
#include "core/queue/kinds.h"

struct queue;

struct queue *queue_new(void);
void queue_free(struct queue *q); /* and every job in it */
/* From now on the demand of a job says whose it is (demand.user): jobs of two users are then
 * never one line. For a queue that is still empty. */
void queue_tell_users_apart(struct queue *q);
bool queue_tells_users_apart(const struct queue *q);
uint64_t queue_user_of(uint32_t uid); /* what it says then; never 0 */

void queue_add(struct queue *q, struct job *job); /* takes it; aborts when the id is there */
struct job *queue_remove(struct queue *q, uint32_t id); /* the caller owns it; NULL: none */
struct job *queue_get(const struct queue *q, uint32_t id);
/* The job that this task of the array has become; NULL: it has not left, or has ended. */
struct job *queue_task(const struct queue *q, const struct job *array, int32_t task);
void queue_refile(struct queue *q, struct job *job);
/* Gives it this place in its line, and refiles. */
void queue_reorder(struct queue *q, struct job *job, uint64_t order);

size_t queue_n(const struct queue *q);
size_t queue_count(const struct queue *q, enum job_state s); /* jobs; an array is one */
size_t queue_n_active(const struct queue *q);                /* STARTING .. COMPLETING */
/* Tasks and jobs of this user that wait (an array counts with all that have not left it). */
int64_t queue_n_waiting_of(const struct queue *q, uint32_t uid);
int64_t queue_n_waiting(const struct queue *q); /* of all users */
/* Bytes of text (request_text_bytes) of all of this user's jobs in the queue. */
int64_t queue_text_of(const struct queue *q, uint32_t uid);
/* Bytes of the environments of these jobs, each distinct one once; small ones are left out. */
int64_t queue_envs_of(const struct queue *q, uint32_t uid);
bool queue_has_env(const struct queue *q, uint32_t uid, int64_t env); /* is counted there */
/* How many are in this state, as people see it: tasks that wait or are held count one by one,
 * and an array of which nothing is left to start not at all. */
int64_t queue_n_in(const struct queue *q, enum job_state s);
/* Users who have had something waiting, the i-th by uid: how many wait now (0: none). False
 * behind the last. */
bool queue_user_waiting(const struct queue *q, size_t i, uint32_t *uid, int64_t *n);

/* Jobs whose begin_us has come join their lines; plan_make does it. False: there were none. */
bool queue_wake(struct queue *q, int64_t now_us);
int64_t queue_next_begin_us(const struct queue *q); /* INT64_MAX: no job waits for a time */
/* Those that wait for a time, the first first: for (j = queue_later(q); j; j =
 * queue_later_next(j)). */
struct job *queue_later(const struct queue *q);
struct job *queue_later_next(struct job *job);

/* Jobs that have joined a line since the last call stand there from now on, others that have
 * left one stood there until now. plan_make does it; calls back for each. */
void queue_mark_lines(struct queue *q, int64_t now_us, void (*fn)(struct job *job, void *arg),
                      void *arg);

/* Work that was queued and went away without having started: jobs that were cancelled or held,
 * can never start or are to wait for something, or of which less is asked. Of each, what its
 * line says of one run, and what of it stays (n 0 then, where that is nothing). */
struct dropped {
    int64_t joined_us; /* it had been queued since then */
    int64_t n, span_ms, gpus;
    int64_t stays_n, stays_span_ms, stays_gpus;
};
/* Since the last queue_forget_dropped, which plan_make calls. */
const struct dropped *queue_dropped(const struct queue *q, size_t *n);
void queue_forget_dropped(struct queue *q);

/* Active jobs by id: for (j = queue_active(q); j; j = queue_active_next(j)). */
struct job *queue_active(const struct queue *q);
struct job *queue_active_next(struct job *job);

/* Snapshots for listing: every job whose state is in the mask (bit 1 << state), by id, or
 * in scheduling order (priority descending, then order; active ones first). The caller
 * frees the array, not the jobs; *n may come out 0 with NULL. */
#define QUEUE_ALL ((1U << JOB_STATES) - 1)
struct job **queue_list_by_id(const struct queue *q, uint32_t states, size_t *n);
struct job **queue_list_in_order(const struct queue *q, uint32_t states, size_t *n);

/* All jobs in no order, those in so many buckets of the table in a call; zeroed at first.
 * False: that was the last. Between two calls the queue may change: a job that is in it all
 * the time is visited once. When the table has grown it begins anew, and says so: all that
 * came before is void. */
struct queue_at {
    size_t bucket, n_buckets;
    bool begun_anew; /* by this call, which has visited none */
};
bool queue_walk(const struct queue *q, struct queue_at *at, size_t buckets,
                void (*fn)(struct job *, void *), void *arg);

/* Lines, in no order: for (i = 0; i < queue_n_kinds(q); i++) queue_kind(q, i). */
size_t queue_n_kinds(const struct queue *q);
struct kind *queue_kind(const struct queue *q, size_t i);
/* What the jobs of a line come to, as balance.c has it; and those of all lines. */
void queue_set_work(struct queue *q, struct kind *k, int64_t work);
int64_t queue_work(const struct queue *q);
/* Users with lines, by uid. */
size_t queue_n_users(const struct queue *q);
struct kind_user *queue_user(const struct queue *q, size_t i);

/* Recounts everything; NULL when all is well, else what is not. Slow. */
const char *queue_check(const struct queue *q);

#endif
