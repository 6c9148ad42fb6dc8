/* The order in which the jobs of one `requeue` run again: each job after those that it waits
 * for and that are requeued too, so that it finds them waiting and waits for them again.
 * Otherwise it would be refused because they have failed, or would count them as met. All else
 * goes by id. For method_requeue.c, which has the jobs; this file has only their ids. */
#ifndef DAEMON_REQUEST_REQUEUE_ORDER_H
#define DAEMON_REQUEST_REQUEUE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/request/id_list.h"

struct job;

struct requeue_order {
    struct ids ids;        /* all jobs; sorted by requeue_order_complete */
    size_t at;             /* ids before this are done, as are those `taken` */
    bool *taken;           /* owned; by index in ids: done, or in `first` */
    struct ids first;      /* stack of the next jobs, last one first */
    struct task_id *tasks; /* owned; those that are tasks, sorted by array */
    size_t n_tasks, cap_tasks;
};
void requeue_order_free(struct requeue_order *o); /* zeroes it; initialise with zeroes too */

/* job: what is known of the job; NULL: nothing. */
void requeue_order_add(struct requeue_order *o, uint32_t id, const struct job *job);
void requeue_order_complete(struct requeue_order *o);

/* The current job, until it is done; 0: no more. */
uint32_t requeue_order_next(struct requeue_order *o);
void requeue_order_done(struct requeue_order *o);

/* Defers the current job if some job that it waits for must come first: then returns true, and
 * the job comes up again later. In a circle one job goes first anyway. */
bool requeue_order_defer(struct requeue_order *o, const struct job *job);

#endif
