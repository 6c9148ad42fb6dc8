/* Crash points: places between two durable steps where tests kill a program to check that
 * nothing is lost. With BERTH_CRASH_AT=label in the environment, the first call of
 * crash_point("label") ends the program with SIGKILL; with label:N, the N-th call. */
#ifndef BASE_CRASH_H
#define BASE_CRASH_H

#include <stdbool.h>

void crash_point(const char *label);

/* As crash_point, but only returns whether it is due, for faults other than a crash. Counts as
 * a call. */
bool crash_is_due(const char *label);

#endif
