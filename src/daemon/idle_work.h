/* Maintenance that the daemon does while idle. */
#ifndef DAEMON_IDLE_WORK_H
#define DAEMON_IDLE_WORK_H

#include <stdbool.h>

struct admission;
struct idle_work;
struct instance;
struct pace;
struct rpc;

/* All arguments are borrowed. */
struct idle_work *idle_work_new(struct instance *inst, const struct admission *admission,
                                const struct rpc *rpc, struct pace *pace);
void idle_work_free(struct idle_work *w);

/* Called after a second without activity, between turns: checkpoints the store's write-ahead
 * log and prunes old history, a bounded piece at a time. True: more is left; call
 * again soon. */
bool idle_work_do(struct idle_work *w);

#endif
