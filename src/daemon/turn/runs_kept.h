/* How long runs of the same command took (core/learn/runtimes.h), over restarts. */
#ifndef DAEMON_TURN_RUNS_KEPT_H
#define DAEMON_TURN_RUNS_KEPT_H

struct err;
struct history;
struct job;
struct planner;
struct store;

/* At the start, before any job enters, with the planner made: the runs that the store knows. */
int runs_load(struct store *store, struct history *h, struct planner *p, struct err *e);

/* Within the commit that makes a job's end durable: its command's runs. */
void runs_save(struct store *store, const struct history *h, const struct job *job);

#endif
