/* cgroup v1 controllers, for machines whose v2 tree has none (the hybrid layout): one group
 * per attempt and controller sets the limits there. Tracking and ending a job stays with the
 * v2 group. */
#ifndef SYS_CGROUP_V1_H
#define SYS_CGROUP_V1_H

#include <stdbool.h>
#include <stdint.h>

struct cgroup_limits;

enum cgroup_v1 { CGROUP_V1_MEMORY, CGROUP_V1_PIDS, CGROUP_V1_CPU, CGROUP_V1_N };
extern const char *const cgroup_v1_names[CGROUP_V1_N];

/* Makes (or finds) a folder `name` in this process's own group of each controller. out: its
 * absolute path (malloc), NULL if we may not make groups there. Returns how many. */
int cgroup_v1_find_bases(const char *name, char *out[CGROUP_V1_N]);

/* Makes the groups that have a path and sets their limits. fds: open folders (O_CLOEXEC, the
 * caller's); -1 where no group was asked for; -errno if one could not be made, or its memory
 * limit could not be set. */
void cgroup_v1_create(const char *const paths[CGROUP_V1_N], const struct cgroup_limits *limits,
                      int fds[CGROUP_V1_N]);

/* Moves the calling process into these groups. System calls only. 0, or an errno value if it
 * could not enter the memory group. */
int cgroup_v1_join(const int fds[CGROUP_V1_N]);

/* Number of OOM kills in the group; 0 if the kernel does not say. *own: true if its own limit
 * was reached. */
int64_t cgroup_v1_oom_kills(int memory_fd, bool *own);

/* Opens the groups that exist; -1 for others. The descriptors are the caller's (O_CLOEXEC). */
void cgroup_v1_open(const char *const paths[CGROUP_V1_N], int fds[CGROUP_V1_N]);

/* Sends the signal (0: none) to every process in the groups; one tree serves to list them.
 * Returns how many there were; -1 if there is no group. Processes forked meanwhile are missed:
 * repeat. */
int cgroup_v1_signal(const int fds[CGROUP_V1_N], int sig);

/* Removes the empty groups. */
void cgroup_v1_remove(const char *const paths[CGROUP_V1_N]);

#endif
