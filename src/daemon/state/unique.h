/* --unique: the same is not wanted twice. */
#ifndef DAEMON_STATE_UNIQUE_H
#define DAEMON_STATE_UNIQUE_H

struct state;
struct err;
struct job;

/* Gives the job, whose request, user and folder are set, its fingerprint. */
void unique_mark(struct job *job);

/* For one of the table whose request has changed: another fingerprint, if it has become another
 * command, and what is to be expected of that. */
void unique_refresh(struct state *s, struct job *job);

/* For a job that is marked here and is not in the table yet: -1 with the number of the job that
 * is the same, when it asked not to be a second one and that is pending, running or
 * completed. */
int unique_check(struct state *s, struct job *job, struct err *e);

#endif
