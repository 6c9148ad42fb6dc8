/* Keeps promised starts across restarts, and reports promises that cannot be kept. */
#ifndef DAEMON_TURN_PROMISES_KEPT_H
#define DAEMON_TURN_PROMISES_KEPT_H

#include <stdint.h>

struct plan;
struct turn;

void promises_load(struct turn *t); /* call once the jobs are in the queue */
/* Within the commit: writes the promises if they have changed since the last one. */
void promises_save(struct turn *t);
void promises_saved(struct turn *t); /* the commit succeeded */
/* The start of this job, or all starts of the turn, were taken back: restores
 * their promises. */
void promises_regain(struct turn *t, uint32_t id);
void promises_regain_all(struct turn *t);
/* Notes the promises that the plan had to break. */
void promises_tell(struct turn *t, const struct plan *p);

#endif
