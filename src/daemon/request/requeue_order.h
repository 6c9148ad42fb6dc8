/* The order in which the jobs of one `requeue` run again: a job comes after those that it waits
 * for and that are among them, so that it finds them waiting and waits for them again. Else it
 * would be refused, as they have failed, or count them as met. Everything else goes by number.
 * For method_requeue.c, which has the jobs; here are only their numbers. */
#ifndef DAEMON_REQUEST_REQUEUE_ORDER_H
#define DAEMON_REQUEST_REQUEUE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/request/id_list.h"

struct job;

struct requeue_order {
    struct ids ids;        /* all of them; sorted, once they are complete */
    size_t at;             /* those before are done, and those that are `taken` */
    bool *taken;           /* owned; of ids: done, or among `first` */
    struct ids first;      /* these are next, the last of them at once */
    struct task_id *tasks; /* owned; those of them that are tasks, in the order of arrays */
    size_t n_tasks, cap_tasks;
};
void requeue_order_free(struct requeue_order *o); /* zeroed afterwards, as it is at first */

/* job: what is known of this one; NULL: nothing. */
void requeue_order_add(struct requeue_order *o, uint32_t id, const struct job *job);
void requeue_order_complete(struct requeue_order *o);

/* The one whose turn it is, until it is done; 0: that was all. */
uint32_t requeue_order_next(struct requeue_order *o);
void requeue_order_done(struct requeue_order *o);

/* What this one, whose turn it is, waits for: true if some of that comes first, and then it is
 * asked about again. In a circle one of them comes first all the same. */
bool requeue_order_defer(struct requeue_order *o, const struct job *job);

#endif
