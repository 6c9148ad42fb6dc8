/* Shared by live_sim.c and live_sim_jobs.c: the state of one run, and the events of a job. */
#ifndef SIM_LIVE_SIM_PRIV_H
#define SIM_LIVE_SIM_PRIV_H

#include "core/plan/ends.h"
#include "core/queue/job.h"
#include "sim/live_sim.h"

struct deps;
struct fair;

/* Wall-clock time of virtual second 0: not 0, which means "not yet" in many places. */
#define LIVE_EPOCH_S INT64_C(1000000000)
#define SECOND_US    INT64_C(1000000)

struct live {
    const struct workload *w;
    struct queue *q;
    struct ledger *l;
    struct fair *fair;
    struct planner *planner;
    struct deps *deps;
    struct schedule out;
    struct ends ends;
    int64_t now;
    int64_t wake; /* when the planner wants to plan again; INT64_MAX */
    size_t arrived;
    /* Job i + 1 is row i; an array is its first row. Split-off tasks have ids from w->n + 1
     * on, assigned by the planner. */
    uint32_t next_id;
    uint32_t *task_rows; /* owned; rows of those ids */
    size_t cap_task_rows;
    uint32_t *first_rows;  /* owned; by request: its row; of an array, the first */
    uint8_t *whole_states; /* owned; by request: final state of the job or the whole array */
    uint8_t *states;       /* owned; by row: final state; 0: not ended */
    int64_t *promised_us;  /* owned; by row (of an array, the first): its promised start; 0 */
};

static inline int64_t
live_wall(int64_t second)
{
    return (LIVE_EPOCH_S + second) * SECOND_US;
}

void live_jobs_init(struct live *live);
void live_jobs_free(struct live *live);

uint32_t live_row(const struct live *live, const struct job *job);

/* Submits the next row of the workload; for an array, all its rows. */
void live_arrive(struct live *live);

/* Splits the task off its array as the job with this id. */
struct job *live_split(struct live *live, struct job *array, int32_t task, uint32_t id);

/* Applies the event now, with its consequences for arrays and dependents. Frees the job if it
 * has ended. */
void live_apply(struct live *live, struct job *job, struct job_event *ev);

#endif
