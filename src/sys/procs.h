/* What /proc says about processes, to find or end what a job started, and to find out which
 * job a process belongs to. A pid alone is never trusted: it travels with its start time. */
#ifndef SYS_PROCS_H
#define SYS_PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc {
    pid_t pid;
    pid_t ppid;
    pid_t pgid;
    pid_t sid;
    char state;           /* as in ps: R S D T Z ... */
    uint64_t start_ticks; /* since boot; with the pid it names a process for good */
};

struct procs {
    struct proc *v;
    size_t n, cap;
};
#define PROCS_INIT                                                                             \
    {                                                                                          \
        NULL, 0, 0                                                                             \
    }
#define auto_procs __attribute__((cleanup(procs_free)))

void procs_free(struct procs *ps);

/* 0, or -1 when there is no such process (any more). */
int proc_read(pid_t pid, struct proc *out);

/* When it began, as wall time, as far as that has not been set since; microseconds. */
int64_t proc_began_us(const struct proc *p);

/* The value of BERTH_MARK in the process's environment into out; false when it has none,
 * when it does not fit or when its environment may not be read. */
bool proc_mark(pid_t pid, char *out, size_t size);

/* Whether it is in the middle of an exec: its old environment is gone and the new one is not
 * there yet, so that its mark cannot be read. A process that has erased both its arguments and
 * its environment looks the same. */
bool proc_is_in_exec(pid_t pid);

/* Whether it runs as that user: by its real, effective or saved id. */
bool proc_is_of(pid_t pid, uid_t uid);
/* The same of all three: a setuid program that the user runs does not run as that user
 * alone. */
bool proc_is_only_of(pid_t pid, uid_t uid);

/* Whether what its environment says can be believed for that user: it runs as that user; or in
 * a user namespace that the user made, a container without root; or as root in a pid space that
 * root made (dockerd). No other user can make a process like that. */
bool proc_speaks_for(pid_t pid, uid_t uid);

/* Its number in the pid space of a container that it lives in; 0: it lives in ours, or that
 * cannot be read. */
pid_t proc_pid_inside(pid_t pid);

/* Its path in the cgroup v2 tree ("/user.slice/..."); false when that cannot be read. */
bool proc_cgroup(pid_t pid, char *out, size_t size);

/* Whether it has a handler of its own for the signal; false when that cannot be read. */
bool proc_catches(pid_t pid, int sig);

/* Sends the signal if the process is still the one that was read (same start time), through
 * a pidfd where the kernel has them. 0, or -1 when it is gone or may not be signalled. */
int proc_signal(const struct proc *p, int sig);

/* A descriptor of the process (O_CLOEXEC, the caller's); -1 where the kernel gives none. */
int proc_pidfd(pid_t pid);

/* Whether that child has ended. It is still to be waited for. */
bool proc_has_ended(pid_t child);

/* Appends one. */
void procs_add(struct procs *ps, const struct proc *p);

/* The children of one process, zombies included. 0, or -1 when that cannot be read. */
int procs_read_children(pid_t pid, struct procs *out);

/* Every process, zombies included. 0 or -1 when /proc cannot be read. */
int procs_read_all(struct procs *out);

/* All descendants of root, zombies left out. Without a full scan where the kernel keeps lists
 * of children. One that forks meanwhile may be missed: repeat until none is found. */
int procs_read_descendants(pid_t root, struct procs *out);

/* The kernel's clock ticks for a time on the boot clock, rounded up. */
uint64_t procs_ticks_of_boot_us(int64_t boot_us);

#endif
