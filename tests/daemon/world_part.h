/* The one part of a daemon_world.h's turn, in the place of all parts of the daemon: it records
 * the turn's calls, and dies where the test says so. */
#ifndef TESTS_DAEMON_WORLD_PART_H
#define TESTS_DAEMON_WORLD_PART_H

#include "daemon_world.h"

extern const struct turn_part world_part;

/* Appends a step to world.steps. */
void world_step(struct world *w, const char *form, ...) __attribute__((format(printf, 2, 3)));

#endif
