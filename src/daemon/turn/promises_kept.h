/* Promised starts across restarts, and the event when one cannot be kept. */
#ifndef DAEMON_TURN_PROMISES_KEPT_H
#define DAEMON_TURN_PROMISES_KEPT_H

#include <stdint.h>

struct plan;
struct turn;

void promises_load(struct turn *t); /* once the jobs are in the queue */
/* Within the commit: writes them if they are not as the last commit left them. */
void promises_save(struct turn *t);
void promises_saved(struct turn *t); /* it has succeeded */
/* The start of this job, or of all in the turn, did not come about. */
void promises_regain(struct turn *t, uint32_t id);
void promises_regain_all(struct turn *t);
/* Those that the plan had to break. */
void promises_tell(struct turn *t, const struct plan *p);

#endif
