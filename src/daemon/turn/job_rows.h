/* Writes a job's rows according to its marks (SAVE_*). */
#ifndef DAEMON_TURN_JOB_ROWS_H
#define DAEMON_TURN_JOB_ROWS_H

struct job;
struct state;
struct store;

/* Call within the transaction. Errors stick to the store; its commit reports them. */
void rows_write(struct store *store, const struct state *s, struct job *job);

#endif
