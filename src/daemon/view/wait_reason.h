/* Why a job waits, in plain words. */
#ifndef DAEMON_VIEW_WAIT_REASON_H
#define DAEMON_VIEW_WAIT_REASON_H

struct blocked;
struct buf;
struct job;
struct views;

/* Fills *why with the planner's reason, with tasks under their display names; while nothing
 * can be written to disk, that is the reason. */
void why_blocked(struct views *views, const struct job *job, struct blocked *why);

/* Fills *why and appends the sentence to text, including what is known of a GPU's health. */
void why_waits(struct views *views, const struct job *job, struct blocked *why,
               struct buf *text);

#endif
