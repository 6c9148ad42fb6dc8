/* What is expected of each job's run, from runs of the same command: kept true when jobs enter
 * and when one completes. */
#ifndef DAEMON_STATE_ESTIMATES_H
#define DAEMON_STATE_ESTIMATES_H

#include <stdbool.h>

struct state;
struct job;

/* A job enters the table (its fingerprint is set), or leaves it. */
void estimate_enter(struct state *s, struct job *job);
void estimate_leave(struct state *s, struct job *job);

/* Its request has changed; the caller refiles it. */
void estimate_refresh(struct state *s, struct job *job);

/* It has completed: pending jobs with the same command are expected to take as long, once
 * estimates_follow has come to them. */
void estimate_completed(struct state *s, struct job *job);

/* Once in a turn, before its plan. True: there are more, for the next turn. */
bool estimates_follow(struct state *s);

#endif
