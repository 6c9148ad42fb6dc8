/* What podman and Apptainer are told: see container_words.h. Called by container.c. Pure.
 *
 * Podman makes a container that is like the job outside of one in all but its files: its user,
 * its network, shared memory and limits, the home and the working folder. It gets no group of
 * its own (--cgroups=disabled, which needs crun) and so stays in the attempt's: limits,
 * measuring and killing see its processes like any others. Its processes have a pid space of
 * their own, by which kill.c tells them from podman's, and which the kernel ends with
 * berth-init.
 *
 * Apptainer does all that by itself; only folders and cards are to be named. */
#include "shepherd/begin/container_words.h"

#include <string.h>

#include "base/buf.h"
#include "shepherd/common/attempt_spec.h"

static void
add(struct buf *out, const char *word)
{
    buf_add(out, word, strlen(word) + 1);
}

__attribute__((format(printf, 2, 3))) static void
addf(struct buf *out, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_addv(out, fmt, ap);
    va_end(ap);
    buf_addc(out, '\0');
}

static void
add_all(struct buf *out, const char *before, char *const *list)
{
    for (; list && *list; list++)
        addf(out, "%s%s", before, *list);
}

static bool
is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* The image keeps its root; and the options that name folders separate them by colons. */
static bool
can_be_mounted(const char *folder)
{
    return folder && folder[0] == '/' && folder[1] && !strpbrk(folder, ":,");
}

/* Home and working folder, in that place of the image where they are outside. */
static void
add_folders(const struct container_wish *w, const char *option, struct buf *out)
{
    const char *cwd = w->spec->cwd, *home = w->home;
    if (can_be_mounted(home))
        addf(out, "%s%s:%s", option, home, home);
    if (can_be_mounted(cwd) && !(can_be_mounted(home) && is_below(cwd, home)))
        addf(out, "%s%s:%s", option, cwd, cwd);
    add_all(out, option, w->spec->container.mounts);
}

static void
add_limit(const char *name, const struct rlimit *limit, struct buf *out)
{
    addf(out, "--ulimit=%s=%llu:%llu", name, (unsigned long long)limit->rlim_cur,
         (unsigned long long)limit->rlim_max);
}

/* Root's containers are root's; others' map their user to itself, and keep its groups. */
static void
add_user(const struct container_wish *w, struct buf *out)
{
    if (w->uid != 0) {
        add(out, "--userns=keep-id");
        add(out, "--group-add=keep-groups");
    }
    addf(out, "--user=%ju:%ju", (uintmax_t)w->uid, (uintmax_t)w->gid);
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
        "--entrypoint=", /* the job has a command */
        "--cgroups=disabled",
        "--network=host",
        "--uts=host",
        "--volume=/dev/shm:/dev/shm", /* 64 MiB would be too little for data loaders */
        "--log-driver=none",
        "--security-opt=label=disable", /* or SELinux keeps it out of the home */
        "--preserve-fds=1",             /* container_mark.h */
        "--env=BERTH_MARK",
        "--env=NVIDIA_VISIBLE_DEVICES", /* an image's own `all` would mean all cards */
    };
    add(out, c->program);
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        add(out, always[i]);
    addf(out, "--init-path=%s", w->init);
    addf(out, "--name=%s", c->name);
    addf(out, "--label=berth.job=%u", w->spec->job);
    add_user(w, out);
    add_limit("nofile", &w->files, out);
    add_limit("nproc", &w->processes, out);
    if (w->spec->no_new_privs)
        add(out, "--security-opt=no-new-privileges");
    if (w->spec->attach)
        add(out, "--interactive");
    if (w->spec->pty) {
        add(out, "--tty");
        add(out, "--detach-keys="); /* all keys are the command's */
    }
    add_folders(w, "--volume=", out);
    addf(out, "--workdir=%s", w->spec->cwd);
    add_all(out, "--device=", c->devices);
    add_all(out, "--device=", w->cdi);
    add(out, c->image);
    add_all(out, "", w->argv);
}

static void
add_apptainer(const struct container_wish *w, struct buf *out)
{
    const struct container *c = &w->spec->container;
    add(out, c->program);
    add(out, "exec");
    addf(out, "--pwd=%s", w->spec->cwd);
    add_folders(w, "--bind=", out);
    if (c->uuids[0])
        add(out, "--nv");
    if (c->amd)
        add(out, "--rocm");
    add(out, c->image);
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
    add(out, spec->container.program);
    add(out, "--cgroup-manager=cgroupfs");
    add(out, "rm");
    add(out, "--force");
    add(out, "--ignore");
    add(out, spec->container.name);
}
