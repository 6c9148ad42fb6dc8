/* Simulates a full disk for databases that this process opens. */
#ifndef TESTS_DAEMON_FULL_DISK_H
#define TESTS_DAEMON_FULL_DISK_H

#include <stdbool.h>

/* true: SQLite's writes fail with ENOSPC from now on; false: they succeed again. */
void disk_set_full(bool full);

#endif
