/* What a plan has decided, carried out: who starts, who makes way, who can never run. Nothing
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

/* A job that is new could not be saved: whether it is to go. A task goes back into its array,
 * unless it has ended in that moment: then its row is tried again, as its array counts it
 * already. */
bool starts_may_go(struct state *s, struct job *job);

#endif
