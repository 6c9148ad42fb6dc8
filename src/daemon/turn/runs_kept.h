/* Keeps the run times of commands (core/learn/runtimes.h) across restarts. */
#ifndef DAEMON_TURN_RUNS_KEPT_H
#define DAEMON_TURN_RUNS_KEPT_H

struct err;
struct history;
struct job;
struct planner;
struct store;

/* Loads the stored run times. Call at start-up, with the planner made and before any
 * job enters. */
int runs_load(struct store *store, struct history *h, struct planner *p, struct err *e);

/* Within the commit of a job's end: writes the run times of its command. */
void runs_save(struct store *store, const struct history *h, const struct job *job);

#endif
