/* Trying what can be enforced: see confine.h. Makes a test group, checks its control files,
 * attaches a device filter, and removes the group. v1 controllers fill in for what v2 lacks.
 * The nursery calls confine_find once; the daemon reads its answer. */
#include "sys/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cpu_list.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "sys/cgroup.h"
#include "sys/devfilter.h"

static const char *const names[CONFINE_PARTS] = {
    [CONFINE_END] = "kill",  [CONFINE_MEMORY] = "memory",       [CONFINE_SWAP] = "swap",
    [CONFINE_CPUS] = "cpus", [CONFINE_PROCESSES] = "processes", [CONFINE_DEVICES] = "devices",
    [CONFINE_VRAM] = "vram", [CONFINE_FOLDERS] = "folders",
};

/* The control file that shows each ability, in v2 and in v1. v1 groups are killed process by
 * process. */
static const struct {
    const char *v2;
    enum cgroup_v1 controller;
    const char *v1;
} files[CONFINE_DEVICES] = {
    [CONFINE_END] = {"cgroup.procs", CGROUP_V1_PIDS, "cgroup.procs"},
    [CONFINE_MEMORY] = {"memory.max", CGROUP_V1_MEMORY, "memory.limit_in_bytes"},
    [CONFINE_SWAP] = {"memory.swap.max", CGROUP_V1_MEMORY, "memory.memsw.limit_in_bytes"},
    [CONFINE_CPUS] = {"cpu.max", CGROUP_V1_CPU, "cpu.cfs_quota_us"},
    [CONFINE_PROCESSES] = {"pids.max", CGROUP_V1_PIDS, "pids.max"},
};

const char *
confine_name(enum confine_part part)
{
    return names[part];
}

/* True if attempts can have a group at all. */
static bool
has_groups(const struct confinement *c)
{
    bool any = c->base != NULL;
    for (int i = 0; i < CGROUP_V1_N; i++)
        any |= c->v1[i] != NULL;
    return any;
}

/* --- trying --- */

/* True if a group in this folder has the file and it is writable. */
static bool
has_file(const char *base, const char *file)
{
    auto_free char *path = xasprintf("%s/try", base);
    if (cgroup_make_folder(AT_FDCWD, path) < 0)
        return false;
    auto_free char *name = xasprintf("%s/%s", path, file);
    bool has = access(name, W_OK) == 0;
    rmdir(path);
    return has;
}

static void
try_v2(struct confinement *c)
{
    for (int i = 0; c->base && i < CONFINE_DEVICES; i++)
        c->has[i] = has_file(c->base, files[i].v2);
}

/* Tries only what v2 lacks: a controller is in one of the two trees. */
static void
try_v1(const char *name, struct confinement *c)
{
    bool used[CGROUP_V1_N] = {false};
    if (c->has[CONFINE_MEMORY] && c->has[CONFINE_CPUS] && c->has[CONFINE_PROCESSES])
        return;
    (void)cgroup_v1_find_bases(name, c->v1);
    for (int i = 0; i < CONFINE_DEVICES; i++) {
        enum cgroup_v1 from = files[i].controller;
        if (c->has[i])
            continue;
        /* Any tree serves to find the processes. */
        for (int k = 0; i == CONFINE_END && !c->v1[from] && k < CGROUP_V1_N; k++)
            from = c->v1[k] ? (enum cgroup_v1)k : from;
        c->has[i] = c->v1[from] && has_file(c->v1[from], files[i].v1);
        used[from] |= c->has[i];
    }
    for (int i = 0; i < CGROUP_V1_N; i++) {
        if (c->v1[i] && !used[i]) {
            rmdir(c->v1[i]);
            free(TAKE(c->v1[i]));
        }
    }
}

static void
try_devices(struct confinement *c)
{
    struct err e = {0};
    if (geteuid() != 0)
        c->why[CONFINE_DEVICES] = xstrdup("only a daemon that runs as root can do this");
    else if (!c->base)
        c->why[CONFINE_DEVICES] = xstrdup("this needs a cgroup v2 group");
    else if (devfilter_try(c->base, &e) == 0)
        c->has[CONFINE_DEVICES] = true;
    else
        c->why[CONFINE_DEVICES] = xstrdup(e.text);
}

static void
try_vram(struct confinement *c)
{
    if (!c->base)
        c->why[CONFINE_VRAM] = xstrdup("this needs a cgroup v2 group");
    else if (has_file(c->base, "dmem.max"))
        c->has[CONFINE_VRAM] = true;
    else
        c->why[CONFINE_VRAM] =
            xasprintf("the group %s has no dmem controller (Linux 6.14 and later, "
                      "built with CONFIG_CGROUP_DMEM)",
                      c->base);
}

