/* Crash points: places between two durable steps where tests kill a program to see that
 * nothing is lost. BERTH_CRASH_AT=label in the program's environment makes the first pass
 * through crash_point("label") end it with SIGKILL; label:N the N-th pass. */
#ifndef BASE_CRASH_H
#define BASE_CRASH_H

#include <stdbool.h>

void crash_point(const char *label);

/* As crash_point, but only says whether now is the time, for something else than a crash. It
 * counts a pass. */
bool crash_is_due(const char *label);

#endif
