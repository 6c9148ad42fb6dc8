/* What a plan has decided, carried out: the jobs that start, make way, can never run. Nothing
 * is launched by it: a start is marked for the commit, and may be taken back until then. */
#ifndef DAEMON_STATE_STARTS_H
#define DAEMON_STATE_STARTS_H

#include <stdbool.h>

struct decision;
struct job;
struct state;

/* False: this start has to wait for what this turn commits; another plan comes to it. */
bool starts_carry_out(struct state *s, const struct decision *x);

/* It was not committed, or cannot be: the job waits again, as if the plan had not named it. */
void starts_undo(struct state *s, struct job *job);
/* It is committed. */
void starts_keep(struct job *job);

/* The store has refused what is unsaved: starts are taken back, jobs that are new go, as do
 * those that had ended and were to run again, and the rest waits for a commit that succeeds.
 * `undone` and `gone` (may be NULL) are called before that happens. A new task goes back into
 * its array, unless it has ended in that moment: then its row is tried again, as its array
 * counts it already. */
typedef void (*starts_job_fn)(void *arg, const struct job *job);
void starts_take_back(struct state *s, starts_job_fn undone, starts_job_fn gone, void *arg);

#endif
