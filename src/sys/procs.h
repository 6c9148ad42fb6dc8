/* What /proc says about processes: to find and end what a job started, and to find the job of
 * a process. A pid alone is never trusted: it is always paired with its start time. */
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
    uint64_t start_ticks; /* since boot; with the pid, identifies a process uniquely */
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

/* 0, or -1 if there is no such process (any more). */
int proc_read(pid_t pid, struct proc *out);

/* Start time as wall time in microseconds, assuming that the clock was not set since. */
int64_t proc_began_us(const struct proc *p);

/* Copies BERTH_MARK of the process's environment to out; false if it is not set, does not fit,
 * or the environment is unreadable. */
bool proc_mark(pid_t pid, char *out, size_t size);

/* True if the process is in the middle of an exec: its old environment is gone and the new one
 * is not set up yet, so its mark cannot be read. A process that has erased both its arguments
 * and its environment looks the same. */
bool proc_is_in_exec(pid_t pid);

/* True if the process's real, effective or saved user id is this user. */
bool proc_is_of(pid_t pid, uid_t uid);
/* True if all three ids are: false for a setuid program that the user runs. */
bool proc_is_only_of(pid_t pid, uid_t uid);

/* True if the process's environment can be trusted on behalf of that user: it runs as the
 * user; or in a user namespace that the user made (a rootless container); or as root in a pid
 * namespace that root made (dockerd). No other user can make such a process. */
bool proc_speaks_for(pid_t pid, uid_t uid);

/* The process's pid inside its container's pid namespace; 0: it is in ours, or that cannot be
 * read. */
pid_t proc_pid_inside(pid_t pid);

/* The process's path in the cgroup v2 tree ("/user.slice/..."); false if unreadable. */
bool proc_cgroup(pid_t pid, char *out, size_t size);

/* True if the process has a handler for the signal; false if unreadable. */
bool proc_catches(pid_t pid, int sig);

/* Sends the signal if the process still has the start time that was read, through a pidfd
 * where the kernel supports it. 0, or -1 if the process is gone or may not be signalled. */
int proc_signal(const struct proc *p, int sig);

/* A pidfd of the process (O_CLOEXEC, the caller's); -1 if the kernel does not support it. */
int proc_pidfd(pid_t pid);

/* True if the child has ended. Does not reap it. */
bool proc_has_ended(pid_t child);

/* Appends a process. */
void procs_add(struct procs *ps, const struct proc *p);

/* The children of one process, zombies included. 0, or -1 if unreadable. */
int procs_read_children(pid_t pid, struct procs *out);

/* Every process, zombies included. 0, or -1 if /proc is unreadable. */
int procs_read_all(struct procs *out);

/* All descendants of root without zombies; avoids a full scan if the kernel lists children. A
 * process that forks meanwhile may be missed: repeat until none is found. */
int procs_read_descendants(pid_t root, struct procs *out);

/* A time on the boot clock in the kernel's clock ticks, rounded up. */
uint64_t procs_ticks_of_boot_us(int64_t boot_us);

#endif
