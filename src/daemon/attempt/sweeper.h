/* The process that cleans up after a supervisor that has died. */
#ifndef DAEMON_ATTEMPT_SWEEPER_H
#define DAEMON_ATTEMPT_SWEEPER_H

#include <stdbool.h>

struct attempts;
struct err;
struct job;

/* Starts a sweeper for the job's attempt: it waits for the lock, kills what the attempt left
 * behind, and exits. Returns a descriptor that reads end-of-file when the sweeper is gone; -1
 * if it could not be started. *gone is set if the attempt's folder was missing or not a
 * folder: the new one cannot tell whether the command ran. */
int sweeper_start(struct attempts *a, const struct job *job, bool *gone, struct err *e);

#endif
