/* vfork and exec that report the error to the parent (fork, for a child that others can stop).
 * The child may share the parent's memory until the exec, so everything it needs is prepared
 * beforehand and it makes only system calls. With clone3 it starts directly in its cgroup,
 * which avoids the costly move between groups; without clone3 it moves itself. */
#include "sys/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <paths.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "sys/signals.h"

#define FD_ABOVE 64 /* sources that overlap the targets are first moved up here */

/* What the child reports through the pipe if the exec is not reached or fails. */
struct failure {
    int stage;
    int errnum;
};

/* Everything the child needs, prepared by the parent. */
struct plan {
    const struct spawn *s;
    char *candidates; /* owned; paths to try, each NUL-terminated, an empty one at the end */
    char **sh_argv;   /* owned; argv for a script without a #! line: /bin/sh, FILE, the rest */
    pid_t parent;
    int report_fd;   /* O_CLOEXEC: end of file tells the parent that the exec succeeded */
    bool is_outside; /* the child still has to enter its cgroup */
};

static void
plan_free(struct plan *p)
{
    free(p->candidates);
    free(p->sh_argv);
}

char **
spawn_envp(char *block, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += block[i] == '\0';
    char **out = xcalloc(count + 1, sizeof *out);
    for (size_t i = 0; i < count; i++) {
        out[i] = block;
        block += strlen(block) + 1;
    }
    return out;
}

static char *
make_candidates(const char *program, const char *path)
{
    struct buf out = BUF_INIT;
    if (strchr(program, '/') || !*program) {
        buf_addz(&out, program);
        buf_addc(&out, '\0');
        return buf_take(&out);
    }
    for (const char *at = path ? path : _PATH_DEFPATH;; at++) {
        size_t n = strcspn(at, ":");
        if (n > 0) {
            buf_add(&out, at, n);
            buf_addc(&out, '/');
        } else {
            buf_adds(&out, "./"); /* an empty element means the working folder */
        }
        buf_addz(&out, program);
        at += n;
        if (!*at)
            break;
    }
    buf_addc(&out, '\0');
    return buf_take(&out);
}

static char **
make_sh_argv(char *const *argv)
{
    size_t n = text_list_len(argv);
    char **out = xcalloc(n + 2, sizeof *out);
    out[0] = (char *)(uintptr_t)_PATH_BSHELL;
    for (size_t i = 1; i < n; i++)
        out[i + 1] = argv[i];
    return out;
}

static void
reset_signals(const struct spawn *s)
{
    sigset_t none;
    if (!s->has_default_signals)
        signals_default();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Moves the descriptors into place, in two steps because a source may be another's target. */
static int
place_fds(const struct spawn *s)
{
    int from[SPAWN_FDS_MAX];
    for (int i = 0; i < s->n_fds; i++) {
        from[i] = s->fds[i];
        if (from[i] < s->n_fds && from[i] != i)
            from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FD_ABOVE);
        if (from[i] < 0)
            return errno;
    }
    for (int i = 0; i < s->n_fds; i++) {
        int rc = from[i] == i ? fcntl(i, F_SETFD, 0) : dup2(from[i], i);
        if (rc < 0)
            return errno;
    }
    return 0;
}

