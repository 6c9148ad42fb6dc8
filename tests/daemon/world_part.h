/* What stands for all parts of the daemon in a turn of a daemon_world.h: it writes down what
 * the turn has it do, and dies where the test says so. */
#ifndef TESTS_DAEMON_WORLD_PART_H
#define TESTS_DAEMON_WORLD_PART_H

#include "daemon_world.h"

extern const struct turn_part world_part;

/* One more of world.steps. */
void world_step(struct world *w, const char *form, ...) __attribute__((format(printf, 2, 3)));

#endif
