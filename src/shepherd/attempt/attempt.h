/* One attempt of a job, from its spec to its recorded end. */
#ifndef SHEPHERD_ATTEMPT_ATTEMPT_H
#define SHEPHERD_ATTEMPT_ATTEMPT_H

#include <stdbool.h>

/* Descriptors that a shepherd is born with. */
enum { FD_CTL = 3, FD_LOCK = 4, FD_FOLDER = 5 };

/* Runs it; ahead: once the daemon says that its start is durable (NURSERY_GO), and not at all
 * if that cannot come any more. Returns the shepherd's own exit status: 0 once the outcome is
 * on the disk or recorded by a daemon, or if nothing was started; 1 if it could not be kept.
 * *clean, unless NULL: whether a daemon has the outcome and no process of the attempt, nor
 * anything that was set up for it, is left, so that this process may run another one. */
int attempt_run(bool ahead, bool *clean);

#endif
