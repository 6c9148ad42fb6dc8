/* `vram=auto`: the demand of a waiting job follows the peak VRAM of recent runs of the same
 * command on as many GPUs (core/learn/demands.h). The demand is fixed when the job starts;
 * until then it changes whenever such a run ends. A command without known runs, or that needs
 * nearly a whole GPU, gets a whole GPU. */
#ifndef DAEMON_STATE_LEARNED_DEMANDS_H
#define DAEMON_STATE_LEARNED_DEMANDS_H

#include <stdbool.h>

struct state;
struct job;

/* Sets the demand of a waiting `vram=auto` job from what is known now; no-op for other jobs.
 * True: the demand has changed, so refile the job if it is in the queue. */
bool learned_apply(struct state *s, struct job *job);

/* An attempt is over, with its ending in job->run: records the command's peak and updates the
 * waiting jobs with the same command. The caller refiles the job itself. */
void learned_attempt_over(struct state *s, struct job *job);

/* The commit of a run's end failed and rolled back what was learned from it: records it again
 * for the next commit. Waiting jobs keep their updated demand. */
void learned_not_saved(struct state *s, struct job *job);

/* Call after a restart, once the GPUs are known: updates all waiting jobs. */
void learned_recover(struct state *s);

#endif
