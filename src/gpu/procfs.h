/* Two facts about a process from /proc: when it began (a pid alone may be another process's by
 * now) and whose it is. */
#ifndef GPU_PROCFS_H
#define GPU_PROCFS_H

#include <stdint.h>

enum procfs_state {
    PROCFS_ALIVE,
    PROCFS_DEAD,   /* gone, or a zombie: its memory is back either way */
    PROCFS_HIDDEN, /* there is such a process, but /proc does not show it to us */
};

/* With PROCFS_ALIVE *start is its start time in clock ticks since boot. */
enum procfs_state procfs_start(int32_t pid, uint64_t *start);

/* The real user id, or -1 when the process is gone or hidden. */
int64_t procfs_uid(int32_t pid);

#endif
