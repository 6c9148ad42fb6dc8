/* cgroup v2, where it may be used: finding a subtree that this process may write, one group
 * per attempt in it, its limits and its end. All of it is optional: on a machine without
 * (v1, no delegation, containers) jobs are kept together by subreaper, session and mark. */
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

/* Makes (or finds) a folder `name` in this process's own cgroup, below which groups of jobs
 * can be made, and turns on what controllers it can get. Where nothing but this process and its
 * parent live in the group they move into a leaf of it, as a group with processes cannot hand
 * controllers on. Its absolute path into out (owned by the caller, malloc). -1 with the reason
 * in words when there is no such place; then jobs simply run without. */
int cgroup_find_base(const char *name, char **out, struct err *e);

/* Makes a base that was found once, of v2 or v1, again if it has been removed: programs that
 * tidy up remove groups that are empty. 1: it was; 0: it is there; -1 with errno. */
int cgroup_base_again(const char *base);

/* Moves every process of the group at `path` (in the v2 tree, as /proc/PID/cgroup has it) into
 * the leaf `name` beside the base, but for those whose pid `keep` says yes to. How many
 * moved. */
int cgroup_adopt(const char *path, const char *base, const char *name,
                 bool (*keep)(void *ctx, pid_t pid), void *ctx);

/* Where the tree of a v1 controller, or that of v2 (NULL), is mounted: the caller frees; NULL
 * when it is not. */
char *cgroup_find_mount(const char *controller);

/* Makes the folder of a group, or finds it there. Jobs may read what their group says
 * (cpu.stat, memory.current) whatever the umask of who makes it: a supervisor that has had an
 * attempt keeps a narrow one. `at` is as openat has it. 0; -1 with errno. */
int cgroup_make_folder(int at, const char *path);

/* Whether a list with commas, len long, has this word. */
bool cgroup_has_word(const char *list, size_t len, const char *word);

/* Says that the base is in use for as long as the descriptor that comes back is open; -1 when
 * there is no such folder (any more). The descriptor is the caller's (O_CLOEXEC). */
int cgroup_claim(const char *base);

/* Removes the base, if it is empty and no other daemon has claimed it, and ends our claim. */
void cgroup_disclaim(const char *base, int claim);

/* Removes what stands beside the base with such a name ("berth-" and eight hex digits) and
 * which no daemon claims and nothing runs in: of daemons that were killed, and never came
 * back. */
void cgroup_remove_abandoned(const char *base);

/* Makes the group and sets what limits its controllers allow (those that are missing are
 * passed over). A descriptor of its folder (O_CLOEXEC, the caller's), or -1. */
int cgroup_create(const char *path, const struct cgroup_limits *limits, struct err *e);

/* Opens an existing group: its descriptor, or -1. */
int cgroup_open(const char *path);

/* Moves the calling process into a group `name` below, made for it: what limits the group
 * limits that too, and a KILL to the group reaches it. Also where the group was killed before,
 * which in some kernels (6.18) kills what is put into it later. 0; -1 with errno. */
int cgroup_enter_below(int fd, const char *name);

/* KILL to everything in it and below, forks in flight included. Where the kernel cannot do that
 * at once and cannot freeze the group either, what forks meanwhile is missed: repeat. */
void cgroup_kill(int fd);

/* Sends the signal (0: none) to each process that is in the group itself, of v2 or of v1. How
 * many there were; -1 when it cannot be read. */
int cgroup_signal(int fd, int sig);

/* Whether a living process is in it or below: 1, 0, -1 not known. */
int cgroup_is_populated(int fd);

/* How often the kernel killed in it for want of memory; 0 where it does not say. *own: whether
 * that was for the group's own limit, and not because the machine, or a group above, had no
 * more. */
int64_t cgroup_oom_kills(int fd, bool *own);

/* Removes the empty group with the groups that the job may have made in it. */
int cgroup_remove(const char *path);

#endif
