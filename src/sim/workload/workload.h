/* What is simulated: a list of jobs, whichever file they came from, and the machine. Plain
 * values; the readers make them, textbook_sim.c only reads them. Times are whole seconds. */
#ifndef SIM_WORKLOAD_WORKLOAD_H
#define SIM_WORKLOAD_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/request.h"
#include "sim/workload/node.h"

struct err;

struct sim_job {
    int64_t id;
    int64_t arrival;
    int64_t duration; /* true run time */
    int64_t estimate; /* what its user declared */
    uint32_t shape;
    uint32_t line;    /* of the file, for messages */
    int32_t priority; /* higher first; textbook_sim.c: among those that come at one instant */
    uint32_t user;    /* live_sim.c's fair share tells them apart */
    uint32_t request; /* number in workload.requests plus 1; 0: shape and times say all */
    int32_t task;     /* of the array that the request is; all its tasks come at one instant */
};

struct workload {
    struct sim_job *jobs; /* owned; by (arrival, priority, id) once sorted */
    size_t n, cap;
    struct shape *shapes; /* owned; each once */
    size_t n_shapes, cap_shapes;
    uint32_t *buckets; /* owned; shapes by hash */
    size_t n_buckets;
    struct request *requests; /* owned, with what they own; what jobs of a jobs file ask for
                                 beyond a shape: live_sim.c obeys it, textbook_sim.c cannot. A
                                 dep's job is the number of a request plus 1 */
    size_t n_requests, cap_requests;
    int64_t zero_us; /* wall clock: second 0 for begin times of requests */
};

/* The machine. */
struct machine {
    int n;
    int32_t total_mib[GPU_MAX];
    int32_t margin_mib;
};

#define WORKLOAD_INIT                                                                          \
    {                                                                                          \
        NULL, 0, 0, NULL, 0, 0, NULL, 0, NULL, 0, 0, 0                                         \
    }
#define auto_workload __attribute__((cleanup(workload_free)))

#define WORKLOAD_TIME_MAX (INT64_C(1) << 40) /* of one time in a file: 35,000 years */
#define WORKLOAD_JOBS_MAX 100000000

void workload_free(struct workload *w); /* what it owns */

/* Appends a job of this shape. job->shape is filled in here. */
void workload_add(struct workload *w, const struct sim_job *job, const struct shape *shape);

/* Takes the request over (*r is empty after); its number plus 1, for sim_job.request. */
uint32_t workload_add_request(struct workload *w, struct request *r);

/* All jobs are one user's from now on. */
void workload_forget_users(struct workload *w);

/* Other arrivals: all at 0, or times this factor (to the nearest second, halves to even). */
void workload_batch(struct workload *w);
void workload_scale(struct workload *w, double factor);

/* Sorts, as every schedule needs it. -1: two jobs have one id. */
int workload_sort(struct workload *w, const char *file, struct err *e);

/* Whether every job fits on the empty machine; -1 with the first that does not. */
int workload_check(const struct workload *w, const struct machine *m, const char *file,
                   struct err *e);

#endif
