/* One attempt of a job, from its spec to its recorded end. */
#ifndef SHEPHERD_ATTEMPT_ATTEMPT_H
#define SHEPHERD_ATTEMPT_ATTEMPT_H

#include <stdbool.h>

/* Descriptors that a supervisor starts with. */
enum { FD_CTL = 3, FD_LOCK = 4, FD_FOLDER = 5 };

/* Runs the attempt. ahead: waits until the daemon says that the start is durable (NURSERY_GO),
 * and runs nothing if that can no longer come. Returns the exit status: 0 once the outcome is
 * on disk or recorded by a daemon, or if nothing was started; 1 if it could not be stored.
 * *clean, unless NULL: true if a daemon has the outcome and no process or resource of the
 * attempt is left, so that this process may run another one. */
int attempt_run(bool ahead, bool *clean);

#endif
