/* Starting a program so that the caller learns why it could not be executed. Used by the
 * daemon for shepherds and the probe, by the shepherd for the job's command. */
#ifndef SYS_SPAWN_H
#define SYS_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;

#define SPAWN_FDS_MAX 8

/* Zero-initialise with SPAWN_INIT. Everything is borrowed for the length of the call. */
struct spawn {
    char *const *argv; /* NULL-terminated; argv[0] with a slash, or looked up in path */
    char *const *envp; /* complete environment */
    /* What is executed when argv cannot be; its first word is a path. NULL: nothing. */
    char *const *instead;
    const char *path;       /* where to look argv[0] up; NULL: the C library's default path */
    int fds[SPAWN_FDS_MAX]; /* what become descriptors 0, 1, ... of the program */
    int n_fds;        /* how many; all others the program has are those without O_CLOEXEC */
    int cgroup_fd;    /* folder of the cgroup it is born into; -1: the caller's own */
    bool must_join;   /* the program is not executed outside that cgroup */
    bool new_session; /* setsid */
    bool has_default_signals; /* the caller handles and ignores none: sixty calls spared */
    int death_signal;         /* it gets this when the caller dies; 0: none */
    /* How long the program may take to be executed, 0: for ever (and the caller sleeps in the
     * kernel meanwhile). For a child that becomes another user, who could stop it halfway. */
    int patience_ms;
    /* Called in the child just before the program is executed; not 0: an errno value, and it
     * is not executed; less than 0: the same, where a group could not be joined. Must keep to
     * what is safe after vfork. */
    int (*before_exec)(void *ctx);
    void *ctx;
};
/* clang-format off */
#define SPAWN_INIT {.cgroup_fd = -1}
/* clang-format on */

/* The strings of a block of n bytes, each with its NUL, as a list for envp. They stay where
 * they are; the caller frees the list. */
char **spawn_envp(char *block, size_t n);

/* Where a start failed: nothing went wrong, making the process, joining its groups, in the
 * child before the program, executing the program. */
enum spawn_stage { SPAWN_OK, SPAWN_FORK, SPAWN_JOIN, SPAWN_CHILD, SPAWN_EXEC };

/* Starts it with default signal dispositions and an empty signal mask. The pid; or -1 with
 * *errnum and *stage saying why, nothing left running and nothing to wait for. */
pid_t spawn_process(const struct spawn *s, int *errnum, enum spawn_stage *stage);

#endif
