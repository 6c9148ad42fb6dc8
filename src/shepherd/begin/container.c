/* Replaces a command by podman or Apptainer: see container.h. command.c calls this before it
 * creates the process, outcome.c reads how the command ended. container_removal.c removes what
 * a killed podman leaves, container_words.c composes the command line, sys/cdi_names.c finds
 * the names of GPUs.
 *
 * The command's variables do not pass through podman: variables of the submitter's shell such
 * as PATH or LD_LIBRARY_PATH refer to this machine's files and must not override the image's.
 * They go to berth-init in a memory file (container_mark.h). */
#include "shepherd/begin/container.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "shepherd/begin/command.h"
#include "shepherd/begin/container_mark.h"
#include "shepherd/begin/container_words.h"
#include "shepherd/begin/identity.h"
#include "shepherd/common/attempt_spec.h"
#include "sys/cdi_names.h"
#include "sys/rlimits.h"
#include "sys/self.h"
#include "sys/spawn.h"

#define END_MAX       256
#define EXIT_CODE_MAX 255
#define SIGNAL_MAX    64

/* --- the command's variables --- */

/* True for captured variables about this machine's files or about the submitting session. */
static bool
stays_outside(const char *var)
{
    static const char *const names[] = {
        "PATH=",      "LD_",   "PYTHONPATH=", "PYTHONHOME=", "VIRTUAL_ENV=",
        "CONDA_",     "_CE_",  "SHELL=",      "BASH_",       "ENV=",
        "TMPDIR=",    "XDG_",  "DBUS_",       "MODULE",      "LOADEDMODULES=",
        "_LMFILES_=", "LMOD_", "OLDPWD=",     "_=",          NULL};
    return text_begins_with(var, names);
}

/* Captured variables that nevertheless override the image's. */
static bool
is_own(const char *var)
{
    static const char *const names[] = {"HOME=", "USER=", "LOGNAME=", "TERM=", NULL};
    return text_begins_with(var, names);
}

static void
add_variable(struct buf *out, char kind, const char *var)
{
    buf_addc(out, kind);
    buf_addz(out, var);
}

/* Compares pointers, because --screen inserts its own variables. */
static bool
is_captured(const struct spec *spec, const char *var)
{
    for (int32_t i = 0; i < spec->container.captured && spec->env[i]; i++) {
        if (spec->env[i] == var)
            return true;
    }
    return false;
}

static int
open_mark(const struct spec *spec, char *const *env, const char *script, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    for (int32_t i = 0; env[i]; i++) {
        bool captured = is_captured(spec, env[i]);
        if (strncmp(env[i], "PWD=", 4) == 0 || (captured && stays_outside(env[i])))
            continue;
        add_variable(&text, captured && !is_own(env[i]) ? CONTAINER_CAPTURED : CONTAINER_OWN,
                     env[i]);
    }
    auto_free char *pwd = xasprintf("PWD=%s", spec->cwd);
    add_variable(&text, CONTAINER_OWN, pwd);
    if (script)
        add_variable(&text, CONTAINER_SCRIPT, script);
    buf_addc(&text, '\0');
    int fd = file_in_memory("container", text.data, text.len);
    return fd < 0 ? err_errno(e, ERR_FAILED, errno, "cannot hand over the job's environment")
                  : fd;
}

/* --- podman's and Apptainer's environment --- */

/* A captured XDG_RUNTIME_DIR may be gone with the login, whereas podman finds its lock folder
 * by itself. With a bus address, podman would have systemd move it out of the attempt's
 * group. */
static bool
misleads_podman(const char *var)
{
    static const char *const names[] = {"XDG_RUNTIME_DIR=",
                                        "DBUS_SESSION_BUS_ADDRESS=",
                                        "LD_",
                                        "PATH=",
                                        "CONTAINER_HOST=",
                                        "CONTAINER_CONNECTION=",
                                        "NOTIFY_SOCKET=",
                                        "LISTEN_",
                                        "NVIDIA_VISIBLE_DEVICES=",
                                        NULL};
    return text_begins_with(var, names);
}

void
container_add_podman_env(char *const *env, const char *cards, struct buf *out)
{
    const char *path = command_env(env, "PATH");
    for (; *env; env++)
        if (!misleads_podman(*env))
            buf_addz(out, *env);
    buf_addzf(out, "PATH=%s%s%s", path ? path : "", path ? ":" : "", CONTAINER_FOLDERS);
    buf_addzf(out, "NVIDIA_VISIBLE_DEVICES=%s", cards);
    buf_addz(out, "DBUS_SESSION_BUS_ADDRESS=disabled:");
}

/* Apptainer passes its environment on, as its users expect; the prefixed name makes the job's
 * own variables override the image's. */
