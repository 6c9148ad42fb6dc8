/* See mps_control.h. The user can put anything into the user's own folder, so only processes
 * running as that user touch its content. Called by mps_keeper.c. */
#include "shepherd/mps/mps_control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "shepherd/common/attempt_spec.h"
#include "shepherd/mps/mps_folder.h"
#include "sys/mps_place.h"
#include "sys/procs.h"
#include "sys/spawn.h"
#include "wire/members.h"

#define ORDER_MAX_BYTES 65536
#define SPAWN_MS        30000 /* for a child that its user may stop */
#define SAID_BYTES      16384 /* of its output, from the start */
#define PAUSE_NS        2000000

static const struct member members[] = {
    {MEMBER(TEXT, mps_order, uuid), .needed = true},
    {MEMBER(TEXT, mps_order, program), .needed = true},
    {MEMBER(TEXT, mps_order, dir), .needed = true},
    {MEMBER(TEXT, mps_order, user)},
    {MEMBER(NUMBER, mps_order, uid), .max = UINT32_MAX - 1},
    {MEMBER(NUMBER, mps_order, drop_caps), .max = INT64_MAX},
    {MEMBER(FLAG, mps_order, become)},
    {MEMBER(FLAG, mps_order, no_new_privs)},
    {MEMBER(FLAG, mps_order, mend)},
    {0},
};

/* --- preparing --- */

int
mps_control_read(int order_fd, struct mps_control *c, struct err *e)
{
    struct mps_order *out = &c->order;
    auto_free char *text = xmalloc(ORDER_MAX_BYTES);
    ssize_t n = pread(order_fd, text, ORDER_MAX_BYTES, 0);
    out->root = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
    if (!out->root)
        return err_set(e, ERR_FAILED, "the order for MPS cannot be read");
    return members_read(out->root, members, out, e) < 0 ||
                   groups_read(out->root, &out->groups, e) < 0
               ? -1
               : 0;
}

static int
look_up(struct mps_control *c, struct err *e)
{
    const struct mps_order *o = &c->order;
    const struct spec account = {.uid = o->uid,
                                 .user = o->user,
                                 .drop_caps = o->drop_caps,
                                 .no_new_privs = o->no_new_privs};
    if (!o->become || identity_look_up(&account, &c->identity) == 0)
        return 0;
    return err_set(e, ERR_FAILED, "the account of user %" PRId64 " cannot be looked up",
                   o->uid);
}

static void
make_environ(struct mps_control *c)
{
    const struct mps_order *o = &c->order;
    const char *home = o->become ? c->identity.home : getenv("HOME");
    c->env = xcalloc(8, sizeof *c->env);
    c->env[0] = xstrdup("PATH=" MPS_PATH);
    c->env[1] = xasprintf("HOME=%s", home && home[0] ? home : "/");
    c->env[2] = xasprintf("CUDA_VISIBLE_DEVICES=%s", o->uuid);
    c->env[3] = xstrdup("CUDA_DEVICE_ORDER=PCI_BUS_ID");
    c->env[4] = xasprintf("CUDA_MPS_PIPE_DIRECTORY=%s/pipe", c->folder);
    c->env[5] = xasprintf("CUDA_MPS_LOG_DIRECTORY=%s/log", c->folder);
    c->env[6] = xasprintf("BERTH_MARK=%s", c->mark);
}

int
mps_control_prepare(int folder_fd, struct mps_control *c, struct err *e)
{
    char name[24];
    snprintf(name, sizeof name, "%" PRId64, c->order.uid);
    c->folder = xasprintf("%s/%s", c->order.dir, name);
    c->mark = mps_mark(c->order.dir, c->order.uid);
    if (look_up(c, e) < 0 ||
        mps_folder_make(folder_fd, name, c->order.become ? &c->identity : NULL, e) < 0)
        return -1;
    make_environ(c);
    return 0;
}

void
mps_control_end_folder(int folder_fd, const struct mps_control *c)
{
    if (c->folder)
        mps_folder_end(folder_fd, strrchr(c->folder, '/') + 1, c->folder);
}

void
mps_control_free(struct mps_control *c)
{
    for (char **one = c->env; one && *one; one++)
        free(*one);
    free(c->env);
    free(c->folder);
    free(c->mark);
    if (c->said_fd >= 0)
        close(c->said_fd);
    groups_close(&c->groups);
    identity_free(&c->identity);
    json_decref(c->order.root);
    *c = (struct mps_control)MPS_CONTROL_INIT;
}

/* --- as the user --- */

/* Files left by a killed control daemon would keep the next one from starting. */
static void
empty_folder(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *one;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while ((one = readdir(dir)))
        (void)unlinkat(dirfd(dir), one->d_name, 0);
    closedir(dir);
}

static int
become(const struct mps_control *c, int death_signal)
{
    if (!c->order.become)
        return 0;
    identity_disown(&c->identity);
    return identity_become(&c->identity, death_signal);
}

static int
be_user(void *ctx)
{
    return become(ctx, SIGKILL);
}

