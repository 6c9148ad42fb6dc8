/* Why a job waits, in words that people understand. */
#ifndef DAEMON_VIEW_WAIT_REASON_H
#define DAEMON_VIEW_WAIT_REASON_H

struct blocked;
struct buf;
struct job;
struct views;

/* Fills *why: as the planner has it, with tasks called what people call them; while nothing can
 * be written to the disk, that. */
void why_blocked(struct views *views, const struct job *job, struct blocked *why);

/* Fills *why and appends the sentence to text: with what is known of a card's health. */
void why_waits(struct views *views, const struct job *job, struct blocked *why,
               struct buf *text);

#endif
