/* `vram=auto`: what a waiting job asks for follows what the last runs of the same command, with
 * as many cards, had at most (core/learn/demands.h). A demand is settled when the job starts;
 * until then it changes whenever such a run ends. Of a command that nothing is known of, or
 * that needs nearly a whole card, it is the whole card. */
#ifndef DAEMON_STATE_LEARNED_DEMANDS_H
#define DAEMON_STATE_LEARNED_DEMANDS_H

#include <stdbool.h>

struct state;
struct job;

/* Sets the demand of a job that asks so and does not run, from what is known now. True: it is
 * another; then refile it if it is in the queue. */
bool learned_apply(struct state *s, struct job *job);

/* An attempt is over, with its ending in job->run: its command's peak is learned, and those
 * that wait with the same command follow. The job itself is its caller's to refile. */
void learned_attempt_over(struct state *s, struct job *job);

/* The commit of a run's end was refused, and what it taught went with it: learned again, for
 * the next commit. Those that wait have it already. */
void learned_not_saved(struct state *s, struct job *job);

/* After a restart, once the cards are known: all that wait. */
void learned_recover(struct state *s);

#endif
