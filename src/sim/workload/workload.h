/* The input of a simulation: a list of jobs, whichever file they came from, and the machine.
 * Plain values made by the readers; textbook_sim.c only reads them. Times are whole
 * seconds. */
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
    int64_t estimate; /* declared by its user */
    uint32_t shape;
    uint32_t line;    /* line number in the file, for messages */
    int32_t priority; /* higher first; in textbook_sim.c only among simultaneous arrivals */
    uint32_t user;    /* for fair share in live_sim.c */
    uint32_t request; /* index in workload.requests plus 1; 0: shape and times say all */
    int32_t task;     /* of the array that is the request; all its tasks arrive at once */
};

struct workload {
    struct sim_job *jobs; /* owned; sorted by (arrival, priority, id) after workload_sort */
    size_t n, cap;
    struct shape *shapes; /* owned; distinct */
    size_t n_shapes, cap_shapes;
    uint32_t *buckets; /* owned; hash table of shapes */
    size_t n_buckets;
    struct request *requests; /* owned, with their contents; what jobs of a jobs file request
                                 beyond a shape: live_sim.c obeys it, textbook_sim.c cannot. A
                                 dep's job is the index of a request plus 1 */
    size_t n_requests, cap_requests;
    int64_t zero_us; /* wall clock at second 0, for begin times of requests */
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

#define WORKLOAD_TIME_MAX (INT64_C(1) << 40) /* of a time in a file: 35,000 years */
#define WORKLOAD_JOBS_MAX 100000000

void workload_free(struct workload *w); /* frees the contents */

/* Appends a job of this shape; job->shape is ignored and set here. */
void workload_add(struct workload *w, const struct sim_job *job, const struct shape *shape);

/* Takes the request over (*r is empty afterwards); returns its index plus 1, for
 * sim_job.request. */
uint32_t workload_add_request(struct workload *w, struct request *r);

/* Makes all jobs one user's. */
void workload_forget_users(struct workload *w);

/* Change arrivals: all to 0, or times this factor (rounded to the nearest second, halves to
 * even). */
void workload_batch(struct workload *w);
void workload_scale(struct workload *w, double factor);

/* Sorts the jobs, as every schedule requires. -1: two jobs have the same id. */
int workload_sort(struct workload *w, const char *file, struct err *e);

/* Whether every job fits on the empty machine; -1, with the first that does not in e. */
int workload_check(const struct workload *w, const struct machine *m, const char *file,
                   struct err *e);

#endif
