/* What the daemon does when it has nothing to do. */
#ifndef DAEMON_IDLE_WORK_H
#define DAEMON_IDLE_WORK_H

#include <stdbool.h>

struct admission;
struct idle_work;
struct instance;
struct pace;
struct rpc;

/* What it is given is borrowed. */
struct idle_work *idle_work_new(struct instance *inst, const struct admission *admission,
                                const struct rpc *rpc, struct pace *pace);
void idle_work_free(struct idle_work *w);

/* Called after a second of quiet, between turns: folds the store's log in and lets old history
 * go, a bounded piece at a time. True: there is more; call again soon. */
bool idle_work_do(struct idle_work *w);

#endif