/* Runs in a process and mount namespace of its own, so that nobody sees the mount. */
_Noreturn static void
mount_and_exit(void)
{
    int failed = unshare(CLONE_NEWNS) < 0 ||
                 mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                 mount("berth-mps", "/", "tmpfs", 0, "size=4k") < 0;
    _exit(failed ? errno & 0xff : 0);
}

static void
try_folders(struct confinement *c)
{
    int status = -1;
    if (geteuid() != 0) {
        c->why[CONFINE_FOLDERS] = xstrdup("only a daemon that runs as root can do this");
        return;
    }
    pid_t pid = fork();
    if (pid == 0)
        mount_and_exit();
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    c->has[CONFINE_FOLDERS] = pid > 0 && status == 0;
    if (!c->has[CONFINE_FOLDERS])
        c->why[CONFINE_FOLDERS] = xasprintf(
            "no file system can be mounted here%s%s", pid > 0 && WIFEXITED(status) ? ": " : "",
            pid > 0 && WIFEXITED(status) ? strerror(WEXITSTATUS(status)) : "");
}

static void
find_cpus(struct confinement *c)
{
    auto_buf struct buf list = BUF_INIT;
    cpu_set_t cpus;

    if (sched_getaffinity(0, sizeof cpus, &cpus) < 0)
        return;
    cpu_list_add(&cpus, &list);
    c->cpus = buf_take(&list);
}

/* reason: why there is no v2 group, if there is none. */
static void
explain(struct confinement *c, const char *reason)
{
    for (int i = 0; i < CONFINE_DEVICES; i++) {
        if (c->has[i])
            continue;
        if (!has_groups(c))
            c->why[i] = xstrdup(reason);
        else if (i == CONFINE_SWAP && c->has[CONFINE_MEMORY])
            c->why[i] = xstrdup("this kernel does not account for swap");
        else
            c->why[i] = xasprintf("no %s controller is handed to the group %s",
                                  cgroup_v1_names[files[i].controller],
                                  c->base ? c->base : "of this daemon");
    }
}

void
confine_find(const char *name, struct confinement *out)
{
    struct err e = {0};
    *out = (struct confinement){0};
    if (cgroup_find_base(name, &out->base, &e) < 0)
        out->base = NULL;
    try_v2(out);
    try_v1(name, out);
    try_devices(out);
    try_vram(out);
    try_folders(out);
    find_cpus(out);
    explain(out, e.text);
}

void
confine_free(struct confinement *c)
{
    free(c->base);
    free(c->cpus);
    for (int i = 0; i < CGROUP_V1_N; i++)
        free(c->v1[i]);
    for (int i = 0; i < CONFINE_PARTS; i++)
        free(c->why[i]);
    *c = (struct confinement){0};
}

/* --- telling --- */

void
confine_write(const struct confinement *c, struct jsonw *w)
{
    jsonw_object(w);
    jsonw_kstr(w, "cgroup", c->base);
    jsonw_kobject(w, "v1");
    for (int i = 0; i < CGROUP_V1_N; i++)
        if (c->v1[i])
            jsonw_kstr(w, cgroup_v1_names[i], c->v1[i]);
    jsonw_end_object(w);
    jsonw_kstr(w, "cpus", c->cpus);
    jsonw_kobject(w, "enforced");
    for (int i = 0; i < CONFINE_PARTS; i++)
        jsonw_kbool(w, names[i], c->has[i]);
    jsonw_end_object(w);
    jsonw_kobject(w, "why");
    for (int i = 0; i < CONFINE_PARTS; i++)
        if (c->why[i])
            jsonw_kstr(w, names[i], c->why[i]);
    jsonw_end_object(w);
    jsonw_end_object(w);
}

static char *
copy_of(const json_t *from, const char *key)
{
    const char *text = json_string_value(json_object_get(from, key));
    return text ? xstrdup(text) : NULL;
}

bool
confine_read(const json_t *from, struct confinement *out)
{
    const json_t *v1 = json_object_get(from, "v1");
    const json_t *enforced = json_object_get(from, "enforced");
    const json_t *why = json_object_get(from, "why");
    *out = (struct confinement){0};
    if (!json_is_object(v1) || !json_is_object(enforced) || !json_is_object(why))
        return false;
    out->base = copy_of(from, "cgroup");
    out->cpus = copy_of(from, "cpus");
    for (int i = 0; i < CGROUP_V1_N; i++)
        out->v1[i] = copy_of(v1, cgroup_v1_names[i]);
    for (int i = 0; i < CONFINE_PARTS; i++) {
        out->has[i] = json_is_true(json_object_get(enforced, names[i]));
        out->why[i] = copy_of(why, names[i]);
    }
    return true;
}
