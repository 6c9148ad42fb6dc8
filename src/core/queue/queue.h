/* The table of live jobs, which owns them; elsewhere they are named by id. Pending jobs wait
 * in lines, one for each kind (same demand, user, priority, expected run and preemptible),
 * ordered by (order, id); a plan examines only the head of each line. Jobs that wait for a
 * time, parked jobs (for a dependency, or while their array is full), and held, active and
 * ended jobs are in no line. An array is one job in one line as long as it has tasks that are
 * not split off. Every operation is O(log n).
 *
 * After any change of a job's state, order, begin_us, demand, uid, priority, span_ms,
 * preemptible, parked, name or singleton, and before the next call here, call queue_refile: it
 * moves the job to where it now belongs. */
#ifndef CORE_QUEUE_QUEUE_H
#define CORE_QUEUE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/queue/job.h"
#include "core/queue/kinds.h"

struct queue;

struct queue *queue_new(void);
void queue_free(struct queue *q); /* also frees all its jobs */
/* From now on each job's demand names its user (demand.user), so that two users' jobs never
 * share a line. The queue must be empty. */
void queue_tell_users_apart(struct queue *q);
bool queue_tells_users_apart(const struct queue *q);
uint64_t queue_user_of(uint32_t uid); /* the value of demand.user; never 0 */

void queue_add(struct queue *q, struct job *job);       /* owned now; aborts if id exists */
struct job *queue_remove(struct queue *q, uint32_t id); /* the caller's; NULL: none */
struct job *queue_get(const struct queue *q, uint32_t id);
/* The job of this task of the array; NULL: the task is not split off, or has ended. */
struct job *queue_task(const struct queue *q, const struct job *array, int32_t task);
void queue_refile(struct queue *q, struct job *job);
/* Sets the job's place in its line, and refiles it. */
void queue_reorder(struct queue *q, struct job *job, uint64_t order);

size_t queue_n(const struct queue *q);
size_t queue_count(const struct queue *q, enum job_state s); /* an array counts as one job */
size_t queue_n_active(const struct queue *q);                /* STARTING .. COMPLETING */
/* This user's pending jobs and tasks (an array counts as all its tasks that are not split
 * off). */
int64_t queue_n_waiting_of(const struct queue *q, uint32_t uid);
int64_t queue_n_waiting(const struct queue *q); /* of all users */
/* Bytes of text (request_text_bytes) in all of this user's jobs in the queue. */
int64_t queue_text_of(const struct queue *q, uint32_t uid);
/* Bytes of these jobs' environments, each distinct one counted once; small ones are left
 * out. */
int64_t queue_envs_of(const struct queue *q, uint32_t uid);
bool queue_has_env(const struct queue *q, uint32_t uid, int64_t env); /* is counted there */
/* How many are in this state, as shown to people: pending or held tasks count individually,
 * and an array with no task left to start does not count. */
int64_t queue_n_in(const struct queue *q, enum job_state s);
/* The i-th user, by uid, of those who ever had a pending job, and how many wait now (perhaps
 * 0). False: i is past the last user. */
bool queue_user_waiting(const struct queue *q, size_t i, uint32_t *uid, int64_t *n);

/* Moves jobs whose begin_us has come into their lines; called by plan_make. False: there were
 * none. */
bool queue_wake(struct queue *q, int64_t now_us);
int64_t queue_next_begin_us(const struct queue *q); /* INT64_MAX: no job waits for a time */
/* Jobs that wait for a time, earliest first: for (j = queue_later(q); j; j =
 * queue_later_next(j)). */
struct job *queue_later(const struct queue *q);
struct job *queue_later_next(struct job *job);

/* Starts the time in line of jobs that joined a line since the last call, and stops it for
 * jobs that left one; calls back for each. Called by plan_make. */
void queue_mark_lines(struct queue *q, int64_t now_us, void (*fn)(struct job *job, void *arg),
                      void *arg);

/* Queued work that went away without starting: jobs that were cancelled or held, can never
 * start, must wait for something, or now ask for less. For each: its n, run time and GPUs as
 * in its line, and the part that stays queued (stays_n is 0 if none does). */
struct dropped {
    int64_t joined_us; /* queued since then */
    int64_t n, span_ms, gpus;
    int64_t stays_n, stays_span_ms, stays_gpus;
};
/* Since the last queue_forget_dropped, which plan_make calls. */
const struct dropped *queue_dropped(const struct queue *q, size_t *n);
void queue_forget_dropped(struct queue *q);

/* Active jobs by id: for (j = queue_active(q); j; j = queue_active_next(j)). */
struct job *queue_active(const struct queue *q);
struct job *queue_active_next(struct job *job);

/* Snapshots for listings: every job whose state is in the mask (bit 1 << state), by id, or in
 * scheduling order (active jobs first, then by falling priority, then order). The caller frees
 * the array, not the jobs; *n may be 0 with a result of NULL. */
#define QUEUE_ALL ((1U << JOB_STATES) - 1)
struct job **queue_list_by_id(const struct queue *q, uint32_t states, size_t *n);
struct job **queue_list_in_order(const struct queue *q, uint32_t states, size_t *n);

/* Walks all jobs, unordered, some buckets of the table per call; *at starts zeroed. False:
 * that was the last call. The queue may change between calls: a job that stays in it is
 * visited exactly once. If the table has grown, the walk restarts and sets begun_anew: the
 * caller must discard all it has seen. */
struct queue_at {
    size_t bucket, n_buckets;
    bool begun_anew; /* set by this call, which visited no job */
};
bool queue_walk(const struct queue *q, struct queue_at *at, size_t buckets,
                void (*fn)(struct job *, void *), void *arg);

/* Lines, unordered: for (i = 0; i < queue_n_kinds(q); i++) queue_kind(q, i). */
size_t queue_n_kinds(const struct queue *q);
struct kind *queue_kind(const struct queue *q, size_t i);
/* Sets the work of a line, as balance.c computes it; queue_work is the sum over all lines. */
void queue_set_work(struct queue *q, struct kind *k, int64_t work);
int64_t queue_work(const struct queue *q);
/* Users with lines, sorted by uid. */
size_t queue_n_users(const struct queue *q);
struct kind_user *queue_user(const struct queue *q, size_t i);

/* Recounts everything. NULL if it agrees, else what does not. Slow. */
const char *queue_check(const struct queue *q);

#endif
