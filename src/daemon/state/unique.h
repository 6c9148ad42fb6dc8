/* --unique: refuses a job that duplicates another one. */
#ifndef DAEMON_STATE_UNIQUE_H
#define DAEMON_STATE_UNIQUE_H

struct state;
struct err;
struct job;

/* Sets the job's fingerprint. Its request, user and folder must be set. */
void unique_mark(struct job *job);

/* Updates the fingerprint and the estimate of a job in the table after a change of
 * its request. */
void unique_refresh(struct state *s, struct job *job);

/* For a job that is not in the table yet; sets its fingerprint. -1 naming the other job if
 * this one asked to be unique and the same command is pending, running or completed. */
int unique_check(struct state *s, struct job *job, struct err *e);

#endif
