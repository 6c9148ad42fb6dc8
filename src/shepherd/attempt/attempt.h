/* One attempt of a job, from its spec to its recorded end. */
#ifndef SHEPHERD_ATTEMPT_ATTEMPT_H
#define SHEPHERD_ATTEMPT_ATTEMPT_H

/* Descriptors that a shepherd is born with. */
enum { FD_CTL = 3, FD_LOCK = 4, FD_FOLDER = 5 };

/* Runs it. Returns the shepherd's own exit status: 0 once the outcome is on the disk or
 * recorded by a daemon, 1 when it could be kept nowhere. */
int attempt_run(void);

#endif
