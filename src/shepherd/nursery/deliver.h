/* Delivering news of a job: a hook's command, a webhook's post, a mail. */
#ifndef SHEPHERD_NURSERY_DELIVER_H
#define SHEPHERD_NURSERY_DELIVER_H

/* The life of one delivery, which the nursery forks: descriptor 4 holds the order
 * (docs/protocol.md, section 4), descriptor 3 gets the result. Returns an exit status. */
int deliver_run(void);

#endif
