/* Two facts about a process from /proc: its start time (the pid alone may have been reused)
 * and its user. */
#ifndef GPU_PROCFS_H
#define GPU_PROCFS_H

#include <stdint.h>

enum procfs_state {
    PROCFS_ALIVE,
    PROCFS_DEAD,   /* gone, or a zombie: its memory is freed either way */
    PROCFS_HIDDEN, /* the process exists, but /proc does not show it to us */
};

/* PROCFS_ALIVE: *start is set to its start time in clock ticks since boot. */
enum procfs_state procfs_start(int32_t pid, uint64_t *start);

/* The real user id, or -1 if the process is gone or hidden. */
int64_t procfs_uid(int32_t pid);

#endif
