/* What is expected of each job's run, from runs of the same command: kept true when jobs enter,
 * when one completes, and over restarts. */
#ifndef DAEMON_TURN_ESTIMATES_H
#define DAEMON_TURN_ESTIMATES_H

struct daemon;
struct err;
struct job;

/* At the start, before any job enters, with the planner made: the runs that the store knows. */
int estimate_open(struct daemon *d, struct err *e);
void estimate_close(struct daemon *d);

/* A job enters the table (its fingerprint is set), or leaves it. */
void estimate_enter(struct daemon *d, struct job *job);
void estimate_leave(struct daemon *d, struct job *job);

/* Its request has changed; the caller refiles it. */
void estimate_refresh(struct daemon *d, struct job *job);

/* It has completed: pending jobs with the same command are expected to take as long. */
void estimate_completed(struct daemon *d, struct job *job);
/* Within the commit that makes its end durable: its command's runs. */
void estimate_save(struct daemon *d, const struct job *job);

#endif
