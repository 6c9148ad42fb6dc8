/* cgroup v1 controllers, for machines whose v2 tree has none (the hybrid layout): a group per
 * attempt and controller confines the job there; tracking and ending stay with the v2 group. */
#ifndef SYS_CGROUP_V1_H
#define SYS_CGROUP_V1_H

#include <stdbool.h>
#include <stdint.h>

struct cgroup_limits;

enum cgroup_v1 { CGROUP_V1_MEMORY, CGROUP_V1_PIDS, CGROUP_V1_CPU, CGROUP_V1_N };
extern const char *const cgroup_v1_names[CGROUP_V1_N];

/* Makes (or finds) a folder `name` in this process's own group of each controller: its
 * absolute path (malloc) into out, NULL where there is none that we may divide. How many. */
int cgroup_v1_find_bases(const char *name, char *out[CGROUP_V1_N]);

/* Makes the groups that have a path and sets their limits. fds: open folders (O_CLOEXEC, the
 * caller's), -1 where there is none, -errno where one could not be had, or its limit on memory
 * could not be set. */
void cgroup_v1_create(const char *const paths[CGROUP_V1_N], const struct cgroup_limits *limits,
                      int fds[CGROUP_V1_N]);

/* Moves the calling process into them. System calls only. 0, or an errno value: it is not in
 * that of memory. */
int cgroup_v1_join(const int fds[CGROUP_V1_N]);

/* How often the kernel killed in it for want of memory; 0 where it does not say. *own: whether
 * its own limit was reached. */
int64_t cgroup_v1_oom_kills(int memory_fd, bool *own);

/* Opens those that are there; -1 for others. The descriptors are the caller's (O_CLOEXEC). */
void cgroup_v1_open(const char *const paths[CGROUP_V1_N], int fds[CGROUP_V1_N]);

/* Sends the signal (0: none) to every process in them; one of the trees says which those are.
 * How many there were; -1 when there is no group to ask. What forks meanwhile is missed:
 * repeat. */
int cgroup_v1_signal(const int fds[CGROUP_V1_N], int sig);

/* Removes the empty groups. */
void cgroup_v1_remove(const char *const paths[CGROUP_V1_N]);

#endif
