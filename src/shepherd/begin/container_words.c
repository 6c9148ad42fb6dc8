/* The command lines for podman and Apptainer: see container_words.h. Called by container.c.
 * Pure.
 *
 * Podman makes a container in which only the files differ from a job without one: same user,
 * network, shared memory and limits, home and working folder. It gets no group of its own
 * (--cgroups=disabled, which needs crun) and so stays in the attempt's: limits, measuring and
 * killing cover its processes like any others. Its processes have their own pid namespace, by
 * which kill.c tells them from podman's, and the kernel ends them with berth-init.
 *
 * Apptainer does all that by default; only folders and GPUs need options. */
#include "shepherd/begin/container_words.h"

#include <string.h>

#include "base/buf.h"
#include "shepherd/common/attempt_spec.h"

static void
add_all(struct buf *out, const char *before, char *const *list)
{
    for (; list && *list; list++)
        buf_addzf(out, "%s%s", before, *list);
}

static bool
is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Not /, because the image keeps its own root; nor a path with the separators of mount
 * options. */
static bool
can_be_mounted(const char *folder)
{
    return folder && folder[0] == '/' && folder[1] && !strpbrk(folder, ":,");
}

/* Mounts home and working folder at the same paths as outside. */
static void
add_folders(const struct container_wish *w, const char *option, struct buf *out)
{
    const char *cwd = w->spec->cwd, *home = w->home;
    if (can_be_mounted(home))
        buf_addzf(out, "%s%s:%s", option, home, home);
    if (can_be_mounted(cwd) && !(can_be_mounted(home) && is_below(cwd, home)))
        buf_addzf(out, "%s%s:%s", option, cwd, cwd);
    add_all(out, option, w->spec->container.mounts);
}

static void
add_limit(const char *name, const struct rlimit *limit, struct buf *out)
{
    buf_addzf(out, "--ulimit=%s=%llu:%llu", name, (unsigned long long)limit->rlim_cur,
              (unsigned long long)limit->rlim_max);
}

/* Root's containers run as root; other users are mapped to themselves and keep their
 * groups. */
static void
add_user(const struct container_wish *w, struct buf *out)
{
    if (w->uid != 0) {
        buf_addz(out, "--userns=keep-id");
        buf_addz(out, "--group-add=keep-groups");
    }
    buf_addzf(out, "--user=%ju:%ju", (uintmax_t)w->uid, (uintmax_t)w->gid);
}

static void
add_podman(const struct container_wish *w, struct buf *out)
{
    const struct container *c = &w->spec->container;
    static const char *const always[] = {
        "--cgroup-manager=cgroupfs", /* needs no systemd, which would move it elsewhere */
        "--runtime=crun",
        "run",
        "--rm",
        "--init",
        "--entrypoint=", /* the job brings its own command */
        "--cgroups=disabled",
        "--network=host",
        "--uts=host",
        "--volume=/dev/shm:/dev/shm", /* the default of 64 MiB is too small for data loaders */
        "--log-driver=none",
        "--security-opt=label=disable", /* else SELinux denies access to the home */
        "--preserve-fds=1",             /* container_mark.h */
        "--env=BERTH_MARK",
        "--env=NVIDIA_VISIBLE_DEVICES", /* an image's own `all` would add all GPUs */
    };
    buf_addz(out, c->program);
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        buf_addz(out, always[i]);
    buf_addzf(out, "--init-path=%s", w->init);
    buf_addzf(out, "--name=%s", c->name);
    buf_addzf(out, "--label=berth.job=%u", w->spec->job);
    add_user(w, out);
    add_limit("nofile", &w->files, out);
    add_limit("nproc", &w->processes, out);
    if (w->spec->no_new_privs)
        buf_addz(out, "--security-opt=no-new-privileges");
    if (w->spec->attach)
        buf_addz(out, "--interactive");
    if (w->spec->pty) {
        buf_addz(out, "--tty");
        buf_addz(out, "--detach-keys="); /* all keys go to the command */
    }
    add_folders(w, "--volume=", out);
    buf_addzf(out, "--workdir=%s", w->spec->cwd);
    add_all(out, "--device=", c->devices);
    add_all(out, "--device=", w->cdi);
    buf_addz(out, c->image);
    add_all(out, "", w->argv);
}

static void
add_apptainer(const struct container_wish *w, struct buf *out)
{
    const struct container *c = &w->spec->container;
    buf_addz(out, c->program);
    buf_addz(out, "exec");
    buf_addzf(out, "--pwd=%s", w->spec->cwd);
    add_folders(w, "--bind=", out);
    if (c->uuids[0])
        buf_addz(out, "--nv");
    if (c->amd)
        buf_addz(out, "--rocm");
    buf_addz(out, c->image);
    add_all(out, "", w->argv);
}

void
container_add_words(const struct container_wish *w, struct buf *out)
{
    if (w->spec->container.apptainer)
        add_apptainer(w, out);
    else
        add_podman(w, out);
}

void
container_add_removal(const struct spec *spec, struct buf *out)
{
    buf_addz(out, spec->container.program);
    buf_addz(out, "--cgroup-manager=cgroupfs");
    buf_addz(out, "rm");
    buf_addz(out, "--force");
    buf_addz(out, "--ignore");
    buf_addz(out, spec->container.name);
}