static int
be_user_in_clean_folder(void *ctx)
{
    const struct mps_control *c = ctx;
    int why = become(c, 0);
    if (why != 0)
        return why;
    auto_close int fd = open(c->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || (mkdirat(fd, "pipe", 0700) < 0 && errno != EEXIST) ||
        (mkdirat(fd, "log", 0700) < 0 && errno != EEXIST))
        return errno;
    empty_folder(fd, "pipe");
    empty_folder(fd, "log");
    return 0;
}

static pid_t
spawn(const struct mps_control *c, char *option, int in, int out, struct err *e)
{
    char *argv[] = {(char *)c->order.program, option, NULL};
    enum spawn_stage stage;
    int errnum = 0;
    struct spawn s = SPAWN_INIT;
    s.argv = argv;
    s.envp = c->env;
    s.path = MPS_PATH;
    s.fds[0] = in;
    s.fds[1] = s.fds[2] = out;
    s.n_fds = 3;
    s.cgroup_fd = c->groups.fd;
    s.new_session = true;
    s.death_signal = option ? 0 : SIGKILL; /* the control daemon must outlive us for its jobs */
    s.patience_ms = SPAWN_MS; /* also makes it a forked copy, so before_exec may do more */
    s.before_exec = option ? be_user_in_clean_folder : be_user;
    s.ctx = (void *)c;
    pid_t pid = spawn_process(&s, &errnum, &stage);
    if (pid > 0)
        return pid;
    if (stage == SPAWN_EXEC && errnum == ENOENT)
        err_set(e, ERR_FAILED, "there is no %s", c->order.program);
    else
        err_errno(e, ERR_FAILED, errnum, "cannot %s %s",
                  stage == SPAWN_EXEC ? "execute" : "prepare a process for", c->order.program);
    return -1;
}

/* A memory file of fixed size: a control daemon that keeps writing must not fill memory. */
static int
make_said(void)
{
    int fd = memfd_create("mps-control", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, SAID_BYTES) == 0)
        (void)fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK);
    return fd;
}

int
mps_control_start(struct mps_control *c, struct err *e)
{
    static char FOREGROUND[] = "-f";
    auto_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    c->said_fd = make_said();
    if (null < 0 || c->said_fd < 0)
        return err_errno(e, ERR_FAILED, errno, "no descriptor is to be had");
    (void)groups_make(&c->order.groups, &c->groups, e); /* a limit; not needed to end it */
    pid_t pid = spawn(c, FOREGROUND, null, c->said_fd, e);
    if (pid < 0)
        return -1;
    struct proc self = {0};
    (void)proc_read(pid, &self); /* our child, which exists until reaped */
    c->pid = pid;
    c->ticks = self.start_ticks;
    return 0;
}

/* Its status, or -1 if it did not end in time. */
static int
wait_for(pid_t pid, int patience_ms)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int64_t until_us = clock_boot_us() + patience_ms * INT64_C(1000);
    int status;
    for (;;) {
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid)
            return status;
        if (got < 0 && errno != EINTR)
            return -1;
        if (clock_boot_us() > until_us)
            break;
        nanosleep(&pause, NULL);
    }
    kill(pid, SIGKILL);
    (void)waitpid(pid, &status, WNOHANG); /* else reaped later, with all others */
    return -1;
}

int
mps_control_tell(const struct mps_control *c, const char *words, int patience_ms)
{
    struct err e;
    auto_close int in = file_in_memory("mps-order", words, strlen(words));
    auto_close int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (in < 0 || out < 0)
        return -1;
    pid_t pid = spawn(c, NULL, in, out, &e);
    int status = pid > 0 ? wait_for(pid, patience_ms) : -1;
    return status == 0 ? 0 : -1;
}

bool
mps_control_answers(const struct mps_control *c, int patience_ms)
{
    return mps_control_tell(c, "get_server_list\n", patience_ms) == 0;
}

/* The last line of its output. */
static void
last_line(int fd, char *out, size_t size)
{
    char text[SAID_BYTES + 1];
    ssize_t n = fd < 0 ? -1 : pread(fd, text, SAID_BYTES, 0);
    text[n > 0 ? n : 0] = '\0';
    size_t len = strlen(text);
    while (len > 0 && (unsigned char)text[len - 1] <= ' ')
        text[--len] = '\0';
    const char *line = strrchr(text, '\n');
    snprintf(out, size, "%s", line ? line + 1 : text);
    for (char *at = out; *at; at++)
        if ((unsigned char)*at < ' ' || (unsigned char)*at >= 0x7f)
            *at = '?';
}

void
mps_control_explain(const struct mps_control *c, int status, char *out, size_t size)
{
    const char *slash = strrchr(c->order.program, '/');
    const char *name = slash ? slash + 1 : c->order.program;
    char said[64];
    last_line(c->said_fd, said, sizeof said);
    if (status == -1)
        snprintf(out, size, "%.40s has ended", name);
    else if (WIFSIGNALED(status))
        snprintf(out, size, "%.40s was ended by signal %d", name, WTERMSIG(status));
    else
        snprintf(out, size, "%.40s ended with exit status %d%s%s", name, WEXITSTATUS(status),
                 said[0] ? ": " : "", said);
}
