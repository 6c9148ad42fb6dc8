/* A disk that takes nothing more, for databases that this process opens. */
#ifndef TESTS_DAEMON_FULL_DISK_H
#define TESTS_DAEMON_FULL_DISK_H

#include <stdbool.h>

/* From now on what SQLite writes fails with ENOSPC, or succeeds again. */
void disk_set_full(bool full);

#endif