/* 0 or an errno value. */
static int
join_cgroup(int cgroup_fd)
{
    auto_close int fd = openat(cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    return fd < 0 || file_write_all(fd, "0\n", 2) < 0 ? errno : 0;
}

/* Errors after which later folders are tried: missing, no access, or its server is gone. */
static bool
may_be_elsewhere(int errnum)
{
    switch (errnum) {
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case ESTALE:
    case ETIMEDOUT:
    case ENODEV:
    case ENOTCONN:
    case EIO:
        return true;
    default:
        return false;
    }
}

/* Like execvp: skips missing files and folders that do not answer, and remembers the first
 * error other than "not found". A file that is neither a binary nor starts with #! is a shell
 * script. Returns why nothing was executed. */
static int
exec_first(const struct plan *p)
{
    int why = ENOENT;
    for (char *at = p->candidates; *at; at += strlen(at) + 1) {
        execve(at, p->s->argv, p->s->envp);
        if (errno == ENOEXEC) {
            p->sh_argv[1] = at;
            execve(_PATH_BSHELL, p->sh_argv, p->s->envp);
        }
        if (!may_be_elsewhere(errno) || strchr(p->s->argv[0], '/'))
            return errno;
        if (why == ENOENT && errno != ENOTDIR)
            why = errno;
    }
    return why;
}

static struct failure
prepare_and_exec(struct plan *p)
{
    const struct spawn *s = p->s;
    if (s->death_signal && prctl(PR_SET_PDEATHSIG, s->death_signal) < 0)
        return (struct failure){SPAWN_CHILD, errno};
    if (s->death_signal && getppid() != p->parent)
        _exit(127); /* the parent died before the death signal was set */
    if (s->new_session)
        setsid();
    int why = p->is_outside ? join_cgroup(s->cgroup_fd) : 0;
    if (why != 0 && s->must_join)
        return (struct failure){SPAWN_JOIN, why};
    reset_signals(s);
    why = place_fds(s);
    if (why == 0 && s->before_exec)
        why = s->before_exec(s->ctx);
    if (why != 0)
        return (struct failure){why < 0 ? SPAWN_JOIN : SPAWN_CHILD, abs(why)};
    why = exec_first(p);
    if (s->instead)
        execve(s->instead[0], s->instead, s->envp);
    return (struct failure){SPAWN_EXEC, why};
}

_Noreturn static void
run_child(struct plan *p)
{
    if (p->report_fd < SPAWN_FDS_MAX)
        p->report_fd = fcntl(p->report_fd, F_DUPFD_CLOEXEC, FD_ABOVE);
    struct failure f = prepare_and_exec(p);
    (void)file_write_all(p->report_fd, &f, sizeof f);
    _exit(127);
}

/* Calls clone3 inline: a child that shares our stack must not return through a C library frame
 * that its parent still needs. It never returns from this function either. */
__attribute__((noinline)) static pid_t
clone_child(struct clone_args *args, struct plan *p)
{
    long rc;
#if defined __x86_64__
    __asm__ volatile("syscall"
                     : "=a"(rc)
                     : "0"((long)SYS_clone3), "D"(args), "S"(sizeof *args)
                     : "rcx", "r11", "memory");
#elif defined __aarch64__
    register long number __asm__("x8") = SYS_clone3;
    register long first __asm__("x0") = (long)(uintptr_t)args;
    register long second __asm__("x1") = sizeof *args;
    __asm__ volatile("svc #0" : "+r"(first) : "r"(number), "r"(second) : "memory");
    rc = first;
#else
    rc = syscall(SYS_clone3, args, sizeof *args);
    rc = rc < 0 ? -errno : rc;
#endif
    if (rc == 0)
        run_child(p);
    return (pid_t)rc;
}

/* On other machines, and with a sanitizer that tracks stack frames, memory is copied. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define IS_SANITIZED
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define IS_SANITIZED
#endif
#if (defined __x86_64__ || defined __aarch64__) && !defined IS_SANITIZED
#define SHARES_MEMORY CLONE_VM
#else
#define SHARES_MEMORY 0
#endif

/* Starts the child inside the cgroup; -1 if clone3 cannot do that here. */
static pid_t
clone_into_cgroup(struct plan *p, bool patient)
{
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP | (patient ? 0 : CLONE_VFORK | SHARES_MEMORY),
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)p->s->cgroup_fd,
    };
    pid_t pid = clone_child(&args, p);
    return pid > 0 ? pid : -1;
}

/* Without a deadline the child shares memory until the exec; with one, memory is copied. The
 * child never returns from this function, as vfork demands. */
static pid_t
start_child(struct plan *p)
{
    if (p->s->cgroup_fd >= 0) {
        pid_t pid = clone_into_cgroup(p, p->s->patience_ms > 0);
        if (pid > 0)
            return pid;
        p->is_outside = true;
    }
    if (p->s->patience_ms > 0) {
        pid_t child = fork();
        if (child == 0)
            run_child(p);
        return child;
    }
    pid_t pid = vfork();
    if (pid == 0)
        run_child(p); /* NOLINT(clang-analyzer-unix.Vfork): it makes system calls only */
    return pid;
}

/* Reads the child's report; false if there is none, because the program runs. */
static bool
read_failure(int fd, int patience_ms, struct failure *f)
{
    ssize_t n;
    if (patience_ms > 0 && !file_await(fd, patience_ms)) {
        *f = (struct failure){SPAWN_CHILD, ETIMEDOUT};
        return true;
    }
    do
        n = read(fd, f, sizeof *f);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *f;
}

pid_t
spawn_process(const struct spawn *s, int *errnum, enum spawn_stage *stage)
{
    __attribute__((cleanup(plan_free))) struct plan p = {.s = s, .parent = getpid()};
    auto_close int read_end = -1;
    auto_close int write_end = -1;
    int ends[2];
    *stage = SPAWN_FORK;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        *errnum = errno;
        return -1;
    }
    read_end = ends[0];
    write_end = p.report_fd = ends[1];
    p.candidates = make_candidates(s->argv[0], s->path);
    p.sh_argv = make_sh_argv(s->argv);

    /* Block signals meanwhile: a handler must not run in the child that shares our memory. */
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = start_child(&p);
    int why = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) {
        *errnum = why;
        return -1;
    }
    close(TAKE_FD(write_end));
    struct failure f;
    if (!read_failure(read_end, s->patience_ms, &f)) {
        *stage = SPAWN_OK;
        return pid;
    }
    kill(pid, SIGKILL); /* it may run as another user by now, who can stop it */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *stage = (enum spawn_stage)f.stage;
    *errnum = f.errnum;
    return -1;
}
