/* Delivers a notification of a job: a hook's command, a webhook's request, or a mail. */
#ifndef SHEPHERD_NURSERY_DELIVER_H
#define SHEPHERD_NURSERY_DELIVER_H

/* Runs one delivery in a process forked by the nursery. Descriptor 4 holds the order
 * (docs/protocol.md, section 4), descriptor 3 gets the result. Returns the exit status. */
int deliver_run(void);

#endif
