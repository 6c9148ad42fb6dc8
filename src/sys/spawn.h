/* Starts a program and reports to the caller why it could not be executed. Used by the daemon
 * for shepherds and the probe, and by the shepherd for the job's command. */
#ifndef SYS_SPAWN_H
#define SYS_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;

#define SPAWN_FDS_MAX 8

/* Initialise with SPAWN_INIT. Everything is borrowed for the duration of the call. */
struct spawn {
    char *const *argv; /* NULL-terminated; argv[0] with a slash, or looked up in path */
    char *const *envp; /* complete environment */
    /* Executed if argv cannot be; its first word is a path. NULL: nothing. */
    char *const *instead;
    const char *path;       /* where to look up argv[0]; NULL: the C library's default path */
    int fds[SPAWN_FDS_MAX]; /* they become descriptors 0, 1, ... of the program */
    int n_fds;        /* number of fds; other descriptors are inherited unless O_CLOEXEC */
    int cgroup_fd;    /* folder of the cgroup it starts in; -1: the caller's own */
    bool must_join;   /* fail rather than execute the program outside that cgroup */
    bool new_session; /* setsid */
    bool has_default_signals; /* the caller's signal actions are the default: saves 60 calls */
    int death_signal;         /* sent to it when the caller dies; 0: none */
    /* Deadline for the exec, 0: none (the caller sleeps in the kernel meanwhile). For a child
     * that changes to another user, who could stop it halfway. */
    int patience_ms;
    /* Called in the child just before the exec. Non-zero prevents it: a positive errno value,
     * or a negated one if a group could not be joined. Must be safe after vfork. */
    int (*before_exec)(void *ctx);
    void *ctx;
};
/* clang-format off */
#define SPAWN_INIT {.cgroup_fd = -1}
/* clang-format on */

/* Turns a block of n bytes, a series of NUL-terminated strings, into a list for envp. The
 * strings stay in the block; the caller frees the list. */
char **spawn_envp(char *block, size_t n);

/* Where a start failed: not at all, creating the process, joining its groups, in the child
 * before the exec, in the exec. */
enum spawn_stage { SPAWN_OK, SPAWN_FORK, SPAWN_JOIN, SPAWN_CHILD, SPAWN_EXEC };

/* Starts the program with default signal actions and an empty signal mask. Returns the pid; or
 * -1 with *errnum and *stage set, nothing left running and nothing to wait for. */
pid_t spawn_process(const struct spawn *s, int *errnum, enum spawn_stage *stage);

#endif
