/* cgroup v2, where available: finds a subtree that this process may write, makes one group per
 * attempt in it, sets its limits and ends it. All of it is optional: on a machine without it
 * (v1, no delegation, containers), a subreaper, the session and the mark keep a job's
 * processes together. */
#ifndef SYS_CGROUP_H
#define SYS_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct cgroup_limits {
    int32_t mem_mib; /* 0: none */
    int32_t cpus;    /* whole cores of CPU time; 0: none */
    int32_t pids;    /* processes and threads; 0: none */
};

/* Makes (or finds) the folder `name` in this process's own cgroup, to hold the groups of jobs,
 * and enables the available controllers. If only this process and its parent live in the own
 * cgroup, they move into a leaf of it, because a group with processes cannot delegate
 * controllers. *out is its absolute path (malloc, the caller's). -1 with the reason if there
 * is no such place; jobs then run without groups. */
int cgroup_find_base(const char *name, char **out, struct err *e);

/* Makes a known base (v2 or v1) again if it was removed: clean-up programs remove empty
 * groups. 1: made again; 0: it exists; -1 with errno. */
int cgroup_base_again(const char *base);

/* Moves the processes of the group at `path` (in the v2 tree, as in /proc/PID/cgroup) into the
 * leaf `name` beside the base, except those for which `keep` returns true. Returns how many
 * moved. */
int cgroup_adopt(const char *path, const char *base, const char *name,
                 bool (*keep)(void *ctx, pid_t pid), void *ctx);

/* The mount point of a v1 controller's tree, or of the v2 tree (NULL). The caller frees; NULL
 * if it is not mounted. */
char *cgroup_find_mount(const char *controller);

/* Makes the folder of a group, or finds it. The mode lets jobs read their group's files
 * (cpu.stat, memory.current) whatever the caller's umask: a supervisor keeps a narrow one
 * after an attempt. `at` is as for openat. 0; -1 with errno. */
int cgroup_make_folder(int at, const char *path);

/* True if the comma-separated list, len bytes long, contains the word. */
bool cgroup_has_word(const char *list, size_t len, const char *word);

/* Marks the base as in use while the returned descriptor (O_CLOEXEC, the caller's) is open; -1
 * if the folder does not exist (any more). */
int cgroup_claim(const char *base);

/* Gives up our claim, and removes the base if it is empty and no other daemon has claimed
 * it. */
void cgroup_disclaim(const char *base, int claim);

/* Removes bases beside this one ("berth-" and eight hex digits) that no daemon claims and that
 * hold no processes: leftovers of daemons that were killed and never came back. */
void cgroup_remove_abandoned(const char *base);

/* Makes the group and sets its limits, as far as controllers are available (missing ones are
 * skipped). Returns a descriptor of its folder (O_CLOEXEC, the caller's), or -1. */
int cgroup_create(const char *path, const struct cgroup_limits *limits, struct err *e);

/* Opens an existing group: its descriptor, or -1. */
int cgroup_open(const char *path);

/* Moves the calling process into a child group `name`, which is created: the group's limits
 * apply to it, and a KILL to the group reaches it. Works also if the group was killed before;
 * some kernels (6.18) kill processes that enter a killed group itself. 0; -1 with errno. */
int cgroup_enter_below(int fd, const char *name);

/* KILLs everything in the group and below, forks in flight included. If the kernel supports
 * neither cgroup.kill nor freezing, processes forked meanwhile are missed: repeat. */
void cgroup_kill(int fd);

/* Sends the signal (0: none) to each process directly in the group (v2 or v1). Returns how
 * many there were; -1 if the group cannot be read. */
int cgroup_signal(int fd, int sig);

/* Whether the group or one below has a living process: 1, 0, or -1 if not known. */
int cgroup_is_populated(int fd);

/* Number of OOM kills in the group; 0 if the kernel does not say. *own: true if the group's
 * own limit caused them, not a shortage of the machine or of a parent group. */
int64_t cgroup_oom_kills(int fd, bool *own);

/* Removes the empty group and any child groups that the job made in it. */
int cgroup_remove(const char *path);

#endif