static void
add_apptainer_env(const struct spec *spec, char *const *env, struct buf *out)
{
    for (int32_t i = 0; env[i]; i++) {
        buf_addz(out, env[i]);
        if (is_captured(spec, env[i]))
            continue;
        buf_addzf(out, "APPTAINERENV_%s", env[i]);
    }
}

/* --- the run --- */

static struct rlimit
limit_of(const struct rlimits *limits, int which)
{
    struct rlimit own = {RLIM_INFINITY, RLIM_INFINITY};
    if (limits && limits->of[which].is_set)
        return limits->of[which].value;
    (void)getrlimit((__rlimit_resource_t)which, &own);
    return own;
}

/* Clamps to podman's own limit, because it cannot pass on more. */
static struct rlimit
bounded_processes(struct rlimit limit)
{
    auto_buf struct buf text = BUF_INIT;
    int64_t most = 32768;
    if (file_read("/proc/sys/kernel/pid_max", 64, &text, NULL) == 0)
        most = strtoll(buf_str(&text), NULL, 10);
    if (limit.rlim_max > (rlim_t)most)
        limit.rlim_max = (rlim_t)most;
    if (limit.rlim_cur > limit.rlim_max)
        limit.rlim_cur = limit.rlim_max;
    return limit;
}

void
container_clear(struct container_run *run)
{
    free(run->argv);
    free(run->env);
    buf_free(&run->words);
    buf_free(&run->variables);
}

int
container_prepare(const struct spec *spec, char *const *argv, char *const *env,
                  const struct identity *id, const struct rlimits *limits, const char *script,
                  struct container_run *out, struct err *e)
{
    auto_free char *init = self_sibling("berth-init");
    auto_cdi struct cdi_names names = {0};
    const char *home = command_env(env, "HOME");
    bool by_podman = !spec->container.apptainer;
    struct container_wish wish = {
        .spec = spec,
        .argv = argv,
        .home = home ? home
                : id ? id->home
                     : NULL,
        .init = init,
        .uid = id ? id->uid : getuid(),
        .gid = id ? id->gid : getgid(),
        .files = limit_of(limits, RLIMIT_NOFILE),
        .processes = bounded_processes(limit_of(limits, RLIMIT_NPROC)),
    };
    out->mark_fd = -1;
    if (by_podman && access(init, X_OK) < 0)
        return err_set(e, ERR_FAILED,
                       "this build of Berth has no berth-init, which containers "
                       "need: it was made without a static C library");
    if (by_podman && cdi_find(spec->container.uuids, spec->container.indices, &names, e) < 0)
        return -1;
    wish.cdi = names.list;
    container_add_words(&wish, &out->words);
    if (by_podman)
        container_add_podman_env(env, names.hook_cards ? names.hook_cards : "void",
                                 &out->variables);
    else
        add_apptainer_env(spec, env, &out->variables);
    out->argv = spawn_envp(out->words.data, out->words.len);
    out->env = spawn_envp(out->variables.data, out->variables.len);
    if (by_podman)
        out->mark_fd = open_mark(spec, env, script, e);
    return by_podman && out->mark_fd < 0 ? -1 : 0;
}

/* --- the end --- */

/* Reads the lines after the variables; text holds the last END_MAX bytes. */
static bool
read_lines(int fd, char *text)
{
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size > END_MAX - 1 ? size - (END_MAX - 1) : 0;
    ssize_t n = pread(fd, text, END_MAX - 1, from);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *last = memrchr(text, '\0', (size_t)n);
    if (last)
        memmove(text, last + 1, (size_t)(text + n - last));
    return true;
}

void
container_read_end(int mark_fd, struct container_end *out)
{
    char text[END_MAX];
    const char *at;
    *out = (struct container_end){.code = -1};
    if (!read_lines(mark_fd, text))
        return;
    out->begun = strstr(text, CONTAINER_BEGUN "\n");
    if ((at = strstr(text, CONTAINER_NO_EXEC " ")))
        (void)sscanf(at, CONTAINER_NO_EXEC " %d", &out->errnum);
    if (!out->begun && (at = strstr(text, CONTAINER_TROUBLE " ")))
        (void)sscanf(at, CONTAINER_TROUBLE " %d", &out->trouble);
    if ((at = strstr(text, CONTAINER_EXIT " ")))
        (void)sscanf(at, CONTAINER_EXIT " %d", &out->code);
    if ((at = strstr(text, CONTAINER_SIGNAL " ")))
        (void)sscanf(at, CONTAINER_SIGNAL " %d", &out->signal);
    /* The job can write to the file too. */
    if (out->code > EXIT_CODE_MAX)
        out->code = -1;
    if (out->signal < 0 || out->signal > SIGNAL_MAX)
        out->signal = 0;
}

bool
container_has_ended(int mark_fd)
{
    struct container_end end;
    container_read_end(mark_fd, &end);
    return end.code >= 0 || end.signal > 0;
}
