/* Carries out a plan's decisions: starts, preemptions, and jobs that can never run. Launches
 * nothing: a start is marked for the commit and can be taken back until then. */
#ifndef DAEMON_STATE_STARTS_H
#define DAEMON_STATE_STARTS_H

#include <stdbool.h>

struct decision;
struct job;
struct state;

/* False: the start has to wait for this turn's commit; a later plan decides it again. */
bool starts_carry_out(struct state *s, const struct decision *x);

/* The start was not or cannot be committed: the job waits again as if it had not
 * been planned. */
void starts_undo(struct state *s, struct job *job);
/* The start is committed. */
void starts_keep(struct job *job);

/* The commit failed. Takes back starts, new jobs, and requeues of ended jobs; all other
 * changes stay marked for the next commit. `undone` and `gone` (may be NULL) are called before
 * each step. A new task returns to its array, unless it has already ended: its array counts
 * that end, so its row is kept for the next commit. */
typedef void (*starts_job_fn)(void *arg, const struct job *job);
void starts_take_back(struct state *s, starts_job_fn undone, starts_job_fn gone, void *arg);

#endif
