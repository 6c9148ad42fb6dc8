/* Promised starts across restarts, and the event when one cannot be kept. */
#ifndef DAEMON_TURN_PROMISES_KEPT_H
#define DAEMON_TURN_PROMISES_KEPT_H

#include <stdint.h>

struct daemon;
struct plan;

void promises_load(struct daemon *d); /* once the jobs are in the queue */
/* Within the commit: writes them if they are not as the last commit left them. */
void promises_save(struct daemon *d);
void promises_saved(struct daemon *d); /* it has succeeded */
/* The start of this job, or of all in the turn, did not come about. */
void promises_regain(struct daemon *d, uint32_t id);
void promises_regain_all(struct daemon *d);
/* Those that the plan had to break. */
void promises_tell(struct daemon *d, const struct plan *p);

#endif
