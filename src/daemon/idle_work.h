/* What the daemon does when it has nothing to do. */
#ifndef DAEMON_IDLE_WORK_H
#define DAEMON_IDLE_WORK_H

#include <stdbool.h>

struct daemon;

/* Called after a second of quiet, between turns: folds the store's log in and lets old history
 * go, a bounded piece at a time. True: there is more; call again soon. */
bool idle_work(struct daemon *d);

#endif
