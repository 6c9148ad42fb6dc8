/* The rows of a job that a commit writes, by the job's marks (SAVE_*). */
#ifndef DAEMON_TURN_JOB_ROWS_H
#define DAEMON_TURN_JOB_ROWS_H

struct job;
struct state;
struct store;

/* Within the transaction. Errors stick to the store; its commit tells. */
void rows_write(struct store *store, const struct state *s, struct job *job);

#endif
