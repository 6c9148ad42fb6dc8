/* How long runs of the same command took (core/learn/runtimes.h), over restarts. */
#ifndef DAEMON_TURN_RUNS_KEPT_H
#define DAEMON_TURN_RUNS_KEPT_H

struct daemon;
struct err;
struct job;

/* At the start, before any job enters, with the planner made: the runs that the store knows. */
int runs_load(struct daemon *d, struct err *e);

/* Within the commit that makes a job's end durable: its command's runs. */
void runs_save(struct daemon *d, const struct job *job);

#endif
