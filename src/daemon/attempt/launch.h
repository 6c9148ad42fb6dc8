/* Launches attempts: forks the supervisor of a prepared folder. */
#ifndef DAEMON_ATTEMPT_LAUNCH_H
#define DAEMON_ATTEMPT_LAUNCH_H

struct attempts;
struct job;
struct launches;

/* The supervisors forked before their start is durable. */
struct launches *launches_new(void);
void launches_free(struct launches *l);

/* Call when the folder exists and the start is about to be committed: has the supervisor
 * forked, which waits for launch_attempt. Best effort: launch_attempt does what
 * failed here. */
void launch_ahead(struct attempts *a, const struct job *job);

/* The start was taken back: a supervisor that waits exits. */
void launch_undo(struct attempts *a, const struct job *job);

/* The start is durable. Does not report failure: an attempt that cannot be launched ends as
 * NEVER_RAN, and the cause becomes machine trouble. */
void launch_attempt(struct attempts *a, struct job *job);

#endif
