/* The process that cleans up after a shepherd that has died. */
#ifndef DAEMON_ATTEMPT_SWEEPER_H
#define DAEMON_ATTEMPT_SWEEPER_H

#include <stdbool.h>

struct attempts;
struct err;
struct job;

/* Starts one for the job's attempt: it waits for the lock, kills what the attempt left behind
 * and leaves. Returns a descriptor that reads end-of-file when it has gone, -1 when it could
 * not be started. *gone is set when the attempt's folder was not there any more, or was no
 * folder: nothing in the new one says whether its command ran. */
int sweeper_start(struct attempts *a, const struct job *job, bool *gone, struct err *e);

#endif
